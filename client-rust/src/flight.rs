//! Streams of rows: the Flight codec over a connection.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::{FlightDescriptor, PutResult, Ticket};
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use lance_gateway_proto::STORAGE_OPTIONS_HEADER;
use lance_gateway_proto::flight::{
    self as codec, BatchReader, Decoded, EncodeOptions, Encoder, Frames, GrpcBody, Item, MessageReader, SmallMessages,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::body::Body;
use tonic::metadata::{Binary, MetadataMap, MetadataValue};
use tonic::transport::Channel;
use tower::ServiceExt;

use crate::client::Call;
use crate::error::Effect;
use crate::{Client, ClientOptions, Error, Result};

const DO_GET: &str = "/arrow.flight.protocol.FlightService/DoGet";
const DO_EXCHANGE: &str = "/arrow.flight.protocol.FlightService/DoExchange";
const DO_PUT: &str = "/arrow.flight.protocol.FlightService/DoPut";

/// An acknowledgement is a few KiB.
const MAX_ACK_BYTES: usize = 1 << 20;

/// Opens the stream of one ticket.
pub(crate) async fn do_get(
    client: &Client,
    call: &Call,
    ticket: Bytes,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let options = client.options();
    let frames = Frames::of(&Ticket { ticket });
    let body = GrpcBody::request(stream::iter([Ok::<_, Status>(frames)]));
    let open = send(client.stream_channel(), call, DO_GET, options.storage.header(), Body::new(body));
    let response = tokio::time::timeout(options.request_timeout, open)
        .await
        .map_err(|_| Error::timed_out(call.what, options.request_timeout, call.effect))??;
    let messages =
        MessageReader::response(response, options.max_message_bytes).map_err(|e| read_error(e, call.effect))?;
    let effect = call.effect;
    let batches = BatchReader::new(messages).filter_map(move |decoded| {
        let batch = match decoded {
            Ok(decoded) => match decoded.item {
                Item::Batch(batch) => Some(Ok(batch)),
                Item::Schema(_) | Item::Dictionary | Item::Metadata => None,
            },
            Err(e) => Some(Err(read_error(e, effect))),
        };
        std::future::ready(batch)
    });
    Ok(batches.boxed())
}

/// What a DoExchange answers.
pub(crate) type Messages = BoxStream<'static, Result<Decoded>>;

/// Opens a stream that sends batches of `schema` and reads what the gateway answers meanwhile.
pub(crate) async fn do_exchange<E>(
    client: &Client,
    call: &Call,
    descriptor: &FlightDescriptor,
    schema: &SchemaRef,
    sizes: EncodeOptions,
    batches: impl Stream<Item = Result<RecordBatch, E>> + Send + 'static,
) -> Result<Messages>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let options = client.options();
    let mut encoder = Encoder::new(schema, sizes);
    let first = Frames::from(encoder.schema_message(Some(descriptor), Bytes::new()));
    // A request that breaks off tells the gateway nothing: why it did is kept for the caller.
    let (fails, failure) = watch::channel(None);
    let schema = schema.clone();
    let rest = batches.flat_map(move |batch| {
        let messages = batch
            .map_err(Error::input)
            .and_then(|batch| encoder.encode(&conform(&batch, &schema)?, Bytes::new()).map_err(write_error));
        stream::iter(match messages {
            Ok(messages) => messages.into_iter().map(|message| Ok(Frames::from(message))).collect::<Vec<_>>(),
            Err(error) => {
                fails.send_replace(Some(error));
                vec![Err(Status::cancelled("the batches failed"))]
            }
        })
    });
    let body = Body::new(GrpcBody::request(stream::iter([Ok(first)]).chain(rest).boxed()));
    let open = send(client.stream_channel(), call, DO_EXCHANGE, options.storage.header(), body);
    let opened = match tokio::time::timeout(options.request_timeout, open).await {
        Ok(opened) => opened,
        Err(_) => Err(Error::timed_out(call.what, options.request_timeout, call.effect)),
    };
    let messages = opened.and_then(|response| {
        MessageReader::response(response, options.max_message_bytes).map_err(|e| read_error(e, call.effect))
    });
    let messages = messages.map_err(|error| true_cause(error, &failure))?;
    let (effect, idle) = (call.effect, options.stream_idle_timeout);
    let reading = (BatchReader::new(messages), failure);
    let answers = stream::try_unfold(reading, move |(mut messages, failure)| async move {
        let next = match tokio::time::timeout(idle, messages.next()).await {
            Ok(next) => next.transpose().map_err(|e| read_error(e, effect)),
            Err(_) => Err(Error::unavailable(format!("no answer came within {idle:?}"))),
        };
        match next {
            Ok(next) => Ok(next.map(|decoded| (decoded, (messages, failure)))),
            Err(error) => Err(true_cause(error, &failure)),
        }
    });
    Ok(answers.boxed())
}

