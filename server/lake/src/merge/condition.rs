//! A condition on two rows: the one that comes and the one that is there.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, RecordBatch, StructArray, UInt32Array};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::take::take;
use lance::dataset::ProjectionRequest;
use lance::deps::datafusion::physical_plan::PhysicalExpr;
use lance_core::datatypes::{Field as LanceField, Schema as LanceSchema};
use lance_datafusion::planner::Planner;

use super::keys::{Staying, broken};
use crate::Lake;
use crate::error::{Error, Result};
use crate::lance_error::{Missing, detail, from_lance};
use crate::scan::filter;
use crate::schema::shown_name;
use crate::table::Handle;
use crate::types::Filter;

const SOURCE: &str = "source";
const TARGET: &str = "target";
/// Rows whose columns are compared at once.
const AT_ONCE: usize = 8_192;

/// Says of a row that comes whether it replaces the row that is there.
pub(super) struct Condition {
    expr: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    /// Columns of the row that comes: their ids, and their names for the condition.
    source: (Vec<i32>, Fields),
    target: (LanceSchema, Fields),
}

impl Condition {
    pub(super) fn new(lake: &Lake, dataset: &Handle, given: &[i32], condition: &Filter) -> Result<Self> {
        let table = dataset.schema();
        let source: Vec<&LanceField> = table.fields.iter().filter(|field| given.contains(&field.id)).collect();
        let shown = |field: &LanceField| Field::new(shown_name(&field.name, &field.metadata), field.data_type(), true);
        let source_fields: Fields = source.iter().map(|field| shown(field)).collect();
        let all: Fields = table.fields.iter().map(shown).collect();
        let pair = Schema::new(vec![
            Field::new(SOURCE, DataType::Struct(source_fields.clone()), false),
            Field::new(TARGET, DataType::Struct(all), false),
        ]);
        let lance = LanceSchema::try_from(&pair)
            .map_err(|e| Error::internal("the columns of a condition have no lance types").with_source(e))?;
        let planned = filter::plan(condition, &lance, lake.inner.options.scan.max_filter_depth)?;
        // Only what the condition looks at is read.
        let named = Planner::column_names_in_expr(&planned);
        let is_named = |field: &LanceField| {
            let path =
                lance_core::datatypes::format_field_path_minimal(&[TARGET, shown_name(&field.name, &field.metadata)]);
            named.iter().any(|name| *name == path || *name == TARGET || name.starts_with(&format!("{path}.")))
        };
        let target: Vec<LanceField> = table.fields.iter().filter(|field| is_named(field)).cloned().collect();
        let target_fields: Fields = target.iter().map(shown).collect();
        let schema = Arc::new(Schema::new(vec![
            Field::new(SOURCE, DataType::Struct(source_fields.clone()), false),
            Field::new(TARGET, DataType::Struct(target_fields.clone()), false),
        ]));
        let expr = Planner::new(schema.clone()).create_physical_expr(&planned).map_err(|e| {
            let why = detail(&e);
            Error::invalid(format!("the condition cannot be planned: {why}")).with_source(e)
        })?;
        Ok(Self {
            expr,
            schema,
            source: (source.iter().map(|field| field.id).collect(), source_fields),
            target: (LanceSchema { fields: target, metadata: table.metadata.clone() }, target_fields),
        })
    }

    /// Of the rows that replace another, in their order.
    pub(super) async fn holds(&self, dataset: &Handle, changes: &RecordBatch, stay: &[Staying]) -> Result<Vec<bool>> {
        let pairs: Vec<(u32, u64)> = stay.iter().filter_map(|staying| Some((staying.row, staying.old?))).collect();
        let mut holds = Vec::with_capacity(pairs.len());
        for pairs in pairs.chunks(AT_ONCE) {
            let batch = self.pairs(dataset, changes, pairs).await?;
            let failed = |e| Error::invalid(format!("the condition cannot be evaluated: {e}"));
            let values = self.expr.evaluate(&batch).and_then(|values| values.into_array(batch.num_rows()));
            let values = values.map_err(failed)?;
            let values = values.as_boolean_opt().ok_or_else(|| Error::invalid("the condition is no condition"))?;
            // Not known is no.
            holds.extend((0..values.len()).map(|row| values.is_valid(row) && values.value(row)));
        }
        Ok(holds)
    }

    async fn pairs(&self, dataset: &Handle, changes: &RecordBatch, pairs: &[(u32, u64)]) -> Result<RecordBatch> {
        let places = UInt32Array::from_iter_values(pairs.iter().map(|(row, _)| *row));
        let (ids, fields) = &self.source;
        let source = ids.iter().map(|id| {
            let column = changes.column_by_name(&id.to_string());
            take(column.ok_or_else(|| Error::internal("a file of changes lacks a column"))?, &places, None)
                .map_err(broken)
        });
        let source = structs(fields, source.collect::<Result<_>>()?, pairs.len())?;
        let (schema, fields) = &self.target;
        let target = if fields.is_empty() {
            Vec::new()
        } else {
            let ids: Vec<u64> = pairs.iter().map(|(_, old)| *old).collect();
            let taken = dataset.take_rows(&ids, ProjectionRequest::from_schema(schema.clone())).await;
            let taken = taken.map_err(|e| from_lance(e, "cannot read the rows that change", Missing::Version))?;
            taken.columns().to_vec()
        };
        let target = structs(fields, target, pairs.len())?;
        RecordBatch::try_new(self.schema.clone(), vec![source, target]).map_err(broken)
    }
}

fn structs(fields: &Fields, columns: Vec<ArrayRef>, rows: usize) -> Result<ArrayRef> {
    let structs = StructArray::try_new_with_length(fields.clone(), columns, None, rows).map_err(broken)?;
    Ok(Arc::new(structs))
}
