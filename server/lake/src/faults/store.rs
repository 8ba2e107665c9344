//! A store that passes fault points.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use lance_io::object_store::WrappingObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// Wraps the stores that Lance opens.
#[derive(Debug)]
pub(crate) struct FaultyStores;

impl WrappingObjectStore for FaultyStores {
    fn wrap(&self, _prefix: &str, inner: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(FaultyStore { inner })
    }

    fn wrap_paginated(
        &self,
        _prefix: &str,
        _lister: Arc<dyn PaginatedListStore>,
    ) -> Option<Arc<dyn PaginatedListStore>> {
        None
    }
}

#[derive(Debug, Clone)]
struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

fn kind(path: &Path) -> &'static str {
    path.parts()
        .find_map(|part| match part.as_ref() {
            "_versions" => Some("manifest"),
            "_transactions" => Some("transaction"),
            "_deletions" => Some("deletions"),
            "_indices" => Some("index"),
            "_lance_gateway" => Some("prepared"),
            "data" => Some("data"),
            _ => None,
        })
        .unwrap_or("other")
}

async fn pass(what: &str, path: &Path, done: &str) -> Result<()> {
    if super::pass(&format!("{what}.{}{done}", kind(path))).await {
        return Ok(());
    }
    Err(Error::Generic { store: "faults", source: "500 Internal Server Error, as a test wants it".into() })
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        pass("put", path, "").await?;
        let result = self.inner.put_opts(path, payload, options).await?;
        pass("put", path, ".done").await?;
        Ok(result)
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        pass("put", path, "").await?;
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        pass("get", path, "").await?;
        self.inner.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        pass("get", path, "").await?;
        self.inner.get_ranges(path, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let checked = paths.then(|path| async {
            let path = path?;
            pass("delete", &path, "").await?;
            Ok(path)
        });
        self.inner.delete_stream(checked.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}
