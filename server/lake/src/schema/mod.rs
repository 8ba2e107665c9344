//! Schemas: between what clients see (Arrow, any column name) and what Lance stores.

mod fit;
mod names;
mod storable;

use std::collections::HashSet;
use std::sync::Arc;

use arrow_ipc::convert::try_schema_from_ipc_buffer;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{Field, Schema, SchemaRef};
use bytes::Bytes;
use lance_core::datatypes::{Field as LanceField, Schema as LanceSchema, format_field_path_minimal};
use xxhash_rust::xxh3::Xxh3;

pub(crate) use fit::Fit;
pub(crate) use names::{shown_name, stored_name};

use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::detail;
use crate::table::excerpt;
use crate::types::ColumnPath;

const PRIMARY_KEY: &str = "lance-schema:unenforced-primary-key";
const PRIMARY_KEY_POSITION: &str = "lance-schema:unenforced-primary-key:position";
const MAX_COLUMNS: usize = 10_000;

/// The Lance schema of a new table, with field ids from 0 in pre-order.
pub(crate) fn to_lance(schema: &Schema, primary_key: &[String], file_version: &str) -> Result<LanceSchema> {
    if schema.fields().is_empty() {
        return Err(Error::invalid("a table needs at least one column"));
    }
    if schema.flattened_fields().len() > MAX_COLUMNS {
        return Err(Error::invalid(format!("a table has at most {MAX_COLUMNS} columns and nested fields")));
    }
    let mut seen = HashSet::new();
    let mut fields = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let name = field.name();
        if name.is_empty() {
            return Err(Error::invalid("a column needs a name"));
        }
        if lance_core::is_system_column(name) {
            return Err(Error::invalid(format!("column '{name}' has a name that lance keeps for itself")));
        }
        if !seen.insert(stored_name(name)) {
            return Err(Error::invalid(format!("two columns are named '{}'", excerpt(name))));
        }
        storable::check(field, file_version)?;
        fields.push(stored_field(field, primary_key));
    }
    for key in primary_key {
        let Some(field) = schema.fields().iter().find(|field| field.name() == key) else {
            return Err(no_such_column(key, schema.fields().iter().map(|f| f.name().as_str()), "the primary key"));
        };
        if field.is_nullable() {
            return Err(Error::invalid(format!("column '{}' of the primary key must be NOT NULL", excerpt(key))));
        }
    }
    if primary_key.iter().collect::<HashSet<_>>().len() != primary_key.len() {
        return Err(Error::invalid("the primary key names a column twice"));
    }
    let stored = Schema::new_with_metadata(fields, schema.metadata().clone());
    LanceSchema::try_from(&stored).map_err(|e| {
        let why = detail(&e);
        Error::invalid(format!("lance cannot hold this schema: {why}")).with_source(e)
    })
}

fn stored_field(field: &Field, primary_key: &[String]) -> Field {
    let name = stored_name(field.name());
    let mut metadata = field.metadata().clone();
    metadata.remove(names::NAME_KEY);
    if name != *field.name() {
        metadata.insert(names::NAME_KEY.to_owned(), field.name().clone());
    }
    if !primary_key.is_empty() {
        metadata.remove(PRIMARY_KEY);
        metadata.remove(PRIMARY_KEY_POSITION);
    }
    if let Some(position) = primary_key.iter().position(|key| key == field.name()) {
        metadata.insert(PRIMARY_KEY.to_owned(), "true".to_owned());
        metadata.insert(PRIMARY_KEY_POSITION.to_owned(), (position + 1).to_string());
    }
    field.clone().with_name(name).with_metadata(metadata)
}

/// The schema that clients see.
pub(crate) fn shown_schema(schema: &LanceSchema) -> Schema {
    let fields: Vec<Field> = schema.fields.iter().map(shown_field).collect();
    Schema::new_with_metadata(fields, schema.metadata.clone())
}

fn shown_field(field: &LanceField) -> Field {
    let name = shown_name(&field.name, &field.metadata).to_owned();
    let arrow = Field::from(field);
    let mut metadata = arrow.metadata().clone();
    metadata.remove(names::NAME_KEY);
    arrow.with_name(name).with_metadata(metadata)
}

/// The top-level field of the name that clients see.
pub(crate) fn find_column<'a>(schema: &'a LanceSchema, shown: &str) -> Option<&'a LanceField> {
    schema.fields.iter().find(|field| shown_name(&field.name, &field.metadata) == shown)
}

/// A column, or a field of a struct column, found.
pub(crate) struct Found<'a> {
    pub(crate) field: &'a LanceField,
    /// As Lance names it.
    pub(crate) path: String,
    /// As clients name it.
    pub(crate) shown: String,
}

