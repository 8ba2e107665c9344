//! Commits that were prepared through this process and are neither committed nor aborted: a job whose commits go nowhere shows
//! here, also while it looks healthy.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lance_gateway_lake::CommitId;

/// Of more than these the oldest are no longer counted.
const MOST: usize = 10_000;

/// Those of one process.
#[derive(Debug, Default)]
pub(super) struct Pending {
    commits: Mutex<Commits>,
}

#[derive(Debug, Default)]
struct Commits {
    prepared: BTreeMap<(String, u64), Instant>,
    last: Option<Instant>,
}

impl Pending {
    pub(super) fn prepared(&self, id: &CommitId) {
        let mut commits = self.lock();
        commits.prepared.entry((id.epoch.clone(), id.seq)).or_insert_with(Instant::now);
        if commits.prepared.len() > MOST
            && let Some(oldest) = commits.prepared.iter().min_by_key(|(_, since)| **since).map(|(id, _)| id.clone())
        {
            commits.prepared.remove(&oldest);
        }
    }

    pub(super) fn finished(&self, id: &CommitId, committed: bool) {
        let mut commits = self.lock();
        commits.prepared.remove(&(id.epoch.clone(), id.seq));
        if committed {
            commits.last = Some(Instant::now());
        }
    }

    /// How many there are. What another gateway finished is among them until it is `max_age` old.
    pub(super) fn count(&self, max_age: Duration) -> u64 {
        let mut commits = self.lock();
        commits.prepared.retain(|_, since| since.elapsed() < max_age);
        commits.prepared.len() as u64
    }

    /// How long the oldest has waited.
    pub(super) fn oldest(&self) -> Duration {
        self.lock().prepared.values().min().map(Instant::elapsed).unwrap_or_default()
    }

    /// Since the last commit; None before the first.
    pub(super) fn since_last(&self) -> Option<Duration> {
        self.lock().last.map(|last| last.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Commits> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn id(seq: u64) -> CommitId {
        CommitId { epoch: "e".into(), seq }
    }

    #[test]
    fn a_commit_is_pending_from_its_prepare_to_its_end() {
        let pending = Pending::default();
        assert_eq!((pending.count(LONG), pending.since_last()), (0, None));
        pending.prepared(&id(1));
        pending.prepared(&id(1));
        pending.prepared(&id(2));
        assert_eq!(pending.count(LONG), 2);
        pending.finished(&id(2), false);
        assert_eq!((pending.count(LONG), pending.since_last()), (1, None));
        assert!(pending.oldest() > Duration::ZERO);
        pending.finished(&id(1), true);
        assert_eq!((pending.count(LONG), pending.oldest()), (0, Duration::ZERO));
        assert!(pending.since_last().is_some());
    }

    #[test]
    fn what_is_too_old_to_be_committed_is_no_longer_counted() {
        let pending = Pending::default();
        pending.prepared(&id(1));
        assert_eq!(pending.count(Duration::ZERO), 0);
    }

    #[test]
    fn more_than_the_most_are_not_kept() {
        let pending = Pending::default();
        for seq in 0..=MOST as u64 {
            pending.prepared(&id(seq));
        }
        assert_eq!(pending.count(LONG), MOST as u64);
        pending.finished(&id(0), false);
        assert_eq!(pending.count(LONG), MOST as u64, "the oldest was dropped before");
    }
}
