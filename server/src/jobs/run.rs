//! What each kind of job does.

use lance_gateway_lake as lake;
use lance_gateway_lake::{Lake, Merge, ProgressSender, TableId};
use lance_gateway_proto::v1::job::{Kind, Result as Outcome};
use lance_gateway_proto::v1::{CleanupResult, CompactionResult, OptimizationResult, SweepResult, SweptFile};

use crate::convert;

/// The kind, for the log and the metrics.
pub(super) fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Compaction(_) => "compaction",
        Kind::Cleanup(_) => "cleanup",
        Kind::Sweep(_) => "sweep",
        Kind::IndexBuild(_) => "index build",
        Kind::IndexOptimization(_) => "index optimization",
    }
}

pub(super) async fn run(
    lake: &Lake,
    table: &TableId,
    kind: &Kind,
    by_policy: bool,
    progress: &ProgressSender,
) -> lake::Result<Outcome> {
    Ok(match kind {
        Kind::Compaction(_) => {
            let merge = if by_policy { Merge::Outgrown } else { Merge::All };
            let done = lake.compact(table, merge, progress).await?;
            Outcome::CompactionResult(CompactionResult {
                num_fragments_removed: done.fragments_removed,
                num_fragments_added: done.fragments_added,
                version: done.version,
            })
        }
        Kind::Cleanup(cleanup) => {
            let done = lake.cleanup(table, &convert::cleanup_spec(cleanup), progress).await?;
            Outcome::CleanupResult(CleanupResult {
                num_versions: done.num_versions,
                num_files: done.num_files,
                num_bytes: done.num_bytes,
                num_failed: done.num_failed,
            })
        }
        Kind::Sweep(sweep) => {
            let done = lake.sweep(table, sweep.dry_run, progress).await?;
            Outcome::SweepResult(SweepResult {
                num_files: done.num_files,
                num_bytes: done.num_bytes,
                num_failed: done.num_failed,
                files: done.files.into_iter().map(swept_file).collect(),
                min_age: Some(convert::to_duration(done.min_age)),
            })
        }
        Kind::IndexBuild(build) => {
            let spec = convert::index_spec(build).map_err(|refused| lake::Error::invalid(refused.message()))?;
            let done = lake.create_index(table, &spec, progress).await?;
            let version = done.version;
            let built = done.indexes.into_iter().next().map(|index| convert::index_result(index, version));
            Outcome::IndexResult(built.unwrap_or_default())
        }
        Kind::IndexOptimization(optimization) => {
            let done = lake.optimize_indexes(table, &convert::optimize_spec(optimization), progress).await?;
            let version = done.version;
            let indexes = done.indexes.into_iter().map(|index| convert::index_result(index, version)).collect();
            Outcome::OptimizationResult(OptimizationResult { version, indexes })
        }
    })
}

fn swept_file(file: lake::SweptFile) -> SweptFile {
    SweptFile { path: file.path, num_bytes: file.num_bytes, modified_at: Some(convert::to_timestamp(file.modified)) }
}
