//! Staging: a stream of batches becomes data files that nobody sees until they are committed.

mod begin;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;
mod writer;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use chrono::Utc;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use lance::Dataset;
use lance::dataset::{WriteMode as LanceWriteMode, WriteParams};
use lance_table::format::{Fragment, pb};
use prost::Message as _;
use tokio::sync::watch;

use crate::Lake;
use crate::commit::envelope::{self, Kind};
use crate::commit::messages::{ChangeFile, Mode, StagedWrite, WriteHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::merge;
use crate::scan::size;
use crate::schema::{Fit, from_ipc};
use crate::table::{Handle, Location, known_incarnation, parse_file_version};
use crate::types::{StageProgress, Staged, TableId, WriteMode};

pub(crate) use begin::sealed;
pub(crate) use writer::FileWriter;

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
        batches: BoxStream<'static, Result<RecordBatch>>,
        progress: watch::Sender<StageProgress>,
    ) -> BoxFuture<'a, Result<Staged>> {
        Box::pin(async move {
            let handle: WriteHandle = envelope::open(Kind::WriteHandle, write)?;
            // Before any file: the sweep relies on a committable being at least as old as each of its files.
            let created_at_ms = Utc::now().timestamp_millis();
            let location = self.locate(&table_of(&handle))?;
            let dataset = self.open_latest(&location).await?;
            check_incarnation(&dataset, &handle, &location.shown)?;
            let params = self.write_params(handle.mode().into(), &handle.data_storage_version, max_rows_per_file)?;
            let mut intake = self.intake(&handle, &location).await?;
            let mut files = Files { dataset, params, progress, writer: None };
            match files.take_all(&mut intake, batches).await {
                Ok(()) => {}
                Err(error) => {
                    files.abort(&location.shown).await;
                    intake.abort().await;
                    return Err(error);
                }
            }
            let fragments = files.finish(&location.shown).await;
            let fragments = match fragments {
                Ok(fragments) => fragments,
                Err(error) => {
                    intake.abort().await;
                    return Err(error);
                }
            };
            seal(&handle, created_at_ms, fragments, intake.finish().await?)
        })
    }

    async fn intake(&self, handle: &WriteHandle, location: &Location) -> Result<Intake> {
        Ok(match handle.mode() {
            Mode::Append | Mode::Overwrite => Intake::Rows(Rows {
                wanted: from_ipc(&handle.schema_ipc)?,
                file_version: handle.data_storage_version.clone(),
                fit: None,
            }),
            Mode::Merge => {
                let (store, table) = self.inner.stores.store(&location.uri, &location.access).await?;
                Intake::Changes(Box::new(merge::Intake::new(store, table, handle)?))
            }
        })
    }

    pub(crate) fn write_params(
        &self,
        mode: WriteMode,
        file_version: &str,
        max_rows_per_file: Option<usize>,
    ) -> Result<WriteParams> {
        let options = &self.inner.options.write;
        let rows = max_rows_per_file.filter(|rows| *rows > 0).unwrap_or(options.max_rows_per_file);
        Ok(WriteParams {
            mode: match mode {
                WriteMode::Append | WriteMode::Merge => LanceWriteMode::Append,
                WriteMode::Overwrite => LanceWriteMode::Overwrite,
            },
            max_rows_per_file: rows.clamp(1, u32::MAX as usize),
            max_bytes_per_file: options.max_bytes_per_file,
            data_storage_version: Some(parse_file_version(file_version)?),
            session: Some(self.inner.stores.session()),
            skip_auto_cleanup: true,
            ..Default::default()
        })
    }
}

/// What a stage does with batches before they are rows of data files.
enum Intake {
    Rows(Rows),
    Changes(Box<merge::Intake>),
}

struct Rows {
    wanted: SchemaRef,
    file_version: String,
    fit: Option<Fit>,
}

impl Intake {
    async fn take(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        match self {
            Self::Rows(rows) => rows.take(batch),
            Self::Changes(changes) => changes.take(batch).await,
        }
    }

    async fn finish(self) -> Result<Option<ChangeFile>> {
        match self {
            Self::Rows(_) => Ok(None),
            Self::Changes(changes) => changes.finish().await,
        }
    }

    async fn abort(self) {
        if let Self::Changes(changes) = self {
            changes.abort().await;
        }
    }
}

impl Rows {
    fn take(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let schema = batch.schema();
        match &mut self.fit {
            Some(fit) if fit.is_for(&schema) => fit.apply(batch),
            fit => fit.insert(Fit::new(&self.wanted, schema, &self.file_version)?).apply(batch),
        }
    }
}

/// The data files of one stage. Nothing is opened for a stream without rows.
struct Files {
    dataset: Handle,
    params: WriteParams,
    progress: watch::Sender<StageProgress>,
    writer: Option<FileWriter>,
}

impl Files {
    async fn take_all(
        &mut self,
        intake: &mut Intake,
        mut batches: BoxStream<'static, Result<RecordBatch>>,
    ) -> Result<()> {
        while let Some(batch) = batches.next().await.transpose()? {
            let rows = intake.take(&batch).await?;
            if batch.num_rows() == 0 {
                continue;
            }
            let bytes = size::rows_bytes(&size::columns(&batch), 0..batch.num_rows());
            let num_rows = batch.num_rows() as u64;
            if rows.num_rows() > 0 && !self.write(rows).await {
                // The writer is gone, and says why at its end.
                return Ok(());
            }
            self.progress.send_modify(|progress| {
                progress.num_rows += num_rows;
                progress.num_bytes += bytes;
            });
        }
        Ok(())
    }

    async fn write(&mut self, rows: RecordBatch) -> bool {
        let start = || {
            let (params, progress) = (self.params.clone(), self.progress.clone());
            FileWriter::start(self.dataset.clone(), params, rows.schema(), progress)
        };
        self.writer.get_or_insert_with(start).send(rows).await
    }

    async fn finish(self, shown: &str) -> Result<Vec<Fragment>> {
        match self.writer {
            Some(writer) => writer.finish(shown).await,
            None => Ok(Vec::new()),
        }
    }

    async fn abort(self, shown: &str) {
        if let Some(writer) = self.writer {
            writer.abort(shown).await;
        }
    }
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

fn seal(
    handle: &WriteHandle,
    created_at_ms: i64,
    fragments: Vec<Fragment>,
    changes: Option<ChangeFile>,
) -> Result<Staged> {
    let written: u64 = fragments.iter().map(|fragment| fragment.physical_rows.unwrap_or_default() as u64).sum();
    let num_rows = changes.as_ref().map_or(written, |changes| changes.num_changes);
    if num_rows == 0 {
        return Ok(Staged { staged: Bytes::new(), num_rows: 0, num_bytes: 0 });
    }
    let files = fragments.iter().flat_map(|fragment| &fragment.files);
    let num_bytes: u64 = files.filter_map(|file| file.file_size_bytes.get()).map(u64::from).sum();
    let num_bytes = num_bytes + changes.as_ref().map_or(0, |changes| changes.num_bytes);
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
        changes,
        key: handle.key.clone(),
        columns: handle.columns.clone(),
        chosen_in: handle.chosen_in,
    };
    Ok(Staged { staged: envelope::seal(Kind::StagedWrite, &staged)?, num_rows, num_bytes })
}
