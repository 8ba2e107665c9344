//! The ledger: which commit ids a table has seen, kept in the table's own manifest.
//!
//! One entry an epoch in `table_metadata`, a small JSON text. Check, mark and data become visible in one atomic put, because
//! the entry is part of the manifest that makes the data visible (see [`super::gate`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::types::{CommitId, CommitRecord, CommitState, EpochInfo, MergeCounts, RecordState};

const ENTRY: &str = "lance-gateway.ledger.";
const RUN: &str = "lance-gateway.run.";

/// Entries outlive the longest allowed age of a committable by this, so that clocks may differ.
pub(crate) const CLOCK_SLACK: Duration = Duration::from_secs(24 * 3600);

/// What one epoch has finished. A seq is finished if it was committed or aborted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// All of 1 to this are finished.
    upto: u64,
    /// Finished ones above a gap: commits may overtake each other.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    above: BTreeSet<u64>,
    /// Of the finished ones, the aborted, and when.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    aborted: BTreeMap<u64, i64>,
    /// Newest commits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    committed: BTreeMap<u64, Done>,
    /// Of the newest commits, what those of mode merge did: inserted, updated, deleted, unchanged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    merged: BTreeMap<u64, [u64; 4]>,
    /// Last change, milliseconds since 1970.
    at: i64,
}

/// One commit. A tuple, since each manifest holds many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64, i64)", into = "(u64, u64, u64, i64)")]
struct Done {
    version: u64,
    size: Size,
    at: i64,
}

/// What a commit adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl From<(u64, u64, u64, i64)> for Done {
    fn from((version, rows, bytes, at): (u64, u64, u64, i64)) -> Self {
        Self { version, size: Size { rows, bytes }, at }
    }
}

impl From<Done> for (u64, u64, u64, i64) {
    fn from(done: Done) -> Self {
        (done.version, done.size.rows, done.size.bytes, done.at)
    }
}

/// Bounds of one entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LedgerBounds {
    pub(crate) max_age: Duration,
    pub(crate) max_out_of_order: usize,
    pub(crate) remembered_versions: usize,
}

impl Entry {
    fn is_finished(&self, seq: u64) -> bool {
        seq <= self.upto || self.above.contains(&seq)
    }

    fn state(&self, seq: u64) -> CommitState {
        if !self.is_finished(seq) {
            CommitState::NotCommitted
        } else if self.aborted.contains_key(&seq) {
            CommitState::Aborted
        } else {
            CommitState::Committed(self.committed.get(&seq).map_or(0, |done| done.version))
        }
    }

    fn remember(&mut self, seq: u64, done: Done, merged: Option<MergeCounts>, most: usize) {
        self.committed.insert(seq, done);
        if let Some(MergeCounts { num_inserted, num_updated, num_deleted, num_unchanged }) = merged {
            self.merged.insert(seq, [num_inserted, num_updated, num_deleted, num_unchanged]);
        }
        while self.committed.len() > most {
            if let Some((oldest, _)) = self.committed.pop_first() {
                self.merged.remove(&oldest);
            }
        }
    }

    fn finish(&mut self, seq: u64, max_out_of_order: usize) -> Result<()> {
        if seq > self.upto + 1 && self.above.len() >= max_out_of_order {
            return Err(Error::new(
                ErrorKind::QuotaExceeded,
                format!(
                    "commit {seq} is ahead of {} finished ones that wait for commit {}; commit or abort that one first",
                    self.above.len(),
                    self.upto + 1
                ),
            ));
        }
        self.above.insert(seq);
        while self.above.remove(&(self.upto + 1)) {
            self.upto += 1;
        }
        Ok(())
    }
}

/// What a table knows of this id. A damaged entry is an error: it must never read as "not committed".
pub(crate) fn state(metadata: &HashMap<String, String>, id: &CommitId) -> Result<CommitState> {
    Ok(entry(metadata, &id.epoch)?.map_or(CommitState::NotCommitted, |e| e.state(id.seq)))
}

