//! Decides at the moment of the put: the last look at the manifest before it becomes the table.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::Utc;
use lance_table::format::Manifest;
use lance_table::io::commit::CommitHandler;

use super::ledger::{self, LedgerBounds, Size};
use crate::error::Error;
use crate::table::{EditingHandler, INCARNATION_KEY};
use crate::types::{CommitId, CommitState, MergeCounts};

/// What a commit does to the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The rows are added.
    Append,
    /// Run `0`'s rows are added; it must have replaced the table before.
    AppendToRun(String),
    /// Run `0` replaces the table; it must not have done so before.
    ReplaceForRun(String),
    /// Changes by key are made, as they were worked out for this version; no other may have come after it.
    Merge { version: u64, counts: MergeCounts },
    /// The id is fenced, no rows.
    Abort,
}

/// Why the handler refused to put.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The id is finished already.
    Finished(CommitState),
    /// Another table stands at this place.
    TableReplaced,
    /// Another commit of the run changed whether it has replaced the table: decide anew.
    RunMoved,
    /// Another version came after the one that was looked at: decide anew.
    VersionMoved,
    /// This earlier commit of the epoch is not finished.
    OutOfOrder(u64),
    /// The ledger cannot take or be read.
    Ledger(Error),
}

/// Checks and sets the ledger in the manifest that is about to be written, on every attempt, after every rebase. Since a version
/// is put only if it is absent, check, mark and data are one atomic step.
#[derive(Debug)]
pub(super) struct Gate {
    incarnation: String,
    id: CommitId,
    mark: Mark,
    size: Size,
    bounds: LedgerBounds,
    refusal: Mutex<Option<Refusal>>,
}

impl Gate {
    pub(super) fn new(incarnation: String, id: CommitId, mark: Mark, size: Size, bounds: LedgerBounds) -> Arc<Self> {
        Arc::new(Self { incarnation, id, mark, size, bounds, refusal: Mutex::new(None) })
    }

    /// The commit handler that every put of this commit passes.
    pub(super) fn handler(self: &Arc<Self>, inner: Arc<dyn CommitHandler>) -> Arc<dyn CommitHandler> {
        let gate = self.clone();
        Arc::new(EditingHandler::new(inner, move |manifest| gate.decide(manifest)))
    }

    /// Why the last attempt was refused, if it was refused by us.
    pub(super) fn take_refusal(&self) -> Option<Refusal> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn decide(&self, manifest: &mut Manifest) -> lance::Result<()> {
        let refused = self.check_and_mark(manifest).err();
        let verdict = match &refused {
            None => Ok(()),
            Some(_) => Err(lance::Error::prerequisite_failed("refused by the ledger")),
        };
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refused;
        verdict
    }

    fn check_and_mark(&self, manifest: &mut Manifest) -> Result<(), Refusal> {
        let version = manifest.version;
        let metadata = &mut manifest.table_metadata;
        if metadata.get(INCARNATION_KEY) != Some(&self.incarnation) {
            return Err(Refusal::TableReplaced);
        }
        match ledger::state(metadata, &self.id).map_err(Refusal::Ledger)? {
            CommitState::NotCommitted => {}
            finished => return Err(Refusal::Finished(finished)),
        }
        let now = Utc::now();
        match &self.mark {
            Mark::Append => ledger::mark_committed(metadata, &self.id, version, self.size, now, self.bounds),
            Mark::Merge { version: seen, .. } if version != seen + 1 => return Err(Refusal::VersionMoved),
            Mark::Merge { counts, .. } => {
                if let Some(earlier) = ledger::unfinished_before(metadata, &self.id).map_err(Refusal::Ledger)? {
                    return Err(Refusal::OutOfOrder(earlier));
                }
                ledger::mark_merged(metadata, &self.id, version, self.size, *counts, now, self.bounds)
            }
            Mark::AppendToRun(run) if !ledger::run_has_replaced(metadata, run) => return Err(Refusal::RunMoved),
            Mark::ReplaceForRun(run) if ledger::run_has_replaced(metadata, run) => return Err(Refusal::RunMoved),
            Mark::AppendToRun(run) | Mark::ReplaceForRun(run) => {
                ledger::mark_run(metadata, run, now);
                ledger::mark_committed(metadata, &self.id, version, self.size, now, self.bounds)
            }
            Mark::Abort => ledger::mark_aborted(metadata, &self.id, now, self.bounds),
        }
        .map_err(Refusal::Ledger)
    }
}