/// The field at the path that clients see. `place` names it, for the message.
pub(crate) fn find_path<'a>(schema: &'a LanceSchema, path: &ColumnPath, place: &str) -> Result<Found<'a>> {
    let [top, nested @ ..] = path.as_slice() else {
        return Err(Error::invalid(format!("{place} names no column")));
    };
    let Some(mut field) = find_column(schema, top) else {
        let existing = schema.fields.iter().map(|f| shown_name(&f.name, &f.metadata));
        return Err(no_such_column(top, existing, place));
    };
    let mut stored = vec![field.name.as_str()];
    for name in nested {
        let children = if field.logical_type.is_struct() { field.children.as_slice() } else { &[] };
        field = children
            .iter()
            .find(|child| child.name == *name)
            .ok_or_else(|| no_such_column(&path.join("."), children.iter().map(|c| c.name.as_str()), place))?;
        stored.push(field.name.as_str());
    }
    Ok(Found { field, path: format_field_path_minimal(&stored), shown: path.join(".") })
}

/// The columns of the primary key, in order.
pub(crate) fn primary_key(schema: &LanceSchema) -> Vec<String> {
    let key = schema.unenforced_primary_key();
    key.into_iter().map(|field| shown_name(&field.name, &field.metadata).to_owned()).collect()
}

/// A number that changes with every change that matters to a data file: ids, names, types, nullability.
pub(crate) fn fingerprint(schema: &LanceSchema) -> u64 {
    let mut hash = Xxh3::new();
    for field in schema.fields_pre_order() {
        hash.update(&field.id.to_le_bytes());
        hash.update(&field.parent_id.to_le_bytes());
        for text in [field.name.as_str(), &field.logical_type.to_string()] {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        hash.update(&[u8::from(field.nullable)]);
    }
    hash.digest()
}

/// An Arrow schema as an encapsulated IPC message.
pub(crate) fn to_ipc(schema: &Schema) -> Result<Bytes> {
    let options = IpcWriteOptions::default();
    let mut dictionaries = DictionaryTracker::new(false);
    let encoded =
        IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(schema, &mut dictionaries, &options);
    let mut message = Vec::new();
    arrow_ipc::writer::write_message(&mut message, encoded, &options)
        .map_err(|e| Error::internal("a schema cannot be encoded").with_source(e))?;
    Ok(message.into())
}

/// The reverse.
pub(crate) fn from_ipc(message: &[u8]) -> Result<SchemaRef> {
    try_schema_from_ipc_buffer(message)
        .map(Arc::new)
        .map_err(|e| Error::new(ErrorKind::CorruptData, "these bytes are no arrow schema").with_source(e))
}

/// A column that does not exist, with those that were perhaps meant.
pub(crate) fn no_such_column<'a>(name: &str, existing: impl Iterator<Item = &'a str>, place: &str) -> Error {
    const SUGGESTIONS: usize = 3;
    let wanted = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = existing
        .filter(|existing| existing.len() <= 128 && name.len() <= 128)
        .map(|existing| (lance_core::levenshtein::levenshtein_distance(&wanted, &existing.to_lowercase()), existing))
        .filter(|(distance, existing)| *distance <= 1 + existing.chars().count() / 3)
        .collect();
    near.sort_unstable();
    let near: Vec<String> = near.iter().take(SUGGESTIONS).map(|(_, name)| format!("'{}'", excerpt(name))).collect();
    let hint = if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) };
    Error::new(
        ErrorKind::ColumnNotFound,
        format!("{place} names a column '{}' that does not exist{hint}", excerpt(name)),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use arrow_schema::DataType;

    use super::*;

    fn schema(names: &[&str]) -> Schema {
        Schema::new(names.iter().map(|name| Field::new(*name, DataType::Int64, false)).collect::<Vec<_>>())
    }

    #[test]
    fn names_survive_the_way_to_lance_and_back() {
        let wanted = schema(&["a.b", "PartyAbbrev", "user-id", "select", "x`y", "q\"r"]);
        let lance = to_lance(&wanted, &[], "2.2").unwrap();
        assert_eq!(shown_schema(&lance), wanted);
        assert_eq!(find_column(&lance, "a.b").unwrap().name, "a%2Eb");
        assert!(find_column(&lance, "a%2Eb").is_none());
    }

    #[test]
    fn a_schema_survives_ipc() {
        let wanted = schema(&["a", "b"]).with_metadata([("k".to_owned(), "v".to_owned())].into());
        assert_eq!(*from_ipc(&to_ipc(&wanted).unwrap()).unwrap(), wanted);
        assert_eq!(from_ipc(b"nonsense").unwrap_err().kind(), ErrorKind::CorruptData);
    }

    #[test]
    fn bad_schemas_are_refused() {
        for names in [&[][..], &[""], &["a", "a"], &["_rowid"], &["a.b", "a%2Eb"]] {
            assert_eq!(
                to_lance(&schema(names), &[], "2.2").unwrap_err().kind(),
                ErrorKind::InvalidArgument,
                "{names:?}"
            );
        }
        let missing = to_lance(&schema(&["userId"]), &["user_id".into()], "2.2").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::ColumnNotFound);
        assert!(missing.message().contains("'userId'"), "{missing}");
    }

    #[test]
    fn the_fingerprint_sees_names_types_and_order() {
        let print = |names: &[&str]| fingerprint(&to_lance(&schema(names), &[], "2.2").unwrap());
        assert_eq!(print(&["a", "b"]), print(&["a", "b"]));
        assert_ne!(print(&["a", "b"]), print(&["b", "a"]));
        assert_ne!(print(&["ab", "c"]), print(&["a", "bc"]));
    }
}
