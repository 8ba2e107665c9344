//! One Lance session: the caches, the object stores and the commit handler that every table of the lake shares.

use std::path::Path as FsPath;
use std::sync::Arc;

use lance::dataset::ReadParams;
use lance::dataset::builder::DatasetBuilder;
use lance::session::Session;
use lance_io::object_store::{ObjectStore, ObjectStoreParams, ObjectStoreRegistry, StorageOptionsAccessor};
use lance_table::io::commit::{CommitHandler, ConditionalPutCommitHandler};
use object_store::path::Path;

use crate::error::{Error, Result};
use crate::lance_error::{Missing, from_lance};
use crate::options::LakeOptions;
use crate::table::Place;

/// What it takes to open a table.
pub(crate) struct Stores {
    session: Arc<Session>,
    params: ObjectStoreParams,
    /// Lance keeps stores by weak reference; this one keeps the warehouse's alive, and with it the tables of `memory://`.
    _warehouse: Arc<ObjectStore>,
}

impl Stores {
    /// Opens the store of the warehouse; a missing local folder is made.
    pub(crate) async fn open(options: &LakeOptions, warehouse: &Place) -> Result<Self> {
        if let Some(folder) = warehouse.local_folder() {
            tokio::fs::create_dir_all(FsPath::new(&folder))
                .await
                .map_err(|e| Error::invalid("the warehouse folder cannot be created").with_source(e))?;
        }
        let registry = Arc::new(ObjectStoreRegistry::default());
        let session = Arc::new(Session::new(options.index_cache_bytes, options.metadata_cache_bytes, registry.clone()));
        let params = ObjectStoreParams {
            storage_options_accessor: (!options.storage_options.is_empty())
                .then(|| Arc::new(StorageOptionsAccessor::with_static_options(options.storage_options.clone()))),
            #[cfg(feature = "faults")]
            object_store_wrapper: crate::faults::enabled().then(|| Arc::new(crate::faults::FaultyStores) as _),
            ..Default::default()
        };
        let (store, _) = ObjectStore::from_uri_and_params(registry, &warehouse.uri()?, &params)
            .await
            .map_err(|e| from_lance(e, "cannot open the warehouse", Missing::Table))?;
        Ok(Self { session, params, _warehouse: store })
    }

    /// The session that holds the caches.
    pub(crate) fn session(&self) -> Arc<Session> {
        self.session.clone()
    }

    /// The parameters that every store is opened with; equal ones share a store.
    pub(crate) fn params(&self) -> ObjectStoreParams {
        self.params.clone()
    }

    /// A builder for the dataset at this URI.
    pub(crate) fn dataset(&self, uri: &str) -> DatasetBuilder {
        DatasetBuilder::from_uri(uri).with_read_params(ReadParams {
            store_options: Some(self.params()),
            session: Some(self.session()),
            commit_handler: Some(commit_handler()),
            ..Default::default()
        })
    }

    /// The store and the path in it.
    pub(crate) async fn store(&self, uri: &str) -> Result<(Arc<ObjectStore>, Path)> {
        ObjectStore::from_uri_and_params(self.session.store_registry(), uri, &self.params)
            .await
            .map_err(|e| from_lance(e, "cannot open the store", Missing::Table))
    }
}

/// How commits are made atomic. Always named, since Lance falls back to "the last writer wins" for schemes that it does not know.
pub(crate) fn commit_handler() -> Arc<dyn CommitHandler> {
    Arc::new(ConditionalPutCommitHandler)
}