/// The error of the batches, if that is why a stream broke.
fn true_cause(error: Error, failure: &watch::Receiver<Option<Error>>) -> Error {
    failure.borrow().as_ref().map_or(error, Error::again)
}

async fn send(
    channel: Channel,
    call: &Call,
    path: &str,
    storage: Option<MetadataValue<Binary>>,
    body: Body,
) -> Result<http::Response<Body>> {
    let mut metadata = MetadataMap::new();
    if let Some(storage) = storage {
        metadata.insert_bin(STORAGE_OPTIONS_HEADER, storage);
    }
    let mut request = http::Request::builder()
        .method(http::Method::POST)
        .version(http::Version::HTTP_2)
        .uri(path)
        .header(http::header::CONTENT_TYPE, "application/grpc")
        .header(http::header::TE, "trailers")
        .header(crate::error::REQUEST_ID_HEADER, &call.request_id)
        .body(body)
        .map_err(|e| Error::invalid_request(format!("{} cannot be sent: {e}", call.what)))?;
    request.headers_mut().extend(metadata.into_headers());
    channel.oneshot(request).await.map_err(|e| call.error(Status::from_error(Box::new(e))))
}

/// What the codec says of bytes that the gateway sent.
fn read_error(error: codec::Error, effect: Effect) -> Error {
    match error {
        codec::Error::Codec { message, .. } => Error::protocol(message),
        codec::Error::Status(status) => Error::from_status(*status, effect),
        codec::Error::Transport(cause) => match cause.downcast::<Status>() {
            Ok(status) => Error::from_status(*status, effect),
            Err(cause) => Error::from_status(Status::unavailable(format!("the connection broke: {cause}")), effect),
        },
    }
}

/// What the codec says of rows that the caller wants to send.
fn write_error(error: codec::Error) -> Error {
    match error {
        codec::Error::Codec { reason, message } => Error::invalid_request(message).with_reason(reason),
        other => Error::invalid_request(other.to_string()),
    }
}

/// A DoPut in progress. Dropping it before [`finish`](Self::finish) resets the stream: the gateway never takes a part for
/// the whole.
pub(crate) struct PutStream {
    encoder: Encoder,
    schema: SchemaRef,
    outbox: mpsc::Sender<Outgoing>,
    acks: watch::Receiver<Bytes>,
    answer: Answer,
    options: ClientOptions,
    call: Call,
}

enum Outgoing {
    Message(Frames),
    Finish,
}

/// The answer comes once, and maybe before all rows are sent.
enum Answer {
    Awaited(JoinHandle<Result<Bytes>>),
    Arrived(Bytes),
    Taken,
}

impl PutStream {
    /// Opens a stream that sends `schema` and takes batches of it.
    pub(crate) fn open(client: &Client, call: Call, command: Bytes, schema: &SchemaRef) -> Self {
        let options = client.options().clone();
        let sizes = EncodeOptions { max_row_bytes: options.max_message_bytes, ..EncodeOptions::default() };
        let encoder = Encoder::new(schema, sizes);
        let (outbox, inbox) = mpsc::channel(options.write_ahead_batches);
        let (progress, acks) = watch::channel(Bytes::new());
        let descriptor = FlightDescriptor::new_cmd(command);
        let first = Frames::from(encoder.schema_message(Some(&descriptor), Bytes::new()));
        let body = Body::new(GrpcBody::request(Box::pin(outgoing(first, inbox))));
        let task = tokio::spawn(receive(
            client.stream_channel(),
            call.clone(),
            client.options().storage.header(),
            body,
            progress,
        ));
        Self { encoder, schema: schema.clone(), outbox, acks, answer: Answer::Awaited(task), options, call }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The newest acknowledgement; empty before the first.
    pub(crate) fn last_ack(&self) -> Bytes {
        self.acks.borrow().clone()
    }

    /// Sends one batch; waits while the connection or the gateway is slower.
    pub(crate) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let batch = conform(batch, &self.schema)?;
        for message in self.encoder.encode(&batch, Bytes::new()).map_err(write_error)? {
            self.push(Outgoing::Message(Frames::from(message))).await?;
        }
        Ok(())
    }

    /// Ends the stream and waits for the last acknowledgement.
    pub(crate) async fn finish(mut self) -> Result<Bytes> {
        self.push(Outgoing::Finish).await?;
        loop {
            let task = match &mut self.answer {
                Answer::Awaited(task) => task,
                Answer::Arrived(ack) => return Ok(std::mem::take(ack)),
                Answer::Taken => return Err(Error::protocol("the stream ended with an error before")),
            };
            // Each acknowledgement shows that the gateway is still at work.
            tokio::select! {
                ended = task => return flatten(ended),
                acked = tokio::time::timeout(self.options.stream_idle_timeout, self.acks.changed()) => match acked {
                    Err(_) => return Err(self.idle()),
                    Ok(Ok(())) => {}
                    // The receiving task is about to end.
                    Ok(Err(_)) => if let Answer::Awaited(task) = &mut self.answer { return flatten(task.await) },
                },
            }
        }
    }

