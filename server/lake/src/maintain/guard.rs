//! A store in which a piece of maintenance deletes nothing but the files of indexes that it wrote itself.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use lance_io::object_store::WrappingObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// Lance runs the cleanup that a table's `lance.auto_cleanup` asks for inside each commit that cannot tell it not to, and those of
/// compactions and of indexes cannot. Through this store such a cleanup finds that it may delete nothing.
#[derive(Debug)]
pub(crate) struct OwnFiles {
    written: Arc<Written>,
}

/// The files of indexes that were written, for as long as the work lasts: some for each index.
#[derive(Debug)]
struct Written {
    /// Where a table keeps them.
    folder: Path,
    paths: Mutex<HashSet<Path>>,
}

impl Written {
    fn paths(&self) -> MutexGuard<'_, HashSet<Path>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, path: &Path) {
        if path.prefix_matches(&self.folder) {
            self.paths().insert(path.clone());
        }
    }
}

impl OwnFiles {
    /// Of the table in this folder of its store.
    pub(crate) fn new(table: &Path) -> Self {
        Self { written: Arc::new(Written { folder: table.clone().join("_indices"), paths: Mutex::default() }) }
    }

    /// All that were written.
    pub(crate) fn paths(&self) -> Vec<Path> {
        self.written.paths().iter().cloned().collect()
    }
}

impl WrappingObjectStore for OwnFiles {
    fn wrap(&self, _: &str, original: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(Guarded { inner: original, written: self.written.clone() })
    }

    fn wrap_paginated(&self, _: &str, original: Arc<dyn PaginatedListStore>) -> Option<Arc<dyn PaginatedListStore>> {
        Some(original)
    }
}

#[derive(Debug)]
struct Guarded {
    inner: Arc<dyn ObjectStore>,
    written: Arc<Written>,
}

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} without deletes", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Guarded {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.written.note(location);
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.written.note(location);
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let written = self.written.clone();
        let own = locations.map(move |location| {
            let location = location?;
            if written.paths().contains(&location) {
                return Ok(location);
            }
            Err(Error::NotSupported { source: "maintenance deletes nothing but what it wrote".into() })
        });
        self.inner.delete_stream(own.boxed())
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
        self.written.note(to);
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.written.note(to);
        self.inner.rename_opts(from, to, options).await
    }
}
