//! Records of jobs in the warehouse, so that a gateway that comes back tells which jobs it broke off: each is the message `Job` as of
//! its last stage, without what was trained elsewhere and without the storage options of its caller.
//!
//! They are for people and for clients that watch. Nothing is decided by them, so a store that does not take one hinders no job.

use std::sync::Arc;
use std::time::Duration;

use lance_gateway_lake::Lake;
use lance_gateway_proto::v1::{Job, JobState};
use prost::Message as _;
use tokio::sync::{oneshot, watch};

use crate::config::MaintenanceConfig;
use crate::convert;
use crate::transport::Bound;

/// After this the jobs of a gateway that was stopped are of no interest.
const MAX_AGE: Duration = Duration::from_secs(7 * 86_400);
/// For one answer of the store, since a job, a drain or a start waits for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two stages of one job, so that quick ones do not become many writes.
const PAUSE: Duration = Duration::from_secs(1);

/// The name by which a gateway finds its records again. The address belongs to it: two processes cannot have the same.
pub async fn owner(config: &MaintenanceConfig, bound: &[Bound]) -> String {
    if let Some(name) = &config.instance.0 {
        return name.clone();
    }
    let mut host = None;
    for file in ["/proc/sys/kernel/hostname", "/etc/hostname"] {
        host = host.or(tokio::fs::read_to_string(file).await.ok());
    }
    let host = host.as_deref().unwrap_or("localhost").trim();
    let place = bound.first().map(ToString::to_string).unwrap_or_default();
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
    format!("{host} {place}").chars().map(safe).collect()
}

/// The records of this gateway. A cheap clone.
#[derive(Clone)]
pub(super) struct Records {
    lake: Lake,
    owner: Arc<str>,
}

impl Records {
    pub(super) fn new(lake: Lake, owner: &str) -> Self {
        Self { lake, owner: owner.into() }
    }

    /// Keeps the record of a job in step with its stage, and takes it away at its end, unless that came from the gateway's own.
    /// `begun`: the record is there, or the store does not take it.
    pub(super) async fn follow(self, mut job: watch::Receiver<Job>, begun: oneshot::Sender<()>) {
        let mut kept = job.borrow_and_update().clone();
        self.keep(&kept).await;
        begun.send(()).ok();
        let ended = |now: &Job| now.state() != JobState::Running;
        let end = loop {
            let further = job.wait_for(|now| ended(now) || now.stage != kept.stage).await.map(|now| now.clone());
            // An error: the job is forgotten, so it had ended.
            let Ok(now) = further else { return };
            if ended(&now) {
                break now;
            }
            kept = now;
            self.keep(&kept).await;
            tokio::time::timeout(PAUSE, job.wait_for(ended)).await.ok();
        };
        if end.state() == JobState::Interrupted {
            self.keep(&end).await;
        } else {
            self.forget(&end.id).await;
        }
    }

    async fn keep(&self, job: &Job) {
        let record = job.encode_to_vec().into();
        let kept = tokio::time::timeout(PATIENCE, self.lake.keep_record(&self.owner, &job.id, record)).await;
        warn(kept, &job.id, "the job has no record: a restart would not know it");
    }

    /// A record that stays shows a job that has ended as one that was broken off.
    pub(super) async fn forget(&self, id: &str) {
        let forgotten = tokio::time::timeout(PATIENCE, self.lake.forget_record(&self.owner, id)).await;
        warn(forgotten, id, "the record of the job stays");
    }

    /// The newest jobs that this gateway broke off, at most `most`, in the order in which they were started.
    pub(super) async fn recall(&self, most: u32) -> Vec<Job> {
        let records = self.lake.recall_records(&self.owner, convert::saturating(most), MAX_AGE);
        let records = match tokio::time::timeout(PATIENCE, records).await {
            Ok(Ok(records)) => records,
            Ok(Err(error)) => {
                tracing::warn!(%error, "jobs that were broken off are not known");
                return Vec::new();
            }
            Err(_) => {
                tracing::warn!("jobs that were broken off are not known: the store does not answer");
                return Vec::new();
            }
        };
        let mut jobs: Vec<Job> = records.into_iter().filter_map(|(id, record)| broken_off(&id, &record)).collect();
        jobs.sort_by_key(|job| job.started_at.map(|at| (at.seconds, at.nanos)));
        jobs
    }
}

/// The job of a record; None: the record was not written by a gateway.
fn broken_off(id: &str, record: &[u8]) -> Option<Job> {
    let mut job = Job::decode(record).ok().filter(|job| job.id == id && job.table.is_some() && job.kind.is_some())?;
    if job.state() != JobState::Interrupted {
        job.state = JobState::Interrupted.into();
        "the gateway was restarted before the job ended; start it again".clone_into(&mut job.message);
    }
    Some(job)
}

fn warn<T, E: std::fmt::Display, L>(answer: Result<Result<T, E>, L>, job: &str, what: &str) {
    match answer {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(job, %error, "{what}"),
        Err(_) => tracing::warn!(job, "{what}: the store does not answer"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lance_gateway_proto::v1::{Compaction, Table, job};

    use super::*;
    use crate::config::{Config, InstanceName, OptionValue as _};

    #[test]
    fn only_what_is_a_job_of_its_name_is_recalled() {
        let kind = Some(job::Kind::Compaction(Compaction {}));
        let mut job = Job { id: "a".to_owned(), table: Some(Table::default()), kind, ..Job::default() };
        job.state = JobState::Running.into();
        "rewriting".clone_into(&mut job.stage);
        let recalled = broken_off("a", &job.encode_to_vec()).unwrap();
        assert_eq!((recalled.state(), recalled.stage.as_str()), (JobState::Interrupted, "rewriting"));
        assert!(recalled.message.contains("start it again"));
        assert_eq!(broken_off("b", &job.encode_to_vec()), None);
        assert_eq!(broken_off("a", b"no job at all"), None);
        assert_eq!(broken_off("a", b""), None);
    }

    #[tokio::test]
    async fn a_gateway_without_a_name_has_that_of_its_host_and_address() {
        let mut config = Config::default().maintenance;
        let bound = [Bound::Unix("/run/a b.sock".into())];
        let named = owner(&config, &bound).await;
        assert!(named.ends_with("_unix__run_a_b.sock"), "{named}");
        config.instance = InstanceName::parse("gateway-0").unwrap();
        assert_eq!(owner(&config, &bound).await, "gateway-0");
    }
}
