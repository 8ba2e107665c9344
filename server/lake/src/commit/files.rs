//! Staged data files: are they there, and away with them.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use lance_io::object_store::ObjectStore;
use lance_table::format::Fragment;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// Requests to the store at once.
const PARALLEL: usize = 16;

/// The data files of one table.
#[derive(Debug)]
pub(super) struct DataFiles {
    store: Arc<ObjectStore>,
    folder: Path,
}

impl DataFiles {
    pub(super) fn new(store: Arc<ObjectStore>, table: &Path) -> Self {
        Self { store, folder: table.clone().join("data") }
    }

    /// Every file is there with the size it had: a file that a foreign cleanup took would be committed without complaint.
    pub(super) async fn check(&self, fragments: &[Fragment]) -> Result<()> {
        stream::iter(fragments.iter().flat_map(|fragment| &fragment.files))
            .map(|file| async move {
                let found = self.store.inner.head(&self.folder.clone().join(file.path.as_str())).await;
                match found {
                    Ok(meta) if file.file_size_bytes.get().is_none_or(|size| size.get() == meta.size) => Ok(()),
                    Ok(meta) => Err(Error::new(
                        ErrorKind::CorruptData,
                        format!(
                            "staged file {} has {} bytes, not the {:?} it was written with",
                            file.path,
                            meta.size,
                            file.file_size_bytes.get()
                        ),
                    )),
                    Err(object_store::Error::NotFound { .. }) => Err(Error::new(
                        ErrorKind::StagedFileMissing,
                        format!("staged file {} is gone; the rows must be staged again", file.path),
                    )),
                    Err(e) => Err(Error::new(
                        ErrorKind::StoreUnavailable,
                        "the object store does not tell whether the staged files are there; try again",
                    )
                    .with_source(e)),
                }
            })
            .buffer_unordered(PARALLEL)
            .try_collect::<()>()
            .await
    }

    /// Deletes the files. One that is gone already is fine.
    pub(super) async fn delete(&self, fragments: &[Fragment]) -> Result<u64> {
        let deleted: Vec<u64> = stream::iter(fragments.iter().flat_map(|fragment| &fragment.files))
            .map(|file| async move {
                match self.store.inner.delete(&self.folder.clone().join(file.path.as_str())).await {
                    Ok(()) => Ok(1),
                    Err(object_store::Error::NotFound { .. }) => Ok(0),
                    Err(e) => Err(Error::new(
                        ErrorKind::StoreUnavailable,
                        "the commit is aborted, but the object store did not delete all its files; repeat the abort",
                    )
                    .with_source(e)),
                }
            })
            .buffer_unordered(PARALLEL)
            .try_collect()
            .await?;
        Ok(deleted.iter().sum())
    }
}
