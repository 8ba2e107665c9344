//! Records of prepared commits, so that people see what is under way: `_lance_gateway/prepared/EPOCH.SEQ` beside the data of a
//! table holds the committable. Nothing is decided by them; the ledger alone tells what became of an id.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use lance_io::object_store::ObjectStore;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use super::committable;
use crate::error::{ErrorKind, Result};
use crate::lance_error::from_store;
use crate::types::{CommitId, CommitRecord, RecordState};

const FOLDER: [&str; 2] = ["_lance_gateway", "prepared"];
/// Records that are read at once.
const PARALLEL: usize = 8;

/// The records of one table.
#[derive(Debug)]
pub(super) struct PreparedCommits {
    store: Arc<ObjectStore>,
    folder: Path,
}

impl PreparedCommits {
    pub(super) fn new(store: Arc<ObjectStore>, table: &Path) -> Self {
        Self { store, folder: FOLDER.iter().fold(table.clone(), |path, part| path.join(*part)) }
    }

    /// A repeat writes the same.
    pub(super) async fn keep(&self, id: &CommitId, committable: Bytes) -> Result<()> {
        let written = self.store.inner.put(&self.path(id), committable.into()).await;
        written.map(|_| ()).map_err(|e| from_store(e, "cannot keep a record of the prepared commit"))
    }

    /// A record that stays is harmless: the ledger tells that its commit is finished, and the sweep removes it.
    pub(super) async fn forget(&self, id: &CommitId) {
        match self.store.inner.delete(&self.path(id)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => {
                tracing::warn!(epoch = id.epoch, seq = id.seq, %error, "the record of a finished commit stays")
            }
        }
    }

    /// At most `limit` of those that `is_open`.
    pub(super) async fn list(&self, limit: usize, is_open: impl Fn(&CommitId) -> bool) -> Result<Vec<CommitRecord>> {
        let doing = "cannot list the prepared commits";
        let mut ids = Vec::new();
        let mut files = self.store.inner.list(Some(&self.folder));
        while let Some(file) = files.try_next().await.map_err(|e| from_store(e, doing))? {
            ids.extend(file.location.filename().and_then(id_of).filter(&is_open));
            if ids.len() == limit {
                break;
            }
        }
        let read = stream::iter(ids).map(|id| self.read(id)).buffer_unordered(PARALLEL);
        // One that was committed meanwhile is gone.
        read.try_filter_map(|record| async { Ok(record) }).try_collect().await
    }

    async fn read(&self, id: CommitId) -> Result<Option<CommitRecord>> {
        let bytes = match self.store.inner.get(&self.path(&id)).await {
            Ok(found) => found.bytes().await,
            Err(e) => Err(e),
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(e) => return Err(from_store(e, "cannot read the record of a prepared commit")),
        };
        match committable::open(&bytes) {
            Ok(opened) => Ok(Some(CommitRecord {
                id,
                state: RecordState::Prepared,
                num_rows: opened.num_rows,
                num_bytes: opened.num_bytes,
                at: opened.created_at,
            })),
            // Another gateway may be writing it.
            Err(error) if error.kind() == ErrorKind::CorruptData => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn path(&self, id: &CommitId) -> Path {
        self.folder.clone().join(format!("{}.{}", id.epoch, id.seq))
    }
}

fn id_of(name: &str) -> Option<CommitId> {
    let (epoch, seq) = name.rsplit_once('.')?;
    Some(CommitId { epoch: epoch.to_owned(), seq: seq.parse().ok()? })
}
