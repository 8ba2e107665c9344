//! The policy: at each interval a look at the tables of the warehouse, and jobs for what is due.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use lance_gateway_lake::{Lake, Policy, TableId};
use lance_gateway_proto::Reason;
use lance_gateway_proto::v1::job::Kind;
use lance_gateway_proto::v1::{Cleanup, Compaction, IndexOptimization, Job, JobState, Sweep, Table, TableName, table};
use moka::future::Cache;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use uuid::Uuid;

use super::Jobs;
use crate::config::{HumanDuration, MaintenanceConfig, OptionValue};
use crate::convert;
use crate::status::status;

/// First part of the keys by which a table says what it wants.
const PREFIX: &str = "maintenance.";
/// Last sweeps that are remembered; a table that is forgotten is swept early.
const REMEMBERED_SWEEPS: u64 = 65_536;

/// How often a table is looked at while it grows by one of its numbers.
const LOOKS_PER_NUMBER: u32 = 8;

/// Properties of a table.
pub type Properties = HashMap<String, String>;

/// Refuses properties that would be misread later, when nobody waits for an answer.
pub fn check_properties(properties: &Properties) -> Result<(), Status> {
    overridden(Policy::default(), properties.iter()).map(drop).map_err(|wrong| status(Reason::InvalidArgument, wrong))
}

/// The policy with what the properties say in its place. 0 switches a rule off.
pub(super) fn overridden<'a>(
    mut policy: Policy,
    properties: impl Iterator<Item = (&'a String, &'a String)>,
) -> Result<Policy, String> {
    for (key, value) in properties {
        let Some(rule) = key.strip_prefix(PREFIX) else { continue };
        let wrong = |why: String| format!("the property {key} {why}");
        let number = || value.trim().parse::<u64>().map_err(|_| wrong("must be a whole number".to_owned()));
        let time = || HumanDuration::parse(value).map(HumanDuration::get).map_err(wrong);
        match rule {
            "compact-fragments" => policy.compact_fragments = some(number()?),
            "keep-versions" => policy.keep_versions = some(number()?),
            "keep-age" => policy.keep_age = some_time(time()?),
            "optimize-rows" => policy.optimize_rows = some(number()?),
            "optimize-age" => policy.optimize_age = some_time(time()?),
            "key-index-rows" => policy.key_index_rows = some(number()?),
            "sweep-interval" => policy.sweep_interval = some_time(time()?),
            _ => {
                return Err(format!(
                    "there is no property {}: maintenance has compact-fragments, keep-versions, keep-age, optimize-rows, optimize-age, key-index-rows, sweep-interval",
                    key.chars().take(64).collect::<String>()
                ));
            }
        }
    }
    Ok(policy)
}

fn some(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

fn some_time(time: Duration) -> Option<Duration> {
    (!time.is_zero()).then_some(time)
}

pub(super) fn defaults(config: &MaintenanceConfig) -> Policy {
    Policy {
        compact_fragments: some(config.compact_fragments.into()),
        keep_versions: some(config.keep_versions.into()),
        keep_age: some_time(config.keep_age.get()),
        optimize_rows: some(config.optimize_rows.into()),
        optimize_age: some_time(config.optimize_age.get()),
        key_index_rows: some(config.key_index_rows.into()),
        sweep_interval: some_time(config.sweep_interval.get()),
    }
}

/// Whether the policy is to look at a table that has reached this version, so that a burst of commits does not go far beyond
/// the numbers. Only those of the configuration count here; a table that has smaller ones of its own is looked at in rounds.
pub(super) fn is_early(config: &MaintenanceConfig, version: u64) -> bool {
    if config.interval.get().is_zero() {
        return false;
    }
    let numbers = [config.compact_fragments, config.keep_versions].into_iter().filter(|number| *number > 0);
    numbers.min().is_some_and(|smallest| version.is_multiple_of(u64::from(smallest / LOOKS_PER_NUMBER).max(1)))
}

/// Looks at all tables in rounds, and between them at those that it is asked to, until the gateway stops.
pub(super) async fn look_after(jobs: Jobs, asked: mpsc::Receiver<Vec<String>>) {
    let config = jobs.inner.config.clone();
    let stopping = jobs.inner.stopping.clone();
    let looks = Looks { jobs: &jobs, swept: Cache::new(REMEMBERED_SWEEPS), busy: Mutex::default() };
    let at_once: usize = convert::saturating(config.max_running);
    let mut tour = Tour::default();
    let rounds = async {
        loop {
            tokio::time::sleep(config.interval.get()).await;
            let tables = tour.next(&jobs.inner.lake, convert::saturating(config.max_tables)).await;
            stream::iter(tables).for_each_concurrent(at_once, |name| looks.at(name)).await;
        }
    };
    let early = ReceiverStream::new(asked).for_each_concurrent(at_once, |name| looks.at(name));
    tokio::select! {
        () = rounds => {}
        () = early => {}
        () = stopping.cancelled() => {}
    }
}

/// What the looks at tables share.
struct Looks<'a> {
    jobs: &'a Jobs,
    /// When tables were swept.
    swept: Cache<Vec<String>, Instant>,
    /// Tables that are looked at.
    busy: Mutex<HashSet<Vec<String>>>,
}

