//! The time of a call: `grpc-timeout` of the client, capped for unary calls.

use std::convert::Infallible;
use std::time::Duration;

use http::HeaderMap;
use tower::{Layer, Service};

use super::{Answer, Class, Inner, Method, Request, Response, layer, refuse};
use crate::status::status;

#[derive(Debug, Clone)]
pub struct DeadlineLayer {
    cap: Duration,
}

impl DeadlineLayer {
    pub(super) fn new(cap: Duration) -> Self {
        Self { cap }
    }
}

#[derive(Debug, Clone)]
pub struct Deadline<S> {
    inner: S,
    cap: Duration,
}

layer!(DeadlineLayer => Deadline { cap });

impl<S: Inner> Deadline<S> {
    fn answer(&mut self, request: Request) -> Answer {
        let method = Method::of(request.uri().path());
        let wished = wished(request.headers());
        let limit = match method.class {
            Class::Open | Class::Stream => wished,
            Class::Read | Class::Change | Class::Commit => Some(wished.map_or(self.cap, |wished| wished.min(self.cap))),
        };
        let handler = self.inner.call(request);
        let Some(limit) = limit else { return Box::pin(handler) };
        // Made now and not when first polled: the transport keeps the same time outside of us, and its answer has no reason.
        let sleep = tokio::time::sleep(limit);
        Box::pin(async move {
            tokio::select! {
                biased;
                response = handler => response,
                () = sleep => {
                    let message = format!("{} did not end within {limit:?}", method.name);
                    Ok(refuse(&status(method.reason_when_late(), message)))
                }
            }
        })
    }
}

/// `grpc-timeout`: at most 8 digits and a unit. One that cannot be read is none, as in other servers.
fn wished(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use tokio::time::Instant;
    use tonic::Status;
    use tonic::body::Body;
    use tonic_types::StatusExt as _;

    /// How long a handler that never ends runs, and the reason of the answer.
    async fn cut(path: &str, timeout: Option<&str>) -> (Duration, String) {
        let begin = Instant::now();
        let mut service = DeadlineLayer::new(Duration::from_secs(60))
            .layer(tower::service_fn(|_: Request| std::future::pending::<Result<Response, Infallible>>()));
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = path.parse().unwrap();
        if let Some(timeout) = timeout {
            request.headers_mut().insert("grpc-timeout", timeout.parse().unwrap());
        }
        let response = service.call(request).await.unwrap();
        let status = Status::from_header_map(response.headers()).unwrap();
        (begin.elapsed(), status.get_error_details().error_info().unwrap().reason.clone())
    }

    const COUNT: &str = "/lancegateway.v1.TableService/CountRows";
    const COMMIT: &str = "/lancegateway.v1.WriteService/Commit";

    #[tokio::test(start_paused = true)]
    async fn a_unary_call_ends_at_the_earlier_of_its_timeout_and_the_cap() {
        for (timeout, seconds) in [(None, 60), (Some("5S"), 5), (Some("2H"), 60), (Some("nonsense"), 60)] {
            let (elapsed, reason) = cut(COUNT, timeout).await;
            assert_eq!(elapsed.as_secs(), seconds, "{timeout:?}");
            assert_eq!(reason, "DEADLINE_EXCEEDED");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_that_is_cut_has_an_unknown_outcome() {
        assert_eq!(cut(COMMIT, None).await.1, "COMMIT_STATE_UNKNOWN");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_has_no_cap_but_keeps_the_timeout_of_its_client() {
        let path = "/arrow.flight.protocol.FlightService/DoPut";
        assert_eq!(cut(path, Some("2H")).await.0.as_secs(), 7200);
        assert!(tokio::time::timeout(Duration::from_secs(100_000), cut(path, None)).await.is_err());
    }
}
