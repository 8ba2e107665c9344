//! Stores that are as they should be, and stores that are not.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, PutMultipartOptions, PutResult,
    Result as StoreResult,
};

use super::*;

/// How a store treats a put that creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Atomic,
    /// Looks, takes the body meanwhile, and writes.
    LooksThenWrites,
    /// As if nobody had asked for more than a put.
    Overwrites,
    /// Says no, and writes.
    RefusesAndWrites,
    KnowsNone,
    Away,
}

#[derive(Debug)]
struct Store {
    inner: InMemory,
    manner: Manner,
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.manner)
    }
}

#[async_trait]
impl RawStore for Store {
    async fn put_opts(&self, at: &Path, body: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        let overwrite = || PutOptions::from(PutMode::Overwrite);
        let exists = || StoreError::AlreadyExists { path: at.to_string(), source: "it is there".into() };
        match self.manner {
            Manner::Atomic => self.inner.put_opts(at, body, options).await,
            Manner::LooksThenWrites => {
                if self.inner.head(at).await.is_ok() {
                    return Err(exists());
                }
                tokio::task::yield_now().await;
                self.inner.put_opts(at, body, overwrite()).await
            }
            Manner::Overwrites => self.inner.put_opts(at, body, overwrite()).await,
            Manner::RefusesAndWrites => {
                let first = self.inner.head(at).await.is_err();
                let written = self.inner.put_opts(at, body, overwrite()).await;
                if first { written } else { Err(exists()) }
            }
            Manner::KnowsNone => {
                Err(StoreError::NotImplemented { operation: "create".into(), implementer: "this".into() })
            }
            Manner::Away => Err(StoreError::Generic { store: "test", source: "no answer".into() }),
        }
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(&self, at: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.inner.delete_stream(at)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

async fn probed(manner: Manner) -> Result<Option<String>> {
    let store = Store { inner: InMemory::new(), manner };
    let options = ProbeOptions { rounds: 4, writers: 8, bytes: 1024, timeout: Duration::from_secs(60) };
    let found = fault(&store, &Path::from("tables/.lance-gateway-probe"), &options).await;
    let left: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    found
}

#[tokio::test]
async fn an_atomic_store_is_found_to_be_one() {
    assert_eq!(probed(Manner::Atomic).await.unwrap(), None);
}

#[tokio::test]
async fn a_store_that_looks_and_then_writes_is_caught_though_one_after_the_other_it_keeps_its_word() {
    let store = Store { inner: InMemory::new(), manner: Manner::LooksThenWrites };
    let key = Path::from("k");
    let create = || store.put_opts(&key, PutPayload::from_static(b"x"), PutMode::Create.into());
    assert!(create().await.is_ok());
    assert!(matches!(create().await, Err(StoreError::AlreadyExists { .. })));
    let fault = probed(Manner::LooksThenWrites).await.unwrap().unwrap();
    assert_eq!(fault, "of 8 writers that created one key at once, 8 won");
}

#[tokio::test]
async fn stores_that_do_not_know_or_do_not_keep_the_condition_are_caught() {
    for manner in [Manner::Overwrites, Manner::RefusesAndWrites, Manner::KnowsNone] {
        assert!(probed(manner).await.unwrap().is_some(), "{manner:?}");
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_gets_no_verdict() {
    assert_eq!(probed(Manner::Away).await.unwrap_err().kind(), ErrorKind::StoreUnavailable);
}

#[test]
fn the_probe_lies_beside_the_table() {
    assert_eq!(beside(&Path::from("wh/ns/t.lance")).as_ref(), "wh/ns/.lance-gateway-probe");
    assert_eq!(beside(&Path::from("t.lance")).as_ref(), ".lance-gateway-probe");
}
