//! Who gets in: the state of the process first, then the number of calls. What is in is cut when the drain time is over.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use lance_gateway_proto::Reason;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::body::Body;
use tower::{Layer, Service};

use super::{Answer, Class, Inner, Method, Request, Response, layer, refuse, trailers};
use crate::admission::{Admission, Permit};
use crate::lifecycle::{Lifecycle, State, Work};
use crate::status::status;

#[derive(Debug, Clone)]
pub struct GateLayer {
    lifecycle: Arc<Lifecycle>,
    admission: Arc<Admission>,
}

impl GateLayer {
    pub(super) fn new(lifecycle: Arc<Lifecycle>, admission: Arc<Admission>) -> Self {
        Self { lifecycle, admission }
    }
}

#[derive(Debug, Clone)]
pub struct Gate<S> {
    inner: S,
    lifecycle: Arc<Lifecycle>,
    admission: Arc<Admission>,
}

layer!(GateLayer => Gate { lifecycle, admission });

/// What a call holds until its response has ended.
#[derive(Debug)]
struct Held {
    _work: Option<Work>,
    _permit: Option<Permit>,
}

impl<S: Inner> Gate<S> {
    fn answer(&mut self, request: Request) -> Answer {
        let method = Method::of(request.uri().path());
        let held = match self.enter(method) {
            Ok(held) => held,
            Err(status) => return Box::pin(std::future::ready(Ok(refuse(&status)))),
        };
        let cut = match method.class {
            // Nobody waits for these at the end; they may be endless.
            Class::Open => self.lifecycle.closing(),
            Class::Read | Class::Change | Class::Commit | Class::Stream => self.lifecycle.cut(),
        }
        .clone();
        let handler = self.inner.call(request);
        Box::pin(async move {
            tokio::select! {
                biased;
                response = handler => {
                    let Ok(response) = response;
                    Ok(response.map(|body| Body::new(Gated::new(body, held, method, cut))))
                }
                () = cut.cancelled() => Ok(refuse(&stopped(method))),
            }
        })
    }

    fn enter(&self, method: Method) -> Result<Held, tonic::Status> {
        if method.class == Class::Open {
            return Ok(Held { _work: None, _permit: None });
        }
        let work = self.lifecycle.begin().map_err(|state| match state {
            State::Starting => status(Reason::Starting, "the gateway does not serve yet; call again later"),
            State::Serving | State::Quiescing | State::Draining | State::Stopped => {
                status(Reason::Draining, "the gateway stops and takes no new work; call another one, or again later")
            }
        })?;
        // The service of a stream takes the permit: only it knows which kind.
        let permit = if method.class == Class::Stream { None } else { Some(self.admission.call()?) };
        Ok(Held { _work: Some(work), _permit: permit })
    }
}

fn stopped(method: Method) -> tonic::Status {
    status(method.reason_when_stopped(), format!("the gateway stopped before {} ended", method.name))
}

/// A body that holds its place, and that is cut with the rest.
struct Gated {
    body: Option<Body>,
    held: Option<Held>,
    method: Method,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Gated {
    fn new(body: Body, held: Held, method: Method, cut: CancellationToken) -> Self {
        Self { body: Some(body), held: Some(held), method, cut: Box::pin(cut.cancelled_owned()) }
    }

    fn end(&mut self) {
        self.body = None;
        self.held = None;
    }
}

impl http_body::Body for Gated {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let this = &mut *self;
        let Some(body) = this.body.as_mut() else { return Poll::Ready(None) };
        // Before the body, since one that always has a frame would never be cut.
        if this.cut.as_mut().poll(cx).is_ready() {
            let status = stopped(this.method);
            this.end();
            return Poll::Ready(Some(Ok(Frame::trailers(trailers::of(&status)))));
        }
        let frame = Pin::new(body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) {
            this.end();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), http_body::Body::size_hint)
    }
}
