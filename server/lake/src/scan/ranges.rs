//! Rows of a split: ranges of live rows, cut by limits, and where they lie in the files.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use lance::Dataset;
use lance::dataset::scanner::FragmentSlice;
use lance_table::format::Fragment;

use crate::error::{Error, Result};
use crate::lance_error::{Missing, from_lance};
use crate::types::FragmentRange;

/// A fragment and the live rows of it that are read. Never empty.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) fragment: Fragment,
    pub(crate) live_rows: u64,
    pub(crate) range: Range<u64>,
}

impl Piece {
    pub(crate) fn num_rows(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn is_whole(&self) -> bool {
        self.range == (0..self.live_rows)
    }
}

/// How many live rows a fragment has. A search counts them with every query, so they are not [`Piece`]s, which copy fragments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Live {
    pub(crate) fragment_id: u64,
    pub(crate) num_rows: u64,
}

impl Live {
    /// Them as what a ticket names.
    pub(crate) fn range(&self) -> FragmentRange {
        FragmentRange { fragment_id: self.fragment_id, first_row: 0, num_rows: None }
    }
}

/// The fragments of a version that have live rows.
pub(crate) async fn live(dataset: &Arc<Dataset>) -> Result<Vec<Live>> {
    let mut live = Vec::with_capacity(dataset.fragments().len());
    for fragment in dataset.fragments().iter() {
        let num_rows = live_rows(dataset, fragment).await?;
        if num_rows > 0 {
            live.push(Live { fragment_id: fragment.id, num_rows });
        }
    }
    Ok(live)
}

/// All live rows of a version, fragment by fragment.
pub(crate) async fn all(dataset: &Arc<Dataset>) -> Result<Vec<Piece>> {
    let mut pieces = Vec::with_capacity(dataset.fragments().len());
    for fragment in dataset.fragments().iter() {
        let live_rows = live_rows(dataset, fragment).await?;
        if live_rows > 0 {
            pieces.push(Piece { fragment: fragment.clone(), live_rows, range: 0..live_rows });
        }
    }
    Ok(pieces)
}

/// All live rows of one fragment.
pub(crate) async fn whole(dataset: &Arc<Dataset>, id: u64) -> Result<Piece> {
    let found = dataset.fragments().binary_search_by_key(&id, |fragment| fragment.id);
    let Some(fragment) = found.ok().and_then(|index| dataset.fragments().get(index)) else {
        return Err(Error::internal("a row lies in no fragment"));
    };
    let live_rows = live_rows(dataset, fragment).await?;
    Ok(Piece { fragment: fragment.clone(), live_rows, range: 0..live_rows })
}

/// The rows that a ticket names.
pub(crate) async fn named(dataset: &Arc<Dataset>, ranges: &[FragmentRange]) -> Result<Vec<Piece>> {
    let mut seen = HashSet::new();
    let mut pieces = Vec::with_capacity(ranges.len());
    for range in ranges {
        let id = range.fragment_id;
        let found = dataset.fragments().binary_search_by_key(&id, |fragment| fragment.id);
        let Some(fragment) = found.ok().and_then(|index| dataset.fragments().get(index)) else {
            return Err(Error::invalid(format!("version {} has no fragment {id}", dataset.manifest().version)));
        };
        if !seen.insert(id) {
            return Err(Error::invalid(format!("the split names fragment {id} twice")));
        }
        let live_rows = live_rows(dataset, fragment).await?;
        let start = range.first_row;
        let end = match range.num_rows {
            Some(rows) => start.checked_add(rows),
            None => Some(live_rows.max(start)),
        };
        match end {
            Some(end) if start <= live_rows && end <= live_rows => {
                if start < end {
                    pieces.push(Piece { fragment: fragment.clone(), live_rows, range: start..end });
                }
            }
            _ => return Err(Error::invalid(format!("the split reads beyond the {live_rows} rows of fragment {id}"))),
        }
    }
    Ok(pieces)
}