impl Looks<'_> {
    /// One at a time for each table.
    async fn at(&self, name: Vec<String>) {
        if self.busy().insert(name.clone()) {
            look(self.jobs, &self.swept, name.clone()).await;
            self.busy().remove(&name);
        }
    }

    fn busy(&self) -> MutexGuard<'_, HashSet<Vec<String>>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is due on one table, one after the other. A failure is in the log and in the job; the next look tries again.
async fn look(jobs: &Jobs, swept: &Cache<Vec<String>, Instant>, name: Vec<String>) {
    let lake = &jobs.inner.lake;
    let table = TableId::Name(name.clone());
    let seen: lance_gateway_lake::Result<()> = async {
        let properties = lake.table_properties(&table).await?;
        let policy = match overridden(defaults(&jobs.inner.config), properties.iter()) {
            Ok(policy) => policy,
            Err(wrong) => {
                tracing::warn!(table = name.join("."), wrong, "the table is not looked after");
                return Ok(());
            }
        };
        if lake.compaction_is_due(&table, &policy).await? {
            run(jobs, &name, Kind::Compaction(Compaction {})).await;
        }
        if let Some(spec) = lake.due_optimization(&table, &policy).await? {
            let num_segments_to_merge = spec.segments_to_merge;
            let kind = Kind::IndexOptimization(IndexOptimization { num_segments_to_merge, ..Default::default() });
            run(jobs, &name, kind).await;
        }
        // Asked after the others, which make versions.
        if let Some(spec) = lake.due_cleanup(&table, &policy).await? {
            let cleanup = Cleanup {
                older_than: spec.older_than.map(convert::to_duration),
                keep_versions: spec.keep_versions.unwrap_or_default(),
                dry_run: false,
            };
            run(jobs, &name, Kind::Cleanup(cleanup)).await;
        }
        if let Some(interval) = policy.sweep_interval {
            let last = swept.get(&name).await;
            if last.is_none_or(|last| last.elapsed() >= interval) {
                swept.insert(name.clone(), Instant::now()).await;
                run(jobs, &name, Kind::Sweep(Sweep { dry_run: false })).await;
            }
        }
        Ok(())
    }
    .await;
    if let Err(error) = seen {
        tracing::warn!(table = name.join("."), %error, "the table is not looked after this time");
    }
}

/// Starts a job and waits for its end.
async fn run(jobs: &Jobs, name: &[String], kind: Kind) {
    run_on(jobs, TableId::Name(name.to_vec()), kind).await;
}

