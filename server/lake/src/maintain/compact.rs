//! Compaction: small fragments become large ones.
//!
//! Planned, done and committed by Lance, in steps, so that a conflict, a cancellation or a kill costs one step at most. Rows stay
//! what they are: if another writer changes rows of a fragment meanwhile, Lance refuses the step, and it is planned anew. Merges
//! of a busy table change rows of all its fragments all the time, so from then on steps are small, and commits wait for each.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use lance::Dataset;
use lance::dataset::index::DatasetIndexRemapperOptions;
use lance::dataset::optimize::{
    CompactionOptions, CompactionTask, RewriteResult, TaskData, commit_compaction, plan_compaction,
};
use lance_table::format::Fragment;

use super::{Attempts, Compacted, Merge, Progress, ProgressSender, marked};
use crate::Lake;
use crate::error::Result;
use crate::lance_error::{Missing, from_lance};
use crate::table::Location;
use crate::types::TableId;

/// Bytes of source files that one step rewrites, about.
const STEP_BYTES: u64 = 4 << 30;
/// Source fragments of one step, about.
const STEP_FRAGMENTS: usize = 10_000;

/// What became of one step.
enum Step {
    /// So much was replaced.
    Done { removed: u64, added: u64, version: u64 },
    /// Nothing is left to do.
    Nothing,
}

/// How a step goes together with commits.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// They go on, and may be faster.
    Beside,
    /// Those of this gateway wait while it rewrites at most about so many rows.
    Held(u64),
}

impl Pace {
    fn after_conflict(held_rows: u64) -> Self {
        match held_rows {
            0 => Self::Beside,
            rows => Self::Held(rows),
        }
    }
}

impl Lake {
    /// Merges the small fragments that there are when it begins, and takes deleted rows out of files. Stopped at any point it
    /// leaves whole steps, and files that the sweep takes.
    pub fn compact<'a>(
        &'a self,
        table: &'a TableId,
        merge: Merge,
        progress: &'a ProgressSender,
    ) -> BoxFuture<'a, Result<Compacted>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            let most = self.inner.options.maintenance.max_attempts;
            let mut attempts = Attempts::new(most);
            let mut compacted = Compacted::default();
            let mut total = None;
            let mut pace = Pace::Beside;
            loop {
                match self.compact_step(&location, merge, pace, &compacted, &mut total, progress).await {
                    Ok(Step::Nothing) => return Ok(compacted),
                    Ok(Step::Done { removed, added, version }) => {
                        attempts = Attempts::new(most);
                        compacted.fragments_removed += removed;
                        compacted.fragments_added += added;
                        compacted.version = version;
                        // Fragments that others append meanwhile are for the next time, or this one might never end.
                        if total.is_some_and(|total| compacted.fragments_removed >= total) {
                            return Ok(compacted);
                        }
                    }
                    Err(error) => {
                        attempts.failed(error)?;
                        pace = Pace::after_conflict(self.inner.options.maintenance.held_rows);
                    }
                }
            }
        })
    }

    async fn compact_step(
        &self,
        location: &Location,
        merge: Merge,
        pace: Pace,
        so_far: &Compacted,
        total: &mut Option<u64>,
        progress: &ProgressSender,
    ) -> Result<Step> {
        let doing = format!("cannot compact table {}", location.shown);
        let lance = |e| from_lance(e, &doing, Missing::Version);
        let done = so_far.fragments_removed;
        progress.send_replace(Progress { stage: "planning", done, total: total.unwrap_or_default() });
        let lock = self.commit_lock(location).await;
        let _no_commit = match pace {
            Pace::Beside => None,
            Pace::Held(_) => Some(lock.lock().await),
        };
        let mut own = self.open_to_maintain(location).await?;
        let options = self.compaction_options(&own.dataset).map_err(lance)?;
        let plan = plan_compaction(&own.dataset, &options).await.map_err(lance)?;
        let tasks = merge.choose(plan.compaction_tasks());
        let total = *total.get_or_insert(tasks.iter().map(|task| task.task.fragments.len() as u64).sum());
        let tasks = match pace {
            Pace::Beside => one_step(tasks.into_iter()),
            Pace::Held(rows) => tasks.iter().find_map(|task| window(task, rows)).into_iter().collect(),
        };
        if tasks.is_empty() {
            return Ok(Step::Nothing);
        }
        let mut rewritten: Vec<RewriteResult> = Vec::with_capacity(tasks.len());
        let source = &own.dataset;
        let mut rewrites = stream::iter(tasks)
            .map(|task| async move { task.execute(source).await })
            .buffer_unordered(self.inner.options.maintenance.threads.max(1));
        progress.send_replace(Progress { stage: "rewriting", done, total });
        let mut sources = 0;
        while let Some(result) = rewrites.try_next().await.map_err(lance)? {
            sources += result.original_fragments.len() as u64;
            rewritten.push(result);
            progress.send_replace(Progress { stage: "rewriting", done: done + sources, total });
        }
        drop(rewrites);
        progress.send_replace(Progress { stage: "committing", done: done + sources, total });
        let remap = Arc::new(DatasetIndexRemapperOptions::default());
        let committed = commit_compaction(&mut own.dataset, rewritten, remap, plan.options()).await;
        let metrics = committed.map_err(|e| own.failed(e, &doing))?;
        Ok(Step::Done {
            removed: metrics.fragments_removed as u64,
            added: metrics.fragments_added as u64,
            version: own.dataset.manifest().version,
        })
    }

    /// What the table's `lance.compaction.*` asks for, within our bounds.
    pub(super) fn compaction_options(&self, dataset: &Dataset) -> lance::Result<CompactionOptions> {
        let write = &self.inner.options.write;
        let maintenance = &self.inner.options.maintenance;
        let mut options = CompactionOptions {
            target_rows_per_fragment: write.max_rows_per_file,
            max_bytes_per_file: Some(write.max_bytes_per_file),
            ..CompactionOptions::default()
        };
        options.apply_dataset_config(&dataset.manifest().config)?;
        options.num_threads = Some(maintenance.threads);
        options.io_buffer_size = Some(maintenance.memory_bytes / maintenance.threads.max(1) as u64);
        options.transaction_properties = Some(Arc::new(marked("compaction")));
        Ok(options)
    }
}

