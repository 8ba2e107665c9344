//! Which commits a table has seen: `server/lake/src/commit/ledger.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{MAX_AGE, Model, SLACK, Time, Without};

/// Names a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Drawn at each start.
    pub epoch: u8,
    /// Counts from 1.
    pub seq: u8,
}

/// What a table knows of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Known {
    /// Nothing.
    No,
    /// It is visible since this version.
    Committed(u8),
    /// It is fenced.
    Aborted,
}

/// What one epoch has finished.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Entry {
    upto: u8,
    above: BTreeSet<u8>,
    aborted: BTreeSet<u8>,
    versions: BTreeMap<u8, u8>,
    at: Time,
}

/// All epochs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Ledger(BTreeMap<u8, Entry>);

impl Ledger {
    /// Looks an id up.
    #[must_use]
    pub fn state(&self, id: Id, model: &Model) -> Known {
        let Some(entry) = self.0.get(&id.epoch) else { return Known::No };
        let finished = if model.lacks(Without::SetAboveTheGap) {
            id.seq <= entry.above.last().copied().unwrap_or(0).max(entry.upto)
        } else {
            id.seq <= entry.upto || entry.above.contains(&id.seq)
        };
        if !finished {
            Known::No
        } else if entry.aborted.contains(&id.seq) {
            Known::Aborted
        } else {
            Known::Committed(entry.versions.get(&id.seq).copied().unwrap_or(0))
        }
    }

    /// Marks an id as committed in `version`.
    pub fn mark_committed(&mut self, id: Id, version: u8, now: Time, model: &Model) {
        self.finish(id, now, model).versions.insert(id.seq, version);
    }

    /// Fences an id.
    pub fn mark_aborted(&mut self, id: Id, now: Time, model: &Model) {
        self.finish(id, now, model).aborted.insert(id.seq);
    }

    fn finish(&mut self, id: Id, now: Time, model: &Model) -> &mut Entry {
        let memory = if model.lacks(Without::MemoryAsLongAsTheAge) { 0 } else { MAX_AGE + SLACK };
        self.0.retain(|epoch, entry| *epoch == id.epoch || entry.at + memory >= now);
        let entry = self.0.entry(id.epoch).or_default();
        entry.at = now;
        entry.above.insert(id.seq);
        while entry.above.remove(&(entry.upto + 1)) {
            entry.upto += 1;
        }
        entry
    }
}
