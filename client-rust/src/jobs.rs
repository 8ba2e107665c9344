//! Jobs: work that the gateway does in the background.

use std::time::Duration;

use chrono::{DateTime, Utc};
use lance_gateway_proto::{Reason, v1};
use tonic::Streaming;

use crate::client::{Call, send};
use crate::ids::time_from_wire;
use crate::retry::Pauses;
use crate::{Client, Error, IndexSpec, Indexed, Optimization, Result, TableId};

/// What a job does.
#[derive(Debug, Clone, PartialEq)]
pub enum JobKind {
    /// Merges small fragments into large ones, and takes deleted rows out of files.
    Compaction,
    /// Removes old versions.
    Cleanup(Cleanup),
    /// Deletes files that no version names and that are too old to be committed any more.
    Sweep {
        /// Only lists.
        dry_run: bool,
    },
    /// Builds an index.
    IndexBuild(IndexSpec),
    /// Brings rows that came later into indexes.
    IndexOptimization(Optimization),
}

/// Which versions go: those that fit both rules. The latest, and those with a tag or a branch, stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Older than this. None: of any age.
    pub older_than: Option<Duration>,
    /// Not among the newest so many. None: all but the latest, and then an age is needed.
    pub keep_versions: Option<u64>,
    /// Only counts.
    pub dry_run: bool,
}

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// It waits for its turn or works.
    Running,
    /// It did what it should.
    Succeeded,
    /// It could not.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// The gateway stopped before it ended; start it again.
    Interrupted,
}

/// A job as the gateway tells.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Job {
    /// Its id.
    pub id: String,
    /// The table it works on.
    pub table: TableId,
    /// What it does.
    pub kind: JobKind,
    /// Where it is.
    pub state: JobState,
    /// What it does now, for people.
    pub stage: String,
    /// Steps of the stage that are done.
    pub num_done: u64,
    /// Steps of the stage; 0: not known.
    pub num_total: u64,
    /// When it was started.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Whether the policy started it.
    pub by_policy: bool,
    /// If it failed: a reason of the error table.
    pub reason: String,
    /// What was wrong.
    pub message: String,
    /// If it succeeded.
    pub result: Option<JobResult>,
}

/// What a job did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobResult {
    /// Of a compaction.
    Compaction {
        /// Fragments that were replaced.
        num_fragments_removed: u64,
        /// Fragments in their place.
        num_fragments_added: u64,
        /// The version that shows it; None: there was nothing to do.
        version: Option<u64>,
    },
    /// Of a cleanup.
    Cleanup {
        /// Versions.
        num_versions: u64,
        /// Files besides the manifests.
        num_files: u64,
        /// Bytes of both.
        num_bytes: u64,
        /// Files that the store did not delete.
        num_failed: u64,
    },
    /// Of a sweep.
    Sweep {
        /// Files.
        num_files: u64,
        /// Their bytes.
        num_bytes: u64,
        /// Files that the store did not delete.
        num_failed: u64,
        /// The first of the files.
        files: Vec<SweptFile>,
        /// Younger files were left alone.
        min_age: Duration,
    },
    /// Of the build of an index.
    Index(Indexed),
    /// Of an optimization.
    Optimization {
        /// The version that shows it; None: there was nothing to do.
        version: Option<u64>,
        /// The indexes it was about.
        indexes: Vec<Indexed>,
    },
}

/// A file that no version names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweptFile {
    /// Below the folder of the table.
    pub path: String,
    /// Its size.
    pub num_bytes: u64,
    /// When it was written.
    pub modified_at: Option<DateTime<Utc>>,
}

/// Follows a job: first as it is, then each time it is further, until it has ended.
#[derive(Debug)]
pub struct JobWatch {
    client: Client,
    id: String,
    stream: Option<Streaming<v1::WatchJobResponse>>,
    last: Option<Job>,
}

