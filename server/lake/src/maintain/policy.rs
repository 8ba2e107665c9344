//! What a policy asks to be done on a table now.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use chrono::Utc;
use futures::future::BoxFuture;
use lance::Dataset;
use lance::dataset::optimize::plan_compaction;

use super::{CleanupSpec, Merge};
use crate::Lake;
use crate::error::Result;
use crate::index::OptimizeSpec;
use crate::lance_error::{Missing, from_lance};
use crate::schema::primary_key;
use crate::table::Location;
use crate::types::TableId;

/// An index that was deferred is not tried again with fewer rows.
const TRAINABLE: u64 = 256;

/// An index of so many segments, each of which a search asks, is merged into one.
const MANY_SEGMENTS: u32 = 8;

/// What a table is kept to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    /// Keep the fragments that can be merged below this: compact once there are half as many.
    pub compact_fragments: Option<u64>,
    /// Clean up once there are more versions, down to so many.
    pub keep_versions: Option<u64>,
    /// Clean up only versions older than this; alone: all of them.
    pub keep_age: Option<Duration>,
    /// Optimize indexes once so many rows are outside of one.
    pub optimize_rows: Option<u64>,
    /// Optimize indexes once rows are outside of one that is as old.
    pub optimize_age: Option<Duration>,
    /// Index the key of a table that is merged into, and bring its index up to date, once so many rows are outside of it.
    pub key_index_rows: Option<u64>,
    /// How often to sweep.
    pub sweep_interval: Option<Duration>,
}

/// What the index of a key needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyIndex {
    /// A column has none.
    Build(String),
    /// Rows are outside of it.
    Optimize(OptimizeSpec),
}

/// An index is brought up to date only once it lacks such a part of what it holds.
const OUTSIDE: u64 = 20;

impl Lake {
    /// What the index of a table's primary key needs now. Merges look for rows in it.
    pub fn due_key_index<'a>(
        &'a self,
        table: &'a TableId,
        policy: &'a Policy,
    ) -> BoxFuture<'a, Result<Option<KeyIndex>>> {
        Box::pin(async move {
            let Some(least) = policy.key_index_rows else { return Ok(None) };
            let dataset = self.open_latest(&self.locate(table)?).await?;
            let rows: u64 = dataset.fragments().iter().map(|f| f.num_rows().unwrap_or_default() as u64).sum();
            if rows < least {
                return Ok(None);
            }
            let (_, indexes) = self.indexes(table).await?;
            for column in primary_key(dataset.schema()) {
                let Some(index) = indexes.iter().find(|index| *index.columns == [column.clone()]) else {
                    return Ok(Some(KeyIndex::Build(column)));
                };
                let outside = index.num_unindexed_rows;
                if outside >= least && outside >= index.num_indexed_rows / OUTSIDE {
                    let many = index.num_segments >= MANY_SEGMENTS;
                    let segments_to_merge = Some(if many { index.num_segments } else { 0 });
                    let spec = OptimizeSpec { names: vec![index.name.clone()], segments_to_merge, retrain: false };
                    return Ok(Some(KeyIndex::Optimize(spec)));
                }
            }
            Ok(None)
        })
    }

    /// The configuration of the table's latest version.
    pub fn table_properties<'a>(&'a self, table: &'a TableId) -> BoxFuture<'a, Result<BTreeMap<String, String>>> {
        Box::pin(async move {
            let dataset = self.open_latest(&self.locate(table)?).await?;
            Ok(dataset.manifest().config.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
        })
    }

    /// Whether the policy asks for a compaction now. Reads the latest version.
    pub fn compaction_is_due<'a>(&'a self, table: &'a TableId, policy: &'a Policy) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let Some(most) = policy.compact_fragments else { return Ok(false) };
            let location = self.locate(table)?;
            let lance = |e| from_lance(e, looking_after(&location), Missing::Version);
            let dataset = self.open_latest(&location).await?;
            let options = self.compaction_options(&dataset).map_err(lance)?;
            let plan = plan_compaction(&dataset, &options).await.map_err(lance)?;
            let tasks = Merge::Outgrown.choose(plan.compaction_tasks());
            let fragments: u64 = tasks.iter().map(|task| task.task.fragments.len() as u64).sum();
            Ok(fragments >= most.div_ceil(2).max(2))
        })
    }

    /// The optimization of indexes that the policy asks for now. Reads what the latest version says of them.
    pub fn due_optimization<'a>(
        &'a self,
        table: &'a TableId,
        policy: &'a Policy,
    ) -> BoxFuture<'a, Result<Option<OptimizeSpec>>> {
        Box::pin(async move {
            if policy.optimize_rows.is_none() && policy.optimize_age.is_none() {
                return Ok(None);
            }
            let (_, indexes) = self.indexes(table).await?;
            let is_due = indexes.iter().any(|index| {
                let outside = index.num_unindexed_rows;
                let many = policy.optimize_rows.is_some_and(|most| outside >= most);
                let age = index.created_at.and_then(|at| Utc::now().signed_duration_since(at).to_std().ok());
                let old = policy.optimize_age.zip(age).is_some_and(|(most, age)| age >= most);
                outside > 0 && (many || old) && (!index.deferred || outside >= TRAINABLE)
            });
            let segments = indexes.iter().map(|index| index.num_segments).max().unwrap_or_default();
            let segments_to_merge = (segments >= MANY_SEGMENTS).then_some(segments);
            Ok(is_due.then(|| OptimizeSpec { segments_to_merge, ..OptimizeSpec::default() }))
        })
    }

    /// The cleanup that the policy asks for now. Reads a listing of the versions.
    pub fn due_cleanup<'a>(
        &'a self,
        table: &'a TableId,
        policy: &'a Policy,
    ) -> BoxFuture<'a, Result<Option<CleanupSpec>>> {
        Box::pin(async move {
            let (older_than, keep_versions) = (policy.keep_age, policy.keep_versions);
            if older_than.is_none() && keep_versions.is_none() {
                return Ok(None);
            }
            let location = self.locate(table)?;
            let dataset = self.open_latest(&location).await?;
            let is_due = cleanup_is_due(&dataset, policy).await;
            let is_due = is_due.map_err(|e| from_lance(e, looking_after(&location), Missing::Version))?;
            Ok(is_due.then_some(CleanupSpec { older_than, keep_versions, dry_run: false }))
        })
    }
}

fn looking_after(location: &Location) -> String {
    format!("cannot look after table {}", location.shown)
}

async fn cleanup_is_due(dataset: &Dataset, policy: &Policy) -> lance::Result<bool> {
    let mut versions: Vec<u64> = dataset.version_refs().await?.into_iter().map(|version| version.version).collect();
    versions.sort_unstable();
    if policy.keep_versions.is_some_and(|most| versions.len() as u64 <= most) {
        return Ok(false);
    }
    let tagged: HashSet<u64> = dataset.tags().list().await?.into_values().map(|tag| tag.version).collect();
    let kept = policy.keep_versions.and_then(|kept| usize::try_from(kept).ok()).unwrap_or(1).max(1);
    let beyond = &versions[..versions.len().saturating_sub(kept)];
    let Some(oldest) = beyond.iter().find(|version| !tagged.contains(version)) else { return Ok(false) };
    let Some(age) = policy.keep_age else { return Ok(true) };
    let committed_at = dataset.read_version_transaction(*oldest).await?.timestamp;
    Ok(Utc::now().signed_duration_since(committed_at).to_std().is_ok_and(|old| old > age))
}
