//! Jobs: work in the background, a bounded number at once, on threads of its own.
//!
//! Jobs run in this process only. What they do to tables is safe to stop at any point and to begin again, so all that is kept
//! over a restart is that they were broken off: whoever wants one starts it anew.

mod keys;
mod policy;
mod records;
mod run;
mod threads;

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::Utc;
use futures::Stream;
use futures::stream;
use lance_gateway_lake::{Lake, MergeCounts, Progress, ProgressSender, TableId};
use lance_gateway_proto::Reason;
use lance_gateway_proto::v1::job::{Kind, Result as Outcome};
use lance_gateway_proto::v1::{IndexBuild, Job, JobState, index_build};
use prost::Message as _;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::config::MaintenanceConfig;
use crate::convert;
use crate::lifecycle::{Lifecycle, State};
use crate::status::{reason_of, status};
use crate::telemetry::Metrics;

use keys::KeyIndexes;
pub use policy::{Properties, check_properties};
use records::Records;
pub use records::owner;
use threads::Threads;

/// Pause between two messages of a watched job, so that quick steps do not become many messages.
const WATCH_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// All jobs of the process. A cheap clone.
#[derive(Clone)]
pub struct Jobs {
    inner: Arc<Inner>,
}

struct Inner {
    lake: Lake,
    config: MaintenanceConfig,
    lifecycle: Arc<Lifecycle>,
    metrics: Arc<Metrics>,
    running: Arc<Semaphore>,
    stopping: CancellationToken,
    known: Mutex<Known>,
    records: Records,
    threads: Threads,
    /// Tables that the policy is to look at before its next round.
    early: mpsc::Sender<Vec<String>>,
    key_indexes: KeyIndexes,
}

/// Jobs by id, and in the order in which they were started.
#[derive(Default)]
struct Known {
    jobs: HashMap<String, Entry>,
    order: VecDeque<String>,
}

struct Entry {
    job: watch::Sender<Job>,
    /// Of the job as it was asked for.
    request: u64,
    cancel: CancellationToken,
    /// An earlier process ran it, and what was trained elsewhere is not known any more.
    recalled: bool,
}

/// What a job ends with.
enum End {
    Done(Outcome),
    Failed(Reason, String),
    Stopped,
}

/// Tells requests apart without keeping them.
fn fingerprint(job: &Job) -> u64 {
    let mut hasher = DefaultHasher::new();
    let request = Job { table: job.table.clone(), kind: job.kind.clone(), ..Job::default() };
    request.encode_to_vec().hash(&mut hasher);
    hasher.finish()
}

/// Centroids and codebooks may have megabytes, and each message of a watched job would hold them.
fn forget_what_was_trained(build: &mut IndexBuild) {
    if let Some(index_build::Kind::Vector(vector)) = &mut build.kind {
        vector.centroids.clear();
        vector.codebook.clear();
    }
}

impl Jobs {
    /// No jobs yet. The policy begins with the state `Serving`. `owner`: whose records of jobs are kept and recalled.
    pub fn new(
        lake: Lake,
        config: &MaintenanceConfig,
        owner: &str,
        lifecycle: Arc<Lifecycle>,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let (early, asked) = mpsc::channel(convert::saturating(config.max_tables));
        let jobs = Self {
            inner: Arc::new(Inner {
                records: Records::new(lake.clone(), owner),
                lake,
                config: config.clone(),
                lifecycle,
                metrics,
                running: Arc::new(Semaphore::new(convert::saturating(config.max_running))),
                stopping: CancellationToken::new(),
                known: Mutex::default(),
                threads: Threads::start(config)?,
                early,
                key_indexes: KeyIndexes::new(config),
            }),
        };
        let mut state = jobs.inner.lifecycle.subscribe();
        let stopping = jobs.inner.stopping.clone();
        jobs.inner.threads.spawn(async move {
            // An error: the process ends in any case.
            let _ = state.wait_for(|state| *state >= State::Quiescing).await;
            // At once, so that a drain is not made longer by work that can be done again.
            stopping.cancel();
        });
        if !config.interval.get().is_zero() {
            jobs.inner.threads.spawn(policy::look_after(jobs.clone(), asked));
        }
        Ok(jobs)
    }

