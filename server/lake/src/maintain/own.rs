//! The handle that a piece of maintenance works with.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lance::Dataset;
use lance::Error as LanceError;
use lance_io::object_store::{ObjectStore, WrappingObjectStore};
use object_store::ObjectStoreExt as _;
use tokio::runtime::Handle;

use super::guard::OwnFiles;
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::table::{EditingHandler, INCARNATION_KEY, Location, incarnation};

/// Commits only to the incarnation of the table that it was opened with, and deletes nothing but files of
/// indexes that it wrote. Dropped before it began to commit, it takes those with it; those of data are left to the sweep.
pub(crate) struct Own {
    pub(crate) dataset: Dataset,
    files: Arc<OwnFiles>,
    store: Arc<ObjectStore>,
    marks: Arc<Marks>,
}

#[derive(Default)]
struct Marks {
    /// A commit met another incarnation.
    replaced: AtomicBool,
    /// A commit was sent to the store: whatever comes of it, its files may be named.
    sent: AtomicBool,
}

impl Lake {
    /// A handle of the latest version.
    pub(crate) async fn open_to_maintain(&self, location: &Location) -> Result<Own> {
        let latest = self.open_marked(location).await?;
        let wanted = incarnation(&latest)?;
        let marks = Arc::new(Marks::default());
        let met = marks.clone();
        let handler = EditingHandler::new(location.access.commit_handler(), move |manifest| {
            if manifest.table_metadata.get(INCARNATION_KEY) == Some(&wanted) {
                met.sent.store(true, Ordering::Relaxed);
                return Ok(());
            }
            met.replaced.store(true, Ordering::Relaxed);
            Err(LanceError::prerequisite_failed("the table was replaced"))
        });
        let dataset = self
            .inner
            .stores
            .dataset(latest.uri(), &location.access)
            .with_commit_handler(Arc::new(handler))
            .load()
            .await
            .map_err(|e| from_lance(e, format!("cannot open table {}", location.shown), Missing::Table))?;
        let (store, table) = self.inner.stores.store(&location.uri, &location.access).await?;
        let files = Arc::new(OwnFiles::new(&table));
        let guard: Arc<dyn WrappingObjectStore> = files.clone();
        Ok(Own { dataset: dataset.with_object_store_wrappers([guard]), files, store, marks })
    }
}

impl Own {
    /// What an error of a commit means.
    pub(crate) fn failed(&self, error: LanceError, doing: impl fmt::Display) -> Error {
        if self.marks.replaced.load(Ordering::Relaxed) {
            let what = format!("{doing}: it was dropped and made again meanwhile");
            return Error::new(ErrorKind::TableReplaced, what).with_source(error);
        }
        from_lance(error, doing, Missing::Version)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let files = self.files.paths();
        if files.is_empty() || self.marks.sent.load(Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let store = self.store.clone();
        runtime.spawn(async move {
            for file in files {
                match store.inner.delete(&file).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => tracing::warn!(%error, "a file of an index that was given up is left to the sweep"),
                }
            }
        });
    }
}

/// How often work is begun anew, one failure after the other.
pub(crate) struct Attempts {
    left: u32,
}

impl Attempts {
    pub(crate) fn new(most: u32) -> Self {
        Self { left: most }
    }

    /// The error, unless another attempt may end better: another writer was in the way, or the outcome of a commit is not known,
    /// and the next attempt begins with what is there.
    pub(crate) fn failed(&mut self, error: Error) -> Result<()> {
        let may_pass = matches!(
            error.kind(),
            ErrorKind::ConcurrentModification
                | ErrorKind::CommitConflict
                | ErrorKind::CommitStateUnknown
                | ErrorKind::TableVersionNotFound
        );
        self.left = self.left.saturating_sub(1);
        if !may_pass || self.left == 0 {
            return Err(error);
        }
        tracing::debug!(%error, left = self.left, "maintenance of a table begins anew");
        Ok(())
    }
}
