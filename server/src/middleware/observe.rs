//! The outermost layer: request id, span with the caller's trace, and one log line and one measurement for each call.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Frame, SizeHint};
use lance_gateway_proto::{Reason, STORAGE_OPTIONS_HEADER};
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::{Instrument as _, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::context::{self, Call, StorageOptions};
use super::{Answer, Class, Inner, Method, Request, Response, layer, trailers};
use crate::status;
use crate::telemetry::Metrics;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A longer id of a client is replaced.
const MAX_REQUEST_ID_BYTES: usize = 128;

#[derive(Clone)]
pub struct ObserveLayer {
    metrics: Arc<Metrics>,
}

impl ObserveLayer {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics }
    }
}

#[derive(Clone)]
pub struct Observe<S> {
    inner: S,
    metrics: Arc<Metrics>,
}

layer!(ObserveLayer => Observe { metrics });

impl<S: Inner> Observe<S> {
    fn answer(&mut self, request: Request) -> Answer {
        let method = Method::of(request.uri().path());
        let call = Call::new(request_id(request.headers()), storage_options(request.headers()));
        let span = span(method, &call, request.headers());
        let ended = Ended::new(method, Arc::clone(&call), span.clone(), Arc::clone(&self.metrics));
        let counted = Arc::clone(&call);
        let request = request.map(|body| Body::new(Received { body, call: counted }));
        // The layers below begin their work in `call`, which is a part of the call, too.
        let handler = context::sync_scope(&call, || span.in_scope(|| self.inner.call(request)));
        let handler = context::scope(Arc::clone(&call), handler).instrument(span);
        Box::pin(async move {
            let Ok(mut response) = handler.await;
            if !method.is_foreign() {
                let transport = Status::from_header_map(response.headers()).filter(|status| status.code() != Code::Ok);
                if let Some(status) = transport {
                    response = context::sync_scope(&call, || status::from_transport(status)).into_http();
                }
            }
            if let Ok(id) = HeaderValue::from_str(call.request_id()) {
                response.headers_mut().insert(REQUEST_ID, id);
            }
            let code = trailers::code_of(response.headers());
            Ok(response.map(|body| Body::new(Sent::new(body, ended, code))))
        })
    }
}

/// The id of the client if it is fit for a log, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .filter(|id| (1..=MAX_REQUEST_ID_BYTES).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic()))
        .map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

fn storage_options(headers: &HeaderMap) -> Option<StorageOptions> {
    let mut value = headers.get(STORAGE_OPTIONS_HEADER)?.clone();
    value.set_sensitive(true);
    Some(value)
}

fn span(method: Method, call: &Call, headers: &HeaderMap) -> Span {
    let span = tracing::info_span!(
        "call",
        otel.name = format!("{}/{}", method.service, method.name),
        otel.kind = "server",
        otel.status_code = tracing::field::Empty,
        rpc.system = "grpc",
        rpc.service = method.service,
        rpc.method = method.name,
        rpc.grpc.status_code = tracing::field::Empty,
        request_id = call.request_id(),
    );
    if headers.contains_key("traceparent") {
        // Without OpenTelemetry there is no trace that could have a parent.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
    }
    span
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// Tells what came of a call when it is dropped: at the end of its response, or when the caller went away.
struct Ended {
    method: Method,
    call: Arc<Call>,
    span: Span,
    metrics: Arc<Metrics>,
    begin: Instant,
    code: Option<Code>,
}

impl Ended {
    fn new(method: Method, call: Arc<Call>, span: Span, metrics: Arc<Metrics>) -> Self {
        metrics.call_began(method);
        Self { method, call, span, metrics, begin: Instant::now(), code: None }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let duration = self.begin.elapsed();
        let (code, reason) = match self.code {
            Some(Code::Ok) => (Code::Ok, None),
            Some(code) => (code, self.call.reason()),
            None => (Code::Cancelled, Some(Reason::Cancelled)),
        };
        let (bytes_in, bytes_out) = self.call.bytes();
        self.metrics.call_ended(self.method, code, reason, duration, bytes_in, bytes_out);
        self.span.record("rpc.grpc.status_code", code as i32);
        let fault = matches!(
            code,
            Code::Unknown | Code::Internal | Code::DataLoss | Code::Unavailable | Code::DeadlineExceeded
        );
        if fault {
            self.span.record("otel.status_code", "ERROR");
        }
        let reason = reason.map_or("", Reason::name);
        let Method { service, name, class } = self.method;
        let millis = duration.as_millis();
        let code = code as i32;
        let request_id = self.call.request_id();
        // Probes ask every few seconds. No parent: the line says by itself what the span would add.
        if class == Class::Open {
            tracing::debug!(target: ACCESS, parent: None, service, method = name, code, reason, millis, bytes_in, bytes_out, request_id, "call");
        } else {
            tracing::info!(target: ACCESS, parent: None, service, method = name, code, reason, millis, bytes_in, bytes_out, request_id, "call");
        }
    }
}

/// Target of the access log.
const ACCESS: &str = "lance_gateway::access";

/// Counts what comes in.
struct Received {
    body: Body,
    call: Arc<Call>,
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.call.received(data.len() as u64);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Counts what goes out and sees how it ends. The stream runs as a part of its call.
struct Sent {
    body: Body,
    ended: Ended,
}

impl Sent {
    fn new(body: Body, mut ended: Ended, code: Option<Code>) -> Self {
        ended.code = code;
        Self { body, ended }
    }
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let body = Pin::new(&mut this.body);
        let frame = context::sync_scope(&this.ended.call, || this.ended.span.in_scope(|| body.poll_frame(cx)));
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    this.ended.call.sent(data.len() as u64);
                } else if let Some(end) = frame.trailers_ref() {
                    this.ended.code = trailers::code_of(end).or(this.ended.code);
                }
            }
            Poll::Ready(Some(Err(status))) => this.ended.code = Some(status.code()),
            Poll::Ready(None) | Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn headers(id: &str) -> HeaderMap {
        HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_bytes(id.as_bytes()).unwrap())])
    }

    #[test]
    fn a_request_id_is_kept_if_it_is_fit_for_a_log_and_replaced_otherwise() {
        assert_eq!(request_id(&headers("job-1/cp-7")), "job-1/cp-7");
        for unfit in ["", "a b", "\u{fc}", &"x".repeat(129)] {
            assert!(uuid::Uuid::try_parse(&request_id(&headers(unfit))).is_ok(), "{unfit}");
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn a_status_of_the_transport_leaves_with_a_reason_and_the_request_id() {
        let mut service =
            ObserveLayer::new(Arc::new(Metrics::for_tests())).layer(tower::service_fn(|_: Request| async {
                Ok::<_, Infallible>(Status::unimplemented("").into_http())
            }));
        let mut request = Request::new(Body::empty());
        request.headers_mut().extend(headers("id-7"));
        let response = service.call(request).await.unwrap();
        assert_eq!(response.headers()[REQUEST_ID], "id-7");
        let status = Status::from_header_map(response.headers()).unwrap();
        use tonic_types::StatusExt as _;
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!((info.reason.as_str(), info.metadata["request_id"].as_str()), ("UNSUPPORTED", "id-7"));
    }
}
