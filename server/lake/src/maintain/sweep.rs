//! The sweep: files that dead writes left, and that nobody can commit any more.
//!
//! A file is deleted exactly if no manifest names it and it is older than the longest age at which a gateway takes a committable,
//! plus the slack that the ledger keeps for clocks. Why this never takes a file that somebody needs:
//!
//! - *It is in a committable that was not committed yet.* The age of a committable counts from before its first file was opened,
//!   so it is at least as old as each of its files, and is refused as expired. Clocks of store and gateways may differ by
//!   the slack, together.
//! - *Its commit was sent, and the outcome is not known.* It was sent while the committable was young enough, and ends after
//!   `commit.timeout`, an hour at most; the slack is a day. By the time the file may go, the manifest is there or will never be.
//! - *It is committed while the sweep runs.* Files are listed first and manifests are read after that. A commit that lands after
//!   the manifests were read brings only files that are too young for the list; see [`Lake::each_manifest`].
//! - *It is of another kind.* Only folders and names that are known are looked at; see [`names`].

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use lance_io::object_store::ObjectStore;
use object_store::ObjectMeta;
use object_store::path::Path;

use super::manifests::list;
use super::names::{self, ROOMS};
use super::{CONCURRENT_DELETES, Progress, ProgressSender, Swept, SweptFile, delete};
use crate::Lake;
use crate::commit::CLOCK_SLACK;
use crate::error::{Error, Result};
use crate::lance_error::{Missing, from_lance, from_store};
use crate::table::Location;
use crate::types::TableId;

/// Listed files that are held at once; more are done in turns.
const FILES_AT_ONCE: usize = 50_000;

/// Files that a manifest names by one name.
#[derive(Debug)]
struct Named {
    newest: DateTime<Utc>,
    files: Vec<ObjectMeta>,
}

/// Files that are judged together: one, or all below a folder that is named as a whole.
type Listing<'a> = BoxStream<'a, lance::Result<Vec<ObjectMeta>>>;

impl Lake {
    /// Deletes what no manifest names and no committable can name any more. Stopped at any point, it is begun again later.
    pub fn sweep<'a>(
        &'a self,
        table: &'a TableId,
        dry_run: bool,
        progress: &'a ProgressSender,
    ) -> BoxFuture<'a, Result<Swept>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            // A table that is not there must not look clean.
            self.open_latest(&location).await?;
            let (store, base) = self.inner.stores.store(&location.uri, &location.access).await?;
            let mut swept = Swept { min_age: self.min_sweep_age(), ..Swept::default() };
            let before = Utc::now() - swept.min_age;
            for room in ROOMS {
                let unlisted = |e| from_lance(e, format!("cannot list table {}", location.shown), Missing::Table);
                let mut listing =
                    listing(&store, base.clone().join(room.folder), room.whole).await.map_err(unlisted)?;
                loop {
                    progress.send_replace(Progress { stage: "listing files", done: swept.num_files, total: 0 });
                    let (mut old, more) = next_old(&mut listing, &base, before).await.map_err(unlisted)?;
                    if !old.is_empty() {
                        progress.send_replace(Progress { stage: "reading versions", done: swept.num_files, total: 0 });
                        self.keep_unnamed(&location, &mut old).await?;
                        self.remove(&store, &base, old, dry_run, &mut swept, progress).await?;
                    }
                    if !more {
                        break;
                    }
                }
            }
            Ok(swept)
        })
    }

    fn min_sweep_age(&self) -> Duration {
        self.inner.options.commit.max_committable_age + CLOCK_SLACK
    }

    async fn keep_unnamed(&self, location: &Location, old: &mut HashMap<String, Named>) -> Result<()> {
        self.each_manifest(location, |manifest, indexes| {
            for name in names::names(manifest, indexes) {
                old.remove(&name);
            }
        })
        .await
    }

    async fn remove(
        &self,
        store: &ObjectStore,
        base: &Path,
        unnamed: HashMap<String, Named>,
        dry_run: bool,
        swept: &mut Swept,
        progress: &ProgressSender,
    ) -> Result<()> {
        let mut files: Vec<ObjectMeta> = unnamed.into_values().flat_map(|named| named.files).collect();
        files.sort_unstable_by(|a, b| a.location.cmp(&b.location));
        let total = swept.num_files + files.len() as u64;
        let mut failure = None;
        let mut deleted = stream::iter(files)
            .map(|file| async move {
                let outcome = if dry_run { Ok(()) } else { delete(store, &file.location).await };
                (file, outcome)
            })
            .buffered(CONCURRENT_DELETES);
        while let Some((file, outcome)) = deleted.next().await {
            if let Err(error) = outcome {
                swept.num_failed += 1;
                failure = Some(error);
                continue;
            }
            swept.num_files += 1;
            swept.num_bytes += file.size;
            if swept.files.len() < self.inner.options.maintenance.listed_files {
                swept.files.push(SweptFile {
                    path: below(&file.location, base).unwrap_or_default(),
                    num_bytes: file.size,
                    modified: file.last_modified,
                });
            }
            progress.send_replace(Progress { stage: "deleting files", done: swept.num_files, total });
        }
        match failure {
            Some(error) if swept.num_files == 0 => Err(undeleted(error)),
            _ => Ok(()),
        }
    }
}

async fn listing(store: &ObjectStore, folder: Path, whole: bool) -> lance::Result<Listing<'_>> {
    if !whole {
        return Ok(list(store, folder).map_ok(|file| vec![file]).boxed());
    }
    let folders = match store.inner.list_with_delimiter(Some(&folder)).await {
        Ok(found) => found.common_prefixes,
        Err(object_store::Error::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    Ok(stream::iter(folders).then(|folder| list(store, folder).try_collect()).boxed())
}

/// The next files of the listing that are old, and whether there may be more of any age.
async fn next_old(
    listing: &mut Listing<'_>,
    base: &Path,
    before: DateTime<Utc>,
) -> lance::Result<(HashMap<String, Named>, bool)> {
    let mut found: HashMap<String, Named> = HashMap::new();
    let mut held = 0;
    while held < FILES_AT_ONCE {
        let Some(together) = listing.try_next().await? else { break };
        held += together.len();
        for file in together {
            let Some(name) = below(&file.location, base).and_then(|path| names::name_of(&path)) else { continue };
            let named = found.entry(name).or_insert_with(|| Named { newest: file.last_modified, files: Vec::new() });
            named.newest = named.newest.max(file.last_modified);
            named.files.push(file);
        }
    }
    // The youngest file of a name decides for all: what is still being written is not dead.
    found.retain(|_, named| named.newest < before);
    Ok((found, held >= FILES_AT_ONCE))
}

/// The path below the table.
pub(super) fn below(path: &Path, table: &Path) -> Option<String> {
    let parts = path.prefix_match(table)?;
    Some(parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"))
}

fn undeleted(error: object_store::Error) -> Error {
    from_store(error, "files that no version names cannot be deleted")
}
