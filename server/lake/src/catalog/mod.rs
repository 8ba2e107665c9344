//! Namespaces and listings, in the layout of Lance's directory namespace: a namespace is a folder with a marker, a table the folder
//! `<name>.lance`.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use lance_io::object_store::ObjectStore;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::from_store;
use crate::table::{check_part, excerpt, table_of_folder};

const MARKER: &str = ".namespace";
/// Folders that are looked into at once.
const CONCURRENT_LOOKS: usize = 16;

/// Namespace and name of each table, and the token of the next page if there is one.
pub type TablePage = (Vec<Vec<String>>, Option<String>);

impl Lake {
    /// The tables of one namespace by name, at most `page_size` after `page_token`, and the token of the next page.
    pub fn list_tables<'a>(
        &'a self,
        namespace: &'a [String],
        page_token: Option<&'a str>,
        page_size: usize,
    ) -> BoxFuture<'a, Result<TablePage>> {
        Box::pin(async move {
            self.check_namespace(namespace).await?;
            let (store, folder) = self.folder(namespace).await?;
            let mut names: Vec<String> = self
                .folders(&store, &folder)
                .await?
                .iter()
                .filter_map(|folder| table_of_folder(folder).map(str::to_owned))
                .filter(|name| page_token.is_none_or(|token| name.as_str() > token))
                .collect();
            names.sort_unstable();
            let page_size = page_size.clamp(1, self.inner.options.max_list);
            let mut tables: Vec<String> = Vec::with_capacity(page_size.min(names.len()));
            let mut checked = stream::iter(names)
                .map(|name| {
                    let (store, folder) = (&store, &folder);
                    async move {
                        let there = has_versions(store, &folder.clone().join(format!("{name}.lance"))).await?;
                        Ok::<_, Error>(there.then_some(name))
                    }
                })
                .buffered(CONCURRENT_LOOKS);
            while let Some(name) = checked.try_next().await? {
                let Some(name) = name else { continue };
                if tables.len() == page_size {
                    return Ok((tables.iter().map(|last| qualified(namespace, last)).collect(), tables.pop()));
                }
                tables.push(name);
            }
            Ok((tables.iter().map(|name| qualified(namespace, name)).collect(), None))
        })
    }

    /// Creates a namespace in an existing one. False: it was there, and `if_not_exists` allowed it.
    pub fn create_namespace<'a>(&'a self, namespace: &'a [String], if_not_exists: bool) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let Some((name, parent)) = namespace.split_last() else {
                return Err(Error::invalid("a namespace needs a name"));
            };
            check_part(name)?;
            let (store, folder) = self.folder(namespace).await?;
            self.check_namespace(parent).await?;
            let put = PutOptions { mode: PutMode::Create, ..Default::default() };
            match store.inner.put_opts(&folder.join(MARKER), PutPayload::new(), put).await {
                Ok(_) => Ok(true),
                Err(object_store::Error::AlreadyExists { .. }) if if_not_exists => Ok(false),
                Err(object_store::Error::AlreadyExists { .. }) => Err(Error::new(
                    ErrorKind::NamespaceAlreadyExists,
                    format!("namespace {} exists already", shown(namespace)),
                )),
                Err(e) => Err(from_store(e, format!("cannot create namespace {}", shown(namespace)))),
            }
        })
    }

    /// The namespaces directly in `parent`: their last names, sorted.
    pub fn list_namespaces<'a>(&'a self, parent: &'a [String]) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(async move {
            self.check_namespace(parent).await?;
            let (store, folder) = self.folder(parent).await?;
            let candidates: Vec<String> = self
                .folders(&store, &folder)
                .await?
                .into_iter()
                .filter(|name| table_of_folder(name).is_none() && check_part(name).is_ok())
                .collect();
            let mut names: Vec<String> = stream::iter(candidates)
                .map(|name| {
                    let (store, folder) = (&store, &folder);
                    async move {
                        let there = exists(store, &folder.clone().join(name.as_str()).join(MARKER)).await?;
                        Ok::<_, Error>(there.then_some(name))
                    }
                })
                .buffer_unordered(CONCURRENT_LOOKS)
                .try_filter_map(async |name| Ok(name))
                .try_collect()
                .await?;
            names.sort_unstable();
            Ok(names)
        })
    }

    /// Drops an empty namespace. False: there was none, and `if_exists` allowed it.
    pub fn drop_namespace<'a>(&'a self, namespace: &'a [String], if_exists: bool) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            if namespace.is_empty() {
                return Err(Error::invalid("the root cannot be dropped"));
            }
            let (store, folder) = self.folder(namespace).await?;
            match self.check_namespace(namespace).await {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::NamespaceNotFound && if_exists => return Ok(false),
                Err(e) => return Err(e),
            }
            let doing = format!("cannot drop namespace {}", shown(namespace));
            let (tables, _) = self.list_tables(namespace, None, 1).await?;
            if !tables.is_empty() || !self.list_namespaces(namespace).await?.is_empty() {
                return Err(Error::new(
                    ErrorKind::NamespaceNotEmpty,
                    format!("namespace {} still holds tables or namespaces; drop them first", shown(namespace)),
                ));
            }
            match store.inner.delete(&folder.join(MARKER)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(true),
                Err(e) => Err(from_store(e, doing)),
            }
        })
    }

    /// Fails if there is no such namespace. The root is always there.
    pub(crate) async fn check_namespace(&self, namespace: &[String]) -> Result<()> {
        if namespace.is_empty() {
            return Ok(());
        }
        let (store, folder) = self.folder(namespace).await?;
        if exists(&store, &folder.join(MARKER)).await? {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::NamespaceNotFound,
            format!("there is no namespace {}; create it first", shown(namespace)),
        ))
    }

    pub(crate) async fn folder(&self, namespace: &[String]) -> Result<(Arc<ObjectStore>, Path)> {
        let place = self.inner.warehouse.namespace(namespace)?;
        self.inner.stores.store(&place.uri()?, &*self.access(&place)?).await
    }

    /// The names of the folders in a folder.
    async fn folders(&self, store: &ObjectStore, folder: &Path) -> Result<Vec<String>> {
        let listed = list(store, folder).await?;
        let max = self.inner.options.max_list;
        if listed.len() > max {
            return Err(Error::new(
                ErrorKind::QuotaExceeded,
                format!("a namespace holds more than {max} entries, the bound table.max-list"),
            ));
        }
        Ok(listed.iter().filter_map(|path| path.filename().map(str::to_owned)).collect())
    }
}

async fn has_versions(store: &ObjectStore, table: &Path) -> Result<bool> {
    let mut files = store.inner.list(Some(&table.clone().join("_versions")));
    match files.try_next().await {
        Ok(first) => Ok(first.is_some()),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(e) => Err(from_store(e, "cannot list tables")),
    }
}

async fn list(store: &ObjectStore, folder: &Path) -> Result<Vec<Path>> {
    match store.inner.list_with_delimiter(Some(folder)).await {
        Ok(listed) => Ok(listed.common_prefixes),
        Err(object_store::Error::NotFound { .. }) => Ok(Vec::new()),
        Err(e) => Err(from_store(e, "cannot list the warehouse")),
    }
}

async fn exists(store: &ObjectStore, path: &Path) -> Result<bool> {
    match store.inner.head(path).await {
        Ok(_) => Ok(true),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(e) => Err(from_store(e, "cannot look into the warehouse")),
    }
}

fn qualified(namespace: &[String], table: &str) -> Vec<String> {
    namespace.iter().cloned().chain([table.to_owned()]).collect()
}

fn shown(namespace: &[String]) -> String {
    excerpt(&namespace.join("."))
}