/// Drops the first `skip` rows, and all after the `take` that follow.
pub(crate) fn cut(pieces: Vec<Piece>, mut skip: u64, mut take: u64) -> Vec<Piece> {
    let mut kept = Vec::with_capacity(pieces.len());
    for mut piece in pieces {
        let skipped = skip.min(piece.num_rows());
        skip -= skipped;
        piece.range.start += skipped;
        piece.range.end = piece.range.end.min(piece.range.start.saturating_add(take));
        take -= piece.num_rows();
        if piece.num_rows() > 0 {
            kept.push(piece);
        }
        if take == 0 {
            break;
        }
    }
    kept
}

/// Where the pieces lie in their files; None if all are whole fragments.
pub(crate) async fn slices(dataset: &Arc<Dataset>, pieces: &[Piece]) -> Result<Option<Vec<FragmentSlice>>> {
    if pieces.iter().all(Piece::is_whole) {
        return Ok(None);
    }
    let mut slices = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let id = piece.fragment.id;
        let doing = || format!("cannot find the rows of fragment {id}");
        let Some(fragment) = dataset.get_fragment(id as usize) else {
            return Err(Error::invalid(format!("version {} has no fragment {id}", dataset.manifest().version)));
        };
        let rows = if piece.is_whole() {
            let rows = fragment.physical_rows().await.map_err(|e| from_lance(e, doing(), Missing::Version))?;
            0..rows as u64
        } else {
            let deleted = fragment.get_deletion_vector().await.map_err(|e| from_lance(e, doing(), Missing::Version))?;
            let deleted = deleted.as_deref();
            let at = |live: u64| physical(live, deleted.into_iter().flat_map(|d| d.to_sorted_iter()));
            at(piece.range.start)..at(piece.range.end - 1) + 1
        };
        let fragment_id = u32::try_from(id).map_err(|_| Error::internal("a fragment id is larger than 32 bits"))?;
        slices.push(FragmentSlice { fragment_id, row_offset: rows.start, row_count: rows.end - rows.start });
    }
    Ok(Some(slices))
}

/// The place in the file of the live row with this number. `deleted`: places of deleted rows, in order.
fn physical(live: u64, deleted: impl Iterator<Item = u32>) -> u64 {
    let mut place = live;
    for deleted in deleted {
        if u64::from(deleted) > place {
            break;
        }
        place += 1;
    }
    place
}

async fn live_rows(dataset: &Arc<Dataset>, fragment: &Fragment) -> Result<u64> {
    if let Some(rows) = fragment.num_rows() {
        return Ok(rows as u64);
    }
    // Only manifests of old writers do not know.
    let rows = match dataset.get_fragment(fragment.id as usize) {
        Some(fragment) => fragment.count_rows(None).await,
        None => return Err(Error::internal("a fragment of the manifest is missing in it")),
    };
    rows.map(|rows| rows as u64).map_err(|e| from_lance(e, "cannot count the rows of a fragment", Missing::Version))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(sizes: &[u64]) -> Vec<Piece> {
        let piece =
            |(id, rows): (usize, &u64)| Piece { fragment: Fragment::new(id as u64), live_rows: *rows, range: 0..*rows };
        sizes.iter().enumerate().filter(|(_, rows)| **rows > 0).map(piece).collect()
    }

    fn rows(pieces: &[Piece]) -> Vec<(u64, u64)> {
        pieces.iter().flat_map(|piece| piece.range.clone().map(|row| (piece.fragment.id, row))).collect()
    }

    proptest! {
        #[test]
        fn cutting_pieces_is_cutting_their_rows(
            sizes in prop::collection::vec(0_u64..5, 0..5), skip in 0_u64..12, take in 0_u64..12,
        ) {
            let all = pieces(&sizes);
            let wanted: Vec<_> = rows(&all).into_iter().skip(skip as usize).take(take as usize).collect();
            let cut = cut(all, skip, take);
            prop_assert!(cut.iter().all(|piece| piece.num_rows() > 0));
            prop_assert_eq!(rows(&cut), wanted);
        }

        #[test]
        fn a_live_row_is_found_among_deleted_ones(deleted in prop::collection::btree_set(0_u32..50, 0..30)) {
            let live: Vec<u64> = (0_u32..50).filter(|row| !deleted.contains(row)).map(u64::from).collect();
            for (number, place) in live.iter().enumerate() {
                prop_assert_eq!(physical(number as u64, deleted.iter().copied()), *place);
            }
        }
    }
}
