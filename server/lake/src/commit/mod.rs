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
mod ledger;
pub(crate) mod messages;
mod prepared;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use futures::future::BoxFuture;
use lance::Dataset;
use lance::dataset::CommitBuilder;
use lance_table::transaction::{Operation, Transaction, TransactionBuilder, UpdateMap};
use tokio::sync::Mutex;
use tokio::time::Instant;

use self::committable::Opened;
use self::envelope::Kind;
use self::files::DataFiles;
use self::gate::{Gate, Mark, Refusal};
pub(crate) use self::ledger::CLOCK_SLACK;
use self::ledger::{LedgerBounds, Size};
use self::prepared::PreparedCommits;
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::table::{Location, incarnation};
use crate::types::{CommitId, CommitState, Commits, Committed, Prepared, TableId, WriteMode};

/// One lock a table: commits of this process do not race each other for the next version. Only for speed; the ledger decides.
pub(crate) type CommitLocks = moka::future::Cache<String, Arc<Mutex<()>>>;

/// What happened to one attempt.
enum Attempt {
    /// It is in the history; since this call, or since an earlier one.
    Landed { already: bool },
    /// It is not, and trying again may help.
    Again(Error),
}

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
            let location = self.locate(&opened.table)?;
            let dataset = self.open_latest(&location).await?;
            check_incarnation(&dataset, &opened)?;
            if opened.mode == WriteMode::Append {
                fit::check(&opened.schema, dataset.schema(), &opened.fragments)?;
            }
            self.data_files(&location).await?.check(&opened.fragments).await?;
            self.prepared(&location).await?.keep(&opened.id, sealed.clone()).await?;
            Ok(Prepared { committable: sealed, num_rows: opened.num_rows, num_bytes: opened.num_bytes })
        })
    }

    /// Makes a committable visible as one version. Not cut off in the middle by dropping the future: a commit that was sent to
    /// the store may still land, and the next call finds out.
    pub fn commit<'a>(&'a self, committable: &'a [u8]) -> BoxFuture<'a, Result<Committed>> {
        Box::pin(async move {
            let opened = committable::open(committable)?;
            let location = self.locate(&opened.table)?;
            let deadline = Instant::now() + self.inner.options.commit.timeout;
            let lock = self.commit_lock(&location).await;
            let _one_at_a_time = tokio::time::timeout_at(deadline, lock.lock()).await.map_err(|_| {
                Error::new(
                    ErrorKind::Overloaded,
                    "other commits of this table take all the time of this one; try again",
                )
            })?;
            let mut last = None;
            for _ in 0..self.inner.options.commit.max_attempts {
                if Instant::now() >= deadline {
                    break;
                }
                match self.try_commit(&location, &opened, deadline).await? {
                    Attempt::Landed { already } => {
                        #[cfg(feature = "faults")]
                        crate::faults::pass("commit.reply").await;
                        match self.known(&location, &opened.id).await? {
                            CommitState::Committed(version) => {
                                self.prepared(&location).await?.forget(&opened.id).await;
                                let Opened { id, table, .. } = opened;
                                return Ok(Committed { id, table, version, already_committed: already });
                            }
                            // Others went on and cleaned up the very version that was to be put: it was put into the hole,
                            // beside the history. The id is as open as before.
                            _ => last = Some(beside_the_history()),
                        }
                    }
                    Attempt::Again(error) => last = Some(error),
                }
            }
            Err(last.unwrap_or_else(|| {
                Error::new(
                    ErrorKind::ConcurrentModification,
                    "no attempt to commit was made in the time given; try again",
                )
            }))
        })
    }

    async fn try_commit(&self, location: &Location, commit: &Opened, deadline: Instant) -> Result<Attempt> {
        let dataset = self.open_latest(location).await?;
        let metadata = &dataset.manifest().table_metadata;
        check_incarnation(&dataset, commit)?;
        match ledger::state(metadata, &commit.id)? {
            CommitState::Committed(_) => return Ok(Attempt::Landed { already: true }),
            CommitState::Aborted => return Err(aborted(&commit.id)),
            CommitState::NotCommitted => {}
        }
        self.check_age(commit)?;
        self.data_files(location).await?.check(&commit.fragments).await?;
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
                WriteMode::Append => Mark::Append,
                WriteMode::Overwrite => Mark::AppendToRun(commit.run_id.clone()),
            };
            (Operation::Append { fragments: commit.fragments.clone() }, mark)
        };
        self.put(location, dataset, operation, &commit.incarnation, &commit.id, mark, Some(commit), deadline).await
    }

    /// One attempt to put a version with a mark; with the rows and properties of `commit`, if it is one.
    #[allow(clippy::too_many_arguments)]
    async fn put(
        &self,
        location: &Location,
        dataset: Arc<Dataset>,
        operation: Operation,
        incarnation: &str,
        id: &CommitId,
        mark: Mark,
        commit: Option<&Opened>,
        deadline: Instant,
    ) -> Result<Attempt> {
        let size = commit.map_or(Size::default(), |commit| Size { rows: commit.num_rows, bytes: commit.num_bytes });
        let properties = commit.map(|commit| commit.properties.clone()).unwrap_or_default();
        let gate = Gate::new(incarnation.to_owned(), id.clone(), mark, size, self.ledger_bounds());
        let result = CommitBuilder::new(dataset.clone())
            .with_commit_handler(gate.handler(location.access.commit_handler()))
            .with_skip_auto_cleanup(true)
            .with_timeout(Some(deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))))
            .execute(transaction(dataset.manifest().version, operation, id, properties))
            .await;
        let error = match result {
            Ok(_) => return Ok(Attempt::Landed { already: false }),
            Err(error) => error,
        };
        match gate.take_refusal() {
            Some(Refusal::Finished(CommitState::Aborted)) => return Err(aborted(id)),
            Some(Refusal::Finished(_)) => return Ok(Attempt::Landed { already: true }),
            Some(Refusal::TableReplaced) => return Err(replaced()),
            Some(Refusal::Ledger(error)) => return Err(error),
            Some(Refusal::RunMoved) => {
                return Ok(Attempt::Again(Error::new(
                    ErrorKind::ConcurrentModification,
                    "other commits of this run decide whether the table is replaced; try again",
                )));
            }
            None => {}
        }
        self.judge(&dataset, id, error).await
    }

    /// A failed put: the ledger of the latest version tells whether it landed after all.
    async fn judge(&self, dataset: &Dataset, id: &CommitId, error: lance::Error) -> Result<Attempt> {
        let unclear = error.is_commit_status_unknown() || matches!(error, lance::Error::Timeout { .. });
        let lost_a_race = matches!(
            error,
            lance::Error::RetryableCommitConflict { .. }
                | lance::Error::CommitConflict { .. }
                | lance::Error::IncompatibleTransaction { .. }
                | lance::Error::TooMuchWriteContention { .. }
        );
        let mut latest = dataset.clone();
        let looked = latest.checkout_latest().await;
        match looked.map(|()| ledger::state(&latest.manifest().table_metadata, id)) {
            // Who lost a race to its own id did not commit it; after any other failure it was this call.
            Ok(Ok(CommitState::Committed(_))) => return Ok(Attempt::Landed { already: lost_a_race }),
            Ok(Ok(CommitState::Aborted)) => return Err(aborted(id)),
            Ok(Ok(CommitState::NotCommitted)) if !unclear => {}
            Ok(Ok(CommitState::NotCommitted)) => {
                return Err(unknown("the store did not answer in time").with_source(error));
            }
            Ok(Err(damaged)) => return Err(damaged),
            Err(e) => return Err(unknown("the store did not answer, and does not show the table").with_source(e)),
        }
        if !lost_a_race {
            return Err(from_lance(error, "cannot commit", Missing::StagedFile));
        }
        let message = "other writers were faster, as often as this gateway tries; try again";
        Ok(Attempt::Again(Error::new(ErrorKind::ConcurrentModification, message).with_source(error)))
    }

    /// Fences the id of a committable, then deletes its files. Answers the id and how many there were. One that is too old to be
    /// judged is refused: it may have been committed and forgotten, and its files may be those of the table.
    pub fn abort<'a>(&'a self, committable: &'a [u8]) -> BoxFuture<'a, Result<(CommitId, u64)>> {
        Box::pin(async move {
            let opened = committable::open(committable)?;
            let location = self.locate(&opened.table)?;
            self.fence(&location, Some(&opened), &opened.id).await?;
            let deleted = self.data_files(&location).await?.delete(&opened.fragments).await?;
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
            match self.put(location, dataset, touch(), &now, id, Mark::Abort, None, deadline).await {
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
        Box::pin(async move { self.known(&self.locate(table)?, id).await })
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

    async fn data_files(&self, location: &Location) -> Result<DataFiles> {
        let (store, base) = self.inner.stores.store(&location.uri, &location.access).await?;
        Ok(DataFiles::new(store, &base))
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

/// A fresh uuid each time: a losing attempt deletes its own transaction file, never that of a winner.
fn transaction(
    read_version: u64,
    operation: Operation,
    id: &CommitId,
    mut properties: HashMap<String, String>,
) -> Transaction {
    properties.insert("lance-gateway.epoch".into(), id.epoch.clone());
    properties.insert("lance-gateway.seq".into(), id.seq.to_string());
    TransactionBuilder::new(read_version, operation).transaction_properties(Some(Arc::new(properties))).build()
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

fn beside_the_history() -> Error {
    let message = "other writers cleaned up each version while it was put; try again";
    Error::new(ErrorKind::ConcurrentModification, message)
}

fn unknown(what: &str) -> Error {
    Error::new(
        ErrorKind::CommitStateUnknown,
        format!("{what}: the commit may or may not have happened; repeat it, or ask GetCommit"),
    )
}
