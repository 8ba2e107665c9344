//! Whether a store creates a key for one writer only: all that makes a commit a commit.
//!
//! There are stores that know If-None-Match, keep to it when one writer comes after the other, and let several win when they come at
//! once: they look whether the key is there, take the body, and write. So the probe races: it creates one key from many writers
//! at once, with large bodies, which keep such a store between its look and its write, and with small ones, which all
//! end at the same moment.

use bytes::Bytes;
use futures::future::join_all;
use lance_io::object_store::ObjectStore;
use moka::future::Cache;
use object_store::path::Path;
use object_store::{
    Error as StoreError, ObjectStore as RawStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::cache::kept_or_made;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::from_store;
use crate::options::ProbeOptions;

/// Beside the tables. A name that no table and no namespace can have.
const FOLDER: &str = ".lance-gateway-probe";

/// What one race showed.
#[derive(Debug, PartialEq, Eq)]
enum Race {
    OneWon,
    /// What the store did that it must not do.
    Broken(String),
}

/// Asks stores, and remembers what they showed.
pub(super) struct Probe {
    options: ProbeOptions,
    /// By store: what is wrong with it, if anything.
    faults: Cache<String, Option<String>>,
}

impl Probe {
    pub(super) fn new(options: ProbeOptions, capacity: u64) -> Self {
        Self { options, faults: Cache::new(capacity) }
    }

    /// Fails unless the store of this table was seen to be atomic. It is asked once.
    pub(super) async fn check(&self, store: &ObjectStore, table: &Path) -> Result<()> {
        // The kernel and a lock see to it where no server does.
        if !store.is_cloud() {
            return Ok(());
        }
        let ask = || async {
            let (raw, folder, options) = (store.inner.clone(), beside(table), self.options.clone());
            // Apart from the caller, so that nothing is left behind if it goes away.
            let asked = tokio::spawn(async move { fault(raw.as_ref(), &folder, &options).await });
            asked.await.map_err(|e| Error::internal("the probe of a store broke off").with_source(e))?
        };
        match kept_or_made(&self.faults, store.store_prefix.clone(), ask).await? {
            None => Ok(()),
            Some(fault) => Err(Error::new(
                ErrorKind::StoreNotAtomic,
                format!(
                    "the store does not create a key for one writer only, so commits to it would be lost: {fault}. This \
                     gateway reads from it and commits nothing; use a store whose put with If-None-Match is atomic, and \
                     restart the gateway"
                ),
            )),
        }
    }
}

/// The folder of the probe for a table.
fn beside(table: &Path) -> Path {
    let mut parts: Vec<_> = table.parts().collect();
    parts.pop();
    Path::from_iter(parts).join(FOLDER)
}

/// What is wrong with the store, if anything. Races that show nothing, because the store did not answer, are no verdict.
async fn fault(store: &dyn RawStore, folder: &Path, options: &ProbeOptions) -> Result<Option<String>> {
    let deadline = Instant::now() + options.timeout;
    let large = Bytes::from(vec![b'.'; options.bytes]);
    let mut seen = 0;
    let mut last = None;
    for round in 0..options.rounds {
        let key = folder.clone().join(Uuid::new_v4().to_string());
        let filler = if round % 2 == 0 { large.clone() } else { Bytes::new() };
        let raced = timeout_at(deadline, race(store, &key, options.writers, &filler)).await;
        match store.delete(&key).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => tracing::warn!(%key, %error, "a key of the probe is left behind"),
        }
        match raced {
            Ok(Ok(Some(Race::OneWon))) => seen += 1,
            Ok(Ok(Some(Race::Broken(how)))) => {
                tracing::warn!(%folder, how, "the store is not atomic: commits to it are refused");
                return Ok(Some(how));
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => last = Some(error),
            Err(_) => break,
        }
    }
    if seen > 0 {
        tracing::info!(%folder, races = seen, "the store is atomic");
        return Ok(None);
    }
    let doing = "cannot find out whether the store is atomic, and commit nothing before";
    Err(match last {
        Some(error) => from_store(error, doing),
        None => Error::new(ErrorKind::StoreUnavailable, format!("{doing}: it did not answer in time; try again")),
    })
}

/// One race. `None`: nobody is known to have won, as when the answer of the winner was lost.
async fn race(store: &dyn RawStore, key: &Path, writers: usize, filler: &Bytes) -> Result<Option<Race>, StoreError> {
    let create = || PutOptions::from(PutMode::Create);
    let answers = join_all((0..writers).map(|writer| store.put_opts(key, body(writer, filler), create()))).await;
    let mut winners = Vec::new();
    let mut refused = None;
    for (writer, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(_) => winners.push(writer),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {}
            Err(StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) => {
                return Ok(Some(Race::Broken("it knows no put that creates only".to_owned())));
            }
            Err(error) => refused = Some(error),
        }
    }
    match (winners.as_slice(), refused) {
        ([winner], _) => {
            let expected = Bytes::from(body(*winner, filler));
            let found = store.get(key).await?.bytes().await?;
            Ok(Some(if found == expected {
                Race::OneWon
            } else {
                Race::Broken("it refused a put and wrote it all the same".to_owned())
            }))
        }
        ([], Some(error)) => Err(error),
        ([], None) => Ok(None),
        (many, _) => {
            Ok(Some(Race::Broken(format!("of {writers} writers that created one key at once, {} won", many.len()))))
        }
    }
}

/// A body of its own for each writer, whose large part they share.
fn body(writer: usize, filler: &Bytes) -> PutPayload {
    let end = Bytes::from(format!("writer {writer:>8}"));
    PutPayload::from_iter([end.clone(), filler.clone(), end])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
