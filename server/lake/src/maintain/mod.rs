//! Maintenance: compaction, cleanup of versions, and the sweep of files that nobody names.
//!
//! All of it may be dropped at any point and begun again: what it leaves is either visible and whole, or a file that no manifest
//! names, which a later sweep takes. It runs beside commits: nothing here changes the rows of a table, and every version it
//! makes carries the ledger on, because a version inherits the metadata of the one before it.

mod cleanup;
mod compact;
mod guard;
mod manifests;
mod names;
mod own;
mod policy;
mod runs;
mod sweep;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use lance_io::object_store::ObjectStore;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use crate::Lake;
use crate::error::Result;
use crate::types::TableId;

pub(crate) use own::Attempts;
pub use policy::{KeyIndex, Policy};
pub use runs::Merge;

/// Deletes that are sent to the store at once.
const CONCURRENT_DELETES: usize = 16;

/// Properties of the versions that maintenance makes, for those who read the history.
pub(crate) fn marked(what: &str) -> HashMap<String, String> {
    HashMap::from([("lance-gateway.maintenance".to_owned(), what.to_owned())])
}

/// One lock a table.
pub(crate) type MaintenanceLocks = moka::future::Cache<String, Arc<Mutex<()>>>;

/// How far a piece of maintenance is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// What it does now.
    pub stage: &'static str,
    /// How much of `total` is done.
    pub done: u64,
    /// What there is to do; 0 while that is not known.
    pub total: u64,
}

/// Who follows the progress.
pub type ProgressSender = watch::Sender<Progress>;

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Fragments that were replaced.
    pub fragments_removed: u64,
    /// Fragments that replace them.
    pub fragments_added: u64,
    /// The version that shows it; 0 if there was nothing to do.
    pub version: u64,
}

/// Which versions a cleanup removes: those that fit both. The latest, and versions with a tag or a branch, stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanupSpec {
    /// Older than this.
    pub older_than: Option<Duration>,
    /// Not among the newest so many.
    pub keep_versions: Option<u64>,
    /// Only tells.
    pub dry_run: bool,
}

/// What a cleanup removed, or would.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Versions.
    pub num_versions: u64,
    /// Files besides the manifests.
    pub num_files: u64,
    /// Bytes of both.
    pub num_bytes: u64,
    /// Files that the store did not delete; no version names them, so that the sweep takes them.
    pub num_failed: u64,
}

/// What a sweep removed, or would.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Files.
    pub num_files: u64,
    /// Their bytes.
    pub num_bytes: u64,
    /// Files that the store did not delete.
    pub num_failed: u64,
    /// The first of the files.
    pub files: Vec<SweptFile>,
    /// Files younger than this were left alone.
    pub min_age: Duration,
}

/// A file that no version names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweptFile {
    /// Below the folder of the table.
    pub path: String,
    /// Its size.
    pub num_bytes: u64,
    /// When the store says it was written.
    pub modified: DateTime<Utc>,
}

impl Lake {
    /// Waits until no other maintenance of this process works on the table. Two pieces at once would be safe, but one would
    /// read files that the other deletes, and begin again.
    pub async fn maintain_alone(&self, table: &TableId) -> Result<OwnedMutexGuard<()>> {
        let location = self.locate(table)?;
        let lock = self.inner.maintenance_locks.get_with(location.uri, async { Arc::default() }).await;
        Ok(lock.lock_owned().await)
    }
}

/// Deletes one file. One that is gone already is fine; another failure is told and leaves the file to the next time.
async fn delete(store: &ObjectStore, path: &Path) -> std::result::Result<(), object_store::Error> {
    match store.inner.delete(path).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => {
            tracing::warn!(file = path.filename().unwrap_or_default(), %error, "a file cannot be deleted");
            Err(error)
        }
    }
}
