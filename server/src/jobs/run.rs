//! What each kind of job does.

use lance_gateway_lake as lake;
use lance_gateway_lake::{Lake, Merge, ProgressSender, TableId};
use lance_gateway_proto::v1::job::{Kind, Result as Outcome};
use lance_gateway_proto::v1::{CleanupResult, CompactionResult, SweepResult, SweptFile};

use crate::convert;

/// The kind, for the log and the metrics.
pub(super) fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Compaction(_) => "compaction",
        Kind::Cleanup(_) => "cleanup",
        Kind::Sweep(_) => "sweep",
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
    })
}

fn swept_file(file: lake::SweptFile) -> SweptFile {
    SweptFile { path: file.path, num_bytes: file.num_bytes, modified_at: Some(convert::to_timestamp(file.modified)) }
}
