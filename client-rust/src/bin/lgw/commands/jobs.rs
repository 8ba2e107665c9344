//! `lgw compact`, `lgw cleanup`, `lgw sweep`, `lgw jobs`

use std::time::Duration;

use chrono::Utc;
use lance_gateway_client::{Client, Indexed, Job, JobKind, JobResult, JobState, SweptFile, TableId};
use serde::Serialize;

use super::time;
use crate::args::{JobAction, Output};
use crate::console::{Console, human_bytes};
use crate::failure::{Failure, Result};

const BAR: &str = "{spinner} {msg} {pos} of {len} {wide_bar} {eta} left";
const SPINNER: &str = "{spinner} {msg} {pos}";

/// Starts a job and shows it to its end.
pub async fn run(client: &Client, table: &str, kind: &JobKind, console: &Console) -> Result<()> {
    start(client, table, kind, true, console).await
}

/// Starts a job, and shows it to its end or as it is.
pub async fn start(client: &Client, table: &str, kind: &JobKind, wait: bool, console: &Console) -> Result<()> {
    let job = client.start_job(table, kind).await?;
    if !wait {
        console.note(format!("`lgw jobs watch {}` shows it", job.id));
        return print(&job, console);
    }
    console.note(format!("job {}; Ctrl-C leaves it running, `lgw jobs cancel {}` stops it", job.id, job.id));
    watch(client, &job.id, console).await
}

pub async fn jobs(client: &Client, action: Option<&JobAction>, console: &Console) -> Result<()> {
    match action {
        None => list(client, None, console).await,
        Some(JobAction::List { table }) => list(client, table.as_deref(), console).await,
        Some(JobAction::Watch { id }) => watch(client, id, console).await,
        Some(JobAction::Cancel { id }) => {
            let job = client.cancel_job(id).await?;
            print(&job, console)
        }
    }
}

async fn list(client: &Client, table: Option<&str>, console: &Console) -> Result<()> {
    let jobs = client.list_jobs(table.map(TableId::from)).await?;
    let shown: Vec<Shown> = jobs.iter().map(Shown::new).collect();
    let headers = ["id", "kind", "table", "state", "stage", "started", "ended", "by"];
    console.list(&shown, &headers, |job| {
        vec![
            job.id.clone(),
            job.kind.to_owned(),
            job.table.clone(),
            job.state.to_owned(),
            progress(job),
            job.started_at.clone().unwrap_or_default(),
            job.ended_at.clone().unwrap_or_default(),
            if job.by_policy { "policy" } else { "" }.to_owned(),
        ]
    })
}

