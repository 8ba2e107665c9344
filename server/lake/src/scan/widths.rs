//! How wide rows are: without that, a batch of a bounded number of rows has no bounded size.
//!
//! Lance adapts the rows of a batch to bytes only after it has decoded a batch, and its first guess for a string is 64 bytes; the
//! size of the files says little, since they are compressed. So the first scan of a table and projection measures a few rows, and
//! every scan keeps the measure fresh.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::TryStreamExt;
use lance::Dataset;
use lance::deps::datafusion::logical_expr::Expr;
use lance_core::datatypes::Schema as LanceSchema;
use lance_datafusion::planner::Planner;
use moka::future::Cache;

use super::ranges::{self, Piece};
use super::stream::Bounds;
use super::{Reading, size};
use crate::Lake;
use crate::cache::kept_or_made;
use crate::error::Result;
use crate::lance_error::{Missing, from_datafusion};

/// More than a measured batch can hold.
const NO_BYTES_BOUND: u64 = 1 << 40;
/// Rows that are measured.
const PROBE_ROWS: u64 = 16;

/// Measured widths by table and columns.
pub(crate) struct RowWidths {
    measured: Cache<(String, Vec<i32>), Arc<AtomicU64>>,
}

impl RowWidths {
    pub(crate) fn new(tables: u64) -> Self {
        Self { measured: Cache::new(tables.saturating_mul(4)) }
    }
}

/// The width of the rows of a scan.
pub(super) struct Width {
    bytes: u64,
    pub(super) learned: Option<Arc<AtomicU64>>,
}

impl Width {
    /// Rows of a batch that keeps the bounds.
    pub(super) fn batch_rows(&self, bounds: Bounds) -> usize {
        let rows = bounds.bytes / self.bytes.max(1);
        usize::try_from(rows).unwrap_or(usize::MAX).clamp(1, bounds.rows)
    }
}

impl Lake {
    /// The width of rows with the columns of `schema` and of the filter.
    pub(super) async fn row_width(
        &self,
        dataset: &Arc<Dataset>,
        schema: &LanceSchema,
        filter: Option<&Expr>,
        pieces: &[Piece],
    ) -> Result<Width> {
        let schema = with_filter_columns(dataset, schema, filter);
        if let Some(bytes) = size::fixed_row_bytes(&(&schema).into()) {
            return Ok(Width { bytes, learned: None });
        }
        let ids: Vec<i32> = schema.fields_pre_order().map(|field| field.id).collect();
        let measure = || async {
            self.measure(dataset, schema.clone(), pieces).await.map(|bytes| Arc::new(AtomicU64::new(bytes)))
        };
        let learned = kept_or_made(&self.inner.row_widths.measured, (dataset.uri().to_owned(), ids), measure).await?;
        // With a filter the scan sees other columns than it returns, and learns nothing.
        let bytes = learned.load(Ordering::Relaxed);
        Ok(Width { bytes, learned: filter.is_none().then_some(learned) })
    }

    async fn measure(&self, dataset: &Arc<Dataset>, schema: LanceSchema, pieces: &[Piece]) -> Result<u64> {
        let Some(first) = pieces.first() else { return Ok(1) };
        // Few rows if the files alone say that they are wide.
        let stored: u64 =
            first.fragment.files.iter().filter_map(|file| file.file_size_bytes.get()).map(u64::from).sum();
        let affordable = self.inner.options.scan.memory_bytes / 8 / (stored / first.live_rows.max(1)).max(1);
        let rows = affordable.clamp(1, PROBE_ROWS);
        let pieces = ranges::cut(vec![first.clone()], 0, rows);
        let reading = Reading { dataset: dataset.clone(), schema, filter: None, slices: None, pieces };
        let plan = self.execute(reading.sliced().await?, rows as usize, NO_BYTES_BOUND).await?;
        let batches: Vec<_> =
            plan.try_collect().await.map_err(|e| from_datafusion(e, "cannot measure rows", Missing::Version))?;
        let bytes: u64 = batches.iter().map(|b| size::rows_bytes(&size::columns(b), 0..b.num_rows())).sum();
        let rows: u64 = batches.iter().map(|b| b.num_rows() as u64).sum();
        Ok((bytes / rows.max(1)).max(1))
    }
}

fn with_filter_columns(dataset: &Dataset, schema: &LanceSchema, filter: Option<&Expr>) -> LanceSchema {
    let mut schema = schema.clone();
    for path in filter.map(Planner::column_names_in_expr).unwrap_or_default() {
        let Some(field) = dataset.schema().resolve(&path).and_then(|path| path.first().copied()) else { continue };
        match schema.fields.iter_mut().find(|found| found.id == field.id) {
            Some(found) => *found = field.clone(),
            None => schema.fields.push(field.clone()),
        }
    }
    schema
}
