//! Plans: a version is pinned and its rows are cut into splits of about equal bytes.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use lance::Dataset;
use lance_core::datatypes::Schema as LanceSchema;
use lance_table::format::Fragment;

use super::projection::Projected;
use super::ranges::{self, Piece};
use super::{filter, size};
use crate::Lake;
use crate::error::Result;
use crate::types::{FragmentRange, PlannedSplit, ScanPlan, ScanSpec};

/// A guess for columns whose files have no known size and whose type tells none.
const UNKNOWN_ROW_BYTES: u64 = 64;

impl Lake {
    /// Pins the version, checks columns and filter, and cuts the rows into splits.
    pub fn plan_scan<'a>(&'a self, spec: &'a ScanSpec) -> BoxFuture<'a, Result<ScanPlan>> {
        Box::pin(async move {
            let location = self.locate(&spec.table)?;
            let dataset = self.open_version(&location, &spec.version).await?;
            let options = &self.inner.options.scan;
            let projected = Projected::new(&dataset, spec.projection.as_deref(), spec.metadata)?;
            if let Some(given) = &spec.filter {
                filter::plan(given, dataset.schema(), options.max_filter_depth)?;
            }
            let pieces = ranges::all(&dataset).await?;
            let limit = spec.limit.unwrap_or(u64::MAX);
            // Without a filter it is known which rows the limit keeps; with one it is not, so one reader has to count.
            let pieces = if spec.filter.is_none() { ranges::cut(pieces, 0, limit) } else { pieces };
            let sizes = Sizes::new(&dataset, &projected.read);
            let num_rows: u64 = pieces.iter().map(Piece::num_rows).sum();
            let num_bytes: u64 = pieces.iter().map(|piece| sizes.of(piece)).sum();
            let splits = if limit == 0 || num_rows == 0 {
                Vec::new()
            } else if spec.filter.is_some() && spec.limit.is_some() {
                vec![split(&pieces, &sizes, spec.limit)]
            } else {
                let wanted = spec.split_bytes.filter(|bytes| *bytes > 0).unwrap_or(options.split_bytes);
                let most = spec
                    .max_splits
                    .filter(|most| *most > 0)
                    .unwrap_or(options.max_splits)
                    .clamp(1, options.max_splits.max(1));
                let groups = group(pieces, &sizes, wanted.max(1), most);
                groups
                    .iter()
                    .map(|group| split(group, &sizes, spec.limit.map(|_| group.iter().map(Piece::num_rows).sum())))
                    .collect()
            };
            Ok(ScanPlan {
                schema: projected.shown,
                version: dataset.manifest().version,
                num_rows: num_rows.min(limit),
                num_bytes,
                splits,
            })
        })
    }
}

/// Bytes of the data files that a scan touches.
struct Sizes {
    fields: HashSet<i32>,
    unknown_row_bytes: u64,
}

impl Sizes {
    fn new(dataset: &Arc<Dataset>, read: &LanceSchema) -> Self {
        let fields: HashSet<i32> = read.fields_pre_order().map(|field| field.id).filter(|id| *id >= 0).collect();
        let guess = size::fixed_row_bytes(&read.into());
        // Row counts alone touch no file.
        let fallback = if fields.is_empty() { 0 } else { UNKNOWN_ROW_BYTES * dataset.schema().fields.len() as u64 };
        Self { fields, unknown_row_bytes: guess.unwrap_or(fallback).max(u64::from(fallback > 0)) }
    }

    fn of(&self, piece: &Piece) -> u64 {
        let bytes = u128::from(self.fragment(&piece.fragment, piece.live_rows));
        // Where the bytes of a row begin, so that the pieces of a fragment add up to it.
        let begin = |row: u64| bytes * u128::from(row) / u128::from(piece.live_rows.max(1));
        (begin(piece.range.end) - begin(piece.range.start)) as u64
    }

    fn fragment(&self, fragment: &Fragment, live_rows: u64) -> u64 {
        let touched = fragment.files.iter().filter(|file| file.fields.iter().any(|id| self.fields.contains(id)));
        let known: Option<u64> = touched.map(|file| file.file_size_bytes.get().map(u64::from)).sum();
        known.unwrap_or(live_rows.saturating_mul(self.unknown_row_bytes))
    }
}

