//! The stages of Lance's builds, for those who follow a job.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;

use async_trait::async_trait;
use lance_index::progress::IndexBuildProgress;

use crate::maintain::{Progress, ProgressSender};

/// What Lance calls a stage, and what people read.
const STAGES: [(&str, &str); 9] = [
    ("train", "training"),
    ("load", "reading"),
    ("read", "reading"),
    ("scan", "reading"),
    ("tokenize", "reading words"),
    ("shuffle", "sorting into partitions"),
    ("merge", "merging"),
    ("write", "writing"),
    ("remap", "writing"),
];

/// Hands Lance's progress on.
pub(super) struct Follow {
    to: ProgressSender,
    now: Mutex<Progress>,
}

impl Follow {
    pub(super) fn new(to: ProgressSender) -> Self {
        Self { to, now: Mutex::default() }
    }

    fn tell(&self, change: impl FnOnce(&mut Progress)) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut now);
        self.to.send_replace(*now);
    }
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follow")
    }
}

#[async_trait]
impl IndexBuildProgress for Follow {
    async fn stage_start(&self, stage: &str, total: Option<u64>, _unit: &str) -> lance::Result<()> {
        let known = STAGES.iter().find(|(lance, _)| stage.starts_with(lance));
        let stage = known.map_or("building", |(_, people)| people);
        self.tell(|now| *now = Progress { stage, done: 0, total: total.unwrap_or_default() });
        Ok(())
    }

    async fn stage_progress(&self, _stage: &str, completed: u64) -> lance::Result<()> {
        self.tell(|now| now.done = completed);
        Ok(())
    }

    async fn stage_complete(&self, _stage: &str) -> lance::Result<()> {
        self.tell(|now| now.done = now.done.max(now.total));
        Ok(())
    }
}
