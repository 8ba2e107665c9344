//! What comes out of a plan, in its rank.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt64Type};
use arrow_array::{Array, Float32Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use futures::TryStreamExt;
use lance::deps::datafusion::execution::SendableRecordBatchStream;
use lance_core::ROW_ID;

use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_datafusion};
use crate::scan::size;

/// Whether the smallest or the largest number comes first.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Ascending(&'static str),
    Descending(&'static str),
}

impl Order {
    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Ascending(name) | Self::Descending(name) => name,
        }
    }
}

/// All rows of a plan. Fails as soon as they take more than `max_bytes`.
pub(super) async fn collect(mut rows: SendableRecordBatchStream, max_bytes: u64) -> Result<RecordBatch> {
    let schema = rows.schema();
    let (mut batches, mut bytes) = (Vec::new(), 0_u64);
    while let Some(batch) =
        rows.try_next().await.map_err(|e| from_datafusion(e, "the search stopped", Missing::Version))?
    {
        bytes = bytes.saturating_add(size::rows_bytes(&size::columns(&batch), 0..batch.num_rows()));
        if bytes > max_bytes {
            return Err(Error::new(
                ErrorKind::QuotaExceeded,
                format!(
                    "the rows of the search take more than {max_bytes} bytes, the bound search.max-reply-bytes; leave wide \
                     columns out of the projection, or ask for fewer rows"
                ),
            ));
        }
        batches.push(batch);
    }
    concat_batches(&schema, &batches).map_err(broken)
}

/// The rows by their rank, ties by their row ids, without those that have none: at most `k` after the first `offset`.
pub(super) fn cut(rows: &RecordBatch, order: Order, offset: usize, k: usize) -> Result<RecordBatch> {
    let column = |name: &str| {
        rows.column_by_name(name).ok_or_else(|| Error::internal("lance returned other columns than planned"))
    };
    let ranks = column(order.column())?;
    let ranks = ranks.as_primitive_opt::<Float32Type>().ok_or_else(|| Error::internal("a rank is no float"))?;
    let ids = column(ROW_ID)?;
    let ids = ids.as_primitive_opt::<UInt64Type>().ok_or_else(|| Error::internal("a row id is no number"))?;
    let mut places: Vec<u32> = (0..u32::try_from(rows.num_rows()).unwrap_or(u32::MAX))
        .filter(|row| ranks.is_valid(*row as usize) && !ranks.value(*row as usize).is_nan())
        .collect();
    places.sort_unstable_by(|left, right| {
        let (left, right) = (*left as usize, *right as usize);
        let by_rank = ranks.value(left).partial_cmp(&ranks.value(right)).unwrap_or(Ordering::Equal);
        let by_rank = match order {
            Order::Ascending(_) => by_rank,
            Order::Descending(_) => by_rank.reverse(),
        };
        by_rank.then_with(|| ids.value(left).cmp(&ids.value(right)))
    });
    let places: UInt32Array = places.into_iter().skip(offset).take(k).collect();
    take_record_batch(rows, &places).map_err(broken)
}

/// The same rows under the names that clients see: the kept columns, then those with the ranks.
pub(super) fn shown(rows: &RecordBatch, schema: &SchemaRef, kept: &[usize], ranks: &[&str]) -> Result<RecordBatch> {
    let mut columns: Vec<_> = kept.iter().filter_map(|at| rows.columns().get(*at).cloned()).collect();
    for name in ranks {
        columns.extend(rows.column_by_name(name).cloned());
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(broken)
}

/// The same rows with their ranks.
pub(super) fn with_columns<const N: usize>(
    rows: &RecordBatch,
    ranks: [(&str, Float32Array); N],
) -> Result<RecordBatch> {
    let mut fields: Vec<FieldRef> = rows.schema().fields().iter().cloned().collect();
    let mut columns = rows.columns().to_vec();
    for (name, ranks) in ranks {
        fields.push(Arc::new(Field::new(name, DataType::Float32, true)));
        columns.push(Arc::new(ranks));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(broken)
}

pub(super) fn broken(error: ArrowError) -> Error {
    Error::internal("the rows of a search do not fit together").with_source(error)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use arrow_array::{ArrayRef, UInt64Array};

    use super::*;

    #[test]
    fn rows_come_by_rank_and_then_by_id_and_those_without_a_rank_never() {
        let ranks = vec![Some(2.0), None, Some(1.0), Some(f32::NAN), Some(1.0), Some(-1.0)];
        let ranks: ArrayRef = Arc::new(Float32Array::from(ranks));
        let ids: ArrayRef = Arc::new(UInt64Array::from(vec![1, 2, 9, 4, 3, 6]));
        let rows = RecordBatch::try_from_iter_with_nullable([(ROW_ID, ids, false), ("r", ranks, true)]).unwrap();
        let ids = |order, offset, k| {
            let cut = cut(&rows, order, offset, k).unwrap();
            cut.column(0).as_primitive::<UInt64Type>().values().to_vec()
        };
        assert_eq!(ids(Order::Ascending("r"), 0, 9), [6, 3, 9, 1]);
        assert_eq!(ids(Order::Descending("r"), 1, 2), [3, 9]);
        assert!(ids(Order::Descending("r"), 4, 2).is_empty());
    }
}
