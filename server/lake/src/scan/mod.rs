//! Scans: plans that are pinned to a version, and the batches of one split.
//!
//! The order of a split is always the same, so that a reader may come back with the number of rows that it has. Memory is bounded
//! by the row: how wide rows are is known from the schema, or measured and remembered, and a batch holds no more of them than
//! its bytes allow.

pub(crate) mod filter;
mod plan;
mod projection;
pub(crate) mod ranges;
pub(crate) mod size;
mod stream;
#[cfg(test)]
mod tests;
mod widths;

use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use lance::Dataset;
use lance::dataset::scanner::{FragmentSlice, RowAddrTreeMap, Scanner};
use lance::deps::datafusion::execution::SendableRecordBatchStream;
use lance::deps::datafusion::execution::TaskContext;
use lance::deps::datafusion::execution::memory_pool::GreedyMemoryPool;
use lance::deps::datafusion::execution::runtime_env::RuntimeEnvBuilder;
use lance::deps::datafusion::logical_expr::{Expr, col, lit};
use lance::deps::datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use lance::deps::datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use lance::deps::datafusion::prelude::SessionConfig;
use lance_core::ROW_ID;
use lance_core::datatypes::{BlobHandling, Schema as LanceSchema};
use roaring::RoaringTreemap;

use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, detail, from_datafusion, from_lance};
use crate::types::{Filter, SplitSpec, TableId, VersionSelector};
use stream::Input;

pub(crate) use projection::{Projected, system_field};
pub(crate) use ranges::{Live, Piece};
pub(crate) use stream::Bounds;
pub use stream::ScanStream;
pub(crate) use widths::RowWidths;

/// The bytes that Lance shall cut batches at, in batches of ours. Its own count is several times too high, since batches share
/// buffers, so this is only for rows that are suddenly much wider than they were when they were measured.
const BYTES_SLACK: u64 = 8;
/// Batches that are decoded at once: also on a small machine more than one, so that decoding goes on while a batch is sent.
static READAHEAD: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(2, |cpus| cpus.get().clamp(2, 8)));
const DOING: &str = "cannot plan the scan";
/// Rows that Lance takes in one batch.
const MAX_BATCH_ROWS: usize = 1 << 20;

impl Lake {
    /// Reads one split.
    pub fn scan<'a>(&'a self, spec: &'a SplitSpec) -> BoxFuture<'a, Result<ScanStream>> {
        Box::pin(async move {
            let options = &self.inner.options.scan;
            let location = self.locate(&spec.table)?;
            let dataset = self.open_version(&location, &VersionSelector::Version(spec.version)).await?;
            let projected = Projected::new(&dataset, spec.projection.as_deref(), spec.metadata)?;
            let filter = match &spec.filter {
                Some(given) => Some(filter::plan(given, dataset.schema(), options.max_filter_depth)?),
                None => None,
            };
            let mut pieces = ranges::named(&dataset, &spec.fragments).await?;
            let bounds = self.bounds(spec.batch_rows, spec.batch_bytes);
            let mut skip = spec.row_offset;
            let mut take = spec.limit.map_or(u64::MAX, |limit| limit.saturating_sub(skip));
            if filter.is_none() {
                // Without a filter the rows of the result are the rows of the files, and none is read in vain.
                pieces = ranges::cut(pieces, skip, take);
                skip = 0;
                take = u64::MAX;
            }
            let num_rows = pieces.iter().map(Piece::num_rows).sum();
            if num_rows == 0 || take == 0 {
                let nothing = Input::Rows { left: 0, batch: 1 };
                return Ok(ScanStream::new(projected.shown, nothing, bounds, 0, 0));
            }
            if projected.shown.fields().is_empty() && filter.is_none() {
                let counted = Input::Rows { left: num_rows, batch: bounds.rows as u64 };
                return Ok(ScanStream::new(projected.shown, counted, bounds, 0, u64::MAX));
            }
            let width = self.row_width(&dataset, &projected.read, filter.as_ref(), &pieces).await?;
            let reading = Reading { dataset, schema: projected.read, filter, slices: None, pieces };
            let plan = self.execute(reading.sliced().await?, width.batch_rows(bounds), bounds.bytes).await?;
            let stream = ScanStream::new(projected.shown, Input::Plan(plan), bounds, skip, take);
            Ok(match width.learned {
                Some(learned) => stream.learning(learned),
                None => stream,
            })
        })
    }

    /// How large a batch may be, if the client wishes for so many rows and bytes.
    pub(crate) fn bounds(&self, rows: Option<usize>, bytes: Option<usize>) -> Bounds {
        let options = &self.inner.options.scan;
        let bytes = bytes.filter(|bytes| *bytes > 0).unwrap_or(options.batch_bytes).clamp(1, options.max_row_bytes);
        Bounds {
            rows: rows.filter(|rows| *rows > 0).unwrap_or(options.batch_rows).clamp(1, MAX_BATCH_ROWS),
            bytes: bytes as u64,
            row_bytes: options.max_row_bytes as u64,
        }
    }

