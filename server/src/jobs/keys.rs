//! Indexes of keys: merges find the rows of their keys in them, so they are built and brought up to date as tables grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lance_gateway_lake::{KeyIndex, Lake, MergeCounts, TableId};
use lance_gateway_proto::v1::job::Kind;
use lance_gateway_proto::v1::{Column, IndexBuild, IndexOptimization, ScalarIndex, ScalarIndexType, index_build};
use moka::future::Cache;
use tokio::sync::Mutex;

use super::Jobs;
use super::policy::{defaults, overridden, run_on};
use crate::config::MaintenanceConfig;

/// Tables whose merges are counted; one that is forgotten is looked at with its next merge.
const TABLES: u64 = 4_096;
/// A table is looked at so often while it grows by the number of the policy.
const LOOKS: u64 = 8;

/// What was merged since the last look.
pub(super) struct KeyIndexes {
    tables: Cache<TableId, Arc<Merged>>,
    pause: u64,
}

struct Merged {
    rows: AtomicU64,
    looking: Mutex<()>,
}

impl KeyIndexes {
    pub(super) fn new(config: &MaintenanceConfig) -> Self {
        Self { tables: Cache::new(TABLES), pause: u64::from(config.key_index_rows) / LOOKS }
    }

    /// After a merge: what the index of the key needs, one job at a time for each table.
    pub(super) async fn merged(&self, jobs: &Jobs, table: TableId, counts: MergeCounts) {
        let first = Merged { rows: AtomicU64::new(self.pause), looking: Mutex::default() };
        let known = self.tables.get_with(table.clone(), async { Arc::new(first) }).await;
        known.rows.fetch_add(counts.num_inserted + counts.num_updated, Ordering::Relaxed);
        // Once more for what was merged while a job ran: who merged it found somebody looking.
        while known.rows.load(Ordering::Relaxed) >= self.pause.max(1) {
            let Ok(_looking) = known.looking.try_lock() else { return };
            known.rows.store(0, Ordering::Relaxed);
            match due(&jobs.inner.lake, jobs, &table).await {
                Ok(Some(kind)) => run_on(jobs, table.clone(), kind).await,
                Ok(None) => {}
                // The next merge asks again. Tables that only the storage options of a client reach are not looked after.
                Err(error) => tracing::debug!(%error, "the index of a key is not looked after this time"),
            }
        }
    }
}

async fn due(lake: &Lake, jobs: &Jobs, table: &TableId) -> lance_gateway_lake::Result<Option<Kind>> {
    let properties = lake.table_properties(table).await?;
    let Ok(policy) = overridden(defaults(&jobs.inner.config), properties.iter()) else { return Ok(None) };
    Ok(lake.due_key_index(table, &policy).await?.map(|due| match due {
        KeyIndex::Build(column) => {
            let scalar = ScalarIndex { r#type: ScalarIndexType::Btree.into() };
            Kind::IndexBuild(IndexBuild {
                column: Some(Column { path: vec![column] }),
                kind: Some(index_build::Kind::Scalar(scalar)),
                ..IndexBuild::default()
            })
        }
        KeyIndex::Optimize(spec) => Kind::IndexOptimization(IndexOptimization {
            names: spec.names,
            num_segments_to_merge: spec.segments_to_merge,
            ..IndexOptimization::default()
        }),
    }))
}
