//! Deletes and updates of the rows of a filter, each once for an id.

use std::collections::HashMap;

use futures::TryStreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use lance_core::ROW_ADDR;
use lance_table::transaction::Operation;
use object_store::path::Path;

use super::update::Update;
use super::{Marks, Merged, discard, marks, numbers};
use crate::Lake;
use crate::commit::{Attempt, Put, Size};
use crate::error::Result;
use crate::scan::{Projected, filter, ranges};
use crate::table::{Handle, Location, incarnation};
use crate::types::{Assignment, CommitId, Committed, Filter, MergeCounts, RowMetadata, TableId};
use crate::version::check_rows_of;

/// What is done with the rows of a filter.
struct Change<'a> {
    filter: Option<&'a Filter>,
    /// The version in which they were chosen, if it matters.
    version: Option<u64>,
    /// None: they are deleted.
    assignments: Option<&'a [Assignment]>,
}

impl Lake {
    /// Deletes the rows that the filter keeps, all if there is none, as one version, once for an id. `version`: refuses to do so
    /// if another version has changed rows since.
    pub fn delete_rows<'a>(
        &'a self,
        table: &'a TableId,
        filter: Option<&'a Filter>,
        version: Option<u64>,
        id: CommitId,
    ) -> BoxFuture<'a, Result<Committed>> {
        self.change_rows(table, Change { filter, version, assignments: None }, id)
    }

    /// Sets columns in the rows that the filter keeps, as [`Self::delete_rows`] deletes them.
    pub fn update_rows<'a>(
        &'a self,
        table: &'a TableId,
        filter: Option<&'a Filter>,
        version: Option<u64>,
        assignments: &'a [Assignment],
        id: CommitId,
    ) -> BoxFuture<'a, Result<Committed>> {
        self.change_rows(table, Change { filter, version, assignments: Some(assignments) }, id)
    }

    fn change_rows<'a>(
        &'a self,
        table: &'a TableId,
        change: Change<'a>,
        id: CommitId,
    ) -> BoxFuture<'a, Result<Committed>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            let began = incarnation(&*self.open_marked(&location).await?)?;
            self.check_store(&location).await?;
            let attempt = |dataset, _| self.try_change(&location, dataset, &change, &began, &id).boxed();
            let landed = self.land(&location, &id, &attempt).await?;
            Ok(landed.of(id.clone(), table.clone()))
        })
    }

    async fn try_change(
        &self,
        location: &Location,
        dataset: Handle,
        change: &Change<'_>,
        began: &str,
        id: &CommitId,
    ) -> Result<Attempt> {
        if let Some(chosen_in) = change.version {
            check_rows_of(&dataset, chosen_in, false).await?;
        }
        let (store, table) = self.inner.stores.store(&location.uri, &location.access).await?;
        let mut files = Vec::new();
        let merged = match self.changed(&dataset, &table, change, &mut files).await {
            Ok((operation, counts)) => Merged { operation, counts, files },
            Err(error) => {
                discard(&store, files).await;
                return Err(error);
            }
        };
        let put = |operation, mark| Put {
            operation,
            mark,
            incarnation: began.to_owned(),
            size: Size::default(),
            properties: HashMap::new(),
        };
        self.put_merged(location, &dataset, id, merged, put).await
    }

    async fn changed(
        &self,
        dataset: &Handle,
        table: &Path,
        change: &Change<'_>,
        files: &mut Vec<Path>,
    ) -> Result<(Option<Operation>, MergeCounts)> {
        let depth = self.inner.options.scan.max_filter_depth;
        let filter = change.filter.map(|filter| filter::plan(filter, dataset.schema(), depth)).transpose()?;
        let mut update = match change.assignments {
            Some(assignments) => Some(Update::new(self, dataset, assignments)?),
            None => None,
        };
        let metadata = RowMetadata { row_address: true, ..RowMetadata::default() };
        let columns = if update.is_some() { None } else { Some(&[] as &[_]) };
        let projected = Projected::new(dataset, columns, metadata)?;
        let pieces = ranges::all(dataset).await?;
        let mut marks = Marks::default();
        if !pieces.is_empty() {
            let mut rows = self.selected(dataset, &projected, filter, &pieces, self.bounds(None, None)).await?;
            while let Some(batch) = rows.try_next().await? {
                marks.replaced.extend(numbers(&batch, ROW_ADDR)?.iter().copied());
                if let Some(update) = &mut update {
                    update.add(&batch).await?;
                }
            }
        }
        let mut counts = MergeCounts::default();
        let fragments = match update {
            Some(update) => {
                counts.num_updated = marks.replaced.len();
                update.finish(table, files).await?
            }
            None => {
                counts.num_deleted = marks.replaced.len();
                Vec::new()
            }
        };
        Ok((marks::update(dataset, table, &fragments, &marks, files).await?, counts))
    }
}
