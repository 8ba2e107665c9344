//! Staged data files: are they there, and away with them.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use lance_io::object_store::ObjectStore;
use lance_table::format::Fragment;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::from_store;

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
        stream::iter(self.paths(fragments))
            .map(|(path, expected)| async move {
                match self.store.inner.head(&path).await {
                    Ok(found) if expected.is_none_or(|size| size == found.size) => Ok(()),
                    Ok(found) => Err(Error::new(
                        ErrorKind::CorruptData,
                        format!(
                            "staged file {} has {} bytes, not the {} it was written with",
                            name(&path),
                            found.size,
                            expected.unwrap_or_default()
                        ),
                    )),
                    Err(object_store::Error::NotFound { .. }) => Err(Error::new(
                        ErrorKind::StagedFileMissing,
                        format!("staged file {} is gone; the rows must be staged again", name(&path)),
                    )),
                    Err(e) => Err(from_store(e, "cannot look whether the staged files are there")),
                }
            })
            .buffer_unordered(PARALLEL)
            .try_collect::<()>()
            .await
    }

    /// Deletes the files, and answers how many there were. One that is gone already is fine.
    pub(super) async fn delete(&self, fragments: &[Fragment]) -> Result<u64> {
        stream::iter(self.paths(fragments))
            .map(|(path, _)| async move {
                // Some stores answer a delete of nothing with success.
                let there = match self.store.inner.head(&path).await {
                    Ok(_) => true,
                    Err(object_store::Error::NotFound { .. }) => false,
                    Err(e) => return Err(undeleted(e)),
                };
                match self.store.inner.delete(&path).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(u64::from(there)),
                    Err(e) => Err(undeleted(e)),
                }
            })
            .buffer_unordered(PARALLEL)
            .try_fold(0, |sum, one| async move { Ok(sum + one) })
            .await
    }

    fn paths(&self, fragments: &[Fragment]) -> Vec<(Path, Option<u64>)> {
        let files = fragments.iter().flat_map(|fragment| &fragment.files);
        files
            .map(|file| {
                (self.folder.clone().join(file.path.as_str()), file.file_size_bytes.get().map(std::num::NonZero::get))
            })
            .collect()
    }
}

fn name(path: &Path) -> &str {
    path.filename().unwrap_or_default()
}

fn undeleted(error: object_store::Error) -> Error {
    from_store(error, "the commit is aborted, but not all its files are deleted; repeat the abort")
}
