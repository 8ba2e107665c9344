//! Which small fragments a compaction merges.

use std::ops::Range;

use lance::dataset::optimize::{CompactionTask, TaskData};
use lance_table::format::Fragment;

/// A fragment has been outgrown once the others of its run hold this part of its rows.
const OUTGROWN: usize = 3;

/// How far a compaction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// Every small fragment, for people who want few.
    All,
    /// Only those that the others of their run have outgrown. A table that is compacted again and again would else rewrite all
    /// that is not yet large each time; so each row is rewritten a few times on its way to a large fragment.
    Outgrown,
}

impl Merge {
    pub(super) fn choose(self, tasks: impl Iterator<Item = CompactionTask>) -> Vec<CompactionTask> {
        match self {
            Self::All => tasks.collect(),
            Self::Outgrown => tasks.flat_map(outgrown).collect(),
        }
    }
}

/// The runs of a task without what is too large for them. A task whose fragments have deleted rows is left as it is.
fn outgrown(task: CompactionTask) -> Vec<CompactionTask> {
    let rows: Option<Vec<usize>> = task.task.fragments.iter().map(untouched_rows).collect();
    let Some(rows) = rows else { return vec![task] };
    let part = |run: Range<usize>| CompactionTask {
        task: TaskData { fragments: task.task.fragments[run].to_vec() },
        ..task.clone()
    };
    runs(&rows).into_iter().map(part).collect()
}

/// None: some are deleted, or their number is not known.
fn untouched_rows(fragment: &Fragment) -> Option<usize> {
    fragment.physical_rows.filter(|_| fragment.deletion_file.is_none())
}

/// Ranges of at least two, cut at those that are larger than the rest of their range can outgrow.
fn runs(rows: &[usize]) -> Vec<Range<usize>> {
    fn cut(rows: &[usize], run: Range<usize>, runs: &mut Vec<Range<usize>>) {
        let Some(largest) = run.clone().max_by_key(|at| rows[*at]).filter(|_| run.len() > 1) else { return };
        let others = rows[run.clone()].iter().sum::<usize>() - rows[largest];
        if others.saturating_mul(OUTGROWN) >= rows[largest] {
            runs.push(run);
        } else {
            cut(rows, run.start..largest, runs);
            cut(rows, largest + 1..run.end, runs);
        }
    }
    let mut found = Vec::new();
    cut(rows, 0..rows.len(), &mut found);
    found
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "ranges are what is compared")]
mod tests {
    use super::*;

    const NONE: [Range<usize>; 0] = [];

    #[test]
    fn a_run_is_merged_once_it_has_outgrown_its_largest() {
        assert_eq!(runs(&[]), NONE);
        assert_eq!(runs(&[10]), NONE);
        assert_eq!(runs(&[10, 10]), [0..2]);
        assert_eq!(runs(&[100, 10, 10]), [1..3], "too small to rewrite the large one for");
        assert_eq!(runs(&[100, 10, 10, 10, 10]), [0..5]);
        assert_eq!(runs(&[10, 10, 1000, 10, 10, 10]), [0..2, 3..6], "in their order");
        assert_eq!(runs(&[1000, 100, 10]), NONE);
        assert_eq!(runs(&[0, 0]), [0..2]);
    }

    #[test]
    fn a_row_is_rewritten_a_few_times_however_long_the_stream_is() {
        let (mut rows, mut rewritten, mut most) = (Vec::new(), 0, 0);
        for _ in 0..10_000 {
            rows.push(10);
            let runs = runs(&rows);
            if runs.iter().map(ExactSizeIterator::len).sum::<usize>() < 25 {
                continue;
            }
            for run in runs.into_iter().rev() {
                let merged = rows[run.clone()].iter().sum();
                rewritten += merged;
                rows.splice(run, [merged]);
            }
            most = most.max(rows.len());
        }
        assert!(rewritten / 100_000 < 12, "each row {} times", rewritten / 100_000);
        assert!(most < 10, "{most} fragments after a compaction");
    }
}
