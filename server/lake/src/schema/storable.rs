//! Which Arrow types Lance keeps.

use arrow_schema::{DataType, Field};
use lance_core::datatypes::Field as LanceField;

use crate::error::{Error, ErrorKind, Result};
use crate::table::excerpt;

/// Refuses a column that would not come back as it was.
pub(crate) fn check(field: &Field, file_version: &str) -> Result<()> {
    check_below(field, &excerpt(field.name()), file_version)?;
    LanceField::try_from(field)
        .map(drop)
        .map_err(|e| unsupported(field.name(), field.data_type(), "lance has no such type").with_source(e))
}

fn check_below(field: &Field, path: &str, file_version: &str) -> Result<()> {
    let refuse = |why: &str| Err(unsupported(path, field.data_type(), why));
    match field.data_type() {
        DataType::Struct(fields) if fields.is_empty() => refuse("a struct needs a field"),
        DataType::Struct(fields) => fields
            .iter()
            .try_for_each(|child| check_below(child, &format!("{path}.{}", excerpt(child.name())), file_version)),
        DataType::FixedSizeList(_, size) if *size <= 0 => refuse("a vector needs a positive length"),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            check_below(item, &format!("{path}[]"), file_version)
        }
        DataType::Map(..) if matches!(file_version, "2.0" | "2.1") => {
            refuse("maps need data storage version 2.2 or newer")
        }
        DataType::Map(_, true) => refuse("maps with sorted keys are not kept"),
        DataType::Map(entries, false) => check_below(entries, path, file_version),
        _ => Ok(()),
    }
}

fn unsupported(path: &str, data_type: &DataType, why: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("column '{path}' of type {data_type} cannot be stored: {why}"))
}