    /// Shows the jobs that were broken off when this gateway was stopped.
    pub async fn recall(&self) {
        let jobs = self.inner.records.recall(self.inner.config.remembered_jobs).await;
        if !jobs.is_empty() {
            tracing::info!(jobs = jobs.len(), "jobs were broken off when the gateway was stopped");
        }
        let mut known = self.known();
        for job in jobs {
            let request = fingerprint(&job);
            known.order.push_back(job.id.clone());
            let (id, job) = (job.id.clone(), watch::Sender::new(job));
            known.jobs.insert(id, Entry { job, request, cancel: CancellationToken::new(), recalled: true });
        }
    }

    /// A version was committed. After each few of them the policy looks at the table before its next round comes to it.
    pub fn landed(&self, name: &[String], version: u64) {
        if policy::is_early(&self.inner.config, version) {
            // Full: so many tables are waited for that the round is as near.
            self.inner.early.try_send(name.to_vec()).ok();
        }
    }

    /// A merge was committed: the index of its table's key is looked after.
    pub fn merged(&self, table: TableId, counts: MergeCounts) {
        if self.inner.config.key_index_rows > 0 {
            let jobs = self.clone();
            self.inner.threads.spawn(async move { jobs.inner.key_indexes.merged(&jobs, table, counts).await });
        }
    }

    /// Starts a job, or answers the one that was started with this id. It reaches the table as the caller's lake does.
    pub fn start(&self, mut job: Job, table: TableId, lake: Lake) -> Result<Job, Status> {
        let Some(kind) = job.kind.clone() else {
            return Err(status(Reason::InvalidArgument, "kind is missing: compaction, cleanup or sweep"));
        };
        let request = fingerprint(&job);
        if let Some(Kind::IndexBuild(build)) = &mut job.kind {
            forget_what_was_trained(build);
        }
        let mut known = self.known();
        if let Some(entry) = known.jobs.get(&job.id) {
            let asked = if entry.recalled { fingerprint(&job) } else { request };
            if entry.request != asked {
                return Err(status(Reason::InvalidArgument, "request_id was used for another job; draw a new one"));
            }
            if !entry.recalled {
                return Ok(entry.job.borrow().clone());
            }
        }
        let forgotten = known.make_room(&self.inner.config)?;
        // One that was broken off begins anew.
        known.order.retain(|id| *id != job.id);
        job.state = JobState::Running.into();
        "waiting".clone_into(&mut job.stage);
        job.started_at = Some(convert::to_timestamp(Utc::now()));
        let cancel = self.inner.stopping.child_token();
        let view = watch::Sender::new(job.clone());
        known.order.push_back(job.id.clone());
        let entry = Entry { job: view.clone(), request, cancel: cancel.clone(), recalled: false };
        known.jobs.insert(job.id.clone(), entry);
        drop(known);
        for id in forgotten.into_iter().filter(|id| *id != job.id) {
            let records = self.inner.records.clone();
            self.inner.threads.spawn(async move { records.forget(&id).await });
        }
        self.spawn(view, cancel, table, lake, kind);
        Ok(job)
    }

