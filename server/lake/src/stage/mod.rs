//! Staging: a stream of batches becomes data files that nobody sees until they are committed.

mod begin;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use chrono::Utc;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use lance::Dataset;
use lance::dataset::transaction::Operation;
use lance::dataset::{InsertBuilder, WriteMode as LanceWriteMode, WriteParams};
use lance::deps::datafusion::error::DataFusionError;
use lance::deps::datafusion::execution::SendableRecordBatchStream;
use lance::deps::datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use lance_table::format::{Fragment, pb};
use prost::Message as _;
use tokio::sync::{mpsc, watch};

use crate::Lake;
use crate::commit::envelope::{self, Kind};
use crate::commit::messages::{Mode, StagedWrite, WriteHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, detail, from_lance};
use crate::scan::size;
use crate::schema::{Fit, from_ipc};
use crate::table::{Handle, known_incarnation, parse_file_version};
use crate::types::{StageProgress, Staged, TableId};

/// Batches between the one that is taken in and the one that is encoded.
const QUEUED_BATCHES: usize = 1;

impl Lake {
    /// The schema that batches of this write must have.
    pub fn write_schema(&self, write: &[u8]) -> Result<SchemaRef> {
        from_ipc(&envelope::open::<WriteHandle>(Kind::WriteHandle, write)?.schema_ipc)
    }

    /// Writes the batches to data files and answers what goes into `prepare`. `progress` follows. If this fails, or is dropped,
    /// the files of the stream are deleted again.
    pub fn stage<'a>(
        &'a self,
        write: &'a [u8],
        max_rows_per_file: Option<usize>,
        mut batches: BoxStream<'static, Result<RecordBatch>>,
        progress: watch::Sender<StageProgress>,
    ) -> BoxFuture<'a, Result<Staged>> {
        Box::pin(async move {
            let handle: WriteHandle = envelope::open(Kind::WriteHandle, write)?;
            // Before any file: the sweep relies on a committable being at least as old as each of its files.
            let created_at_ms = Utc::now().timestamp_millis();
            let location = self.locate(&table_of(&handle))?;
            let dataset = self.open_latest(&location).await?;
            check_incarnation(&dataset, &handle, &location.shown)?;
            let wanted = from_ipc(&handle.schema_ipc)?;

            // Nothing is opened for a stream without rows.
            let mut fit = None;
            let first = loop {
                match batches.next().await.transpose()? {
                    None => return Ok(Staged { staged: Bytes::new(), num_rows: 0, num_bytes: 0 }),
                    Some(batch) => {
                        let batch = fitted(&mut fit, &wanted, &handle, &batch)?;
                        if batch.num_rows() > 0 {
                            break batch;
                        }
                    }
                }
            };
            let params = self.write_params(&handle, max_rows_per_file)?;
            let (sender, receiver) = mpsc::channel(QUEUED_BATCHES);
            let writer = tokio::spawn(write_files(dataset, params, first.schema(), receiver, progress.clone()));

            let mut next = Some(first);
            let fed: Result<()> = async {
                while let Some(batch) = next.take() {
                    let bytes = size::rows_bytes(&size::columns(&batch), 0..batch.num_rows());
                    let rows = batch.num_rows() as u64;
                    if sender.send(Feed::Batch(batch)).await.is_err() {
                        return Ok(());
                    }
                    progress.send_modify(|progress| {
                        progress.num_rows += rows;
                        progress.num_bytes += bytes;
                    });
                    next = match batches.next().await.transpose()? {
                        Some(batch) => Some(fitted(&mut fit, &wanted, &handle, &batch)?),
                        None => None,
                    };
                }
                // If the writer is gone, it says why below.
                sender.send(Feed::End).await.ok();
                Ok(())
            }
            .await;
            drop(sender);
            let written =
                writer.await.map_err(|e| Error::internal("the writer of data files broke off").with_source(e))?;
            fed?;
            seal(&handle, created_at_ms, written.map_err(|e| write_error(e, &location.shown))?)
        })
    }

    fn write_params(&self, handle: &WriteHandle, max_rows_per_file: Option<usize>) -> Result<WriteParams> {
        let options = &self.inner.options.write;
        let rows = max_rows_per_file.filter(|rows| *rows > 0).unwrap_or(options.max_rows_per_file);
        Ok(WriteParams {
            mode: match handle.mode() {
                Mode::Append => LanceWriteMode::Append,
                Mode::Overwrite => LanceWriteMode::Overwrite,
            },
            max_rows_per_file: rows.clamp(1, u32::MAX as usize),
            max_bytes_per_file: options.max_bytes_per_file,
            data_storage_version: Some(parse_file_version(&handle.data_storage_version)?),
            session: Some(self.inner.stores.session()),
            skip_auto_cleanup: true,
            ..Default::default()
        })
    }
}

/// What is handed to the writer. A channel that closes without `End` means that the stage failed or was dropped.
enum Feed {
    Batch(RecordBatch),
    End,
}

/// The table that a handle was begun for.
pub(crate) fn table_of(handle: &WriteHandle) -> TableId {
    if handle.table_name.is_empty() {
        TableId::Uri(handle.table_uri.clone())
    } else {
        TableId::Name(handle.table_name.clone())
    }
}

/// Fails if the table at this place is another one than the write began with.
pub(crate) fn check_incarnation(dataset: &Dataset, handle: &WriteHandle, shown: &str) -> Result<()> {
    if known_incarnation(dataset) == Some(handle.incarnation.as_str()) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::TableReplaced,
        format!("table {shown} was dropped and created again since the write began; begin it anew"),
    ))
}

fn fitted(fit: &mut Option<Fit>, wanted: &SchemaRef, handle: &WriteHandle, batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    match fit {
        Some(fit) if fit.is_for(&schema) => fit.apply(batch),
        _ => fit.insert(Fit::new(wanted, schema, &handle.data_storage_version)?).apply(batch),
    }
}

/// Runs apart from the caller, so that files are deleted also if the caller goes away.
async fn write_files(
    dataset: Handle,
    params: WriteParams,
    schema: SchemaRef,
    receiver: mpsc::Receiver<Feed>,
    progress: watch::Sender<StageProgress>,
) -> lance::Result<Vec<Fragment>> {
    let batches = stream::unfold(Some(receiver), |receiver| async move {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Feed::Batch(batch)) => Some((Ok(batch), Some(receiver))),
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

fn seal(handle: &WriteHandle, created_at_ms: i64, fragments: Vec<Fragment>) -> Result<Staged> {
    let num_rows = fragments.iter().map(|fragment| fragment.physical_rows.unwrap_or_default() as u64).sum();
    let files = fragments.iter().flat_map(|fragment| &fragment.files);
    let num_bytes = files.filter_map(|file| file.file_size_bytes.get()).map(u64::from).sum();
    let staged = StagedWrite {
        incarnation: handle.incarnation.clone(),
        mode: handle.mode,
        run_id: handle.run_id.clone(),
        fragments: fragments.iter().map(|fragment| pb::DataFragment::from(fragment).encode_to_vec().into()).collect(),
        num_rows,
        num_bytes,
        created_at_ms,
        schema_fingerprint: handle.schema_fingerprint,
        fields: handle.fields.clone(),
    };
    Ok(Staged { staged: envelope::seal(Kind::StagedWrite, &staged)?, num_rows, num_bytes })
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
