//! A panic ends its call with INTERNAL, and nothing else.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt as _;
use http_body::{Frame, SizeHint};
use lance_gateway_proto::Reason;
use tonic::body::Body;
use tower::{Layer, Service};

use super::{Answer, Inner, Request, Response, layer, refuse, trailers};
use crate::status::status;

#[derive(Debug, Clone)]
pub struct PanicLayer;

#[derive(Debug, Clone)]
pub struct Panics<S> {
    inner: S,
}

layer!(PanicLayer => Panics {});

impl<S: Inner> Panics<S> {
    fn answer(&mut self, request: Request) -> Answer {
        let handler = self.inner.call(request);
        Box::pin(async move {
            match AssertUnwindSafe(handler).catch_unwind().await {
                Ok(Ok(response)) => Ok(response.map(|body| Body::new(Guarded { body: Some(body) }))),
                Ok(Err(never)) => match never {},
                Err(_) => Ok(refuse(&panicked())),
            }
        })
    }
}

/// The hook of telemetry has logged the panic with its place.
fn panicked() -> tonic::Status {
    status(Reason::Internal, "fault of the gateway, see its log")
}

/// A body that ends with INTERNAL when it panics.
struct Guarded {
    /// None: it ended, or it panicked and is not touched again.
    body: Option<Body>,
}

impl http_body::Body for Guarded {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
        match catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx))) {
            Ok(Poll::Ready(None)) => {
                self.body = None;
                Poll::Ready(None)
            }
            Ok(frame) => frame,
            Err(_) => {
                self.body = None;
                Poll::Ready(Some(Ok(Frame::trailers(trailers::of(&panicked())))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), http_body::Body::size_hint)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use tonic::Code;

    fn layered<F>(handler: F) -> Panics<impl Inner>
    where
        F: Fn() -> Response + Clone + Send + 'static,
    {
        PanicLayer.layer(tower::service_fn(move |_: Request| {
            let handler = handler.clone();
            async move { Ok::<_, Infallible>(handler()) }
        }))
    }

    #[tokio::test]
    async fn a_panicking_handler_answers_internal() {
        let mut service = layered(|| panic!("no"));
        let response = service.call(Request::new(Body::empty())).await.unwrap();
        assert_eq!(trailers::code_of(response.headers()), Some(Code::Internal));
    }

    #[tokio::test]
    async fn a_panicking_stream_keeps_what_it_sent_and_ends_with_internal() {
        let mut service = layered(|| {
            let frames = futures::stream::iter([1_u8, 2]).map(|n| match n {
                1 => Ok::<_, tonic::Status>(Frame::data(Bytes::from_static(b"row"))),
                _ => panic!("no"),
            });
            Response::new(Body::new(http_body_util::StreamBody::new(frames)))
        });
        use futures::StreamExt as _;
        let response = service.call(Request::new(Body::empty())).await.unwrap();
        let collected = response.into_body().collect().await.unwrap();
        let end = collected.trailers().cloned().unwrap();
        assert_eq!(trailers::code_of(&end), Some(Code::Internal));
        assert_eq!(collected.to_bytes().as_ref(), b"row");
    }
}
