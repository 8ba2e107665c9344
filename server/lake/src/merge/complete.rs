//! Rows of changes that say something of some columns only: the others stay as they are.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::Schema;
use arrow_select::take::take;
use lance::dataset::ProjectionRequest;
use lance_core::datatypes::{Field as LanceField, Schema as LanceSchema};
use lance_table::format::Fragment;
use object_store::path::Path;

use super::Marks;
use super::condition::Condition;
use super::keys::{LastChanges, Staying, broken};
use super::new_rows::NewRows;
use super::update::misfit;
use crate::Lake;
use crate::error::{Error, Result};
use crate::lance_error::{Missing, from_lance};
use crate::scan::ranges;
use crate::table::Handle;
use crate::types::{MergeRule, WhenMatched};

/// Writes completed rows to data files.
pub(super) struct Completion {
    lake: Lake,
    dataset: Handle,
    /// Field ids of the columns that are given.
    given: Vec<i32>,
    /// The other columns.
    others: LanceSchema,
    condition: Option<Condition>,
    /// Rows of which the other columns are held at once.
    batch_rows: Option<usize>,
    new_rows: NewRows,
}

impl Completion {
    pub(super) fn new(lake: &Lake, dataset: &Handle, given: &[i32], rule: &MergeRule) -> Result<Self> {
        let schema = dataset.schema();
        let others: Vec<LanceField> = schema.fields.iter().filter(|f| !given.contains(&f.id)).cloned().collect();
        Ok(Self {
            lake: lake.clone(),
            dataset: dataset.clone(),
            given: given.to_vec(),
            others: LanceSchema { fields: others, metadata: schema.metadata.clone() },
            condition: match &rule.when_matched {
                WhenMatched::UpdateIf(filter) => Some(Condition::new(lake, dataset, given, filter)?),
                _ => None,
            },
            batch_rows: None,
            new_rows: NewRows::new(lake, dataset),
        })
    }

    /// Changes that are read once more.
    pub(super) async fn add(&mut self, changes: &RecordBatch, last: &mut LastChanges, marks: &mut Marks) -> Result<()> {
        let mut stay = last.stay(changes)?;
        if let Some(condition) = &self.condition {
            let update = condition.holds(&self.dataset, changes, &stay).await?;
            stay = last.decide(changes, stay, &update, marks)?;
        }
        if stay.is_empty() {
            return Ok(());
        }
        let at_once = self.rows_at_once().await?;
        for stay in stay.chunks(at_once) {
            let rows = self.rows(changes, stay).await?;
            self.new_rows.write(rows).await?;
        }
        Ok(())
    }

    pub(super) async fn finish(self, table: &Path, files: &mut Vec<Path>) -> Result<Vec<Fragment>> {
        self.new_rows.finish(table, files).await
    }

    async fn rows_at_once(&mut self) -> Result<usize> {
        if let Some(rows) = self.batch_rows {
            return Ok(rows);
        }
        let pieces = ranges::all(&self.dataset).await?;
        let rows = if pieces.is_empty() || self.others.fields.is_empty() {
            self.lake.bounds(None, None).rows
        } else {
            self.lake.batch_rows(&self.dataset, &self.others, None, &pieces).await?
        };
        self.batch_rows = Some(rows.max(1));
        Ok(rows.max(1))
    }

    async fn rows(&self, changes: &RecordBatch, stay: &[Staying]) -> Result<RecordBatch> {
        let places = UInt32Array::from_iter_values(stay.iter().map(|staying| staying.row));
        let old: Vec<u64> = stay.iter().filter_map(|staying| staying.old).collect();
        // Which of the old rows belongs to each; none to a new one.
        let mut next = 0..;
        let belongs: UInt32Array = stay.iter().map(|staying| staying.old.and_then(|_| next.next())).collect();
        let old = if old.is_empty() || self.others.fields.is_empty() {
            RecordBatch::new_empty(Arc::new(Schema::from(&self.others)))
        } else {
            let others = ProjectionRequest::from_schema(self.others.clone());
            let taken = self.dataset.take_rows(&old, others).await;
            taken.map_err(|e| from_lance(e, "cannot read the rows that change", Missing::Version))?
        };
        let schema = Schema::from(self.dataset.schema());
        let columns = self.dataset.schema().fields.iter().map(|field| -> Result<ArrayRef> {
            if self.given.contains(&field.id) {
                let given = changes.column_by_name(&field.id.to_string());
                let given = given.ok_or_else(|| Error::internal("a file of changes lacks a column"))?;
                return take(given, &places, None).map_err(broken);
            }
            let column = old.column_by_name(&field.name);
            let column = column.ok_or_else(|| Error::internal("lance returned other columns than planned"))?;
            if column.is_empty() {
                return Ok(arrow_array::new_null_array(column.data_type(), places.len()));
            }
            take(column, &belongs, None).map_err(broken)
        });
        RecordBatch::try_new(Arc::new(schema), columns.collect::<Result<_>>()?).map_err(misfit)
    }
}