impl Client {
    /// Starts a job and answers at once.
    pub async fn start_job(&self, table: impl Into<TableId>, kind: &JobKind) -> Result<Job> {
        use v1::start_job_request::Kind;
        let table = table.into();
        let kind = match kind {
            JobKind::IndexBuild(spec) => return Job::from_wire(self.start_index_build(table, spec).await?),
            JobKind::IndexOptimization(what) => return Job::from_wire(self.start_optimization(table, what).await?),
            JobKind::Compaction => Kind::Compaction(v1::Compaction {}),
            JobKind::Cleanup(cleanup) => Kind::Cleanup(v1::Cleanup {
                // No age is longer than what the wire holds.
                older_than: cleanup.older_than.map(|age| age.try_into().unwrap_or_default()),
                keep_versions: cleanup.keep_versions.unwrap_or_default(),
                dry_run: cleanup.dry_run,
            }),
            JobKind::Sweep { dry_run } => Kind::Sweep(v1::Sweep { dry_run: *dry_run }),
        };
        let call = Call::changes("start job");
        let message =
            v1::StartJobRequest { request_id: call.request_id.clone(), table: table.to_wire(), kind: Some(kind) };
        Job::from_wire(send!(self.jobs().start_job, call, message)?.job)
    }

    /// A job as it is now.
    pub async fn get_job(&self, id: &str) -> Result<Job> {
        let message = v1::GetJobRequest { id: id.to_owned() };
        Job::from_wire(send!(self.jobs().get_job, Call::reads("get job"), message)?.job)
    }

    /// All jobs that the gateway remembers, or those of one table, the newest first.
    pub async fn list_jobs(&self, table: Option<TableId>) -> Result<Vec<Job>> {
        let message = v1::ListJobsRequest { table: table.and_then(|table| table.to_wire()) };
        let answer = send!(self.jobs().list_jobs, Call::reads("list jobs"), message)?;
        answer.jobs.into_iter().map(|job| Job::from_wire(Some(job))).collect()
    }

    /// Stops a job. One that has ended stays as it is.
    pub async fn cancel_job(&self, id: &str) -> Result<Job> {
        let message = v1::CancelJobRequest { id: id.to_owned() };
        Job::from_wire(send!(self.jobs().cancel_job, Call::changes("cancel job"), message)?.job)
    }

    /// Follows a job.
    pub fn watch_job(&self, id: &str) -> JobWatch {
        JobWatch { client: self.clone(), id: id.to_owned(), stream: None, last: None }
    }
}

impl JobWatch {
    /// The job when it is further; None: its end was told. A connection that breaks is opened again. If the gateway no longer knows
    /// a job that it was seen at, it was killed meanwhile, and the job is interrupted.
    pub async fn next(&mut self) -> Result<Option<Job>> {
        if self.last.as_ref().is_some_and(|job| job.state != JobState::Running) {
            return Ok(None);
        }
        let mut pauses = Pauses::new(&self.client.options().retry);
        loop {
            let call = Call::reads("watch job");
            match self.read(&call).await {
                Ok(Some(job)) => {
                    let job = Job::from_wire(job.job)?;
                    self.last = Some(job.clone());
                    return Ok(Some(job));
                }
                // Ended without telling the end: the gateway stopped.
                Ok(None) => {
                    self.stream = None;
                    pauses.wait(Error::unavailable("the gateway went away while it was watched")).await?;
                }
                Err(error) if error.is_retriable() => {
                    self.stream = None;
                    pauses.wait(error).await?;
                }
                Err(error) if error.reason() == Some(Reason::JobNotFound) => {
                    let Some(job) = &mut self.last else { return Err(error) };
                    job.state = JobState::Interrupted;
                    "the gateway was restarted before the job ended: start it again".clone_into(&mut job.message);
                    return Ok(Some(job.clone()));
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn read(&mut self, call: &Call) -> Result<Option<v1::WatchJobResponse>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let request = call.request(v1::WatchJobRequest { id: self.id.clone() });
                let opened = self.client.jobs().watch_job(request).await.map_err(|status| call.error(status))?;
                self.stream.insert(opened.into_inner())
            }
        };
        stream.message().await.map_err(|status| call.error(status))
    }
}

impl JobKind {
    /// As people call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::Cleanup(_) => "cleanup",
            Self::Sweep { .. } => "sweep",
            Self::IndexBuild(_) => "index build",
            Self::IndexOptimization(_) => "index optimization",
        }
    }
}