    fn spawn(&self, view: watch::Sender<Job>, cancel: CancellationToken, table: TableId, lake: Lake, kind: Kind) {
        let inner = self.inner.clone();
        let name = run::name(&kind);
        let held = inner.lifecycle.continue_work();
        let by_policy = view.borrow().by_policy;
        let (progress, seen): (ProgressSender, _) = watch::channel(Progress::default());
        let (begun, may_begin) = oneshot::channel();
        // The policy starts its own again.
        let record = (!by_policy).then(|| inner.threads.spawn(inner.records.clone().follow(view.subscribe(), begun)));
        let work = inner.threads.spawn({
            let running = inner.running.clone();
            async move {
                // An error: there is to be no record.
                may_begin.await.ok();
                // First the table, so that jobs of one table do not take the room of others while they wait for each other.
                let _alone = lake.maintain_alone(&table).await?;
                let _room = running.acquire().await;
                run::run(&lake, &table, &kind, by_policy, &progress).await
            }
        });
        self.inner.threads.spawn(async move {
            let _held = held;
            let id = view.borrow().id.clone();
            tracing::info!(job = id, kind = name, "a job began");
            inner.metrics.job_began(name);
            let end = until_end(work, seen, &view, &cancel).await;
            let state = inner.finish(&view, end);
            inner.metrics.job_ended(name, state);
            tracing::info!(job = id, kind = name, state, "a job ended");
            if let Some(record) = record {
                record.await.ok();
            }
        });
    }

    /// A job as it is.
    pub fn get(&self, id: &str) -> Result<Job, Status> {
        self.known().jobs.get(id).map(|entry| entry.job.borrow().clone()).ok_or_else(|| not_found(id))
    }

    /// A job each time it is further, and its end.
    pub fn watch(&self, id: &str) -> Result<impl Stream<Item = Job> + Send + use<>, Status> {
        let view = self.known().jobs.get(id).map(|entry| entry.job.subscribe()).ok_or_else(|| not_found(id))?;
        Ok(stream::unfold((Some(view), false), |(view, began)| async move {
            let mut view = view?;
            if began {
                tokio::time::sleep(WATCH_PAUSE).await;
                // The sender lives as long as the job is remembered; if it is forgotten meanwhile, its end was seen.
                view.changed().await.ok()?;
            }
            let job = view.borrow_and_update().clone();
            let more = (job.state() == JobState::Running).then_some(view);
            Some((job, (more, true)))
        }))
    }

    /// All jobs, the newest first, without the lists of files.
    pub fn list(&self, of: impl Fn(&Job) -> bool) -> Vec<Job> {
        let known = self.known();
        let jobs = known.order.iter().rev().filter_map(|id| known.jobs.get(id)).map(|entry| {
            let mut job = entry.job.borrow().clone();
            if let Some(Outcome::SweepResult(result)) = &mut job.result {
                result.files.clear();
            }
            job
        });
        jobs.filter(of).collect()
    }

    /// Stops a job and waits until it has ended.
    pub async fn cancel(&self, id: &str) -> Result<Job, Status> {
        let (cancel, mut view) = {
            let known = self.known();
            let entry = known.jobs.get(id).ok_or_else(|| not_found(id))?;
            (entry.cancel.clone(), entry.job.subscribe())
        };
        cancel.cancel();
        // An error: the job is forgotten, so it had ended.
        let ended = view.wait_for(|job| job.state() != JobState::Running).await.map(|job| job.clone());
        ended.map_err(|_| not_found(id))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Between two statements that hold it nothing can panic.
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Shows the end, and gives its name.
    fn finish(&self, view: &watch::Sender<Job>, end: End) -> &'static str {
        let (state, name) = match &end {
            End::Done(_) => (JobState::Succeeded, "succeeded"),
            End::Failed(..) => (JobState::Failed, "failed"),
            End::Stopped if self.stopping.is_cancelled() => (JobState::Interrupted, "interrupted"),
            End::Stopped => (JobState::Cancelled, "cancelled"),
        };
        view.send_modify(|job| {
            job.state = state.into();
            if state != JobState::Interrupted {
                job.stage.clear();
            }
            job.ended_at = Some(convert::to_timestamp(Utc::now()));
            match end {
                End::Done(outcome) => job.result = Some(outcome),
                End::Failed(reason, message) => {
                    reason.name().clone_into(&mut job.reason);
                    job.message = message;
                }
                End::Stopped if state == JobState::Interrupted => {
                    "the gateway stopped before the job ended; start it again".clone_into(&mut job.message);
                }
                End::Stopped => {}
            }
        });
        name
    }
}

