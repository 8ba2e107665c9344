//! Merges: changes of rows with a key become one version.
//!
//! Writers stage changes in parallel. New rows become data files that nobody sees, as in any other write, and the keys with the kind
//! of each change go to a file beside them ([`changes`]). At the commit the last change of each key is found ([`keys`]), then the
//! rows that these keys have so far ([`old_rows`]); those are marked as deleted, and so are staged rows that a later change of
//! their key overtook ([`marks`]). Marks and staged files are one `Update` of Lance. So a commit costs what the changed keys cost:
//! no row is read for it, and none is written again.
//!
//! Changes of some columns only are kept whole in the file of changes; the rows are completed at the commit ([`complete`]).
//!
//! Rows that were chosen in a version are told apart by their ids ([`ROW_ID`]): nothing is looked for, but the rows must be there.
//! If another version has other rows by then, their changes are refused.
//!
//! What was found holds for the version in which it was found. The commit is refused if another version came in between, and
//! then the rows are looked for again.

mod begin;
mod call;
pub(crate) mod changes;
mod complete;
mod condition;
mod intake;
mod keys;
mod marks;
mod new_rows;
mod old_rows;

mod rows;
#[cfg(test)]
mod tests;
mod update;

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use lance_core::datatypes::Schema as LanceSchema;
use lance_io::object_store::ObjectStore;
use lance_table::format::Fragment;
use lance_table::transaction::Operation;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use roaring::RoaringTreemap;

pub(crate) use intake::Intake;

use crate::Lake;
use crate::commit::messages::ChangeFile;
use crate::error::{Error, ErrorKind, Result};
use crate::table::{Handle, Location};
use crate::types::{MergeCounts, MergeRule};
use complete::Completion;
pub(crate) use keys::Key;
use keys::LastChanges;
pub(crate) use old_rows::numbers;

/// The column with the kind of each change.
pub(crate) const CHANGE_KIND: &str = "_change_kind";

/// Stands for the id of a row where field ids stand. Lance gives no such id to a field.
pub(crate) const ROW_ID: i32 = -2;

/// Files that are deleted at once.
const PARALLEL_DELETES: usize = 16;

/// What a change says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// How the row is from then on.
    Upsert,
    /// That there is none. So does the state before an update: the state after it follows, or was filtered away.
    Gone,
}

impl Kind {
    /// As Flink numbers its row kinds.
    fn of(byte: i8) -> Option<Self> {
        match byte {
            0 | 2 => Some(Self::Upsert),
            1 | 3 => Some(Self::Gone),
            _ => None,
        }
    }
}

/// The changes of one committable.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Field ids of the key, or [`ROW_ID`].
    pub(crate) key: Vec<i32>,
    /// Field ids of the columns that are given; empty: all.
    pub(crate) columns: Vec<i32>,
    pub(crate) files: Vec<ChangeFile>,
    /// The version in which the rows were chosen, if it matters.
    pub(crate) chosen_in: Option<u64>,
    pub(crate) rule: MergeRule,
}

/// What a merge does to one version.
pub(crate) struct Merged {
    /// None: nothing changes.
    pub(crate) operation: Option<Operation>,
    pub(crate) counts: MergeCounts,
    /// Files that were written for it: of no use if it is not committed.
    pub(crate) files: Vec<Path>,
}

impl Changes {
    /// Whether their rows are told apart by their ids.
    pub(crate) fn by_row_id(&self) -> bool {
        self.key == [ROW_ID]
    }

    /// Whether the columns still are what they were when the changes were staged.
    pub(crate) fn check(&self, written: &LanceSchema, now: &LanceSchema) -> Result<()> {
        let mismatch =
            |what: String| Err(Error::new(ErrorKind::SchemaMismatch, format!("{what}; stage the changes again")));
        for id in self.key.iter().chain(&self.columns).filter(|id| **id != ROW_ID) {
            let Some(before) = written.field_by_id(*id) else {
                return Err(Error::new(
                    ErrorKind::CorruptData,
                    format!("changes name field {id}, which their write does not know"),
                ));
            };
            match now.field_by_id(*id) {
                None => return mismatch(format!("column `{}` was dropped after the changes were staged", before.name)),
                Some(now) if now.data_type() != before.data_type() => {
                    let types = format!("{} now, the changes have {}", now.data_type(), before.data_type());
                    return mismatch(format!("column `{}` has type {types}", now.name));
                }
                Some(_) => {}
            }
        }
        // A row that is there has what its changes lack.
        if self.columns.is_empty() || self.by_row_id() {
            return Ok(());
        }
        match now.fields.iter().find(|field| !field.nullable && !self.columns.contains(&field.id)) {
            Some(new) => mismatch(format!("column `{}` is NOT NULL, and the changes do not have it", new.name)),
            None => Ok(()),
        }
    }

