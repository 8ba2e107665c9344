//! Beginning a merge: the table exists from here on, and its key and the columns of the changes are settled.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::future::BoxFuture;
use lance_core::datatypes::{Field as LanceField, Schema as LanceSchema};

use super::CHANGE_KIND;
use crate::Lake;
use crate::commit::messages::{Mode, WriteHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::lookup::is_comparable;
use crate::schema::{Fit, find_column, no_such_column, primary_key, shown_name, shown_schema, to_ipc};
use crate::stage::sealed;
use crate::table::excerpt;
use crate::types::{BegunWrite, CreateOptions, TableId};

/// What names a column.
const PLACE: &str = "the key of the merge";

impl Lake {
    /// Opens a table for changes by key, and creates it if `create` is there and it is not. `schema`: the columns that changes say
    /// something of, all if there is none. `key`: the columns that tell rows apart, those of the primary key if it is empty.
    pub fn begin_merge<'a>(
        &'a self,
        table: &'a TableId,
        schema: Option<SchemaRef>,
        create: Option<&'a CreateOptions>,
        key: &'a [String],
        request_id: &'a str,
    ) -> BoxFuture<'a, Result<BegunWrite>> {
        self.begin_changes(table, schema, create, key, request_id, false)
    }

    /// The same. `later`: rows are written at the commit, since what they are compared with decides about them.
    pub(super) fn begin_changes<'a>(
        &'a self,
        table: &'a TableId,
        schema: Option<SchemaRef>,
        create: Option<&'a CreateOptions>,
        key: &'a [String],
        request_id: &'a str,
        later: bool,
    ) -> BoxFuture<'a, Result<BegunWrite>> {
        Box::pin(async move {
            let (dataset, created) = self.open_or_create(table, schema.as_ref(), create, request_id).await?;
            let lance = dataset.schema();
            let handle = WriteHandle::new(table, &dataset, Mode::Merge);
            let key = key_fields(lance, key, create)?;
            let given = given_fields(lance, &key, schema, &handle.data_storage_version)?;
            let wanted = change_schema(lance, &given, &key)?;
            let all = given.len() == lance.fields.len() && !later;
            let handle = WriteHandle {
                schema_ipc: to_ipc(&wanted)?,
                key: key.iter().map(|field| field.id).collect(),
                columns: if all { Vec::new() } else { given.iter().map(|field| field.id).collect() },
                ..handle
            };
            sealed(&handle, Arc::new(wanted), created)
        })
    }
}

fn key_fields<'a>(
    schema: &'a LanceSchema,
    key: &[String],
    create: Option<&CreateOptions>,
) -> Result<Vec<&'a LanceField>> {
    let own = primary_key(schema);
    if let Some(declared) = create.map(|create| &create.primary_key).filter(|declared| !declared.is_empty())
        && *declared != own
    {
        let (declared, own) = (columns(declared), columns(&own));
        return Err(Error::new(
            ErrorKind::SchemaMismatch,
            format!("the primary key of the table is {own}, not {declared}; merge by the key that it has"),
        ));
    }
    let key = if key.is_empty() { &own } else { key };
    if key.is_empty() {
        return Err(Error::invalid("the table has no primary key; name the columns that tell its rows apart"));
    }
    let mut fields = Vec::with_capacity(key.len());
    for name in key {
        let Some(field) = find_column(schema, name) else {
            return Err(no_such_column(name, schema.fields.iter().map(|f| shown_name(&f.name, &f.metadata)), PLACE));
        };
        if fields.iter().any(|known: &&LanceField| known.id == field.id) {
            return Err(Error::invalid(format!("{PLACE} names column '{}' twice", excerpt(name))));
        }
        let data_type = field.data_type();
        if !is_comparable(&data_type) {
            return Err(Error::invalid(format!(
                "column '{}' of type {data_type} cannot tell rows apart: {PLACE} takes booleans, numbers, strings, bytes, dates and times",
                excerpt(name)
            )));
        }
        fields.push(field);
    }
    Ok(fields)
}

fn columns(names: &[String]) -> String {
    if names.is_empty() { "empty".to_owned() } else { format!("({})", names.join(", ")) }
}

/// The columns that changes have, in the order of the table.
fn given_fields<'a>(
    schema: &'a LanceSchema,
    key: &[&LanceField],
    given: Option<SchemaRef>,
    file_version: &str,
) -> Result<Vec<&'a LanceField>> {
    let Some(given) = given else { return Ok(schema.fields.iter().collect()) };
    let shown = |field: &LanceField| shown_name(&field.name, &field.metadata).to_owned();
    let is_given = |field: &LanceField| given.column_with_name(&shown(field)).is_some();
    let fields: Vec<&LanceField> = schema.fields.iter().filter(|field| is_given(field)).collect();
    if let Some(missing) = key.iter().find(|field| !is_given(field)) {
        let name = excerpt(&shown(missing));
        return Err(Error::new(ErrorKind::SchemaMismatch, format!("column '{name}' of the key is missing")));
    }
    // A key that is not there yet makes a row, and that needs them.
    if let Some(missing) = schema.fields.iter().find(|field| !field.nullable && !is_given(field)) {
        let name = excerpt(&shown(missing));
        return Err(Error::new(ErrorKind::SchemaMismatch, format!("column '{name}' is NOT NULL and missing")));
    }
    // Types, and columns that the table does not have.
    Fit::new(&shown_schema(schema), given, file_version)?;
    Ok(fields)
}

/// The schema that changes are sent in. Of a row that is no more only the key counts.
fn change_schema(schema: &LanceSchema, given: &[&LanceField], key: &[&LanceField]) -> Result<Schema> {
    if find_column(schema, CHANGE_KIND).is_some() {
        return Err(Error::invalid(format!("column '{CHANGE_KIND}' of the table hides the kind of changes")));
    }
    let shown = shown_schema(schema);
    let mut fields: Vec<Arc<Field>> = Vec::with_capacity(given.len() + 1);
    for (field, shown) in schema.fields.iter().zip(shown.fields()) {
        if given.iter().any(|given| given.id == field.id) {
            let is_key = key.iter().any(|key| key.id == field.id);
            fields.push(Arc::new(shown.as_ref().clone().with_nullable(!is_key)));
        }
    }
    fields.push(Arc::new(Field::new(CHANGE_KIND, DataType::Int8, false)));
    Ok(Schema::new_with_metadata(fields, shown.metadata().clone()))
}
