//! The batches of one split, as they leave: renamed, counted off, cut to size.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use futures::Stream;
use lance::deps::datafusion::execution::SendableRecordBatchStream;

use super::size;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_datafusion};

/// The rows of one split in their order, which is always the same. Dropping it stops the scan.
pub struct ScanStream {
    schema: SchemaRef,
    input: Input,
    bounds: Bounds,
    /// Rows of the result that are still to be skipped, and to be given.
    skip: u64,
    take: u64,
    pending: VecDeque<RecordBatch>,
    /// Learns how wide rows are.
    width: Option<Arc<AtomicU64>>,
}

/// Where rows come from.
pub(super) enum Input {
    /// A running plan.
    Plan(SendableRecordBatchStream),
    /// Nowhere: rows without columns are only counted.
    Rows { left: u64, batch: u64 },
}

/// How large a batch may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) rows: usize,
    pub(crate) bytes: u64,
    pub(super) row_bytes: u64,
}

impl ScanStream {
    pub(super) fn new(schema: SchemaRef, input: Input, bounds: Bounds, skip: u64, take: u64) -> Self {
        Self { schema, input, bounds, skip, take, pending: VecDeque::new(), width: None }
    }

    pub(super) fn learning(mut self, width: Arc<AtomicU64>) -> Self {
        self.width = Some(width);
        self
    }

