//! Landing: attempts to put a version with its mark, until the ledger knows the id.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lance::Dataset;
use lance::dataset::CommitBuilder;
use lance_table::transaction::{Operation, Transaction, TransactionBuilder};
use tokio::time::Instant;

use super::gate::{Gate, Mark, Refusal};
use super::ledger::{self, Size};
use super::{aborted, merge, replaced};
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::table::{Handle, Location};
use crate::types::{CommitId, CommitState, Committed, MergeCounts, TableId};

/// What happened to one attempt.
pub(crate) enum Attempt {
    /// It is in the history; since this call, or since an earlier one.
    Landed { already: bool },
    /// It is not, and trying again may help.
    Again(Error),
}

/// One version to put.
pub(crate) struct Put {
    pub(crate) operation: Operation,
    pub(crate) mark: Mark,
    /// The table that it is for.
    pub(crate) incarnation: String,
    pub(crate) size: Size,
    pub(crate) properties: HashMap<String, String>,
}

/// What the ledger says at the end.
pub(crate) struct Landed {
    version: u64,
    already: bool,
    merged: Option<MergeCounts>,
}

impl Landed {
    pub(crate) fn of(self, id: CommitId, table: TableId) -> Committed {
        let Self { version, already, merged } = self;
        Committed { id, table, version, already_committed: already, merged }
    }
}

/// Makes one attempt on the latest version, until an instant.
pub(crate) type MakeAttempt<'a> = dyn Fn(Handle, Instant) -> BoxFuture<'a, Result<Attempt>> + Send + Sync + 'a;

impl Lake {
    /// Makes attempts, one table at a time, until the id is committed.
    pub(crate) async fn land(&self, location: &Location, id: &CommitId, attempt: &MakeAttempt<'_>) -> Result<Landed> {
        let deadline = Instant::now() + self.inner.options.commit.timeout;
        let lock = self.commit_lock(location).await;
        let _one_at_a_time = tokio::time::timeout_at(deadline, lock.lock()).await.map_err(|_| {
            Error::new(ErrorKind::Overloaded, "other commits of this table take all the time of this one; try again")
        })?;
        let mut last = None;
        for _ in 0..self.inner.options.commit.max_attempts {
            if Instant::now() >= deadline {
                break;
            }
            let dataset = self.open_latest(location).await?;
            let attempt = match ledger::state(&dataset.manifest().table_metadata, id)? {
                CommitState::Committed(_) => Attempt::Landed { already: true },
                CommitState::Aborted => return Err(aborted(id)),
                CommitState::NotCommitted => attempt(dataset, deadline).await?,
            };
            match attempt {
                Attempt::Landed { already } => {
                    #[cfg(feature = "faults")]
                    crate::faults::pass("commit.reply").await;
                    let latest = self.open_latest(location).await?;
                    let metadata = &latest.manifest().table_metadata;
                    match ledger::state(metadata, id)? {
                        CommitState::Committed(version) => {
                            return Ok(Landed { version, already, merged: ledger::merged(metadata, id)? });
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
            Error::new(ErrorKind::ConcurrentModification, "no attempt to commit was made in the time given; try again")
        }))
    }

    /// One attempt to put a version with its mark.
    pub(crate) async fn put(
        &self,
        location: &Location,
        dataset: &Handle,
        id: &CommitId,
        put: Put,
        deadline: Instant,
    ) -> Result<Attempt> {
        let Put { operation, mark, incarnation, size, properties } = put;
        // What was worked out for one version may not even be valid on another one.
        let bound = matches!(mark, Mark::Merge { .. });
        let gate = Gate::new(incarnation, id.clone(), mark, size, self.ledger_bounds());
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
            Some(Refusal::OutOfOrder(earlier)) => return Err(merge::out_of_order(id, earlier)),
            Some(Refusal::VersionMoved) => {
                return Ok(Attempt::Again(Error::new(
                    ErrorKind::ConcurrentModification,
                    "other writers changed the table while the rows of the keys were looked for; try again",
                )));
            }
            Some(Refusal::RunMoved) => {
                return Ok(Attempt::Again(Error::new(
                    ErrorKind::ConcurrentModification,
                    "other commits of this run decide whether the table is replaced; try again",
                )));
            }
            None => {}
        }
        self.judge(dataset, id, bound, error).await
    }

    /// A failed put: the ledger of the latest version tells whether it landed after all. `bound`: it was for this version alone.
    async fn judge(&self, dataset: &Dataset, id: &CommitId, bound: bool, error: lance::Error) -> Result<Attempt> {
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
        let moved = bound && latest.manifest().version != dataset.manifest().version;
        if !lost_a_race && !moved {
            return Err(from_lance(error, "cannot commit", Missing::StagedFile));
        }
        let message = "other writers were faster, as often as this gateway tries; try again";
        Ok(Attempt::Again(Error::new(ErrorKind::ConcurrentModification, message).with_source(error)))
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

pub(super) fn beside_the_history() -> Error {
    let message = "other writers cleaned up each version while it was put; try again";
    Error::new(ErrorKind::ConcurrentModification, message)
}

fn unknown(what: &str) -> Error {
    Error::new(
        ErrorKind::CommitStateUnknown,
        format!("{what}: the commit may or may not have happened; repeat it, or ask GetCommit"),
    )
}
