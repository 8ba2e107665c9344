//! Decides at the moment of the put: the last look at the manifest before it becomes the table.

use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use chrono::Utc;
use futures::stream::BoxStream;
use lance_io::object_store::ObjectStore;
use lance_table::format::{IndexMetadata, Manifest, Transaction};
use lance_table::io::commit::{
    CommitError, CommitHandler, ManifestLocation, ManifestNamingScheme, ManifestWriter, PredecessorIdentity,
};
use object_store::path::Path;

use super::ledger::{self, LedgerBounds};
use crate::error::Error;
use crate::table::INCARNATION;
use crate::types::{CommitId, CommitState};

/// What a commit does to the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// The rows are added.
    Append,
    /// Run `0`'s rows are added; it must have replaced the table before.
    AppendToRun(String),
    /// Run `0` replaces the table; it must not have done so before.
    ReplaceForRun(String),
    /// The id is fenced, no rows.
    Abort,
}

/// Why the handler refused to put.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The id is finished already.
    Finished(CommitState),
    /// Another table stands at this place.
    TableReplaced,
    /// Another commit of the run changed whether it has replaced the table: decide anew.
    RunMoved,
    /// The ledger cannot take or be read.
    Ledger(Error),
}

/// A commit handler that checks and sets the ledger in the manifest that is about to be written, on every attempt, after
/// every rebase. Since `inner` puts a version only if it is absent, check, mark and data are one atomic step.
#[derive(Debug)]
pub(super) struct LedgerHandler {
    inner: Arc<dyn CommitHandler>,
    incarnation: String,
    id: CommitId,
    mark: Mark,
    bounds: LedgerBounds,
    refusal: Mutex<Option<Refusal>>,
}

impl LedgerHandler {
    pub(super) fn new(
        inner: Arc<dyn CommitHandler>,
        incarnation: String,
        id: CommitId,
        mark: Mark,
        bounds: LedgerBounds,
    ) -> Arc<Self> {
        Arc::new(Self { inner, incarnation, id, mark, bounds, refusal: Mutex::new(None) })
    }

    /// Why the last attempt was refused, if it was refused by us.
    pub(super) fn take_refusal(&self) -> Option<Refusal> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn check_and_mark(&self, manifest: &mut Manifest) -> Result<(), Refusal> {
        let version = manifest.version;
        let metadata = &mut manifest.table_metadata;
        if metadata.get(INCARNATION) != Some(&self.incarnation) {
            return Err(Refusal::TableReplaced);
        }
        match ledger::state(metadata, &self.id).map_err(Refusal::Ledger)? {
            CommitState::NotCommitted => {}
            finished => return Err(Refusal::Finished(finished)),
        }
        let now = Utc::now();
        match &self.mark {
            Mark::Append => ledger::mark_committed(metadata, &self.id, version, now, self.bounds),
            Mark::AppendToRun(run) if !ledger::run_has_replaced(metadata, run) => return Err(Refusal::RunMoved),
            Mark::ReplaceForRun(run) if ledger::run_has_replaced(metadata, run) => return Err(Refusal::RunMoved),
            Mark::AppendToRun(run) | Mark::ReplaceForRun(run) => {
                ledger::mark_run(metadata, run, now);
                ledger::mark_committed(metadata, &self.id, version, now, self.bounds)
            }
            Mark::Abort => ledger::mark_aborted(metadata, &self.id, now, self.bounds),
        }
        .map_err(Refusal::Ledger)
    }

    fn decide(&self, manifest: &mut Manifest) -> Result<(), CommitError> {
        let refused = self.check_and_mark(manifest).err();
        let verdict = match &refused {
            None => Ok(()),
            Some(_) => Err(CommitError::OtherError(lance_core::Error::prerequisite_failed("refused by the ledger"))),
        };
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refused;
        verdict
    }
}

#[async_trait]
impl CommitHandler for LedgerHandler {
    async fn commit(
        &self,
        manifest: &mut Manifest,
        indices: Option<Vec<IndexMetadata>>,
        base_path: &Path,
        object_store: &ObjectStore,
        manifest_writer: ManifestWriter,
        naming_scheme: ManifestNamingScheme,
        transaction: Option<Transaction>,
    ) -> Result<ManifestLocation, CommitError> {
        self.decide(manifest)?;
        self.inner
            .commit(manifest, indices, base_path, object_store, manifest_writer, naming_scheme, transaction)
            .await
    }

    async fn commit_after(
        &self,
        manifest: &mut Manifest,
        indices: Option<Vec<IndexMetadata>>,
        base_path: &Path,
        object_store: &ObjectStore,
        manifest_writer: ManifestWriter,
        naming_scheme: ManifestNamingScheme,
        transaction: Option<Transaction>,
        predecessor: &PredecessorIdentity,
    ) -> Result<ManifestLocation, CommitError> {
        self.decide(manifest)?;
        self.inner
            .commit_after(
                manifest,
                indices,
                base_path,
                object_store,
                manifest_writer,
                naming_scheme,
                transaction,
                predecessor,
            )
            .await
    }

    fn is_version_not_found_definitive(&self) -> bool {
        self.inner.is_version_not_found_definitive()
    }

    fn propagate_commit_error_after_success(&self) -> bool {
        self.inner.propagate_commit_error_after_success()
    }

    async fn resolve_latest_location(&self, base: &Path, store: &ObjectStore) -> lance::Result<ManifestLocation> {
        self.inner.resolve_latest_location(base, store).await
    }

    async fn resolve_version_location(
        &self,
        base: &Path,
        version: u64,
        store: &dyn object_store::ObjectStore,
    ) -> lance::Result<ManifestLocation> {
        self.inner.resolve_version_location(base, version, store).await
    }

    async fn version_exists(
        &self,
        base: &Path,
        version: u64,
        store: &dyn object_store::ObjectStore,
        naming: ManifestNamingScheme,
    ) -> lance::Result<bool> {
        self.inner.version_exists(base, version, store, naming).await
    }

    fn list_detached_manifest_locations<'a>(
        &self,
        base: &Path,
        store: &'a ObjectStore,
    ) -> BoxStream<'a, lance::Result<ManifestLocation>> {
        self.inner.list_detached_manifest_locations(base, store)
    }

    fn list_manifest_locations<'a>(
        &self,
        base: &Path,
        store: &'a ObjectStore,
        sorted_descending: bool,
    ) -> BoxStream<'a, lance::Result<ManifestLocation>> {
        self.inner.list_manifest_locations(base, store, sorted_descending)
    }

    fn list_manifest_locations_since<'a>(
        &self,
        base: &Path,
        store: &'a ObjectStore,
        since_version: u64,
    ) -> BoxStream<'a, lance::Result<ManifestLocation>> {
        self.inner.list_manifest_locations_since(base, store, since_version)
    }

    fn supports_predecessor_condition(&self) -> bool {
        self.inner.supports_predecessor_condition()
    }

    async fn resolve_latest_identity(
        &self,
        base: &Path,
        store: &ObjectStore,
    ) -> lance::Result<Option<PredecessorIdentity>> {
        self.inner.resolve_latest_identity(base, store).await
    }

    async fn resolve_identity(
        &self,
        base: &Path,
        store: &ObjectStore,
        version: u64,
    ) -> lance::Result<Option<PredecessorIdentity>> {
        self.inner.resolve_identity(base, store, version).await
    }

    async fn forget_version(&self, base: &Path, version: u64, identity: &str) -> lance::Result<()> {
        self.inner.forget_version(base, version, identity).await
    }

    async fn delete(&self, base: &Path) -> lance::Result<()> {
        self.inner.delete(base).await
    }
}
