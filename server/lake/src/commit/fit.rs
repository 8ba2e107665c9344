//! Whether staged files still fit the table that they are committed to. Lance itself does not look.

use std::collections::HashSet;

use lance_core::datatypes::{Field, Schema};
use lance_table::format::Fragment;

use crate::error::{Error, ErrorKind, Result};

/// Field id in a data file for a column that a later file supersedes.
const TOMBSTONE: i32 = -2;

/// Checks files, written with `written`, against the schema `now` of the table. Renamed, reordered and added nullable columns
/// fit; a dropped or cast column does not, nor does a new column that must not be null.
pub(super) fn check(written: &Schema, now: &Schema, fragments: &[Fragment]) -> Result<()> {
    let mut in_files = HashSet::new();
    for fragment in fragments {
        let ids: HashSet<i32> =
            fragment.files.iter().flat_map(|file| file.fields.iter().copied()).filter(|id| *id != TOMBSTONE).collect();
        for column in now.fields.iter().filter(|column| !column.nullable) {
            if !subtree(column).any(|field| ids.contains(&field.id)) {
                return Err(mismatch(format!(
                    "column `{}` must not be null, but the staged rows do not have it: it was added after they were staged",
                    column.name
                )));
            }
        }
        in_files.extend(ids);
    }
    for id in in_files {
        let Some(field) = written.field_by_id(id) else {
            return Err(Error::new(
                ErrorKind::CorruptData,
                format!("a staged file holds field {id}, which its write does not know"),
            ));
        };
        match now.field_by_id(id) {
            None => {
                return Err(mismatch(format!("column `{}` was dropped after the rows were staged", field.name)));
            }
            Some(current) if current.logical_type != field.logical_type => {
                return Err(mismatch(format!(
                    "column `{}` has type {} now, the staged rows have {}",
                    current.name, current.logical_type, field.logical_type
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn subtree(field: &Field) -> impl Iterator<Item = &Field> {
    let mut stack = vec![field];
    std::iter::from_fn(move || {
        let next = stack.pop()?;
        stack.extend(next.children.iter());
        Some(next)
    })
}

fn mismatch(message: String) -> Error {
    Error::new(ErrorKind::SchemaMismatch, format!("{message}; stage the rows again"))
}
