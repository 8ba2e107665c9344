//! Staged files: are they there, and away with them.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use lance_io::object_store::ObjectStore;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use super::committable::Opened;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::from_store;
use crate::merge::{changes, discard};

/// Requests to the store at once.
const PARALLEL: usize = 16;

/// What was staged for one table.
#[derive(Debug)]
pub(super) struct StagedFiles {
    store: Arc<ObjectStore>,
    table: Path,
}

impl StagedFiles {
    pub(super) fn new(store: Arc<ObjectStore>, table: Path) -> Self {
        Self { store, table }
    }

    /// Every file is there with the size it had: a file that a foreign cleanup took would be committed without complaint.
    pub(super) async fn check(&self, commit: &Opened) -> Result<()> {
        stream::iter(self.paths(commit))
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
    pub(super) async fn delete(&self, commit: &Opened) -> Result<u64> {
        stream::iter(self.paths(commit))
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

    /// Nobody needs the changes of a commit that is made. What stays is left to the sweep.
    pub(super) async fn forget_changes(&self, commit: &Opened) {
        discard(&self.store, self.changes(commit).map(|(path, _)| path).collect()).await;
    }

    fn paths(&self, commit: &Opened) -> Vec<(Path, Option<u64>)> {
        let files = commit.fragments.iter().flat_map(|fragment| &fragment.files);
        let data = self.table.clone().join("data");
        let size = |file: &lance_table::format::DataFile| file.file_size_bytes.get().map(std::num::NonZero::get);
        files.map(|file| (data.clone().join(file.path.as_str()), size(file))).chain(self.changes(commit)).collect()
    }

    fn changes(&self, commit: &Opened) -> impl Iterator<Item = (Path, Option<u64>)> {
        let files = commit.merge.iter().flat_map(|changes| &changes.files);
        files.map(|file| (changes::path(&self.table, &file.name), Some(file.num_bytes)))
    }
}

fn name(path: &Path) -> &str {
    path.filename().unwrap_or_default()
}

fn undeleted(error: object_store::Error) -> Error {
    from_store(error, "the commit is aborted, but not all its files are deleted; repeat the abort")
}