pub(super) async fn run_on(jobs: &Jobs, id: TableId, kind: Kind) {
    let (named, shown) = match &id {
        TableId::Name(parts) => (table::Kind::Name(TableName { parts: parts.clone() }), parts.join(".")),
        TableId::Uri(uri) => (table::Kind::Uri(uri.clone()), uri.clone()),
    };
    let table = Table { kind: Some(named) };
    let job =
        Job { id: Uuid::new_v4().to_string(), table: Some(table), kind: Some(kind), by_policy: true, ..Job::default() };
    match jobs.start(job, id, jobs.inner.lake.clone()) {
        Ok(job) => {
            let Ok(watched) = jobs.watch(&job.id) else { return };
            let ended = watched.filter(|job| std::future::ready(job.state() != JobState::Running));
            std::pin::pin!(ended).next().await;
        }
        Err(refused) => tracing::warn!(table = shown, reason = refused.message(), "no job was started"),
    }
}

/// A walk over all tables of the warehouse, so many at a time.
#[derive(Default)]
struct Tour {
    /// Namespaces still to be visited, and where the first of them goes on.
    namespaces: VecDeque<Vec<String>>,
    page: Option<String>,
}

impl Tour {
    /// The next tables; after the last one it begins anew.
    async fn next(&mut self, lake: &Lake, most: usize) -> Vec<Vec<String>> {
        let mut tables = Vec::new();
        // An empty namespace counts as one, or a warehouse of nothing but those would be walked in one go.
        let mut left = most;
        if self.namespaces.is_empty() {
            self.namespaces.push_back(Vec::new());
        }
        while left > 0 {
            let Some(namespace) = self.namespaces.front().cloned() else { break };
            let page = async {
                let (tables, next) = lake.list_tables(&namespace, self.page.as_deref(), left).await?;
                let below = if next.is_none() { lake.list_namespaces(&namespace).await? } else { Vec::new() };
                Ok::<_, lance_gateway_lake::Error>((tables, next, below))
            };
            match page.await {
                Ok((found, next, below)) => {
                    left = left.saturating_sub(found.len().max(1));
                    tables.extend(found);
                    if next.is_none() {
                        self.namespaces.pop_front();
                        self.namespaces
                            .extend(below.into_iter().map(|part| namespace.iter().cloned().chain([part]).collect()));
                    }
                    self.page = next;
                }
                Err(error) => {
                    // Dropped meanwhile, or the store is away: the next round comes here again.
                    tracing::debug!(%error, "a namespace is not looked at");
                    self.namespaces.pop_front();
                    self.page = None;
                    left -= 1;
                }
            }
        }
        tables
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn properties(pairs: &[(&str, &str)]) -> Properties {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn a_table_overrides_the_defaults_rule_by_rule_and_zero_is_off() {
        let defaults = Policy { compact_fragments: Some(10), keep_versions: Some(20), ..Policy::default() };
        let table = properties(&[
            ("maintenance.keep-versions", "5"),
            ("maintenance.keep-age", "14d"),
            ("maintenance.compact-fragments", "0"),
            ("other.key", "x"),
        ]);
        let expected = Policy {
            compact_fragments: None,
            keep_versions: Some(5),
            keep_age: Some(Duration::from_secs(14 * 86_400)),
            ..Policy::default()
        };
        assert_eq!(overridden(defaults, table.iter()).unwrap(), expected);
    }

    #[test]
    fn a_burst_of_commits_is_looked_at_eight_times_for_the_smallest_number() {
        let config = |interval: &str, compact_fragments, keep_versions| MaintenanceConfig {
            interval: HumanDuration::parse(interval).unwrap(),
            compact_fragments,
            keep_versions,
            ..Config::default().maintenance
        };
        let early = |config: MaintenanceConfig| (1..=100).filter(|v| is_early(&config, *v)).count();
        assert_eq!(early(config("1m", 50, 80)), 16);
        assert_eq!(early(config("1m", 0, 80)), 10);
        assert_eq!(early(config("1m", 3, 0)), 100);
        assert_eq!(early(config("1m", 0, 0)), 0);
        assert_eq!(early(config("0s", 50, 80)), 0, "there is no policy");
    }

    #[test]
    fn a_property_that_would_be_misread_is_refused_by_its_name() {
        for (key, value) in
            [("maintenance.keep-versions", "many"), ("maintenance.keep-age", "14"), ("maintenance.keep-version", "5")]
        {
            let refused = check_properties(&properties(&[(key, value)])).unwrap_err();
            assert!(refused.message().contains(key), "{refused}");
        }
    }
}
