//! One Lance session: the caches and the object stores that every table of the lake shares.

mod access;
mod client;
mod probe;

use std::path::Path as FsPath;
use std::sync::Arc;

use lance::dataset::ReadParams;
use lance::dataset::builder::DatasetBuilder;
use lance::session::Session;
use lance_io::object_store::{ObjectStore, ObjectStoreRegistry};
use object_store::path::Path;

use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::options::{LakeOptions, StoreOptions};
use crate::table::{Location, Place};

pub(crate) use access::Access;
pub(crate) use client::ClientOptions;
use client::ClientStores;

/// What it takes to open a table.
pub(crate) struct Stores {
    session: Arc<Session>,
    /// How the stores below a place are reached, the longest first.
    places: Vec<(Place, Arc<Access>)>,
    /// How all others are reached.
    elsewhere: Arc<Access>,
    of_clients: ClientStores,
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
        let access = |of| Arc::new(Access::of_operator(of, options));
        let mut places = Vec::with_capacity(options.stores.len());
        for (prefix, of) in &options.stores {
            places.push((Place::parse_option(prefix)?, access(of)));
        }
        places.sort_by_key(|(place, _)| std::cmp::Reverse(place.depth()));
        let elsewhere = access(&options.storage_options);
        let params = access_below(&places, &elsewhere, warehouse).params();
        let (store, _) = ObjectStore::from_uri_and_params(registry, &warehouse.uri()?, &params)
            .await
            .map_err(|e| from_lance(e, "cannot open the warehouse", Missing::Table))?;
        let of_clients = ClientStores::new(options.client_stores);
        Ok(Self { session, places, elsewhere, of_clients, _warehouse: store })
    }

    /// The session that holds the caches.
    pub(crate) fn session(&self) -> Arc<Session> {
        self.session.clone()
    }

    /// A builder for the dataset at this URI.
    pub(crate) fn dataset(&self, uri: &str, access: &Access) -> DatasetBuilder {
        DatasetBuilder::from_uri(uri).with_read_params(ReadParams {
            store_options: Some(access.params()),
            session: Some(self.session()),
            commit_handler: Some(access.commit_handler()),
            ..Default::default()
        })
    }

    /// The store and the path in it.
    pub(crate) async fn store(&self, uri: &str, access: &Access) -> Result<(Arc<ObjectStore>, Path)> {
        ObjectStore::from_uri_and_params(self.session.store_registry(), uri, &access.params())
            .await
            .map_err(|e| from_lance(e, "cannot open the store", Missing::Table))
    }
}

fn access_below<'a>(places: &'a [(Place, Arc<Access>)], elsewhere: &'a Arc<Access>, place: &Place) -> &'a Arc<Access> {
    places.iter().find(|(prefix, _)| place == prefix || place.is_below(prefix)).map_or(elsewhere, |(_, access)| access)
}

impl Lake {
    /// The same tables, in stores that are reached as the caller says.
    pub fn with_client_options(&self, options: &StoreOptions) -> Result<Self> {
        if self.inner.options.client_stores == 0 {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                "the operator allows no storage options of clients (s3-access-key and the like): leave them out, and the \
                 gateway uses its own, or ask the operator to set storage.client-options",
            ));
        }
        Ok(Self { inner: self.inner.clone(), client: Some(ClientOptions::parse(options)?) })
    }

    /// How the store of this place is reached.
    pub(crate) fn access(&self, place: &Place) -> Result<Arc<Access>> {
        let stores = &self.inner.stores;
        match &self.client {
            None => Ok(access_below(&stores.places, &stores.elsewhere, place).clone()),
            Some(client) => stores.of_clients.access(client, place, &self.inner.options),
        }
    }

    /// Fails if commits to the store of this table could be lost. A commit checks it by itself; this tells before rows are staged.
    pub(crate) async fn check_store(&self, location: &Location) -> Result<()> {
        let (store, table) = self.inner.stores.store(&location.uri, &location.access).await?;
        location.access.check_store(&store, &table).await
    }
}