/// The first commit before this one in its epoch that is neither committed nor aborted.
pub(crate) fn unfinished_before(metadata: &HashMap<String, String>, id: &CommitId) -> Result<Option<u64>> {
    let next = entry(metadata, &id.epoch)?.unwrap_or_default().upto + 1;
    Ok((next < id.seq).then_some(next))
}

/// What a merge did, as far as it is remembered.
pub(crate) fn merged(metadata: &HashMap<String, String>, id: &CommitId) -> Result<Option<MergeCounts>> {
    let entry = entry(metadata, &id.epoch)?.unwrap_or_default();
    Ok(entry.merged.get(&id.seq).map(|[num_inserted, num_updated, num_deleted, num_unchanged]| MergeCounts {
        num_inserted: *num_inserted,
        num_updated: *num_updated,
        num_deleted: *num_deleted,
        num_unchanged: *num_unchanged,
    }))
}

/// Marks an id as committed in `version`, and prunes epochs that no committable can name any more.
pub(crate) fn mark_committed(
    metadata: &mut HashMap<String, String>,
    id: &CommitId,
    version: u64,
    size: Size,
    now: DateTime<Utc>,
    bounds: LedgerBounds,
) -> Result<()> {
    update(metadata, id, now, bounds, |entry| {
        entry.remember(id.seq, Done { version, size, at: now.timestamp_millis() }, None, bounds.remembered_versions);
        Ok(())
    })
}

/// The same for a merge.
pub(crate) fn mark_merged(
    metadata: &mut HashMap<String, String>,
    id: &CommitId,
    version: u64,
    size: Size,
    counts: MergeCounts,
    now: DateTime<Utc>,
    bounds: LedgerBounds,
) -> Result<()> {
    update(metadata, id, now, bounds, |entry| {
        let done = Done { version, size, at: now.timestamp_millis() };
        entry.remember(id.seq, done, Some(counts), bounds.remembered_versions);
        Ok(())
    })
}

/// Fences an id.
pub(crate) fn mark_aborted(
    metadata: &mut HashMap<String, String>,
    id: &CommitId,
    now: DateTime<Utc>,
    bounds: LedgerBounds,
) -> Result<()> {
    update(metadata, id, now, bounds, |entry| {
        if entry.aborted.len() >= bounds.max_out_of_order {
            return Err(Error::new(
                ErrorKind::QuotaExceeded,
                format!("epoch holds {} aborted commits, the most it may; start a new epoch", entry.aborted.len()),
            ));
        }
        entry.aborted.insert(id.seq, now.timestamp_millis());
        Ok(())
    })
}

fn update(
    metadata: &mut HashMap<String, String>,
    id: &CommitId,
    now: DateTime<Utc>,
    bounds: LedgerBounds,
    change: impl FnOnce(&mut Entry) -> Result<()>,
) -> Result<()> {
    let mut entry = entry(metadata, &id.epoch)?.unwrap_or_default();
    entry.finish(id.seq, bounds.max_out_of_order)?;
    change(&mut entry)?;
    entry.at = now.timestamp_millis();
    let text =
        serde_json::to_string(&entry).map_err(|e| Error::internal("ledger entry cannot be written").with_source(e))?;
    prune(metadata, now, bounds.max_age);
    metadata.insert(format!("{ENTRY}{}", id.epoch), text);
    Ok(())
}

fn prune(metadata: &mut HashMap<String, String>, now: DateTime<Utc>, max_age: Duration) {
    let oldest = now.timestamp_millis().saturating_sub_unsigned((max_age + CLOCK_SLACK).as_millis() as u64);
    metadata.retain(|key, value| {
        let at = if key.starts_with(ENTRY) {
            serde_json::from_str::<Entry>(value).map(|e| e.at).ok()
        } else if key.starts_with(RUN) {
            value.parse().ok()
        } else {
            None
        };
        at.is_none_or(|at| at >= oldest)
    });
}

/// Whether the first commit of this run has replaced the rows.
pub(crate) fn run_has_replaced(metadata: &HashMap<String, String>, run_id: &str) -> bool {
    metadata.contains_key(&format!("{RUN}{run_id}"))
}

