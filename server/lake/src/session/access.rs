//! With which options a store is reached, and how commits to it are made atomic.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use lance::Error as LanceError;
use lance_io::object_store::{ObjectStore, ObjectStoreParams, StorageOptionsAccessor};
use lance_table::format::{IndexMetadata, Manifest, Transaction};
use lance_table::io::commit::{
    CommitError, CommitHandler, ConditionalPutCommitHandler, ManifestLocation, ManifestNamingScheme, ManifestWriter,
};
use object_store::StaticCredentialProvider;
use object_store::path::Path;
use uuid::Uuid;

use super::client::ClientOptions;
use super::probe::Probe;
use crate::error::Result;
use crate::options::{LakeOptions, StoreOptions};

/// How a store is reached.
pub(crate) struct Access {
    /// Tells tables that are reached as a caller says from the same tables reached otherwise. Empty: as the operator says.
    tag: String,
    params: ObjectStoreParams,
    handler: Arc<ProbingHandler>,
}

impl Access {
    /// With options of the operator.
    pub(super) fn of_operator(options: &StoreOptions, lake: &LakeOptions) -> Self {
        let params = ObjectStoreParams {
            storage_options_accessor: (!options.is_empty())
                .then(|| Arc::new(StorageOptionsAccessor::with_static_options(options.expose()))),
            #[cfg(feature = "faults")]
            object_store_wrapper: crate::faults::wrapper(),
            ..Default::default()
        };
        Self { tag: String::new(), params, handler: handler(lake) }
    }

    /// With options of a caller. Nothing of the operator's keys is used.
    pub(super) fn of_client(client: &ClientOptions, bucket: &str, lake: &LakeOptions) -> Self {
        let tag = Uuid::new_v4().simple().to_string();
        let mut options = client.options(bucket);
        // Lance tells stores apart by these options alone. It ignores a name that it does not know.
        options.insert("lance-gateway.access".to_owned(), tag.clone());
        let params = ObjectStoreParams {
            storage_options_accessor: Some(Arc::new(StorageOptionsAccessor::with_static_options(options))),
            // As a provider, since Lance would complete keys among the options from the environment of the gateway.
            aws_credentials: Some(Arc::new(StaticCredentialProvider::new(client.credential()))),
            #[cfg(feature = "faults")]
            object_store_wrapper: crate::faults::wrapper(),
            ..Default::default()
        };
        Self { tag, params, handler: handler(lake) }
    }

    /// Differs between accesses that must not share what was read.
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    /// The parameters that a store is opened with; equal ones share a store.
    pub(crate) fn params(&self) -> ObjectStoreParams {
        self.params.clone()
    }

    /// How commits are made atomic. Always named, since Lance falls back to "the last writer wins" for schemes that it does not
    /// know.
    pub(crate) fn commit_handler(&self) -> Arc<dyn CommitHandler> {
        self.handler.clone()
    }

    /// Fails if commits to the store of this table could be lost.
    pub(super) async fn check_store(&self, store: &ObjectStore, table: &Path) -> Result<()> {
        self.handler.0.check(store, table).await
    }
}

fn handler(lake: &LakeOptions) -> Arc<ProbingHandler> {
    Arc::new(ProbingHandler(Probe::new(lake.probe.clone(), lake.open_tables)))
}

// Options hold keys.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// Puts a version if it is absent, in a store that was seen to do so also for writers that race.
struct ProbingHandler(Probe);

impl fmt::Debug for ProbingHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProbingHandler")
    }
}

// The methods that the inner handler has, and no more: the others are those of the trait in both.
#[async_trait]
impl CommitHandler for ProbingHandler {
    fn is_version_not_found_definitive(&self) -> bool {
        ConditionalPutCommitHandler.is_version_not_found_definitive()
    }

    fn propagate_commit_error_after_success(&self) -> bool {
        ConditionalPutCommitHandler.propagate_commit_error_after_success()
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
        let checked = self.0.check(store, base).await;
        checked.map_err(|e| CommitError::OtherError(LanceError::External { source: Box::new(e) }))?;
        ConditionalPutCommitHandler.commit(manifest, indices, base, store, writer, naming, transaction).await
    }
}
