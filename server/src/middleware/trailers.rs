//! The end of a response.

use http::HeaderMap;
use tonic::{Code, Status};

/// The code that these headers or trailers tell, if they do.
pub(super) fn code_of(headers: &HeaderMap) -> Option<Code> {
    headers.get("grpc-status").map(|value| Code::from_bytes(value.as_bytes()))
}

/// The trailers that end a stream with this status.
pub(super) fn of(status: &Status) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if status.add_header(&mut headers).is_err() {
        // Our own messages always fit into headers; a stream must end with a code in any case.
        headers.insert("grpc-status", http::HeaderValue::from(status.code() as i32));
    }
    headers
}
