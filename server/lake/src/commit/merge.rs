//! Commits of mode merge: what they do depends on the version that they come upon, and on the commits before them.

use std::collections::HashMap;

use bytes::Bytes;
use lance_table::transaction::Operation;
use tokio::time::Instant;

use super::gate::Mark;
use super::{Attempt, Opened, Put, committable, fit, ledger, touch};
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::merge::{Changes, Merged, discard};
use crate::table::{Handle, Location};
use crate::types::{CommitId, MergeRule};
use crate::version::check_rows_of;

/// The commit of a merge that is made in the call that staged it.
pub(crate) fn open_merge(id: CommitId, write: &[u8], staged: &[Bytes], rule: &MergeRule) -> Result<Opened> {
    let mut opened = committable::understand(committable::assemble(id, write, staged, HashMap::new())?)?;
    match &mut opened.merge {
        Some(changes) => changes.rule = rule.clone(),
        None => return Err(Error::invalid("the write was not begun as a merge")),
    }
    Ok(opened)
}

impl Lake {
    /// Deletes what was staged for a commit that was refused.
    pub(crate) async fn discard_staged(&self, commit: &Opened) {
        let deleted = async {
            let location = self.locate(&commit.table)?;
            self.files(&location).await?.delete(commit).await
        };
        if let Err(error) = deleted.await {
            tracing::warn!(%error, "the files of a refused merge are left to the sweep");
        }
    }

    /// One attempt. The rows that the keys have are looked for anew each time.
    pub(super) async fn try_merge(
        &self,
        location: &Location,
        dataset: Handle,
        commit: &Opened,
        changes: &Changes,
    ) -> Result<Attempt> {
        if let Some(earlier) = ledger::unfinished_before(&dataset.manifest().table_metadata, &commit.id)? {
            return Err(out_of_order(&commit.id, earlier));
        }
        if let Some(chosen_in) = changes.chosen_in {
            check_rows_of(&dataset, chosen_in, changes.by_row_id()).await?;
        }
        changes.check(&commit.schema, dataset.schema())?;
        fit::check(&commit.schema, dataset.schema(), &commit.fragments)?;
        let merged = self.merge(location, &dataset, changes, &commit.fragments).await?;
        let put = |operation, mark| commit.put(operation, mark);
        self.put_merged(location, &dataset, &commit.id, merged, put).await
    }

    /// Puts what was worked out for this version. Of no use on another one, its files go if it was overtaken.
    pub(crate) async fn put_merged(
        &self,
        location: &Location,
        dataset: &Handle,
        id: &CommitId,
        merged: Merged,
        put: impl FnOnce(Operation, Mark) -> Put,
    ) -> Result<Attempt> {
        #[cfg(feature = "faults")]
        crate::faults::pass("merge.marked").await;
        let mark = Mark::Merge { version: dataset.manifest().version, counts: merged.counts };
        let put = put(merged.operation.unwrap_or_else(touch), mark);
        // The search for rows took its own time.
        let deadline = Instant::now() + self.inner.options.commit.timeout;
        let attempt = self.put(location, dataset, id, put, deadline).await;
        if matches!(attempt, Ok(Attempt::Again(_))) {
            let (store, _) = self.inner.stores.store(&location.uri, &location.access).await?;
            discard(&store, merged.files).await;
        }
        attempt
    }
}

pub(super) fn out_of_order(id: &CommitId, earlier: u64) -> Error {
    let CommitId { epoch, seq } = id;
    Error::new(
        ErrorKind::CommitOutOfOrder,
        format!(
            "commit {seq} of epoch {epoch} comes before commit {earlier}, which is neither committed nor aborted; commit or abort that one first"
        ),
    )
}