/// Marks that a run has replaced the rows, or still writes.
pub(crate) fn mark_run(metadata: &mut HashMap<String, String>, run_id: &str, now: DateTime<Utc>) {
    metadata.insert(format!("{RUN}{run_id}"), now.timestamp_millis().to_string());
}

/// All epochs, the one that changed last first.
pub(crate) fn epochs(metadata: &HashMap<String, String>) -> Result<Vec<EpochInfo>> {
    let mut all = entries(metadata)
        .map(|e| {
            e.map(|(epoch, e)| EpochInfo {
                epoch: epoch.to_owned(),
                contiguous_seq: e.upto,
                above: e.above.into_iter().collect(),
                aborted: e.aborted.into_keys().collect(),
                last_commit: time(e.at),
                versions: e.committed.into_iter().map(|(seq, done)| (seq, done.version)).collect(),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    all.sort_by(|a, b| b.last_commit.cmp(&a.last_commit).then_with(|| a.epoch.cmp(&b.epoch)));
    Ok(all)
}

/// What is remembered of finished commits, in no order.
pub(crate) fn records(metadata: &HashMap<String, String>) -> Result<Vec<CommitRecord>> {
    let mut records = Vec::new();
    for found in entries(metadata) {
        let (epoch, entry) = found?;
        let record = |seq, state, size: Size, at| CommitRecord {
            id: CommitId { epoch: epoch.to_owned(), seq },
            state,
            num_rows: size.rows,
            num_bytes: size.bytes,
            at: time(at),
        };
        let committed = entry.committed.into_iter();
        records
            .extend(committed.map(|(seq, done)| record(seq, RecordState::Committed(done.version), done.size, done.at)));
        let aborted = entry.aborted.into_iter();
        records.extend(aborted.map(|(seq, at)| record(seq, RecordState::Aborted, Size::default(), at)));
    }
    Ok(records)
}

fn entries(metadata: &HashMap<String, String>) -> impl Iterator<Item = Result<(&str, Entry)>> {
    let epochs = metadata.keys().filter_map(|key| key.strip_prefix(ENTRY));
    epochs.filter_map(|epoch| entry(metadata, epoch).transpose().map(|e| e.map(|e| (epoch, e))))
}

fn time(millis: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(millis).unwrap_or_default()
}

fn entry(metadata: &HashMap<String, String>, epoch: &str) -> Result<Option<Entry>> {
    metadata
        .get(&format!("{ENTRY}{epoch}"))
        .map(|text| {
            serde_json::from_str(text).map_err(|e| {
                Error::new(
                    ErrorKind::CorruptData,
                    format!("the ledger entry of epoch {epoch} in the table's metadata cannot be read; nothing is committed until it is repaired"),
                )
                .with_source(e)
            })
        })
        .transpose()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: LedgerBounds =
        LedgerBounds { max_age: Duration::from_secs(3600), max_out_of_order: 100, remembered_versions: 8 };

    const SIZE: Size = Size { rows: 5, bytes: 100 };

    fn id(epoch: &str, seq: u64) -> CommitId {
        CommitId { epoch: epoch.into(), seq }
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn a_committed_id_is_known_with_its_version() {
        let mut m = HashMap::new();
        mark_committed(&mut m, &id("e", 1), 7, SIZE, at(0), BOUNDS).unwrap();
        assert_eq!(state(&m, &id("e", 1)).unwrap(), CommitState::Committed(7));
        assert_eq!(state(&m, &id("e", 2)).unwrap(), CommitState::NotCommitted);
        assert_eq!(state(&m, &id("f", 1)).unwrap(), CommitState::NotCommitted);
    }

    #[test]
    fn an_overtaken_commit_is_not_taken_for_a_replay() {
        let mut m = HashMap::new();
        mark_committed(&mut m, &id("e", 3), 5, SIZE, at(0), BOUNDS).unwrap();
        assert_eq!(state(&m, &id("e", 1)).unwrap(), CommitState::NotCommitted);
        assert_eq!(state(&m, &id("e", 2)).unwrap(), CommitState::NotCommitted);
        mark_committed(&mut m, &id("e", 1), 6, SIZE, at(0), BOUNDS).unwrap();
        mark_committed(&mut m, &id("e", 2), 7, SIZE, at(0), BOUNDS).unwrap();
        assert_eq!(epochs(&m).unwrap()[0].contiguous_seq, 3);
        assert!(epochs(&m).unwrap()[0].above.is_empty());
    }

    #[test]
    fn an_aborted_id_stays_aborted() {
        let mut m = HashMap::new();
        mark_aborted(&mut m, &id("e", 1), at(0), BOUNDS).unwrap();
        mark_committed(&mut m, &id("e", 2), 9, SIZE, at(0), BOUNDS).unwrap();
        assert_eq!(state(&m, &id("e", 1)).unwrap(), CommitState::Aborted);
        assert_eq!(state(&m, &id("e", 2)).unwrap(), CommitState::Committed(9));
    }

    #[test]
    fn an_old_commit_is_known_without_its_version() {
        let mut m = HashMap::new();
        for seq in 1..=20 {
            mark_committed(&mut m, &id("e", seq), seq + 100, SIZE, at(0), BOUNDS).unwrap();
        }
        assert_eq!(state(&m, &id("e", 1)).unwrap(), CommitState::Committed(0));
        assert_eq!(state(&m, &id("e", 20)).unwrap(), CommitState::Committed(120));
    }

    #[test]
    fn epochs_that_no_committable_can_name_are_pruned() {
        let mut m = HashMap::from([("other".to_owned(), "kept".to_owned())]);
        mark_committed(&mut m, &id("old", 1), 1, SIZE, at(0), BOUNDS).unwrap();
        mark_run(&mut m, "r", at(0));
        mark_committed(&mut m, &id("new", 1), 2, SIZE, at(3600 + 24 * 3600), BOUNDS).unwrap();
        assert_eq!(epochs(&m).unwrap().len(), 2);
        mark_committed(&mut m, &id("new", 2), 3, SIZE, at(3600 + 24 * 3600 + 1), BOUNDS).unwrap();
        assert_eq!(epochs(&m).unwrap().len(), 1);
        assert!(!run_has_replaced(&m, "r"));
        assert_eq!(m["other"], "kept");
    }

    #[test]
    fn a_gap_is_bounded() {
        let mut m = HashMap::new();
        for seq in 2..102 {
            mark_committed(&mut m, &id("e", seq), seq, SIZE, at(0), BOUNDS).unwrap();
        }
        let error = mark_committed(&mut m, &id("e", 102), 102, SIZE, at(0), BOUNDS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        mark_committed(&mut m, &id("e", 1), 1, SIZE, at(0), BOUNDS).unwrap();
        mark_committed(&mut m, &id("e", 102), 102, SIZE, at(0), BOUNDS).unwrap();
    }

    #[test]
    fn a_damaged_entry_never_reads_as_not_committed() {
        let m = HashMap::from([(format!("{ENTRY}e"), "{".to_owned())]);
        assert_eq!(state(&m, &id("e", 1)).unwrap_err().kind(), ErrorKind::CorruptData);
    }

    proptest! {
        #[test]
        fn any_order_of_commits_ends_in_the_same_ledger(order in Just((1..=30u64).collect::<Vec<_>>()).prop_shuffle()) {
            let mut m = HashMap::new();
            for (done, seq) in order.iter().enumerate() {
                prop_assert_eq!(state(&m, &id("e", *seq)).unwrap(), CommitState::NotCommitted);
                mark_committed(&mut m, &id("e", *seq), 1, SIZE, at(0), BOUNDS).unwrap();
                for earlier in &order[..=done] {
                    prop_assert_ne!(state(&m, &id("e", *earlier)).unwrap(), CommitState::NotCommitted);
                }
            }
            prop_assert_eq!(epochs(&m).unwrap()[0].contiguous_seq, 30);
        }
    }
}