    async fn push(&mut self, message: Outgoing) -> Result<()> {
        let Answer::Awaited(task) = &mut self.answer else {
            return match self.answer {
                Answer::Arrived(_) => Ok(()),
                _ => Err(Error::protocol("the stream ended with an error before")),
            };
        };
        let permit = tokio::select! {
            biased;
            ended = &mut *task => {
                self.answer = Answer::Taken;
                self.answer = Answer::Arrived(flatten(ended)?);
                return Ok(());
            }
            permit = tokio::time::timeout(self.options.stream_idle_timeout, self.outbox.reserve()) => permit,
        };
        match permit {
            Ok(Ok(permit)) => {
                permit.send(message);
                Ok(())
            }
            // The connection let go of the body: the answer tells why.
            Ok(Err(_)) => {
                let ended = tokio::time::timeout(self.options.request_timeout, task).await;
                self.answer = Answer::Taken;
                let ack = ended.map_err(|_| self.idle()).and_then(flatten)?;
                self.answer = Answer::Arrived(ack);
                Ok(())
            }
            Err(_) => Err(self.idle()),
        }
    }

    fn idle(&self) -> Error {
        Error::timed_out(self.call.what, self.options.stream_idle_timeout, self.call.effect)
            .with_request_id(&self.call.request_id)
    }
}

impl Drop for PutStream {
    fn drop(&mut self) {
        if let Answer::Awaited(task) = &self.answer {
            task.abort();
        }
    }
}

fn flatten(ended: std::result::Result<Result<Bytes>, tokio::task::JoinError>) -> Result<Bytes> {
    ended.unwrap_or_else(|e| Err(Error::protocol(format!("the receiving task stopped: {e}"))))
}

/// The body of the request. It ends well only after `Finish`.
fn outgoing(first: Frames, inbox: mpsc::Receiver<Outgoing>) -> impl Stream<Item = Result<Frames, Status>> + Send {
    let rest = stream::unfold(Some(inbox), |inbox| async move {
        let mut inbox = inbox?;
        match inbox.recv().await {
            Some(Outgoing::Message(frames)) => Some((Ok(frames), Some(inbox))),
            Some(Outgoing::Finish) => None,
            None => Some((Err(Status::cancelled("the writer was dropped")), None)),
        }
    });
    stream::iter([Ok(first)]).chain(rest)
}

/// Reads acknowledgements to the end of the stream and gives back the last one.
async fn receive(
    channel: Channel,
    call: Call,
    storage: Option<MetadataValue<Binary>>,
    body: Body,
    progress: watch::Sender<Bytes>,
) -> Result<Bytes> {
    let named = |e: Error| e.with_request_id(&call.request_id);
    let response = send(channel, &call, DO_PUT, storage, body).await?;
    let mut acks = SmallMessages::<_, PutResult>::response(response, MAX_ACK_BYTES)
        .map_err(|e| named(read_error(e, call.effect)))?;
    let mut last = Bytes::new();
    while let Some(ack) = acks.next().await {
        last = ack.map_err(|e| named(read_error(e, call.effect)))?.app_metadata;
        progress.send_replace(last.clone());
    }
    Ok(last)
}

/// The batch under the schema of its stream: the same names and types in the same order, and no null where none may be.
pub(crate) fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if Arc::ptr_eq(batch.schema_ref(), schema) {
        return Ok(batch.clone());
    }
    let given = batch.schema();
    if let Some(what) = difference(&given, schema) {
        return Err(Error::invalid_request(what).with_reason(lance_gateway_proto::Reason::SchemaMismatch));
    }
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
        .map_err(|e| Error::invalid_request(format!("the batch does not fit the schema of its stream: {e}")))
}

fn difference(given: &Schema, wanted: &Schema) -> Option<String> {
    for (given, wanted) in given.fields().iter().zip(wanted.fields()) {
        if given.name() != wanted.name() {
            return Some(format!("the batch has column {:?} where the stream has {:?}", given.name(), wanted.name()));
        }
        if !given.data_type().equals_datatype(wanted.data_type()) {
            return Some(format!(
                "column {:?} of the batch is {}, of the stream {}",
                given.name(),
                given.data_type(),
                wanted.data_type()
            ));
        }
    }
    let (given, wanted) = (given.fields().len(), wanted.fields().len());
    (given != wanted).then(|| format!("the batch has {given} columns, the stream {wanted}"))
}
