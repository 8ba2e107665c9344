//! What a client reads: messages in pieces, each to be taken in time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use lance_gateway_proto::Reason;
use lance_gateway_proto::flight::{EncodeOptions, Frames, Message};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use super::queue::{Broken, Receiver, Sender, Stalled, queue};
use super::{MAX_MESSAGE_BYTES, idle};
use crate::config::ScanConfig;
use crate::middleware::context;
use crate::status::status;

/// Most bytes that are handed to the socket at once: a client that takes less within the stall time counts as stalled.
const PIECE_BYTES: usize = 1 << 20;

/// Why a stream ends before all is sent.
pub(super) enum Failure {
    /// It cannot be made.
    Failed(Status),
    /// The client takes nothing.
    Stalled,
}

impl From<Stalled> for Failure {
    fn from(_: Stalled) -> Self {
        Self::Stalled
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}

/// Sizes of the messages of a stream whose client wishes for batches of `batch_bytes`.
pub(super) fn sizes(config: &ScanConfig, batch_bytes: Option<usize>) -> EncodeOptions {
    let max_row_bytes = config.max_row_bytes.as_usize();
    let target_bytes = batch_bytes.unwrap_or(config.batch_bytes.as_usize()).clamp(1, max_row_bytes);
    EncodeOptions { target_bytes, max_bytes: target_bytes.max(MAX_MESSAGE_BYTES), max_row_bytes }
}

/// Cuts messages into pieces that the client must take in time.
pub(super) struct Outbox {
    sender: Sender<Bytes, Status>,
    piece: usize,
    stall: Duration,
}

impl Outbox {
    pub(super) async fn send(&self, message: Message) -> Result<(), Stalled> {
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

    /// Waits until the client has all.
    pub(super) async fn drained(&self) -> Result<(), Stalled> {
        self.sender.drained(self.stall).await
    }
}

/// Makes a stream by a task that ends with it.
pub(super) fn stream<F>(config: &ScanConfig, make: impl FnOnce(Outbox) -> F) -> Pieces
where
    F: Future<Output = (Outbox, Result<(), Failure>)> + Send + 'static,
{
    let buffer = config.send_buffer_bytes.as_usize();
    let (sender, receiver) = queue(buffer);
    let outbox = Outbox { sender, piece: buffer.min(PIECE_BYTES), stall: config.write_stall_timeout.get() };
    let making = make(outbox);
    let task = async move {
        let (Outbox { sender, stall, .. }, ended) = making.await;
        match ended {
            Ok(()) => sender.finish(),
            Err(Failure::Failed(status)) => sender.fail(status),
            Err(Failure::Stalled) => {
                sender.abandon(idle("the client took nothing", stall, "scan.write-stall-timeout"));
            }
        }
    };
    Pieces { receiver, _task: AbortOnDropHandle::new(context::spawn(task)) }
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
                Err(Broken::Lost) => Err(status(Reason::Internal, "the stream broke off, see the log of the gateway")),
            })
        })
    }
}
