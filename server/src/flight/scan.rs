//! DoGet: the batches of one split, as fast as the client takes them and no faster.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_flight::Ticket;
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use lance_gateway_lake::{ScanStream, SplitSpec};
use lance_gateway_proto::flight::{EncodeOptions, Encoder, Frames, Message, SmallMessages, decode_command};
use lance_gateway_proto::{Reason, v1};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;

use super::queue::{Broken, Receiver, Sender, Stalled, queue};
use super::{MAX_COMMAND_BYTES, MAX_MESSAGE_BYTES, idle, within};
use crate::admission::Permit;
use crate::convert;
use crate::middleware::context;
use crate::state::Gateway;
use crate::status::{from_flight, from_lake, status};
use crate::telemetry::Metrics;

/// Most bytes that are handed to the socket at once: a client that takes less within the stall time counts as stalled.
const PIECE_BYTES: usize = 1 << 20;

/// Answers a DoGet. Dropping the stream ends the scan.
pub(super) async fn get(gateway: Gateway, body: Body) -> Result<Pieces, Status> {
    let ticket = ticket(&gateway, body).await?;
    let spec = convert::split_spec(ticket, convert::saturating(gateway.config.scan.max_filter_depth))?;
    let permit = gateway.admission.scan()?;
    let scan = gateway.lake()?.scan(&spec).await.map_err(from_lake)?;
    let encoder = Encoder::new(&scan.schema(), sizes(&gateway, &spec));
    let buffer = gateway.config.scan.send_buffer_bytes.as_usize();
    let (sender, receiver) = queue(buffer);
    let stall = gateway.config.scan.write_stall_timeout.get();
    let outbox = Outbox { sender, piece: buffer.min(PIECE_BYTES), stall };
    let sending = Sending { scan, encoder, outbox, metrics: Arc::clone(&gateway.metrics), _permit: permit };
    let task = AbortOnDropHandle::new(context::spawn(sending.run()));
    Ok(Pieces { receiver, _task: task })
}

async fn ticket(gateway: &Gateway, body: Body) -> Result<v1::ScanTicket, Status> {
    let limit = gateway.config.write.idle_timeout.get();
    let mut requests = SmallMessages::<_, Ticket>::request(body, MAX_COMMAND_BYTES);
    let ticket = within(limit, requests.next(), || idle("the client sent no ticket", limit, "write.idle-timeout"))
        .await?
        .ok_or_else(|| status(Reason::InvalidArgument, "the call has no ticket"))?
        .map_err(from_flight)?;
    decode_command("ScanTicket", &ticket.ticket).map_err(from_flight)
}

fn sizes(gateway: &Gateway, spec: &SplitSpec) -> EncodeOptions {
    let max_row_bytes = gateway.config.scan.max_row_bytes.as_usize();
    let target_bytes = spec.batch_bytes.unwrap_or(gateway.config.scan.batch_bytes.as_usize()).clamp(1, max_row_bytes);
    EncodeOptions { target_bytes, max_bytes: target_bytes.max(MAX_MESSAGE_BYTES), max_row_bytes }
}

/// What the task of a stream holds. All of it is gone when the client has everything, or stalls, or goes away.
struct Sending {
    scan: ScanStream,
    encoder: Encoder,
    outbox: Outbox,
    metrics: Arc<Metrics>,
    _permit: Permit,
}

enum Failure {
    Scan(Status),
    Stalled,
}

impl From<Stalled> for Failure {
    fn from(_: Stalled) -> Self {
        Self::Stalled
    }
}

impl Sending {
    async fn run(mut self) {
        let ended = self.all().await;
        let Outbox { sender, stall, .. } = self.outbox;
        match ended {
            Ok(()) => sender.finish(),
            Err(Failure::Scan(status)) => sender.fail(status),
            Err(Failure::Stalled) => {
                sender.abandon(idle("the client took nothing", stall, "scan.write-stall-timeout"));
            }
        }
    }

    async fn all(&mut self) -> Result<(), Failure> {
        let Self { scan, encoder, outbox, metrics, .. } = self;
        outbox.send(encoder.schema_message(None, Bytes::new())).await?;
        while let Some(batch) = scan.next().await {
            let batch = batch.map_err(|e| Failure::Scan(from_lake(e)))?;
            let messages = encoder.encode(&batch, Bytes::new()).map_err(|e| Failure::Scan(from_flight(e)))?;
            for message in messages {
                outbox.send(message).await?;
            }
            metrics.rows_scanned(batch.num_rows() as u64);
        }
        Ok(outbox.sender.drained(outbox.stall).await?)
    }
}

/// Cuts messages into pieces that the client must take in time.
struct Outbox {
    sender: Sender<Bytes, Status>,
    piece: usize,
    stall: Duration,
}

impl Outbox {
    async fn send(&self, message: Message) -> Result<(), Stalled> {
        let mut frames = Frames::from(message);
        while let Some(mut part) = frames.pop() {
            while !part.is_empty() {
                let piece = part.split_to(part.len().min(self.piece));
                let bytes = piece.len();
                self.sender.send(piece, bytes, Some(self.stall)).await?;
            }
        }
        Ok(())
    }
}

/// Pieces of messages, for the socket.
pub(super) struct Pieces {
    receiver: Receiver<Bytes, Status>,
    _task: AbortOnDropHandle<()>,
}

impl Stream for Pieces {
    type Item = Result<Frames, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_next_unpin(cx).map(|piece| {
            piece.map(|piece| match piece {
                Ok(piece) => Ok(Frames::from(piece)),
                Err(Broken::Failed(status)) => Err(status),
                Err(Broken::Lost) => Err(status(Reason::Internal, "the scan broke off, see the log of the gateway")),
            })
        })
    }
}
