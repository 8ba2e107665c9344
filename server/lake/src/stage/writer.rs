//! The writer of data files. It runs apart from its caller, so that files are deleted also if the caller goes away.

use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::StreamExt as _;
use futures::stream;
use lance::dataset::transaction::Operation;
use lance::dataset::{InsertBuilder, WriteParams};
use lance::deps::datafusion::error::DataFusionError;
use lance::deps::datafusion::execution::SendableRecordBatchStream;
use lance::deps::datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use lance_table::format::Fragment;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, detail, from_lance};
use crate::table::Handle;
use crate::types::StageProgress;

/// Batches between the one that is taken in and the one that is encoded.
const QUEUED_BATCHES: usize = 1;

/// Turns batches into data files that nobody sees. Dropped before its end, it deletes them.
pub(crate) struct FileWriter {
    batches: mpsc::Sender<Feed>,
    task: JoinHandle<lance::Result<Vec<Fragment>>>,
}

/// What is handed over. A channel that closes without `End` means that the stage failed or was dropped.
enum Feed {
    Batch(RecordBatch),
    End,
}

impl FileWriter {
    /// `progress` hears of rows in closed files.
    pub(crate) fn start(
        dataset: Handle,
        params: WriteParams,
        schema: SchemaRef,
        progress: watch::Sender<StageProgress>,
    ) -> Self {
        let (batches, received) = mpsc::channel(QUEUED_BATCHES);
        Self { batches, task: tokio::spawn(write_files(dataset, params, schema, received, progress)) }
    }

    /// Answers false if the writer is gone; [`Self::finish`] tells why.
    pub(crate) async fn send(&self, batch: RecordBatch) -> bool {
        self.batches.send(Feed::Batch(batch)).await.is_ok()
    }

    /// `shown`: the table, for messages.
    pub(crate) async fn finish(self, shown: &str) -> Result<Vec<Fragment>> {
        // A writer that is gone says why below.
        self.batches.send(Feed::End).await.ok();
        self.end(shown).await
    }

    /// Deletes the files, and waits until that is done.
    pub(crate) async fn abort(self, shown: &str) {
        // That it was given up is what it answers.
        self.end(shown).await.ok();
    }

    async fn end(self, shown: &str) -> Result<Vec<Fragment>> {
        drop(self.batches);
        let written =
            self.task.await.map_err(|e| Error::internal("the writer of data files broke off").with_source(e))?;
        written.map_err(|e| write_error(e, shown))
    }
}

async fn write_files(
    dataset: Handle,
    params: WriteParams,
    schema: SchemaRef,
    received: mpsc::Receiver<Feed>,
    progress: watch::Sender<StageProgress>,
) -> lance::Result<Vec<Fragment>> {
    let batches = stream::unfold(Some(received), |received| async move {
        let mut received = received?;
        match received.recv().await {
            Some(Feed::Batch(batch)) => Some((Ok(batch), Some(received))),
            Some(Feed::End) => None,
            None => Some((Err(DataFusionError::External("the stage was given up".into())), None)),
        }
    });
    let source: SendableRecordBatchStream = Box::pin(RecordBatchStreamAdapter::new(schema, batches.boxed()));
    let files = AtomicU32::new(0);
    let transaction = InsertBuilder::new(dataset)
        .with_params(&params)
        .progress(move |stats| {
            // Rows count as durable when their file is closed.
            if files.swap(stats.files_written, Ordering::Relaxed) < stats.files_written {
                progress.send_modify(|progress| progress.num_durable_rows = stats.rows_written);
            }
        })
        .execute_uncommitted_stream(source)
        .await?;
    match transaction.operation {
        Operation::Append { fragments } | Operation::Overwrite { fragments, .. } => Ok(fragments),
        other => Err(lance::Error::internal(format!("staging became a {}", other.name()))),
    }
}

fn write_error(error: lance::Error, shown: &str) -> Error {
    let why = detail(&error);
    let mapped = from_lance(error, format!("cannot stage rows for table {shown}"), Missing::Table);
    match mapped.kind() {
        ErrorKind::SchemaMismatch => Error::new(
            ErrorKind::SchemaMismatch,
            format!("rows do not fit table {shown}: {why}; if its schema changed, begin the write anew"),
        )
        .with_source(mapped),
        ErrorKind::Unsupported | ErrorKind::InvalidArgument => {
            Error::new(mapped.kind(), format!("cannot stage rows for table {shown}: {why}")).with_source(mapped)
        }
        _ => mapped,
    }
}
