//! Records that a gateway keeps of itself in the warehouse, so that it finds them when it comes back:
//! `_lance_gateway/jobs/OWNER/NAME`, where no listing, no table and no sweep looks. What is in them is the gateway's own matter.

use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use lance_io::object_store::ObjectStore;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt as _};

use crate::Lake;
use crate::error::Result;
use crate::lance_error::from_store;

const FOLDER: [&str; 2] = ["_lance_gateway", "jobs"];
/// Records that are looked at, of all gateways of the warehouse.
const MAX_LISTED: usize = 10_000;
/// Nothing larger is read.
const MAX_BYTES: u64 = 1 << 20;
/// Records that are read or deleted at once.
const PARALLEL: usize = 8;

/// A record by its name.
pub type Record = (String, Bytes);

impl Lake {
    /// Keeps a record, in place of the one of this name.
    pub fn keep_record<'a>(&'a self, owner: &'a str, name: &'a str, record: Bytes) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (store, folder) = self.folder(&[]).await?;
            let written = store.inner.put(&below(&folder).join(owner).join(name), record.into()).await;
            written.map(drop).map_err(|e| from_store(e, "cannot keep a record"))
        })
    }

    /// Deletes a record, if it is there.
    pub fn forget_record<'a>(&'a self, owner: &'a str, name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (store, folder) = self.folder(&[]).await?;
            delete(&store, &below(&folder).join(owner).join(name)).await
        })
    }

    /// The newest records of the owner, at most `most`. Those beyond, and all that were not written for `max_age`, whoever wrote them,
    /// are deleted.
    pub fn recall_records<'a>(
        &'a self,
        owner: &'a str,
        most: usize,
        max_age: Duration,
    ) -> BoxFuture<'a, Result<Vec<Record>>> {
        Box::pin(async move {
            let doing = "cannot list records";
            let (store, folder) = self.folder(&[]).await?;
            let folder = below(&folder);
            let own = folder.clone().join(owner);
            let listed = store.inner.list(Some(&folder)).take(MAX_LISTED);
            let listed: Vec<ObjectMeta> = match listed.try_collect().await {
                Ok(listed) => listed,
                Err(object_store::Error::NotFound { .. }) => Vec::new(),
                Err(e) => return Err(from_store(e, doing)),
            };
            let is_old = |file: &ObjectMeta| (Utc::now() - file.last_modified).to_std().is_ok_and(|age| age > max_age);
            let (mut surplus, young): (Vec<_>, Vec<_>) = listed.into_iter().partition(is_old);
            let mut kept: Vec<_> = young.into_iter().filter(|file| file.location.prefix_matches(&own)).collect();
            kept.sort_by_key(|file| std::cmp::Reverse(file.last_modified));
            surplus.extend(kept.drain(most.min(kept.len())..));
            let store = &store;
            let deleted = stream::iter(surplus).for_each_concurrent(PARALLEL, |file| async move {
                if let Err(error) = delete(store, &file.location).await {
                    tracing::warn!(record = %file.location, %error, "an old record stays");
                }
            });
            deleted.await;
            kept.retain(|file| file.size <= MAX_BYTES);
            let read = stream::iter(kept).map(|file| read(store, file.location)).buffered(PARALLEL);
            read.try_filter_map(async |record| Ok(record)).try_collect().await
        })
    }
}

fn below(warehouse: &Path) -> Path {
    FOLDER.iter().fold(warehouse.clone(), |path, part| path.join(*part))
}

async fn delete(store: &ObjectStore, record: &Path) -> Result<()> {
    match store.inner.delete(record).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(e) => Err(from_store(e, "cannot delete a record")),
    }
}

/// None: it went meanwhile.
async fn read(store: &ObjectStore, record: Path) -> Result<Option<Record>> {
    let found = match store.inner.get(&record).await {
        Ok(found) => found.bytes().await,
        Err(e) => Err(e),
    };
    match found {
        Ok(bytes) => Ok(record.filename().map(|name| (name.to_owned(), bytes))),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(e) => Err(from_store(e, "cannot read a record")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::local_lake;

    #[tokio::test]
    async fn an_owner_finds_its_newest_records_and_what_is_old_or_beyond_them_goes() {
        let (_folder, lake) = local_lake().await;
        let day = Duration::from_secs(86_400);
        assert!(lake.recall_records("a", 9, day).await.unwrap().is_empty(), "the folder is not there yet");
        for name in ["1", "2", "3"] {
            lake.keep_record("a", name, Bytes::from(name)).await.unwrap();
        }
        lake.keep_record("a", "1", Bytes::from("newer")).await.unwrap();
        lake.keep_record("ab", "4", Bytes::from("of another")).await.unwrap();
        lake.forget_record("a", "3").await.unwrap();
        lake.forget_record("a", "3").await.unwrap();
        let newest = lake.recall_records("a", 1, day).await.unwrap();
        assert_eq!(newest, [("1".to_owned(), Bytes::from("newer"))]);
        assert_eq!(lake.recall_records("a", 9, day).await.unwrap(), newest, "the second was beyond, and went");
        assert_eq!(lake.list_tables(&[], None, 9).await.unwrap().0.len(), 0);
        assert!(lake.list_namespaces(&[]).await.unwrap().is_empty());
        assert!(lake.recall_records("ab", 9, Duration::ZERO).await.unwrap().is_empty(), "all are old");
        assert!(lake.recall_records("a", 9, day).await.unwrap().is_empty(), "whoever wrote them");
    }
}