impl JobState {
    /// In lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Job {
    fn from_wire(job: Option<v1::Job>) -> Result<Self> {
        let wrong = || Error::protocol("the gateway answered with a job that this client does not know");
        let job = job.ok_or_else(wrong)?;
        let state = match job.state() {
            v1::JobState::Running => JobState::Running,
            v1::JobState::Succeeded => JobState::Succeeded,
            v1::JobState::Failed => JobState::Failed,
            v1::JobState::Cancelled => JobState::Cancelled,
            v1::JobState::Interrupted => JobState::Interrupted,
            v1::JobState::Unspecified => return Err(wrong()),
        };
        let kind = match job.kind.ok_or_else(wrong)? {
            v1::job::Kind::Compaction(_) => JobKind::Compaction,
            v1::job::Kind::Cleanup(cleanup) => JobKind::Cleanup(Cleanup {
                older_than: cleanup.older_than.and_then(|age| age.try_into().ok()),
                keep_versions: Some(cleanup.keep_versions).filter(|versions| *versions > 0),
                dry_run: cleanup.dry_run,
            }),
            v1::job::Kind::Sweep(sweep) => JobKind::Sweep { dry_run: sweep.dry_run },
            v1::job::Kind::IndexBuild(build) => JobKind::IndexBuild(IndexSpec::from_wire(build)),
            v1::job::Kind::IndexOptimization(what) => JobKind::IndexOptimization(Optimization::from_wire(what)),
        };
        let table = match job.table.and_then(|table| table.kind).ok_or_else(wrong)? {
            v1::table::Kind::Name(name) => TableId::Name(name.parts),
            v1::table::Kind::Uri(uri) => TableId::Uri(uri),
        };
        Ok(Self {
            id: job.id,
            table,
            kind,
            state,
            stage: job.stage,
            num_done: job.num_done,
            num_total: job.num_total,
            started_at: time_from_wire(job.started_at),
            ended_at: time_from_wire(job.ended_at),
            by_policy: job.by_policy,
            reason: job.reason,
            message: job.message,
            result: job.result.map(JobResult::from_wire),
        })
    }
}

impl JobResult {
    fn from_wire(result: v1::job::Result) -> Self {
        match result {
            v1::job::Result::CompactionResult(done) => Self::Compaction {
                num_fragments_removed: done.num_fragments_removed,
                num_fragments_added: done.num_fragments_added,
                version: Some(done.version).filter(|version| *version > 0),
            },
            v1::job::Result::CleanupResult(done) => Self::Cleanup {
                num_versions: done.num_versions,
                num_files: done.num_files,
                num_bytes: done.num_bytes,
                num_failed: done.num_failed,
            },
            v1::job::Result::SweepResult(done) => Self::Sweep {
                num_files: done.num_files,
                num_bytes: done.num_bytes,
                num_failed: done.num_failed,
                files: done
                    .files
                    .into_iter()
                    .map(|file| SweptFile {
                        path: file.path,
                        num_bytes: file.num_bytes,
                        modified_at: time_from_wire(file.modified_at),
                    })
                    .collect(),
                min_age: done.min_age.and_then(|age| age.try_into().ok()).unwrap_or_default(),
            },
            v1::job::Result::IndexResult(done) => Self::Index(Indexed::from_wire(done)),
            v1::job::Result::OptimizationResult(done) => Self::Optimization {
                version: Some(done.version).filter(|version| *version > 0),
                indexes: done.indexes.into_iter().map(Indexed::from_wire).collect(),
            },
        }
    }
}
