//! The rows that changing keys have so far.

use std::collections::HashSet;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use futures::TryStreamExt as _;
use lance::dataset::rowids::get_row_id_index;
use lance::index::DatasetIndexExt as _;
use lance_core::{ROW_ADDR, ROW_ID};

use super::Marks;
use super::keys::{Found, Key, LastChanges};
use crate::Lake;
use crate::error::{Error, Result};
use crate::lance_error::{Missing, from_lance};
use crate::scan::{Projected, filter, ranges};
use crate::table::Handle;
use crate::types::{MergeRule, RowMetadata, WhenNotMatchedBySource};

/// Keys that one scan looks for in an index.
const KEYS_OF_A_SCAN: usize = 16_384;
/// To look a key up costs as much as to read the keys of so many rows.
const ROWS_OF_A_KEY: u64 = 20;

impl Lake {
    /// The rows that the keys have, and, if the rule asks for them, the others. Answers how many others there are.
    pub(super) async fn find_old(
        &self,
        dataset: &Handle,
        key: &Key,
        last: &mut LastChanges,
        rule: &MergeRule,
        marks: &mut Marks,
    ) -> Result<u64> {
        let mut pieces = ranges::all(dataset).await?;
        if key.is_row_id() {
            let fragments = fragments_of(dataset, &last.row_ids()?).await?;
            pieces.retain(|piece| fragments.contains(&piece.fragment.id));
        }
        if pieces.is_empty() {
            return Ok(0);
        }
        let metadata = RowMetadata { row_id: true, row_address: true, row_versions: false };
        let projected = Projected::new(dataset, Some(&key.paths(dataset.schema())), metadata)?;
        let bounds = self.bounds(None, None);
        let rows: u64 = pieces.iter().map(|piece| piece.live_rows).sum();
        let few = (last.len() as u64).saturating_mul(ROWS_OF_A_KEY) < rows;
        let conditions = match few && is_indexed(dataset, key).await? {
            true => last.filters(KEYS_OF_A_SCAN)?.into_iter().map(Some).collect(),
            false if last.len() == 0 => Vec::new(),
            false => vec![None],
        };
        for condition in conditions {
            let mut found = self.selected(dataset, &projected, condition, &pieces, bounds).await?;
            while let Some(batch) = found.try_next().await? {
                last.find(&rows_of(&batch)?, rule, marks)?;
            }
        }
        let condition = match &rule.when_not_matched_by_source {
            WhenNotMatchedBySource::Keep => return Ok(0),
            WhenNotMatchedBySource::Delete => None,
            WhenNotMatchedBySource::DeleteIf(filter) => {
                Some(filter::plan(filter, dataset.schema(), self.inner.options.scan.max_filter_depth)?)
            }
        };
        let mut others = 0;
        let mut found = self.selected(dataset, &projected, condition, &pieces, bounds).await?;
        while let Some(batch) = found.try_next().await? {
            others += last.find_others(&rows_of(&batch)?, marks)?;
        }
        Ok(others)
    }
}

/// The fragments in which rows lie.
async fn fragments_of(dataset: &Handle, row_ids: &[u64]) -> Result<HashSet<u64>> {
    let failed = |e| from_lance(e, "cannot look for rows by their ids", Missing::Version);
    let Some(index) = get_row_id_index(dataset).await.map_err(failed)? else {
        // Without stable row ids they are the addresses.
        return Ok(row_ids.iter().map(|id| id >> 32).collect());
    };
    let found = index.get_many(row_ids).map_err(failed)?;
    Ok(found.into_iter().flatten().map(|address| u64::from(address.fragment_id())).collect())
}

fn rows_of(batch: &RecordBatch) -> Result<Found<'_>> {
    Ok(Found { rows: batch, ids: numbers(batch, ROW_ID)?, addresses: numbers(batch, ROW_ADDR)? })
}

pub(crate) fn numbers<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a [u64]> {
    let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<UInt64Type>());
    Ok(column.ok_or_else(|| Error::internal("lance returned rows without their addresses"))?.values())
}

/// Whether an index helps to find rows by one of the columns.
async fn is_indexed(dataset: &Handle, key: &Key) -> Result<bool> {
    let indexes = dataset.load_indices().await;
    let indexes = indexes.map_err(|e| from_lance(e, "cannot look for the index of the key", Missing::Version))?;
    let ids: HashSet<i32> = key.ids().collect();
    Ok(indexes.iter().any(|index| matches!(index.fields.as_slice(), [only] if ids.contains(only))))
}