    /// Whether changes of all columns still are that. Rows would lose what stands in a column that came after they began; who begins
    /// anew leaves it as it is.
    pub(crate) fn check_whole(&self, written: &LanceSchema, now: &LanceSchema) -> Result<()> {
        let is_new = |id: &i32| written.field_by_id(*id).is_none();
        match now.fields.iter().find(|field| self.columns.is_empty() && is_new(&field.id)) {
            Some(new) => Err(Error::new(
                ErrorKind::SchemaMismatch,
                format!("column `{}` was added after the changes were staged; stage them again", new.name),
            )),
            None => Ok(()),
        }
    }

    fn check_read(&self, upserts: u64) -> Result<()> {
        let staged: u64 = self.files.iter().map(|file| file.num_upserts).sum();
        if upserts == staged {
            return Ok(());
        }
        let why = format!("the files of changes hold {upserts} rows, not the {staged} that were staged");
        Err(Error::new(ErrorKind::CorruptData, why))
    }

    fn num_changes(&self) -> u64 {
        self.files.iter().map(|file| file.num_changes).sum()
    }
}

/// What is deleted: rows by their addresses, and staged rows by their places among all that were staged.
#[derive(Default)]
struct Marks {
    replaced: RoaringTreemap,
    overtaken: RoaringTreemap,
}

impl Lake {
    /// What the changes do to this version of the table. `fragments`: their rows, if all columns are given.
    pub(crate) async fn merge(
        &self,
        location: &Location,
        dataset: &Handle,
        changes: &Changes,
        fragments: &[Fragment],
    ) -> Result<Merged> {
        let (store, table) = self.inner.stores.store(&location.uri, &location.access).await?;
        let mut files = Vec::new();
        let merged = self.merge_into(&store, &table, dataset, changes, fragments, &mut files).await;
        match merged {
            Ok((operation, counts)) => Ok(Merged { operation, counts, files }),
            Err(error) => {
                discard(&store, files).await;
                Err(error)
            }
        }
    }

    async fn merge_into(
        &self,
        store: &Arc<ObjectStore>,
        table: &Path,
        dataset: &Handle,
        changes: &Changes,
        fragments: &[Fragment],
        files: &mut Vec<Path>,
    ) -> Result<(Option<Operation>, MergeCounts)> {
        let rule = &changes.rule;
        let key = Arc::new(Key::new(dataset.schema(), &changes.key)?);
        let passes = changes.num_changes().div_ceil(self.inner.options.merge.keys.max(1) as u64).max(1);
        let mut marks = Marks::default();
        let mut counts = MergeCounts::default();
        let mut completion = match changes.columns.as_slice() {
            [] => None,
            columns => Some(Completion::new(self, dataset, columns, rule)?),
        };
        let read = || changes::read(store.clone(), table.clone(), &changes.files);
        for pass in 0..passes {
            let mut last = LastChanges::new(key.clone(), pass, passes);
            let mut batches = read();
            while let Some(batch) = batches.try_next().await? {
                last.add(&batch, rule, &mut marks)?;
            }
            changes.check_read(last.upserts())?;
            counts.num_deleted += self.find_old(dataset, &key, &mut last, rule, &mut marks).await?;
            if changes.by_row_id() {
                last.require_old(dataset.manifest().version)?;
            }
            last.settle(rule, &mut marks);
            if let Some(completion) = &mut completion {
                last.rewind();
                let mut batches = read();
                while let Some(batch) = batches.try_next().await? {
                    completion.add(&batch, &mut last, &mut marks).await?;
                }
            }
            last.count(&mut counts);
        }
        let completed = match completion {
            Some(completion) => Some(completion.finish(table, files).await?),
            None => None,
        };
        if completed.is_some() {
            // Only rows that stay were written.
            marks.overtaken.clear();
        }
        let fragments = completed.as_deref().unwrap_or(fragments);
        Ok((marks::update(dataset, table, fragments, &marks, files).await?, counts))
    }
}

/// Deletes files that no version names. What stays is left to the sweep.
pub(crate) async fn discard(store: &ObjectStore, files: Vec<Path>) {
    let delete = |file: Path| async move {
        match store.inner.delete(&file).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => tracing::warn!(%error, "a file of a merge is left to the sweep"),
        }
    };
    stream::iter(files).for_each_concurrent(PARALLEL_DELETES, delete).await;
}
