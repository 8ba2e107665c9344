//! What the client of a DoPut hears: how far its rows have come, and how it ended.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_flight::PutResult;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use lance_gateway_lake::StageProgress;
use lance_gateway_proto::flight::Frames;
use lance_gateway_proto::v1;
use prost::Message as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use crate::middleware::context;

/// Between two acks of one stream.
const INTERVAL: Duration = Duration::from_millis(100);

type Task = AbortOnDropHandle<Result<Bytes, Status>>;

/// The answers to one DoPut. They are made when the client takes them, so that none wait.
pub(in crate::flight) struct Acks(BoxStream<'static, Result<Frames, Status>>);

impl Acks {
    /// Follows `progress`, and ends with what the task ends with.
    pub(super) fn new(task: Task, progress: watch::Receiver<StageProgress>) -> Self {
        let following = Following { task: Some(task), progress, not_before: Instant::now() };
        let acks = stream::unfold(following, |mut following| async {
            let ack = following.next().await?;
            Some((ack, following))
        });
        Self(acks.boxed())
    }
}

impl Stream for Acks {
    type Item = Result<Frames, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

struct Following {
    task: Option<Task>,
    progress: watch::Receiver<StageProgress>,
    not_before: Instant,
}

impl Following {
    async fn next(&mut self) -> Option<Result<Frames, Status>> {
        let Self { task, progress, not_before } = self;
        let running = task.as_mut()?;
        let moved = async {
            progress.changed().await.ok()?;
            sleep_until(*not_before).await;
            Some(*progress.borrow_and_update())
        };
        tokio::select! {
            biased;
            ended = running => {
                *task = None;
                let ended = ended.unwrap_or_else(|lost| Err(context::lost_task(lost)));
                Some(ended.map(ack))
            }
            Some(progress) = moved => {
                *not_before = Instant::now() + INTERVAL;
                let StageProgress { num_rows, num_bytes, num_durable_rows } = progress;
                let so_far = v1::StageAck { num_rows, num_bytes, num_durable_rows, ..Default::default() };
                Some(Ok(ack(so_far.encode_to_vec().into())))
            }
        }
    }
}

fn ack(app_metadata: Bytes) -> Frames {
    Frames::of(&PutResult { app_metadata })
}
