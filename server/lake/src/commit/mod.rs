//! Prepare, commit, abort: a checkpoint's rows become visible once, whoever calls and however often.
//!
//! The truth about a commit is the ledger in the latest manifest ([`ledger`]). [`gate`] checks and sets it at the moment of
//! the put; everything here may therefore be repeated, raced, cut off and resumed. An outcome that is not known is looked up
//! in the ledger, never guessed.

pub(crate) mod committable;
pub(crate) mod envelope;
mod files;
mod fit;
mod gate;
mod land;
mod ledger;
mod merge;
pub(crate) mod messages;
mod prepared;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use chrono::Utc;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use lance::Dataset;
use lance_table::transaction::{Operation, UpdateMap};
use tokio::sync::Mutex;
use tokio::time::Instant;

pub(crate) use self::committable::Opened;
use self::envelope::Kind;
use self::files::StagedFiles;
use self::gate::Mark;
use self::land::beside_the_history;
pub(crate) use self::land::{Attempt, Put};
pub(crate) use self::ledger::CLOCK_SLACK;
use self::ledger::LedgerBounds;
pub(crate) use self::ledger::Size;
pub(crate) use self::merge::open_merge;
use self::prepared::PreparedCommits;
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::table::{Handle, Location, incarnation};
use crate::types::{CommitId, CommitState, Commits, Committed, MergeCounts, Prepared, TableId, WriteMode};

/// One lock a table: commits of this process do not race each other for the next version. Only for speed; the ledger decides.
pub(crate) type CommitLocks = moka::future::Cache<String, Arc<Mutex<()>>>;

