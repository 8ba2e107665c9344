//! Rows in which columns are set.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use lance::deps::datafusion::physical_plan::PhysicalExpr;
use lance_core::datatypes::{Field as LanceField, Schema as LanceSchema};
use lance_table::format::Fragment;
use object_store::path::Path;

use super::new_rows::NewRows;
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::filter;
use crate::schema::{find_column, no_such_column, primary_key, shown_name};
use crate::table::{Handle, excerpt};
use crate::types::{Assigned, Assignment};

/// What names a column.
const PLACE: &str = "the update";

/// Writes rows with what is assigned to data files.
pub(super) struct Update {
    schema: SchemaRef,
    /// By the place of their columns.
    assigned: Vec<(usize, Arc<dyn PhysicalExpr>)>,
    new_rows: NewRows,
}

impl Update {
    pub(super) fn new(lake: &Lake, dataset: &Handle, assignments: &[Assignment]) -> Result<Self> {
        if assignments.is_empty() {
            return Err(Error::invalid(format!("{PLACE} sets no column")));
        }
        let schema = dataset.schema();
        let key = primary_key(schema);
        let mut assigned: Vec<(usize, Arc<dyn PhysicalExpr>)> = Vec::with_capacity(assignments.len());
        for Assignment { column, value } in assignments {
            let field = target(schema, column)?;
            if key.contains(column) {
                let why = format!("column '{}' is of the primary key, which no update sets", excerpt(column));
                return Err(Error::invalid(format!("{why}; merge the rows instead")));
            }
            let place = schema.fields.iter().position(|known| known.id == field.id).unwrap_or_default();
            if assigned.iter().any(|(known, _)| *known == place) {
                return Err(Error::invalid(format!("{PLACE} sets column '{}' twice", excerpt(column))));
            }
            let depth = lake.inner.options.scan.max_filter_depth;
            let expr = match value {
                Assigned::Literal(literal) => filter::constant(literal, &field.data_type(), column)?,
                Assigned::Sql(text) => filter::value(text, schema, depth)?,
            };
            assigned.push((place, expr));
        }
        Ok(Self { schema: Arc::new(Schema::from(schema)), assigned, new_rows: NewRows::new(lake, dataset) })
    }

    /// Rows as they are, with all columns and perhaps others behind them.
    pub(super) async fn add(&mut self, rows: &RecordBatch) -> Result<()> {
        let columns = rows.columns().get(..self.schema.fields().len());
        let columns = columns.ok_or_else(|| Error::internal("lance returned other columns than planned"))?;
        let old = RecordBatch::try_new(self.schema.clone(), columns.to_vec()).map_err(misfit)?;
        let mut columns = columns.to_vec();
        for (place, expr) in &self.assigned {
            let failed = |e: &dyn std::fmt::Display| {
                let name = excerpt(self.schema.field(*place).name());
                Error::new(ErrorKind::SchemaMismatch, format!("column '{name}' cannot be set: {e}"))
            };
            let value = expr.evaluate(&old).and_then(|value| value.into_array(old.num_rows()));
            let value: ArrayRef = value.map_err(|e| failed(&e))?;
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let wanted = self.schema.field(*place).data_type();
            columns[*place] = cast_with_options(&value, wanted, &options).map_err(|e| failed(&e))?;
        }
        let new = RecordBatch::try_new(self.schema.clone(), columns).map_err(misfit)?;
        self.new_rows.write(new).await
    }

    pub(super) async fn finish(self, table: &Path, files: &mut Vec<Path>) -> Result<Vec<Fragment>> {
        self.new_rows.finish(table, files).await
    }
}

fn target<'a>(schema: &'a LanceSchema, column: &str) -> Result<&'a LanceField> {
    let existing = || schema.fields.iter().map(|field| shown_name(&field.name, &field.metadata));
    find_column(schema, column).ok_or_else(|| no_such_column(column, existing(), PLACE))
}

pub(super) fn misfit(error: ArrowError) -> Error {
    Error::new(ErrorKind::SchemaMismatch, format!("the rows do not fit the table: {error}")).with_source(error)
}
