//! One ranking out of two: reciprocal rank fusion.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt64Type};

use crate::error::{Error, Result};

/// What a row without a place in a side gets from it is nothing; the others get `weight / (k + place)`, places from 1.
pub(super) const DEFAULT_RRF_K: u32 = 60;

/// A row that at least one side found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fused {
    pub(super) row_id: u64,
    pub(super) distance: Option<f32>,
    pub(super) score: Option<f32>,
    pub(super) relevance: f32,
}

/// A side: row ids and their numbers, the best first.
pub(super) struct Side {
    pub(super) rows: Vec<(u64, f32)>,
    pub(super) weight: f32,
}

impl Side {
    /// From the ranked rows of a search.
    pub(super) fn new(rows: &RecordBatch, ids: &str, numbers: &str, weight: f32) -> Result<Self> {
        let missing = || Error::internal("lance returned other columns than planned");
        let ids = rows.column_by_name(ids).and_then(|c| c.as_primitive_opt::<UInt64Type>()).ok_or_else(missing)?;
        let numbers = rows.column_by_name(numbers).and_then(|c| c.as_primitive_opt::<Float32Type>());
        let numbers = numbers.ok_or_else(missing)?;
        Ok(Self { rows: ids.values().iter().copied().zip(numbers.values().iter().copied()).collect(), weight })
    }
}

/// All rows of both, the most relevant first, ties by row id.
pub(super) fn fuse(vector: &Side, text: &Side, rrf_k: u32) -> Vec<Fused> {
    // Relevance is added in 64 bits, so that the order of the sides does not matter.
    let mut fused: HashMap<u64, (Fused, f64)> = HashMap::new();
    for (side, is_vector) in [(vector, true), (text, false)] {
        for (place, (row_id, number)) in side.rows.iter().enumerate() {
            let nothing = Fused { row_id: *row_id, distance: None, score: None, relevance: 0.0 };
            let (row, relevance) = fused.entry(*row_id).or_insert((nothing, 0.0));
            if is_vector {
                row.distance = Some(*number);
            } else {
                row.score = Some(*number);
            }
            *relevance += f64::from(side.weight) / (f64::from(rrf_k) + 1.0 + place as f64);
        }
    }
    let mut rows: Vec<Fused> =
        fused.into_values().map(|(row, relevance)| Fused { relevance: relevance as f32, ..row }).collect();
    rows.sort_unstable_by(|left, right| {
        right.relevance.total_cmp(&left.relevance).then_with(|| left.row_id.cmp(&right.row_id))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(ids: &[u64], weight: f32) -> Side {
        Side { rows: ids.iter().map(|id| (*id, *id as f32)).collect(), weight }
    }

    fn order(vector: &Side, text: &Side) -> Vec<u64> {
        fuse(vector, text, DEFAULT_RRF_K).iter().map(|row| row.row_id).collect()
    }

    #[test]
    fn a_row_that_both_sides_found_comes_first() {
        let fused = fuse(&side(&[1, 2, 3], 1.0), &side(&[4, 3], 1.0), 60);
        assert_eq!(
            fused[0],
            Fused { row_id: 3, distance: Some(3.0), score: Some(3.0), relevance: 1.0 / 63.0 + 1.0 / 62.0 }
        );
        let ids: Vec<u64> = fused.iter().map(|row| row.row_id).collect();
        assert_eq!(ids, [3, 1, 4, 2], "ties go by row id");
        assert_eq!((fused[2].distance, fused[2].score), (None, Some(4.0)));
    }

    #[test]
    fn weights_decide_between_the_sides() {
        assert_eq!(order(&side(&[1], 1.0), &side(&[2], 0.5)), [1, 2]);
        assert_eq!(order(&side(&[1], 0.5), &side(&[2], 1.0)), [2, 1]);
        assert_eq!(order(&side(&[1, 2], 0.0), &side(&[2, 1], 1.0)), [2, 1]);
    }
}