    /// The schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Takes in a batch of the plan.
    fn accept(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows() as u64;
        let skipped = self.skip.min(rows);
        let taken = self.take.min(rows - skipped);
        self.skip -= skipped;
        self.take -= taken;
        if taken == 0 {
            return Ok(());
        }
        // Only what the client asked for; a column that was read to count rows is left out.
        let columns = batch.columns()[..self.schema.fields().len()].to_vec();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|e| Error::internal("lance returned other columns than planned").with_source(e))?;
        let batch = if taken == rows { batch } else { batch.slice(skipped as usize, taken as usize) };
        self.cut(batch)
    }

    /// Cuts by halves until each slice keeps the bounds; nothing is copied.
    fn cut(&mut self, batch: RecordBatch) -> Result<()> {
        let columns = size::columns(&batch);
        let total = size::rows_bytes(&columns, 0..batch.num_rows());
        self.learn(total, batch.num_rows());
        // A batch that is a little too large is no reason for a tiny second one.
        let most = self.bounds.bytes.saturating_mul(2).min(self.bounds.row_bytes);
        if total <= most && batch.num_rows() <= self.bounds.rows {
            self.pending.push_back(batch);
            return Ok(());
        }
        let mut ranges: Vec<_> = std::iter::once(0..batch.num_rows()).collect();
        while let Some(range) = ranges.pop() {
            let rows = range.end - range.start;
            let bytes = size::rows_bytes(&columns, range.clone());
            if rows == 1 && bytes > self.bounds.row_bytes {
                return Err(Error::new(
                    ErrorKind::RowTooLarge,
                    format!(
                        "a row of {bytes} bytes is above {}, the bound scan.max-row-bytes; leave wide columns out of the \
                         projection, or raise the bound",
                        self.bounds.row_bytes
                    ),
                ));
            }
            if rows > 1 && (bytes > most || rows > self.bounds.rows) {
                let middle = range.start + rows / 2;
                ranges.push(middle..range.end);
                ranges.push(range.start..middle);
            } else {
                self.pending.push_back(batch.slice(range.start, rows));
            }
        }
        Ok(())
    }

    fn learn(&self, bytes: u64, rows: usize) {
        let (Some(width), true) = (&self.width, rows > 0) else { return };
        let now = (bytes / rows as u64).max(1);
        let before = width.load(Ordering::Relaxed);
        // Wider rows count at once, since they cost memory; narrower ones only by and by.
        width.store(if now >= before { now } else { (before * 3 + now) / 4 }, Ordering::Relaxed);
    }
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(batch) = self.pending.pop_front() {
                return Poll::Ready(Some(Ok(batch)));
            }
            if self.take == 0 {
                // Lets go of the plan before the caller lets go of this.
                self.input = Input::Rows { left: 0, batch: 1 };
                return Poll::Ready(None);
            }
            let failed = match &mut self.input {
                Input::Rows { left: 0, .. } => return Poll::Ready(None),
                Input::Rows { left, batch } => {
                    let rows = (*left).min(*batch);
                    *left -= rows;
                    let options = RecordBatchOptions::new().with_row_count(Some(rows as usize));
                    let empty = RecordBatch::try_new_with_options(self.schema.clone(), Vec::new(), &options)
                        .map_err(|e| Error::internal("rows without columns cannot be counted").with_source(e));
                    empty.and_then(|batch| self.accept(&batch)).err()
                }
                Input::Plan(plan) => match ready!(Pin::new(plan).poll_next(context)) {
                    None => return Poll::Ready(None),
                    Some(Ok(batch)) => self.accept(&batch).err(),
                    Some(Err(e)) => Some(from_datafusion(e, "the scan stopped", Missing::Version)),
                },
            };
            if let Some(error) = failed {
                self.pending.clear();
                self.take = 0;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::{ArrayRef, StringArray};
    use arrow_schema::Schema;
    use futures::{StreamExt, TryStreamExt};
    use lance::deps::datafusion::physical_plan::stream::RecordBatchStreamAdapter;

    use super::*;

    const BOUNDS: Bounds = Bounds { rows: 1_000, bytes: 100, row_bytes: 300 };

    fn strings(lengths: &[usize]) -> RecordBatch {
        let array: ArrayRef = Arc::new(lengths.iter().map(|len| Some("x".repeat(*len))).collect::<StringArray>());
        RecordBatch::try_from_iter_with_nullable([("s", array, true)]).unwrap()
    }

    fn stream(batches: Vec<RecordBatch>, bounds: Bounds, skip: u64, take: u64) -> ScanStream {
        let schema = batches[0].schema();
        let batches = futures::stream::iter(batches.into_iter().map(Ok));
        let plan: SendableRecordBatchStream = Box::pin(RecordBatchStreamAdapter::new(schema.clone(), batches));
        ScanStream::new(schema, Input::Plan(plan), bounds, skip, take)
    }

    fn lengths(batches: &[RecordBatch]) -> Vec<Vec<usize>> {
        let of = |batch: &RecordBatch| batch.column(0).as_string::<i32>().iter().map(|s| s.unwrap().len()).collect();
        batches.iter().map(of).collect()
    }

    #[tokio::test]
    async fn wide_batches_are_cut_and_small_ones_left_as_they_are() {
        let found: Vec<_> = stream(vec![strings(&[1, 2, 3]), strings(&[120, 1, 1, 90, 90])], BOUNDS, 0, u64::MAX)
            .try_collect()
            .await
            .unwrap();
        assert_eq!(lengths(&found), [vec![1, 2, 3], vec![120, 1], vec![1, 90, 90]]);
    }

    #[tokio::test]
    async fn rows_are_skipped_and_counted_over_batches() {
        let batches = || vec![strings(&[1, 2, 3]), strings(&[4, 5]), strings(&[6])];
        for (skip, take, wanted) in
            [(0, 9, vec![1, 2, 3, 4, 5, 6]), (2, 2, vec![3, 4]), (3, 1, vec![4]), (6, 1, vec![]), (1, 0, vec![])]
        {
            let found: Vec<_> = stream(batches(), BOUNDS, skip, take).try_collect().await.unwrap();
            assert_eq!(lengths(&found).concat(), wanted, "{skip} {take}");
        }
    }

    #[tokio::test]
    async fn a_row_above_the_bound_is_an_error_with_both_numbers_and_the_end() {
        let mut stream = stream(vec![strings(&[1, 2, 400, 3])], BOUNDS, 0, u64::MAX);
        let mut last = None;
        while let Some(result) = stream.next().await {
            assert!(last.is_none(), "something came after the error");
            last = result.err();
        }
        let error = last.unwrap();
        assert_eq!(error.kind(), ErrorKind::RowTooLarge);
        assert!(error.message().contains("404") && error.message().contains("300"), "{error}");
    }

    #[tokio::test]
    async fn rows_without_columns_are_counted_in_bounded_batches() {
        let schema = Arc::new(Schema::empty());
        let bounds = Bounds { rows: 10, ..BOUNDS };
        let stream = ScanStream::new(schema, Input::Rows { left: 25, batch: 10 }, bounds, 3, 20);
        let found: Vec<_> = stream.try_collect().await.unwrap();
        assert_eq!(found.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [7, 10, 3]);
    }
}
