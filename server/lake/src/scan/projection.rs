//! Columns of a scan: from paths to the schema that Lance reads and the schema that clients see.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use lance::Dataset;
use lance_core::datatypes::{Field as LanceField, Schema as LanceSchema};
use lance_core::{ROW_ADDR_FIELD, ROW_CREATED_AT_VERSION_FIELD, ROW_ID_FIELD, ROW_LAST_UPDATED_AT_VERSION_FIELD};

use crate::error::{Error, ErrorKind, Result};
use crate::schema::{find_column, no_such_column, shown_name, shown_schema};
use crate::table::excerpt;
use crate::types::{ColumnPath, RowMetadata};

const PLACE: &str = "the projection";

/// What is read, and what comes out.
#[derive(Debug, Clone)]
pub(crate) struct Projected {
    /// The columns for Lance, metadata columns at the end. Never empty: if only row counts are wanted, the row address stands in.
    pub(crate) read: LanceSchema,
    /// The schema of the result.
    pub(crate) shown: SchemaRef,
}

impl Projected {
    /// A struct keeps the projected ones of its fields in the order of the table; top-level columns come in the order of their
    /// first mention, metadata columns after them.
    pub(crate) fn new(dataset: &Dataset, columns: Option<&[ColumnPath]>, metadata: RowMetadata) -> Result<Self> {
        let schema = dataset.schema();
        let mut fields = match columns {
            None => schema.fields.clone(),
            Some(columns) => project(schema, columns)?,
        };
        let data = LanceSchema { fields: fields.clone(), metadata: schema.metadata.clone() };
        let shown = shown_schema(&data);
        let extra = metadata_fields(dataset, metadata)?;
        let mut shown_fields: Vec<Arc<Field>> = shown.fields().iter().cloned().collect();
        for field in &extra {
            if shown_fields.iter().any(|shown| shown.name() == field.name()) {
                let why = format!("column '{}' of the table hides the metadata column of that name", field.name());
                return Err(Error::invalid(why));
            }
            shown_fields.push(Arc::new(field.clone()));
            fields.push(system_field(field)?);
        }
        if fields.is_empty() {
            fields.push(system_field(&ROW_ADDR_FIELD)?);
        }
        Ok(Self {
            read: LanceSchema { fields, metadata: schema.metadata.clone() },
            shown: Arc::new(Schema::new_with_metadata(shown_fields, shown.metadata().clone())),
        })
    }
}

fn metadata_fields(dataset: &Dataset, metadata: RowMetadata) -> Result<Vec<Field>> {
    let mut fields = Vec::new();
    if metadata.row_id {
        fields.push(ROW_ID_FIELD.clone());
    }
    if metadata.row_address {
        fields.push(ROW_ADDR_FIELD.clone());
    }
    if metadata.row_versions {
        if !dataset.manifest().uses_stable_row_ids() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "row versions exist only in tables that were created with stable row ids",
            ));
        }
        fields.push(ROW_CREATED_AT_VERSION_FIELD.clone());
        fields.push(ROW_LAST_UPDATED_AT_VERSION_FIELD.clone());
    }
    Ok(fields)
}

/// A column that Lance keeps, to be read.
pub(crate) fn system_field(field: &Field) -> Result<LanceField> {
    LanceField::try_from(field).map_err(|e| Error::internal("a metadata column has no lance type").with_source(e))
}

fn project(schema: &LanceSchema, columns: &[ColumnPath]) -> Result<Vec<LanceField>> {
    let mut wanted: Vec<(&LanceField, Vec<&[String]>)> = Vec::new();
    for path in columns {
        let [column, nested @ ..] = path.as_slice() else {
            return Err(Error::invalid("the projection holds a column without a name"));
        };
        let Some(field) = find_column(schema, column) else {
            let existing = schema.fields.iter().map(|f| shown_name(&f.name, &f.metadata));
            return Err(no_such_column(column, existing, PLACE));
        };
        match wanted.iter_mut().find(|(found, _)| found.id == field.id) {
            Some((_, paths)) => paths.push(nested),
            None => wanted.push((field, vec![nested])),
        }
    }
    wanted.into_iter().map(|(field, paths)| narrow(field, &paths)).collect()
}

/// The field with only the children on the paths, which are relative to it.
fn narrow(field: &LanceField, paths: &[&[String]]) -> Result<LanceField> {
    let shown = shown_name(&field.name, &field.metadata);
    if paths.iter().any(|path| path.is_empty()) {
        if paths.len() > 1 {
            return Err(Error::invalid(format!("{PLACE} names column '{}' twice", excerpt(shown))));
        }
        return Ok(field.clone());
    }
    let children = if field.logical_type.is_struct() { field.children.as_slice() } else { &[] };
    for path in paths {
        if !children.iter().any(|child| child.name == path[0]) {
            let name = format!("{shown}.{}", path.join("."));
            return Err(no_such_column(&name, children.iter().map(|c| c.name.as_str()), PLACE));
        }
    }
    let mut narrowed = field.clone();
    narrowed.children.clear();
    for child in children {
        let below: Vec<&[String]> = paths.iter().filter(|path| path[0] == child.name).map(|path| &path[1..]).collect();
        if !below.is_empty() {
            narrowed.children.push(narrow(child, &below)?);
        }
    }
    Ok(narrowed)
}
