//! The handle that everything starts from.

use std::future::Future;
use std::sync::Arc;

use arrow_flight::flight_service_client::FlightServiceClient;
use lance_gateway_proto::STORAGE_OPTIONS_HEADER;
use lance_gateway_proto::v1::index_service_client::IndexServiceClient;
use lance_gateway_proto::v1::job_service_client::JobServiceClient;
use lance_gateway_proto::v1::search_service_client::SearchServiceClient;
use lance_gateway_proto::v1::status_service_client::StatusServiceClient;
use lance_gateway_proto::v1::table_service_client::TableServiceClient;
use lance_gateway_proto::v1::write_service_client::WriteServiceClient;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::connection::Connections;
use crate::error::{Effect, REQUEST_ID_HEADER};
use crate::retry::repeat;
use crate::{ClientOptions, Error, Result};

/// A client of one gateway. Cloning is cheap and shares the connections.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connections: Connections,
    options: ClientOptions,
}

/// One call over all its attempts.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) what: &'static str,
    pub(crate) effect: Effect,
    pub(crate) request_id: String,
}

impl Call {
    pub(crate) fn reads(what: &'static str) -> Self {
        Self { what, effect: Effect::Reads, request_id: Uuid::new_v4().to_string() }
    }

    pub(crate) fn changes(what: &'static str) -> Self {
        Self { effect: Effect::Changes, ..Self::reads(what) }
    }

    /// One attempt to send `message`.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Ok(id) = MetadataValue::try_from(&self.request_id) {
            request.metadata_mut().insert(REQUEST_ID_HEADER, id);
        }
        request
    }

    pub(crate) fn error(&self, status: Status) -> Error {
        Error::from_status(status, self.effect).with_request_id(&self.request_id)
    }
}

/// Sends a message with a method of a generated client, which wants to be borrowed mutably for each attempt.
macro_rules! send {
    ($this:ident.$service:ident().$method:ident, $call:expr, $message:expr) => {{
        let service = $this.$service();
        $this
            .call($call, $message, |request| {
                let mut service = service.clone();
                async move { service.$method(request).await }
            })
            .await
    }};
}
pub(crate) use send;

impl Client {
    /// Connects to the gateway at `uri`: `grpc://HOST:PORT`, `grpc+tls://HOST:PORT` or `grpc+unix:///PATH`.
    pub async fn connect(uri: impl AsRef<str>, options: ClientOptions) -> Result<Self> {
        options.validate()?;
        let connections = Connections::open(uri.as_ref(), &options).await?;
        Ok(Self { inner: Arc::new(Inner { connections, options }) })
    }

    /// What this client was made with.
    pub fn options(&self) -> &ClientOptions {
        &self.inner.options
    }

    pub(crate) fn tables(&self) -> TableServiceClient<Channel> {
        let limit = self.options().max_message_bytes;
        TableServiceClient::new(self.inner.connections.for_call())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
    }

    pub(crate) fn writes(&self) -> WriteServiceClient<Channel> {
        let limit = self.options().max_message_bytes;
        WriteServiceClient::new(self.inner.connections.for_call())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
    }

    pub(crate) fn searches(&self) -> SearchServiceClient<Channel> {
        let limit = self.options().max_message_bytes;
        SearchServiceClient::new(self.inner.connections.for_call())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
    }

    pub(crate) fn jobs(&self) -> JobServiceClient<Channel> {
        JobServiceClient::new(self.inner.connections.for_call())
            .max_decoding_message_size(self.options().max_message_bytes)
    }

    pub(crate) fn indexes(&self) -> IndexServiceClient<Channel> {
        let limit = self.options().max_message_bytes;
        IndexServiceClient::new(self.inner.connections.for_call())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
    }

    pub(crate) fn statuses(&self) -> StatusServiceClient<Channel> {
        StatusServiceClient::new(self.inner.connections.for_call())
    }

    pub(crate) fn flights(&self) -> FlightServiceClient<Channel> {
        let limit = self.options().max_message_bytes;
        FlightServiceClient::new(self.inner.connections.for_call())
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit)
    }

    /// The connection for the next stream of rows.
    pub(crate) fn stream_channel(&self) -> Channel {
        self.inner.connections.for_stream()
    }

    /// Sends a small call until it has an answer; see [`repeat`].
    pub(crate) async fn call<Req, Resp, F>(
        &self,
        call: Call,
        message: Req,
        send: impl Fn(Request<Req>) -> F,
    ) -> Result<Resp>
    where
        Req: Clone,
        F: Future<Output = Result<Response<Resp>, Status>>,
    {
        let options = self.options();
        repeat(&options.retry, call.effect, || async {
            let mut request = call.request(message.clone());
            request.set_timeout(options.request_timeout);
            if let Some(storage) = options.storage.header() {
                request.metadata_mut().insert_bin(STORAGE_OPTIONS_HEADER, storage);
            }
            match tokio::time::timeout(options.request_timeout, send(request)).await {
                Ok(answer) => answer.map(Response::into_inner).map_err(|status| call.error(status)),
                Err(_) => {
                    Err(Error::timed_out(call.what, options.request_timeout, call.effect)
                        .with_request_id(&call.request_id))
                }
            }
        })
        .await
    }
}
