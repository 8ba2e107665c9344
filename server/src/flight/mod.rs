//! The Flight service. Rows take the short way: DoGet, DoPut and DoExchange are answered on the level of HTTP, so that a batch is copied by
//! the socket and by nobody else; all small calls go through the generated service.

mod descriptor;
mod exchange;
mod info;
mod lookups;
mod outbox;
mod put;
mod queries;
mod queue;
mod scan;
mod source;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use bytes::Bytes;
use futures::Stream;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use lance_gateway_proto::Reason;
use lance_gateway_proto::flight::{Frames, GrpcBody, encode_json};
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

use crate::state::Gateway;
use crate::status::{from_flight, status};
use info::FlightApi;

type Request = http::Request<Body>;
type Response = http::Response<Body>;

/// What a descriptor or ticket may take: a filter with a long list of values fits.
const MAX_COMMAND_BYTES: usize = 4 << 20;
/// A message above this is sent only if it holds one row.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

const DO_GET: &str = "/arrow.flight.protocol.FlightService/DoGet";
const DO_PUT: &str = "/arrow.flight.protocol.FlightService/DoPut";
const DO_EXCHANGE: &str = "/arrow.flight.protocol.FlightService/DoExchange";

/// The Flight service of this gateway.
pub fn service(gateway: &Gateway) -> Flight {
    let small = FlightServiceServer::new(FlightApi::new(gateway.clone())).max_decoding_message_size(MAX_COMMAND_BYTES);
    Flight { gateway: gateway.clone(), small }
}

/// See [`service`].
#[derive(Clone)]
pub struct Flight {
    gateway: Gateway,
    small: FlightServiceServer<FlightApi>,
}

impl NamedService for Flight {
    const NAME: &'static str = <FlightServiceServer<FlightApi> as NamedService>::NAME;
}

impl Service<Request> for Flight {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let gateway = self.gateway.clone();
        match request.uri().path() {
            DO_GET => Box::pin(async move { Ok(answer(scan::get(gateway, request.into_body()).await)) }),
            DO_PUT => Box::pin(async move { Ok(answer(put::put(gateway, request.into_body()))) }),
            DO_EXCHANGE => Box::pin(async move { Ok(answer(exchange::exchange(gateway, request.into_body()))) }),
            _ => self.small.call(request),
        }
    }
}

/// A stream that ends with its status, or a status alone.
fn answer<S>(stream: Result<S, Status>) -> Response
where
    S: Stream<Item = Result<Frames, Status>> + Send + Unpin + 'static,
{
    match stream {
        Ok(stream) => {
            let mut response = Response::new(Body::new(GrpcBody::response(stream)));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
            response
        }
        Err(status) => status.into_http(),
    }
}

/// A message of ours beside rows: as JSON for people, else as it is.
fn about(name: &str, message: &impl prost::Message, json: bool) -> Result<Bytes, Status> {
    if json { encode_json(name, message).map_err(from_flight) } else { Ok(message.encode_to_vec().into()) }
}

/// The end of a stream whose client does nothing.
fn idle(what: &str, after: Duration, option: &str) -> Status {
    status(Reason::StreamIdle, format!("{what} for {after:?} ({option}); begin the stream anew"))
}

/// Waits for at most so long.
async fn within<T>(
    limit: Duration,
    future: impl Future<Output = T>,
    late: impl FnOnce() -> Status,
) -> Result<T, Status> {
    tokio::time::timeout(limit, future).await.map_err(|_| late())
}
