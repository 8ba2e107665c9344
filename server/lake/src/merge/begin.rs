//! Beginning a merge: the table exists from here on, and its key and the columns of the changes are settled.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::future::BoxFuture;
use lance_core::ROW_ID_FIELD;
use lance_core::datatypes::{Field as LanceField, Schema as LanceSchema};

use super::{CHANGE_KIND, ROW_ID};
use crate::Lake;
use crate::commit::messages::{Mode, WriteHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::lookup::is_comparable;
use crate::schema::{Fit, find_column, no_such_column, primary_key, shown_name, shown_schema, to_ipc};
use crate::stage::sealed;
use crate::table::excerpt;
use crate::types::{BegunWrite, ChangedRows, CreateOptions, TableId};
use crate::version::check_exists;

/// What names a column.
const PLACE: &str = "the key of the merge";

impl Lake {
    /// Opens a table for changes by key, and creates it if `create` is there and it is not. `schema`: the columns that changes say
    /// something of; all if there is none, but not those of the primary key if rows are told apart by their ids.
    pub fn begin_merge<'a>(
        &'a self,
        table: &'a TableId,
        schema: Option<SchemaRef>,
        create: Option<&'a CreateOptions>,
        rows: ChangedRows<'a>,
        request_id: &'a str,
    ) -> BoxFuture<'a, Result<BegunWrite>> {
        self.begin_changes(table, schema, create, rows, request_id, false)
    }

    /// The same. `later`: rows are written at the commit, since what they are compared with decides about them.
    pub(super) fn begin_changes<'a>(
        &'a self,
        table: &'a TableId,
        schema: Option<SchemaRef>,
        create: Option<&'a CreateOptions>,
        rows: ChangedRows<'a>,
        request_id: &'a str,
        later: bool,
    ) -> BoxFuture<'a, Result<BegunWrite>> {
        Box::pin(async move {
            check_rows(&rows, create)?;
            let (dataset, created) = self.open_or_create(table, schema.as_ref(), create, request_id).await?;
            let lance = dataset.schema();
            let handle = WriteHandle::new(table, &dataset, Mode::Merge);
            if let Some(version) = rows.chosen_in {
                check_exists(&dataset, version)?;
            }
            let key = if rows.by_id { Vec::new() } else { key_fields(lance, rows.key, create)? };
            let given = match rows.by_id {
                true => settable_fields(lance, schema, &handle.data_storage_version)?,
                false => given_fields(lance, &key, schema, &handle.data_storage_version)?,
            };
            let wanted = change_schema(lance, &given, &key, rows.by_id)?;
            let all = given.len() == lance.fields.len() && !later;
            let row_id = rows.by_id.then_some(ROW_ID);
            let ids = |fields: &[&LanceField]| row_id.into_iter().chain(fields.iter().map(|field| field.id)).collect();
            let handle = WriteHandle {
                schema_ipc: to_ipc(&wanted)?,
                key: ids(&key),
                columns: if all { Vec::new() } else { ids(&given) },
                chosen_in: rows.chosen_in,
                ..handle
            };
            sealed(&handle, Arc::new(wanted), created)
        })
    }
}

fn check_rows(rows: &ChangedRows<'_>, create: Option<&CreateOptions>) -> Result<()> {
    if !rows.by_id {
        return Ok(());
    }
    if rows.chosen_in.is_none() {
        return Err(Error::invalid("rows are told apart by their ids: name the version in which they were chosen"));
    }
    if !rows.key.is_empty() || create.is_some() {
        return Err(Error::invalid(
            "rows that are told apart by their ids are there, and need neither a key nor a table",
        ));
    }
    Ok(())
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

/// The columns that are set in rows that are there, in the order of the table. Not those of the primary key: two rows could get
/// the same one.
fn settable_fields<'a>(
    schema: &'a LanceSchema,
    given: Option<SchemaRef>,
    file_version: &str,
) -> Result<Vec<&'a LanceField>> {
    let key = primary_key(schema);
    let shown = |field: &'a LanceField| shown_name(&field.name, &field.metadata);
    let Some(given) = given else {
        return Ok(schema.fields.iter().filter(|field| !key.iter().any(|name| *name == shown(field))).collect());
    };
    if let Some(name) = key.iter().find(|name| given.column_with_name(name).is_some()) {
        let why = format!("column '{}' is of the primary key, which no update sets", excerpt(name));
        return Err(Error::invalid(format!("{why}; merge the rows instead")));
    }
    let fields = schema.fields.iter().filter(|field| given.column_with_name(shown(field)).is_some()).collect();
    // The rows are there, and have what is not given.
    let shown = shown_schema(schema);
    let none_required: Vec<_> = shown.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Fit::new(&Schema::new(none_required), given, file_version)?;
    Ok(fields)
}

/// The schema that changes are sent in. Of a row that is no more only the key counts.
fn change_schema(schema: &LanceSchema, given: &[&LanceField], key: &[&LanceField], by_id: bool) -> Result<Schema> {
    if find_column(schema, CHANGE_KIND).is_some() {
        return Err(Error::invalid(format!("column '{CHANGE_KIND}' of the table hides the kind of changes")));
    }
    let shown = shown_schema(schema);
    let mut fields: Vec<Arc<Field>> = Vec::with_capacity(given.len() + 2);
    if by_id {
        fields.push(Arc::new(ROW_ID_FIELD.clone().with_nullable(false)));
    }
    for (field, shown) in schema.fields.iter().zip(shown.fields()) {
        if given.iter().any(|given| given.id == field.id) {
            let is_key = key.iter().any(|key| key.id == field.id);
            fields.push(Arc::new(shown.as_ref().clone().with_nullable(!is_key)));
        }
    }
    fields.push(Arc::new(Field::new(CHANGE_KIND, DataType::Int8, false)));
    Ok(Schema::new_with_metadata(fields, shown.metadata().clone()))
}