fn split(pieces: &[Piece], sizes: &Sizes, limit: Option<u64>) -> PlannedSplit {
    let range = |piece: &Piece| FragmentRange {
        fragment_id: piece.fragment.id,
        first_row: piece.range.start,
        num_rows: (piece.range.end < piece.live_rows).then(|| piece.num_rows()),
    };
    PlannedSplit {
        fragments: pieces.iter().map(range).collect(),
        limit,
        num_rows: pieces.iter().map(Piece::num_rows).sum(),
        num_bytes: pieces.iter().map(|piece| sizes.of(piece)).sum(),
    }
}

/// Consecutive pieces of about `wanted` bytes together, big ones cut; at most `most` groups, so that they grow if need be.
fn group(pieces: Vec<Piece>, sizes: &Sizes, mut wanted: u64, most: usize) -> Vec<Vec<Piece>> {
    loop {
        let groups = group_by_bytes(&pieces, sizes, wanted);
        if groups.len() <= most {
            return groups;
        }
        if wanted == u64::MAX {
            return vec![pieces];
        }
        let factor = (groups.len().div_ceil(most) as u64).max(2);
        wanted = wanted.saturating_mul(factor);
    }
}

fn group_by_bytes(pieces: &[Piece], sizes: &Sizes, wanted: u64) -> Vec<Vec<Piece>> {
    let mut groups = Vec::new();
    let mut open: Vec<Piece> = Vec::new();
    let mut open_bytes = 0_u64;
    for piece in pieces {
        let bytes = sizes.of(piece);
        let parts = bytes.div_ceil(wanted).clamp(1, piece.num_rows());
        if !open.is_empty() && open_bytes.saturating_add(bytes) > wanted {
            groups.push(std::mem::take(&mut open));
            open_bytes = 0;
        }
        if parts == 1 {
            open.push(piece.clone());
            open_bytes += bytes;
            continue;
        }
        let rows = piece.num_rows().div_ceil(parts);
        let mut start = piece.range.start;
        while start < piece.range.end {
            let end = piece.range.end.min(start + rows);
            groups.push(vec![Piece { range: start..end, ..piece.clone() }]);
            start = end;
        }
    }
    if !open.is_empty() {
        groups.push(open);
    }
    groups
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizes() -> Sizes {
        Sizes { fields: HashSet::from([0]), unknown_row_bytes: 10 }
    }

    fn pieces(rows: &[u64]) -> Vec<Piece> {
        let piece =
            |(id, rows): (usize, &u64)| Piece { fragment: fragment(id as u64), live_rows: *rows, range: 0..*rows };
        rows.iter().enumerate().map(piece).collect()
    }

    /// A fragment whose file has no known size: 10 bytes a row.
    fn fragment(id: u64) -> Fragment {
        let file = serde_json::json!({
            "path": "x.lance", "fields": [0], "column_indices": [0], "file_major_version": 2, "file_minor_version": 0,
            "file_size_bytes": null, "base_id": null,
        });
        Fragment { files: vec![serde_json::from_value(file).unwrap()], ..Fragment::new(id) }
    }

    #[test]
    fn small_fragments_go_together_and_big_ones_are_cut() {
        let groups = group(pieces(&[10, 10, 100, 5]), &sizes(), 250, 100);
        let shape: Vec<Vec<(u64, u64)>> =
            groups.iter().map(|g| g.iter().map(|p| (p.fragment.id, p.num_rows())).collect()).collect();
        assert_eq!(
            shape,
            [vec![(0, 10), (1, 10)], vec![(2, 25)], vec![(2, 25)], vec![(2, 25)], vec![(2, 25)], vec![(3, 5)]]
        );
    }

    proptest! {
        #[test]
        fn groups_hold_every_row_once_in_order_and_are_never_too_many(
            rows in prop::collection::vec(1_u64..200, 1..20), wanted in 1_u64..3_000, most in 1_usize..10,
        ) {
            let all = pieces(&rows);
            let expected: Vec<(u64, u64)> = all.iter().flat_map(|p| p.range.clone().map(|r| (p.fragment.id, r))).collect();
            let groups = group(all, &sizes(), wanted, most);
            prop_assert!(groups.len() <= most);
            prop_assert!(groups.iter().all(|group| !group.is_empty()));
            let found: Vec<(u64, u64)> =
                groups.iter().flatten().flat_map(|p| p.range.clone().map(|r| (p.fragment.id, r))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
