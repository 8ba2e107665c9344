//! Rows that a commit writes by itself: completed ones, and those of an update.

use arrow_array::RecordBatch;
use lance_table::format::Fragment;
use object_store::path::Path;
use tokio::sync::watch;

use crate::Lake;
use crate::error::Result;
use crate::stage::FileWriter;
use crate::table::Handle;
use crate::types::{StageProgress, WriteMode};

/// Their data files. Nothing is opened without rows; dropped before its end, it deletes them.
pub(super) struct NewRows {
    lake: Lake,
    dataset: Handle,
    writer: Option<FileWriter>,
}

impl NewRows {
    pub(super) fn new(lake: &Lake, dataset: &Handle) -> Self {
        Self { lake: lake.clone(), dataset: dataset.clone(), writer: None }
    }

    /// Rows with all columns of the table, as it names them.
    pub(super) async fn write(&mut self, rows: RecordBatch) -> Result<()> {
        let writer = match &self.writer {
            Some(writer) => writer,
            None => {
                let version = self.dataset.manifest().data_storage_format.version.to_string();
                let params = self.lake.write_params(WriteMode::Append, &version, None)?;
                let unwatched = watch::Sender::new(StageProgress::default());
                self.writer.insert(FileWriter::start(self.dataset.clone(), params, rows.schema(), unwatched))
            }
        };
        // A writer that is gone says why at its end.
        writer.send(rows).await;
        Ok(())
    }

    /// `files`: what was written.
    pub(super) async fn finish(self, table: &Path, files: &mut Vec<Path>) -> Result<Vec<Fragment>> {
        let Some(writer) = self.writer else { return Ok(Vec::new()) };
        let fragments = writer.finish("the table").await?;
        let written = fragments.iter().flat_map(|fragment| &fragment.files);
        files.extend(written.map(|file| table.clone().join("data").join(file.path.as_str())));
        Ok(fragments)
    }
}