impl Lake {
    /// Seals the staged writes of one checkpoint. Checks them against the table, changes nothing. The same `id` with the same
    /// staged writes gives the same committable.
    pub fn prepare<'a>(
        &'a self,
        id: CommitId,
        write: &'a [u8],
        staged: &'a [Bytes],
        properties: HashMap<String, String>,
    ) -> BoxFuture<'a, Result<Prepared>> {
        Box::pin(async move {
            let committable = committable::assemble(id, write, staged, properties)?;
            let sealed = envelope::seal(Kind::Committable, &committable)?;
            let opened = committable::understand(committable)?;
            if staged.is_empty() && opened.mode != WriteMode::Overwrite {
                return Err(Error::invalid("nothing was staged; a commit without rows is only for mode OVERWRITE"));
            }
            let location = self.locate(&opened.table)?;
            let dataset = self.open_latest(&location).await?;
            check_incarnation(&dataset, &opened)?;
            if opened.mode == WriteMode::Append {
                fit::check(&opened.schema, dataset.schema(), &opened.fragments)?;
            }
            if let Some(changes) = &opened.merge {
                changes.check(&opened.schema, dataset.schema())?;
                changes.check_whole(&opened.schema, dataset.schema())?;
                fit::check(&opened.schema, dataset.schema(), &opened.fragments)?;
            }
            self.files(&location).await?.check(&opened).await?;
            self.prepared(&location).await?.keep(&opened.id, sealed.clone()).await?;
            Ok(Prepared { committable: sealed, num_rows: opened.num_rows, num_bytes: opened.num_bytes })
        })
    }

    /// Makes a committable visible as one version. Not cut off in the middle by dropping the future: a commit that was sent to
    /// the store may still land, and the next call finds out.
    pub fn commit<'a>(&'a self, committable: &'a [u8]) -> BoxFuture<'a, Result<Committed>> {
        Box::pin(async move { self.commit_opened(&committable::open(committable)?).await })
    }

    pub(crate) fn commit_opened<'a>(&'a self, opened: &'a Opened) -> BoxFuture<'a, Result<Committed>> {
        Box::pin(async move {
            let location = self.locate(&opened.table)?;
            let attempt = |dataset, deadline| self.try_commit(&location, dataset, opened, deadline).boxed();
            let landed = self.land(&location, &opened.id, &attempt).await?;
            self.prepared(&location).await?.forget(&opened.id).await;
            self.files(&location).await?.forget_changes(opened).await;
            Ok(landed.of(opened.id.clone(), opened.table.clone()))
        })
    }

    async fn try_commit(
        &self,
        location: &Location,
        dataset: Handle,
        commit: &Opened,
        deadline: Instant,
    ) -> Result<Attempt> {
        let metadata = &dataset.manifest().table_metadata;
        check_incarnation(&dataset, commit)?;
        self.check_age(commit)?;
        self.files(location).await?.check(commit).await?;
        if let Some(changes) = &commit.merge {
            return self.try_merge(location, dataset, commit, changes).await;
        }
        let replace = commit.mode == WriteMode::Overwrite && !ledger::run_has_replaced(metadata, &commit.run_id);
        let (operation, mark) = if replace {
            let operation = Operation::Overwrite {
                fragments: commit.fragments.clone(),
                schema: commit.schema.clone(),
                config_upsert_values: None,
                initial_bases: None,
            };
            (operation, Mark::ReplaceForRun(commit.run_id.clone()))
        } else if commit.fragments.is_empty() {
            // An overwrite without rows whose run has replaced the table already: nothing to add, but the id is finished.
            (touch(), Mark::AppendToRun(commit.run_id.clone()))
        } else {
            fit::check(&commit.schema, dataset.schema(), &commit.fragments)?;
            let mark = match commit.mode {
                WriteMode::Overwrite => Mark::AppendToRun(commit.run_id.clone()),
                WriteMode::Append | WriteMode::Merge => Mark::Append,
            };
            (Operation::Append { fragments: commit.fragments.clone() }, mark)
        };
        self.put(location, &dataset, &commit.id, commit.put(operation, mark), deadline).await
    }

    /// Fences the id of a committable, then deletes its files. Answers the id and how many there were. One that is too old to be
    /// judged is refused: it may have been committed and forgotten, and its files may be those of the table.
    pub fn abort<'a>(&'a self, committable: &'a [u8]) -> BoxFuture<'a, Result<(CommitId, u64)>> {
        Box::pin(async move {
            let opened = committable::open(committable)?;
            let location = self.locate(&opened.table)?;
            self.fence(&location, Some(&opened), &opened.id).await?;
            let deleted = self.files(&location).await?.delete(&opened).await?;
            self.prepared(&location).await?.forget(&opened.id).await;
            Ok((opened.id, deleted))
        })
    }

    /// Fences an id whose committable is lost. Its files are left to the sweep.
    pub fn abort_id<'a>(&'a self, table: &'a TableId, id: CommitId) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            committable::check_id("epoch", &id.epoch)?;
            let location = self.locate(table)?;
            self.fence(&location, None, &id).await?;
            self.prepared(&location).await?.forget(&id).await;
            Ok(())
        })
    }

    async fn fence(&self, location: &Location, of: Option<&Opened>, id: &CommitId) -> Result<()> {
        let deadline = Instant::now() + self.inner.options.commit.timeout;
        let mut last = None;
        for _ in 0..self.inner.options.commit.max_attempts {
            if Instant::now() >= deadline {
                break;
            }
            let dataset = self.open_latest(location).await?;
            if let Some(commit) = of {
                check_incarnation(&dataset, commit)?;
            }
            match ledger::state(&dataset.manifest().table_metadata, id)? {
                CommitState::Aborted => return Ok(()),
                CommitState::Committed(version) => return Err(committed_already(id, version)),
                CommitState::NotCommitted => {}
            }
            if let Some(commit) = of {
                self.check_age(commit)?;
            }
            let now = incarnation(&dataset)?;
            let put = Put {
                operation: touch(),
                mark: Mark::Abort,
                incarnation: now,
                size: Size::default(),
                properties: HashMap::new(),
            };
            match self.put(location, &dataset, id, put, deadline).await {
                Ok(Attempt::Landed { .. }) => {
                    // Landed is either our fence, or a commit that was faster.
                    match self.known(location, id).await? {
                        CommitState::Aborted => return Ok(()),
                        CommitState::Committed(version) => return Err(committed_already(id, version)),
                        CommitState::NotCommitted => last = Some(beside_the_history()),
                    }
                }
                Ok(Attempt::Again(error)) => last = Some(error),
                Err(error) if error.kind() == ErrorKind::CommitAborted => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| {
            Error::new(ErrorKind::ConcurrentModification, "no attempt to abort was made in the time given; try again")
        }))
    }

    /// What the table knows of an id.
    pub fn get_commit<'a>(&'a self, table: &'a TableId, id: &'a CommitId) -> BoxFuture<'a, Result<CommitState>> {
        Box::pin(async move { Ok(self.find_commit(table, id).await?.0) })
    }

    /// The same, and what it did if it is a merge, as far as the table remembers it.
    pub fn find_commit<'a>(
        &'a self,
        table: &'a TableId,
        id: &'a CommitId,
    ) -> BoxFuture<'a, Result<(CommitState, Option<MergeCounts>)>> {
        Box::pin(async move {
            let dataset = self.open_latest(&self.locate(table)?).await?;
            let metadata = &dataset.manifest().table_metadata;
            Ok((ledger::state(metadata, id)?, ledger::merged(metadata, id)?))
        })
    }

    /// What the table knows of commits: the ledger, and those that are prepared.
    pub fn commits<'a>(&'a self, table: &'a TableId) -> BoxFuture<'a, Result<Commits>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            let dataset = self.open_latest(&location).await?;
            let metadata = &dataset.manifest().table_metadata;
            let is_open = |id: &CommitId| matches!(ledger::state(metadata, id), Ok(CommitState::NotCommitted));
            let mut records = self.prepared(&location).await?.list(self.inner.options.max_list, is_open).await?;
            records.extend(ledger::records(metadata)?);
            records.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| b.id.seq.cmp(&a.id.seq)));
            Ok(Commits { epochs: ledger::epochs(metadata)?, records })
        })
    }

    async fn known(&self, location: &Location, id: &CommitId) -> Result<CommitState> {
        let dataset = self.open_latest(location).await?;
        ledger::state(&dataset.manifest().table_metadata, id)
    }

    fn check_age(&self, commit: &Opened) -> Result<()> {
        let max = self.inner.options.commit.max_committable_age;
        let age = Utc::now().signed_duration_since(commit.created_at);
        if age.to_std().is_ok_and(|age| age > max) {
            return Err(Error::new(
                ErrorKind::CommittableExpired,
                format!(
                    "the committable was made {} hours ago, commits are remembered for {} hours; whether it was committed can no longer be told, so it is refused",
                    age.num_hours(),
                    max.as_secs() / 3600
                ),
            ));
        }
        Ok(())
    }

    fn ledger_bounds(&self) -> LedgerBounds {
        let commit = &self.inner.options.commit;
        LedgerBounds {
            max_age: commit.max_committable_age,
            max_out_of_order: commit.max_out_of_order,
            remembered_versions: commit.remembered_versions,
        }
    }

    pub(crate) async fn commit_lock(&self, location: &Location) -> Arc<Mutex<()>> {
        self.inner.commit_locks.get_with(location.uri.clone(), async { Arc::default() }).await
    }

    async fn prepared(&self, location: &Location) -> Result<PreparedCommits> {
        let (store, base) = self.inner.stores.store(&location.uri, &location.access).await?;
        Ok(PreparedCommits::new(store, &base))
    }

    async fn files(&self, location: &Location) -> Result<StagedFiles> {
        let (store, base) = self.inner.stores.store(&location.uri, &location.access).await?;
        Ok(StagedFiles::new(store, base))
    }
}

/// An operation that changes nothing, to carry a mark.
fn touch() -> Operation {
    Operation::UpdateConfig {
        config_updates: None,
        table_metadata_updates: Some(UpdateMap { update_entries: Vec::new(), replace: false }),
        schema_metadata_updates: None,
        field_metadata_updates: HashMap::new(),
    }
}

fn check_incarnation(dataset: &Dataset, commit: &Opened) -> Result<()> {
    if incarnation(dataset)? == commit.incarnation { Ok(()) } else { Err(replaced()) }
}

fn replaced() -> Error {
    Error::new(
        ErrorKind::TableReplaced,
        "the table was dropped and made again after this write began; its rows belong to the old one and are refused",
    )
}

fn aborted(id: &CommitId) -> Error {
    Error::new(
        ErrorKind::CommitAborted,
        format!("commit {} of epoch {} was aborted; its rows are gone", id.seq, id.epoch),
    )
}

fn committed_already(id: &CommitId, version: u64) -> Error {
    Error::new(
        ErrorKind::CommitConflict,
        format!("commit {} of epoch {} is visible since version {version}; it cannot be aborted", id.seq, id.epoch),
    )
}
