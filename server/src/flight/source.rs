//! What the client of a DoPut or a DoExchange sends.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use arrow_array::{Array as _, RecordBatch};
use arrow_flight::FlightDescriptor;
use arrow_schema::SchemaRef;
use futures::StreamExt as _;
use lance_gateway_proto::Reason;
use lance_gateway_proto::flight::{Decoded, Decoder, Item, MessageReader};
use tonic::Status;
use tonic::body::Body;

use super::idle;
use super::queue::Sender;
use crate::config::WriteConfig;
use crate::middleware::context;
use crate::status::{from_flight, status};

/// Messages with rows, each waited for as long as bytes of it come.
pub(super) struct Source {
    messages: MessageReader<Body>,
    decoder: Decoder,
    idle: Duration,
    /// The client has a reason to wait.
    pub(super) patient: bool,
}

/// What a client has sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl Taken {
    fn add(&mut self, batch: &RecordBatch, bytes: usize) {
        self.rows += batch.num_rows() as u64;
        self.bytes += bytes as u64;
    }
}

impl Source {
    pub(super) fn new(body: Body, config: &WriteConfig) -> Self {
        let max = config.max_message_bytes.as_usize();
        Self {
            messages: MessageReader::request(body, max),
            decoder: Decoder::new(max),
            idle: config.idle_timeout.get(),
            patient: false,
        }
    }

    /// Reads up to the schema: the first message has the descriptor, and mostly the schema as well.
    pub(super) async fn open(&mut self) -> Result<(FlightDescriptor, SchemaRef), Status> {
        let mut descriptor = None;
        while let Some(decoded) = self.next().await? {
            let described = descriptor
                .take()
                .or(decoded.descriptor)
                .ok_or_else(|| invalid("the first message has no descriptor"))?;
            if let Item::Schema(schema) = decoded.item {
                return Ok((described, schema));
            }
            descriptor = Some(described);
        }
        Err(invalid("the stream ended before its schema"))
    }

    /// Hands on all rows, as fast as they are taken.
    pub(super) async fn feed(&mut self, to: Sender<RecordBatch, Infallible>) -> Result<Taken, Status> {
        let mut taken = Taken::default();
        while let Some((batch, bytes)) = self.batch().await? {
            taken.add(&batch, bytes);
            if to.send(batch, bytes, None).await.is_err() {
                break;
            }
        }
        to.finish();
        Ok(taken)
    }

    /// Reads all rows and keeps none.
    pub(super) async fn count(&mut self) -> Result<Taken, Status> {
        let mut taken = Taken::default();
        while let Some((batch, bytes)) = self.batch().await? {
            taken.add(&batch, bytes);
        }
        Ok(taken)
    }

    /// The next rows, and the memory that they hold. Nothing is lost if it is dropped before it has them.
    pub(super) async fn batch(&mut self) -> Result<Option<(RecordBatch, usize)>, Status> {
        while let Some(decoded) = self.next().await? {
            if let Item::Batch(batch) = decoded.item {
                let bytes = size(&batch)?;
                return Ok(Some((batch, bytes)));
            }
        }
        Ok(None)
    }

    async fn next(&mut self) -> Result<Option<Decoded>, Status> {
        let Self { messages, decoder, idle: limit, patient } = self;
        let mut message = pin!(messages.next());
        loop {
            let before = received();
            match tokio::time::timeout(*limit, &mut message).await {
                Ok(None) => return Ok(None),
                Ok(Some(message)) => return message.and_then(|m| decoder.decode(m)).map(Some).map_err(from_flight),
                // A large message on a slow line is not idle.
                Err(_) if *patient || received() > before => {}
                Err(_) => return Err(idle("the client sent nothing", *limit, "write.idle-timeout")),
            }
        }
    }
}

/// Bytes of this call so far.
fn received() -> u64 {
    context::current().map_or(0, |call| call.bytes().0)
}

fn size(batch: &RecordBatch) -> Result<usize, Status> {
    batch
        .columns()
        .iter()
        .try_fold(0_usize, |sum, column| Ok(sum.saturating_add(column.to_data().get_slice_memory_size()?)))
        .map_err(|e: arrow_schema::ArrowError| invalid(&format!("the size of a batch is unknown: {e}")))
}

fn invalid(message: &str) -> Status {
    status(Reason::InvalidArgument, message)
}