    /// All rows of a version that the filter keeps, all if there is none. `pieces`: all of them, to measure rows by.
    pub(crate) async fn selected(
        &self,
        dataset: &Arc<Dataset>,
        projected: &Projected,
        filter: Option<Expr>,
        pieces: &[Piece],
        bounds: Bounds,
    ) -> Result<ScanStream> {
        let width = self.row_width(dataset, &projected.read, filter.as_ref(), pieces).await?;
        // Without pieces named, Lance looks into its indexes.
        let (dataset, schema) = (dataset.clone(), projected.read.clone());
        let reading = Reading { dataset, schema, filter, slices: None, pieces: Vec::new() };
        let plan = self.execute(reading, width.batch_rows(bounds), bounds.bytes).await?;
        Ok(ScanStream::new(projected.shown.clone(), Input::Plan(plan), bounds, 0, u64::MAX))
    }

    /// The live rows at these addresses, in their order.
    pub(crate) async fn at_addresses(
        &self,
        dataset: &Arc<Dataset>,
        projected: &Projected,
        rows: &RoaringTreemap,
        bounds: Bounds,
    ) -> Result<ScanStream> {
        let mut wanted = RowAddrTreeMap::new();
        let mut pieces = Vec::new();
        for (id, offsets) in rows.bitmaps().filter(|(_, offsets)| !offsets.is_empty()) {
            wanted.insert_bitmap(id, offsets.clone());
            pieces.push(ranges::whole(dataset, id.into()).await?);
        }
        if pieces.is_empty() {
            let nothing = Input::Rows { left: 0, batch: 1 };
            return Ok(ScanStream::new(projected.shown.clone(), nothing, bounds, 0, 0));
        }
        let width = self.row_width(dataset, &projected.read, None, &pieces).await?;
        let batch_rows = width.batch_rows(bounds);
        let are_all = rows.len() == pieces.iter().map(|piece| piece.live_rows).sum::<u64>();
        let (dataset, schema) = (dataset.clone(), projected.read.clone());
        let reading = Reading { dataset, schema, filter: None, slices: None, pieces };
        let mut scanner = self.scanner(&reading, batch_rows, bounds.bytes).await?;
        if !are_all {
            scanner.with_physical_row_addr_prefilter(wanted);
        }
        let plan = self.execute_in_order(scanner, batch_rows).await?;
        let stream = ScanStream::new(projected.shown.clone(), Input::Plan(plan), bounds, 0, u64::MAX);
        Ok(match width.learned {
            Some(learned) => stream.learning(learned),
            None => stream,
        })
    }

    /// Rows of one batch of these columns that keeps the bounds.
    pub(crate) async fn rows_of_batch(
        &self,
        dataset: &Arc<Dataset>,
        projected: &Projected,
        bounds: Bounds,
    ) -> Result<usize> {
        let pieces = match dataset.fragments().first() {
            Some(fragment) => vec![ranges::whole(dataset, fragment.id).await?],
            None => Vec::new(),
        };
        Ok(self.row_width(dataset, &projected.read, None, &pieces).await?.batch_rows(bounds))
    }

