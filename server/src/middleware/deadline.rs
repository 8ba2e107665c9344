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
        let limit = limit(method.class, request.headers(), self.cap);
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

/// The time of a call, if it has one.
fn limit(class: Class, headers: &HeaderMap, cap: Duration) -> Option<Duration> {
    let wished = wished(headers);
    match class {
        Class::Open | Class::Stream => wished,
        Class::Read | Class::Change | Class::Commit => Some(wished.map_or(cap, |wished| wished.min(cap))),
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
    use tonic::Status;
    use tonic::body::Body;
    use tonic_types::StatusExt as _;

    fn timeout(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", text.parse().unwrap());
        headers
    }

    #[test]
    fn a_unary_call_has_the_shorter_of_its_timeout_and_the_cap_and_a_stream_only_its_timeout() {
        let (cap, s) = (Duration::from_secs(60), Duration::from_secs);
        for (text, unary, stream) in [
            ("5S", s(5), Some(s(5))),
            ("2H", cap, Some(s(7200))),
            ("30M", cap, Some(s(1800))),
            ("250m", Duration::from_millis(250), Some(Duration::from_millis(250))),
            ("123456789S", cap, None),
            ("-1S", cap, None),
            ("S", cap, None),
            ("5", cap, None),
            ("", cap, None),
        ] {
            assert_eq!(limit(Class::Read, &timeout(text), cap), Some(unary), "{text}");
            assert_eq!(limit(Class::Stream, &timeout(text), cap), stream, "{text}");
        }
        assert_eq!(limit(Class::Commit, &HeaderMap::new(), cap), Some(cap));
        assert_eq!(limit(Class::Stream, &HeaderMap::new(), cap), None);
    }

    #[tokio::test]
    async fn a_call_that_is_late_is_cut_and_only_a_commit_is_of_unknown_outcome() {
        for (path, reason) in [
            ("/lancegateway.v1.TableService/CountRows", "DEADLINE_EXCEEDED"),
            ("/lancegateway.v1.WriteService/Commit", "COMMIT_STATE_UNKNOWN"),
        ] {
            let endless = tower::service_fn(|_: Request| std::future::pending::<Result<Response, Infallible>>());
            let mut service = DeadlineLayer::new(Duration::from_millis(1)).layer(endless);
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = path.parse().unwrap();
            let response = service.call(request).await.unwrap();
            let status = Status::from_header_map(response.headers()).unwrap();
            assert_eq!(status.get_error_details().error_info().unwrap().reason, reason);
        }
    }
}
