//! A commit handler that edits the manifest that is about to be written, so that an entry lands in one put with the commit.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use lance::Error as LanceError;
use lance_io::object_store::ObjectStore;
use lance_table::format::{IndexMetadata, Manifest, Transaction};
use lance_table::io::commit::{
    CommitError, CommitHandler, ManifestLocation, ManifestNamingScheme, ManifestWriter, PredecessorIdentity,
};
use object_store::ObjectStore as RawStore;
use object_store::path::Path;

type Edit = dyn Fn(&mut Manifest) -> Result<(), LanceError> + Send + Sync;

/// Runs an edit on each attempt, on the maps of the real predecessor, and hands everything else to the inner handler. An edit
/// that fails refuses the commit.
pub(crate) struct EditingHandler {
    inner: Arc<dyn CommitHandler>,
    edit: Box<Edit>,
}

impl EditingHandler {
    pub(crate) fn new(
        inner: Arc<dyn CommitHandler>,
        edit: impl Fn(&mut Manifest) -> Result<(), LanceError> + Send + Sync + 'static,
    ) -> Self {
        Self { inner, edit: Box::new(edit) }
    }
}

impl fmt::Debug for EditingHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EditingHandler").field("inner", &self.inner).finish_non_exhaustive()
    }
}

// Each method is delegated: a default of the trait would silently lose what the inner handler does.
#[async_trait]
impl CommitHandler for EditingHandler {
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
        store: &dyn RawStore,
    ) -> lance::Result<ManifestLocation> {
        self.inner.resolve_version_location(base, version, store).await
    }

    async fn version_exists(
        &self,
        base: &Path,
        version: u64,
        store: &dyn RawStore,
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
        since: u64,
    ) -> BoxStream<'a, lance::Result<ManifestLocation>> {
        self.inner.list_manifest_locations_since(base, store, since)
    }

    async fn commit(
        &self,
        manifest: &mut Manifest,
        indices: Option<Vec<IndexMetadata>>,
        base: &Path,
        store: &ObjectStore,
        writer: ManifestWriter,
        naming: ManifestNamingScheme,
        transaction: Option<Transaction>,
    ) -> Result<ManifestLocation, CommitError> {
        (self.edit)(manifest).map_err(CommitError::OtherError)?;
        self.inner.commit(manifest, indices, base, store, writer, naming, transaction).await
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

    async fn commit_after(
        &self,
        manifest: &mut Manifest,
        indices: Option<Vec<IndexMetadata>>,
        base: &Path,
        store: &ObjectStore,
        writer: ManifestWriter,
        naming: ManifestNamingScheme,
        transaction: Option<Transaction>,
        predecessor: &PredecessorIdentity,
    ) -> Result<ManifestLocation, CommitError> {
        (self.edit)(manifest).map_err(CommitError::OtherError)?;
        self.inner.commit_after(manifest, indices, base, store, writer, naming, transaction, predecessor).await
    }

    async fn forget_version(&self, base: &Path, version: u64, identity: &str) -> lance::Result<()> {
        self.inner.forget_version(base, version, identity).await
    }

    async fn delete(&self, base: &Path) -> lance::Result<()> {
        self.inner.delete(base).await
    }
}