impl Known {
    /// Room for one more, at the cost of the oldest that has ended. Answers the recalled ones that are forgotten.
    fn make_room(&mut self, config: &MaintenanceConfig) -> Result<Vec<String>, Status> {
        let jobs = &self.jobs;
        let runs = |id: &String| jobs.get(id).is_some_and(|entry| entry.job.borrow().state() == JobState::Running);
        let running = self.order.iter().filter(|id| runs(id)).count();
        if running >= convert::saturating(config.max_jobs) {
            return Err(status(
                Reason::Overloaded,
                format!("{running} jobs wait or run (maintenance.max-jobs); start it again later"),
            ));
        }
        let mut surplus = (self.order.len() - running + 1).saturating_sub(convert::saturating(config.remembered_jobs));
        let mut forgotten = Vec::new();
        self.order.retain(|id| {
            let goes = surplus > 0 && !runs(id);
            if goes {
                surplus -= 1;
                forgotten.push(id.clone());
            }
            !goes
        });
        forgotten.retain(|id| self.jobs.remove(id).is_some_and(|entry| entry.recalled));
        Ok(forgotten)
    }
}

/// Shows the progress of the work until it ends or is stopped. What is stopped is gone when this returns.
async fn until_end(
    mut work: JoinHandle<lance_gateway_lake::Result<Outcome>>,
    mut seen: watch::Receiver<Progress>,
    view: &watch::Sender<Job>,
    cancel: &CancellationToken,
) -> End {
    let done = loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                work.abort();
                let _ = work.await;
                return End::Stopped;
            }
            done = &mut work => break done,
            Ok(()) = seen.changed() => {
                let Progress { stage, done, total } = *seen.borrow_and_update();
                view.send_modify(|job| {
                    stage.clone_into(&mut job.stage);
                    (job.num_done, job.num_total) = (done, total);
                });
            }
        }
    };
    match done {
        Ok(Ok(outcome)) => End::Done(outcome),
        Ok(Err(error)) => {
            let reason = reason_of(error.kind());
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            tracing::warn!(reason = reason.name(), %error, cause, "a job failed");
            End::Failed(reason, error.message().to_owned())
        }
        Err(lost) => {
            tracing::error!(error = %lost, "a job broke off");
            End::Failed(Reason::Internal, "fault of the gateway, see its log".to_owned())
        }
    }
}

fn not_found(id: &str) -> Status {
    let id: String = id.chars().take(64).collect();
    status(Reason::JobNotFound, format!("this gateway knows no job {id:?}, or no longer"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn known(states: &[JobState]) -> Known {
        let mut known = Known::default();
        for (n, state) in states.iter().enumerate() {
            let job = Job { id: n.to_string(), state: (*state).into(), ..Job::default() };
            known.order.push_back(job.id.clone());
            known.jobs.insert(
                job.id.clone(),
                Entry { job: watch::Sender::new(job), request: 0, cancel: CancellationToken::new(), recalled: n == 1 },
            );
        }
        known
    }

    fn config(max_jobs: u32, remembered_jobs: u32) -> MaintenanceConfig {
        MaintenanceConfig { max_jobs, remembered_jobs, ..Config::default().maintenance }
    }

    #[test]
    fn the_oldest_that_has_ended_is_forgotten_and_one_that_runs_never() {
        use JobState::{Cancelled, Failed, Running, Succeeded};
        let mut known = known(&[Running, Succeeded, Failed, Running, Cancelled]);
        assert_eq!(known.make_room(&config(10, 2)).unwrap(), ["1"], "the recalled one has a record");
        assert_eq!(known.order, ["0", "3", "4"].map(str::to_owned));
        assert_eq!(known.jobs.len(), 3);
    }

    #[test]
    fn jobs_above_the_bound_are_refused_with_the_option_that_sets_it() {
        let refused = known(&[JobState::Running, JobState::Running]).make_room(&config(2, 10)).unwrap_err();
        assert!(refused.message().contains("maintenance.max-jobs"), "{refused}");
        known(&[JobState::Running, JobState::Succeeded]).make_room(&config(2, 10)).unwrap();
    }
}