    /// The number of rows of a version that the filter keeps, and the version.
    pub fn count_rows<'a>(
        &'a self,
        table: &'a TableId,
        version: &'a VersionSelector,
        filter: Option<&'a Filter>,
    ) -> BoxFuture<'a, Result<(u64, u64)>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            let dataset = self.open_version(&location, version).await?;
            let version = dataset.manifest().version;
            let doing = || format!("cannot count the rows of table {}", location.shown);
            let Some(given) = filter else {
                let rows = dataset.count_rows(None).await.map_err(|e| from_lance(e, doing(), Missing::Version))?;
                return Ok((rows as u64, version));
            };
            let options = &self.inner.options.scan;
            let filter = filter::plan(given, dataset.schema(), options.max_filter_depth)?;
            let pieces = ranges::all(&dataset).await?;
            if pieces.is_empty() {
                return Ok((0, version));
            }
            let schema = Projected::new(&dataset, Some(&[]), Default::default())?.read;
            let bounds = Bounds { rows: options.batch_rows, bytes: options.batch_bytes as u64, row_bytes: 0 };
            let width = self.row_width(&dataset, &schema, Some(&filter), &pieces).await?;
            let reading = Reading { dataset, schema, filter: Some(filter), slices: None, pieces: Vec::new() };
            let scanner = self.scanner(&reading, width.batch_rows(bounds), bounds.bytes).await?;
            let rows = scanner.count_rows().await.map_err(|e| from_lance(e, doing(), Missing::Version))?;
            Ok((rows, version))
        })
    }

    async fn execute(
        &self,
        reading: Reading,
        batch_rows: usize,
        batch_bytes: u64,
    ) -> Result<SendableRecordBatchStream> {
        let scanner = self.scanner(&reading, batch_rows, batch_bytes).await?;
        self.execute_in_order(scanner, batch_rows).await
    }

    async fn execute_in_order(&self, scanner: Scanner, batch_rows: usize) -> Result<SendableRecordBatchStream> {
        let plan = scanner.create_plan().await.map_err(|e| plan_error(e, DOING))?;
        if plan.output_partitioning().partition_count() != 1 {
            return Err(Error::internal("a scan was planned in several parts, whose order is open"));
        }
        self.run(plan, batch_rows, DOING)
    }

    /// Runs a plan within the memory of one scan. The order of a plan in several parts is open.
    pub(crate) fn run(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        batch_rows: usize,
        doing: &str,
    ) -> Result<SendableRecordBatchStream> {
        let plan = match plan.output_partitioning().partition_count() {
            1 => plan,
            _ => Arc::new(CoalescePartitionsExec::new(plan)),
        };
        let memory = usize::try_from(self.inner.options.scan.memory_bytes).unwrap_or(usize::MAX);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(memory)))
            .build_arc()
            .map_err(|e| from_datafusion(e, doing, Missing::Version))?;
        let config = SessionConfig::new().with_batch_size(batch_rows).with_target_partitions(1);
        let context = TaskContext::default().with_session_config(config).with_runtime(runtime);
        plan.execute(0, Arc::new(context)).map_err(|e| from_datafusion(e, doing, Missing::Version))
    }

    /// The rows with these ids, in no order.
    pub(crate) async fn rows_by_id(
        &self,
        dataset: &Arc<Dataset>,
        schema: &LanceSchema,
        ids: &[u64],
        batch_rows: usize,
    ) -> Result<SendableRecordBatchStream> {
        let mut scanner = self.bare_scanner(dataset, schema, batch_rows)?;
        scanner.filter_expr(col(ROW_ID).in_list(ids.iter().map(|id| lit(*id)).collect(), false));
        let plan = scanner.create_plan().await.map_err(|e| plan_error(e, DOING))?;
        self.run(plan, batch_rows, DOING)
    }

    /// Rows of one batch with the columns of `schema` and of the filter, so that it keeps the bounds of bytes.
    pub(crate) async fn batch_rows(
        &self,
        dataset: &Arc<Dataset>,
        schema: &LanceSchema,
        filter: Option<&Expr>,
        pieces: &[Piece],
    ) -> Result<usize> {
        let options = &self.inner.options.scan;
        let bounds = Bounds { rows: options.batch_rows, bytes: options.batch_bytes as u64, row_bytes: 0 };
        Ok(self.row_width(dataset, schema, filter, pieces).await?.batch_rows(bounds))
    }

    async fn scanner(&self, reading: &Reading, batch_rows: usize, batch_bytes: u64) -> Result<Scanner> {
        let mut scanner = self.bare_scanner(&reading.dataset, &reading.schema, batch_rows)?;
        scanner.scan_in_order(true);
        if file_version(&reading.dataset) != "2.0" {
            let fair = self.inner.options.scan.memory_bytes / *READAHEAD as u64;
            scanner.batch_size_bytes(batch_bytes.saturating_mul(BYTES_SLACK).min(fair).max(batch_bytes));
        }
        if let Some(filter) = &reading.filter {
            scanner.filter_expr(filter.clone());
        }
        if !reading.pieces.is_empty() {
            scanner.with_fragments(reading.pieces.iter().map(|piece| piece.fragment.clone()).collect());
        }
        if let Some(slices) = &reading.slices {
            scanner.with_fragment_slices(slices).await.map_err(|e| plan_error(e, DOING))?;
        }
        Ok(scanner)
    }

    /// A scanner of these columns within the memory of one scan.
    pub(crate) fn bare_scanner(
        &self,
        dataset: &Arc<Dataset>,
        schema: &LanceSchema,
        batch_rows: usize,
    ) -> Result<Scanner> {
        if file_version(dataset).starts_with('0') {
            let why = "tables in Lance's first file format cannot be read; rewrite the table with a newer one";
            return Err(Error::new(ErrorKind::Unsupported, why));
        }
        let mut scanner = Scanner::new(dataset.clone());
        scanner.project_with_schema(schema).map_err(|e| plan_error(e, DOING))?;
        scanner
            .blob_handling(BlobHandling::AllBinary)
            .batch_size(batch_rows)
            .batch_readahead(*READAHEAD)
            .io_buffer_size(self.inner.options.scan.memory_bytes);
        Ok(scanner)
    }
}

fn file_version(dataset: &Dataset) -> String {
    dataset.manifest().data_storage_format.version.to_string()
}

/// What a scanner reads.
pub(crate) struct Reading {
    dataset: Arc<Dataset>,
    schema: LanceSchema,
    filter: Option<Expr>,
    slices: Option<Vec<FragmentSlice>>,
    pieces: Vec<Piece>,
}

impl Reading {
    async fn sliced(mut self) -> Result<Self> {
        self.slices = ranges::slices(&self.dataset, &self.pieces).await?;
        Ok(self)
    }
}

/// An error of Lance before anything runs: its words are about the request.
pub(crate) fn plan_error(error: lance::Error, doing: &str) -> Error {
    let why = detail(&error);
    let mapped = from_lance(error, doing, Missing::Version);
    match mapped.kind() {
        ErrorKind::InvalidArgument | ErrorKind::Unsupported | ErrorKind::SchemaMismatch => {
            Error::new(mapped.kind(), format!("{doing}: {why}")).with_source(mapped)
        }
        _ => mapped,
    }
}