async fn watch(client: &Client, id: &str, console: &Console) -> Result<()> {
    let mut watch = client.watch_job(id);
    let bar = console.progress(0, SPINNER)?;
    let mut last = None;
    let mut counts = false;
    let outcome = loop {
        match watch.next().await {
            Ok(Some(job)) => {
                if counts != (job.num_total > 0) && !bar.is_hidden() {
                    counts = job.num_total > 0;
                    bar.set_style(console.progress_style(if counts { BAR } else { SPINNER })?);
                }
                bar.set_length(job.num_total);
                bar.set_position(job.num_done);
                bar.set_message(job.stage.clone());
                last = Some(job);
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    bar.finish_and_clear();
    outcome?;
    let Some(job) = last else { return Err(Failure::local("the gateway told nothing of the job")) };
    match job.state {
        JobState::Running | JobState::Succeeded => print(&job, console),
        JobState::Cancelled => Err(Failure::local(format!("job {} was cancelled", job.id))),
        JobState::Interrupted => Err(Failure::local(job.message)),
        JobState::Failed => Err(Failure::local(format!("{} ({})", job.message, job.reason))),
    }
}

#[derive(Serialize)]
struct Shown {
    id: String,
    kind: &'static str,
    table: String,
    dry_run: bool,
    state: &'static str,
    stage: String,
    num_done: u64,
    num_total: u64,
    started_at: Option<String>,
    ended_at: Option<String>,
    by_policy: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Done>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Done {
    Compaction { num_fragments_removed: u64, num_fragments_added: u64, version: Option<u64> },
    Cleanup { num_versions: u64, num_files: u64, num_bytes: u64, num_failed: u64 },
    Sweep { num_files: u64, num_bytes: u64, num_failed: u64, min_age_seconds: u64, files: Vec<File> },
    Optimization { version: Option<u64>, indexes: Vec<Index> },
    Index(Index),
}

#[derive(Serialize)]
struct Index {
    name: String,
    version: u64,
    num_indexed_rows: u64,
    num_unindexed_rows: u64,
    deferred: bool,
}

impl From<Indexed> for Index {
    fn from(indexed: Indexed) -> Self {
        Self {
            name: indexed.name,
            version: indexed.version,
            num_indexed_rows: indexed.num_indexed_rows,
            num_unindexed_rows: indexed.num_unindexed_rows,
            deferred: indexed.deferred,
        }
    }
}

#[derive(Serialize)]
struct File {
    path: String,
    num_bytes: u64,
    modified_at: Option<String>,
    age_seconds: u64,
}

impl Shown {
    fn new(job: &Job) -> Self {
        let dry_run = match &job.kind {
            JobKind::Compaction | JobKind::IndexBuild(_) | JobKind::IndexOptimization(_) => false,
            JobKind::Cleanup(cleanup) => cleanup.dry_run,
            JobKind::Sweep { dry_run } => *dry_run,
        };
        Self {
            id: job.id.clone(),
            kind: job.kind.name(),
            table: job.table.to_string(),
            dry_run,
            state: job.state.name(),
            stage: job.stage.clone(),
            num_done: job.num_done,
            num_total: job.num_total,
            started_at: time(job.started_at),
            ended_at: time(job.ended_at),
            by_policy: job.by_policy,
            reason: job.reason.clone(),
            message: job.message.clone(),
            result: job.result.clone().map(Done::from),
        }
    }
}

impl From<JobResult> for Done {
    fn from(result: JobResult) -> Self {
        match result {
            JobResult::Compaction { num_fragments_removed, num_fragments_added, version } => {
                Self::Compaction { num_fragments_removed, num_fragments_added, version }
            }
            JobResult::Cleanup { num_versions, num_files, num_bytes, num_failed } => {
                Self::Cleanup { num_versions, num_files, num_bytes, num_failed }
            }
            JobResult::Sweep { num_files, num_bytes, num_failed, files, min_age } => Self::Sweep {
                num_files,
                num_bytes,
                num_failed,
                min_age_seconds: min_age.as_secs(),
                files: files.into_iter().map(File::from).collect(),
            },
            JobResult::Index(indexed) => Self::Index(indexed.into()),
            JobResult::Optimization { version, indexes } => {
                Self::Optimization { version, indexes: indexes.into_iter().map(Index::from).collect() }
            }
        }
    }
}

impl From<SweptFile> for File {
    fn from(file: SweptFile) -> Self {
        let age = file.modified_at.and_then(|modified| (Utc::now() - modified).to_std().ok());
        Self {
            path: file.path,
            num_bytes: file.num_bytes,
            modified_at: time(file.modified_at),
            age_seconds: age.unwrap_or_default().as_secs(),
        }
    }
}

fn progress(job: &Shown) -> String {
    match (job.num_total, job.stage.as_str()) {
        (_, "") => String::new(),
        (0, stage) => stage.to_owned(),
        (total, stage) => format!("{stage} {} of {total}", job.num_done),
    }
}

/// For people; programs find the files in the result.
fn print_files(files: &[File], of: u64, console: &Console) -> Result<()> {
    if console.output() != Output::Table || files.is_empty() {
        return Ok(());
    }
    console.list(files, &["file", "size", "age"], |file| {
        vec![file.path.clone(), human_bytes(file.num_bytes), age(file.age_seconds)]
    })?;
    match of - files.len() as u64 {
        0 => Ok(()),
        more => {
            console.note(format!("and {more} more"));
            Ok(())
        }
    }
}

/// To the minute, if it is as old as that.
fn age(seconds: u64) -> String {
    let seconds = if seconds < 60 { seconds } else { seconds / 60 * 60 };
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}

/// A job that has ended, with what it did.
fn print(job: &Job, console: &Console) -> Result<()> {
    let shown = Shown::new(job);
    let mut properties =
        vec![("job", shown.id.clone()), ("table", shown.table.clone()), ("state", shown.state.to_owned())];
    let goes = |what: &'static str, would: &'static str| if shown.dry_run { would } else { what };
    match &shown.result {
        Some(Done::Compaction { num_fragments_removed, num_fragments_added, version }) => {
            properties.push(("fragments before", num_fragments_removed.to_string()));
            properties.push(("fragments after", num_fragments_added.to_string()));
            properties.push(("version", version.map(|version| version.to_string()).unwrap_or_default()));
        }
        Some(Done::Cleanup { num_versions, num_files, num_bytes, num_failed }) => {
            properties.push((goes("versions removed", "versions to remove"), num_versions.to_string()));
            properties.push((goes("files removed", "files to remove"), num_files.to_string()));
            properties.push(("bytes", human_bytes(*num_bytes)));
            properties.push(("files not deleted", num_failed.to_string()));
        }
        Some(Done::Sweep { num_files, num_bytes, num_failed, min_age_seconds, files }) => {
            print_files(files, *num_files, console)?;
            properties.push((goes("files removed", "files to remove"), num_files.to_string()));
            properties.push(("bytes", human_bytes(*num_bytes)));
            properties.push(("files not deleted", num_failed.to_string()));
            properties.push(("older than", age(*min_age_seconds)));
        }
        Some(Done::Index(index)) => {
            properties.push(("index", index.name.clone()));
            properties.push(("version", index.version.to_string()));
            properties.push(("indexed rows", index.num_indexed_rows.to_string()));
            if index.deferred {
                properties.push(("deferred", "too few rows to train it: searches read all rows".to_owned()));
            }
        }
        Some(Done::Optimization { version, indexes }) => {
            properties.push(("version", version.map(|version| version.to_string()).unwrap_or_default()));
            for index in indexes {
                let rows = format!("{} rows, {} without it", index.num_indexed_rows, index.num_unindexed_rows);
                properties.push(("index", format!("{}: {rows}", index.name)));
            }
        }
        None => {}
    }
    console.record(&shown, &properties)
}