/// Of a task the first fragments that follow each other, have about so many rows, and become fewer or smaller. What has half of
/// that is large enough: it would else be rewritten with each of its neighbours.
fn window(task: &CompactionTask, rows: u64) -> Option<CompactionTask> {
    let fragments = &task.task.fragments;
    let mut start = 0;
    while start < fragments.len() {
        let (mut end, mut sum) = (start, 0);
        while let Some(size) = fragments.get(end).map(Size::of).filter(|size| !size.is_large(rows)) {
            sum += size.physical;
            if end > start && sum > rows {
                break;
            }
            end += 1;
        }
        if end > start + 1 || end == start + 1 && Size::of(&fragments[start]).is_mostly_dead() {
            let task_data = TaskData { fragments: fragments[start..end].to_vec() };
            return Some(CompactionTask { task: task_data, ..task.clone() });
        }
        start = end.max(start + 1);
    }
    None
}

/// Rows of a fragment.
struct Size {
    physical: u64,
    deleted: u64,
}

impl Size {
    fn of(fragment: &Fragment) -> Self {
        let deleted = fragment.deletion_file.as_ref().and_then(|file| file.num_deleted_rows);
        let number = |rows: Option<usize>| rows.unwrap_or_default() as u64;
        Self { physical: number(fragment.physical_rows), deleted: number(deleted) }
    }

    fn is_large(&self, rows: u64) -> bool {
        !self.is_mostly_dead() && self.physical.saturating_sub(self.deleted) * 2 > rows
    }

    fn is_mostly_dead(&self) -> bool {
        self.deleted * 2 > self.physical
    }
}

/// The first tasks: one, or as many as the bounds of a step hold.
fn one_step(tasks: impl Iterator<Item = CompactionTask>) -> Vec<CompactionTask> {
    let (mut bytes, mut fragments) = (0, 0);
    let mut step = Vec::new();
    for task in tasks {
        let files = task.task.fragments.iter().flat_map(|fragment| &fragment.files);
        bytes += files.filter_map(|file| file.file_size_bytes.get()).map(u64::from).sum::<u64>();
        fragments += task.task.fragments.len();
        if !step.is_empty() && (bytes > STEP_BYTES || fragments > STEP_FRAGMENTS) {
            break;
        }
        step.push(task);
    }
    step
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use lance_table::format::{DeletionFile, DeletionFileType};

    use super::*;

    /// A fragment with so many rows, of which so many are deleted.
    fn fragment(id: u64, (rows, deleted): (usize, usize)) -> Fragment {
        let file = DeletionFile {
            read_version: 1,
            id: 1,
            file_type: DeletionFileType::Bitmap,
            num_deleted_rows: Some(deleted),
            base_id: None,
        };
        Fragment { physical_rows: Some(rows), deletion_file: (deleted > 0).then_some(file), ..Fragment::new(id) }
    }

    fn chosen(sizes: &[(usize, usize)]) -> Vec<u64> {
        let fragments = (0..).zip(sizes).map(|(id, size)| fragment(id, *size)).collect();
        let task =
            CompactionTask { task: TaskData { fragments }, read_version: 1, options: CompactionOptions::default() };
        let ids = |task: CompactionTask| task.task.fragments.iter().map(|fragment| fragment.id).collect();
        window(&task, 100).map(ids).unwrap_or_default()
    }

    #[test]
    fn a_held_step_takes_neighbours_of_so_many_rows() {
        assert_eq!(chosen(&[(40, 0), (40, 10), (15, 0), (40, 0)]), [0, 1, 2]);
        assert_eq!(chosen(&[(60, 0), (20, 0), (20, 0)]), [1, 2], "what is large enough is left alone");
        assert_eq!(chosen(&[(20, 0), (60, 0), (20, 0)]), [0; 0], "one alone would stay as it is");
        assert_eq!(chosen(&[(60, 0), (20, 15)]), [1], "but for what is deleted");
        assert_eq!(chosen(&[(1_000, 900), (20, 0)]), [0], "and one at least is taken");
        assert_eq!(chosen(&[]), [0; 0]);
    }
}
