//! Whether a batch fits the schema of a write, and how it is brought into it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, GenericListArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::{no_such_column, stored_name};
use crate::error::{Error, ErrorKind, Result};
use crate::table::excerpt;

/// How the batches of one incoming schema become batches of the stored schema: columns by name in any order, missing nullable
/// ones as nulls, types equal up to what loses nothing (the width of offsets, views, dictionaries, the names of list items).
pub(crate) struct Fit {
    source: SchemaRef,
    target: SchemaRef,
    columns: Vec<Column>,
    refuses_null_structs: bool,
}

struct Column {
    /// None: filled with nulls.
    source: Option<usize>,
    shown: String,
    cast: bool,
    check_nulls: bool,
    check_structs: bool,
}

impl Fit {
    /// For batches of schema `source` in a write of schema `wanted`, both as clients see them.
    pub(crate) fn new(wanted: &Schema, source: SchemaRef, file_version: &str) -> Result<Self> {
        for field in source.fields() {
            if !wanted.fields().iter().any(|wanted| wanted.name() == field.name()) {
                let existing = wanted.fields().iter().map(|f| f.name().as_str());
                let error = no_such_column(field.name(), existing, "a batch");
                return Err(Error::new(ErrorKind::SchemaMismatch, error.message()));
            }
        }
        // File format 2.0 keeps no validity of structs.
        let refuses_null_structs = file_version == "2.0";
        let columns = wanted
            .fields()
            .iter()
            .map(|wanted| Column::new(wanted, &source, refuses_null_structs))
            .collect::<Result<Vec<_>>>()?;
        let stored: Vec<Field> =
            wanted.fields().iter().map(|f| f.as_ref().clone().with_name(stored_name(f.name()))).collect();
        let target = Arc::new(Schema::new_with_metadata(stored, wanted.metadata().clone()));
        Ok(Self { source, target, columns, refuses_null_structs })
    }

    /// Whether this was made for batches of that schema.
    pub(crate) fn is_for(&self, schema: &SchemaRef) -> bool {
        Arc::ptr_eq(&self.source, schema) || self.source == *schema
    }

    /// Brings a batch into the schema of the write.
    pub(crate) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter().zip(self.target.fields()) {
            arrays.push(self.column(column, field, batch)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.target.clone(), arrays, &options).map_err(|e| {
            let why = format!("a batch does not fit the schema of the write: {e}");
            Error::new(ErrorKind::SchemaMismatch, why).with_source(e)
        })
    }

    fn column(&self, column: &Column, field: &Field, batch: &RecordBatch) -> Result<ArrayRef> {
        let Some(source) = column.source else {
            return Ok(new_null_array(field.data_type(), batch.num_rows()));
        };
        let mut array = batch.column(source).clone();
        if column.check_nulls {
            check_nulls(&column.shown, field, array.as_ref(), None)?;
        }
        if column.cast {
            let options = CastOptions { safe: false, ..Default::default() };
            array = cast_with_options(&array, field.data_type(), &options).map_err(|e| {
                let why = format!("column '{}' does not fit {}: {e}", column.shown, field.data_type());
                Error::new(ErrorKind::SchemaMismatch, why).with_source(e)
            })?;
        }
        if column.check_structs && self.refuses_null_structs {
            check_structs(&column.shown, array.as_ref())?;
        }
        Ok(array)
    }
}

impl Column {
    fn new(wanted: &Field, source: &Schema, refuses_null_structs: bool) -> Result<Self> {
        let shown = excerpt(wanted.name());
        let Some((index, got)) = source.column_with_name(wanted.name()) else {
            if wanted.is_nullable() {
                return Ok(Self { source: None, shown, cast: false, check_nulls: false, check_structs: false });
            }
            let why = format!("column '{shown}' is NOT NULL and missing");
            return Err(Error::new(ErrorKind::SchemaMismatch, why));
        };
        if source.fields().iter().filter(|field| field.name() == wanted.name()).count() > 1 {
            return Err(Error::new(ErrorKind::SchemaMismatch, format!("a batch has two columns '{shown}'")));
        }
        if !converts(got.data_type(), wanted.data_type()) {
            let why = format!("column '{shown}': expected {}, got {}", wanted.data_type(), got.data_type());
            return Err(Error::new(ErrorKind::SchemaMismatch, why));
        }
        Ok(Self {
            source: Some(index),
            shown,
            cast: got.data_type() != wanted.data_type(),
            check_nulls: has_required(wanted),
            check_structs: refuses_null_structs && has_struct(wanted.data_type()),
        })
    }
}

/// Whether every value of the first type has exactly one of the second that means the same.
fn converts(got: &DataType, wanted: &DataType) -> bool {
    use DataType as D;
    match (got, wanted) {
        _ if got == wanted => true,
        (D::Utf8 | D::LargeUtf8 | D::Utf8View, D::Utf8 | D::LargeUtf8 | D::Utf8View) => true,
        (D::Binary | D::LargeBinary | D::BinaryView, D::Binary | D::LargeBinary | D::BinaryView) => true,
        (D::Timestamp(got, Some(_)), D::Timestamp(wanted, Some(_))) => got == wanted,
        (D::FixedSizeList(got, got_size), D::FixedSizeList(wanted, wanted_size)) => {
            got_size == wanted_size && converts(got.data_type(), wanted.data_type())
        }
        (
            D::List(got) | D::LargeList(got) | D::FixedSizeList(got, _),
            D::List(wanted) | D::LargeList(wanted) | D::FixedSizeList(wanted, _),
        ) => converts(got.data_type(), wanted.data_type()),
        (D::Struct(got), D::Struct(wanted)) => {
            got.len() == wanted.len()
                && got.iter().zip(wanted).all(|(g, w)| g.name() == w.name() && converts(g.data_type(), w.data_type()))
        }
        (D::Map(got, got_sorted), D::Map(wanted, wanted_sorted)) => {
            let (D::Struct(got), D::Struct(wanted)) = (got.data_type(), wanted.data_type()) else {
                return false;
            };
            got_sorted == wanted_sorted
                && got.len() == 2
                && wanted.len() == 2
                && got.iter().zip(wanted).all(|(g, w)| converts(g.data_type(), w.data_type()))
        }
        (D::Dictionary(_, value), wanted) if !matches!(wanted, D::Dictionary(..)) => {
            !value.is_nested() && converts(value, wanted)
        }
        _ => false,
    }
}

fn has_required(field: &Field) -> bool {
    !field.is_nullable()
        || match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|field| has_required(field)),
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => has_required(item),
            _ => false,
        }
}

fn has_struct(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(_) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_struct(item.data_type())
        }
        _ => false,
    }
}

/// Finds a null where the schema allows none. `hidden`: rows that are null further up.
fn check_nulls(path: &str, field: &Field, array: &dyn Array, hidden: Option<&NullBuffer>) -> Result<()> {
    let nulls = array.logical_nulls();
    if !field.is_nullable()
        && let Some(nulls) = nulls.as_ref().filter(|nulls| nulls.null_count() > 0)
        && !hidden.is_some_and(|hidden| hidden.contains(nulls))
    {
        let why = format!("column '{path}' is NOT NULL, but a batch holds nulls in it");
        return Err(Error::new(ErrorKind::SchemaMismatch, why));
    }
    // The array is not cast yet: a list may stand where a vector is wanted.
    match field.data_type() {
        DataType::Struct(fields) => {
            let hidden = NullBuffer::union(hidden, nulls.as_ref());
            for (field, child) in fields.iter().zip(array.as_struct().columns()) {
                check_nulls(&format!("{path}.{}", field.name()), field, child.as_ref(), hidden.as_ref())?;
            }
            Ok(())
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) if has_required(item) => {
            let path = format!("{path}[]");
            match array.data_type() {
                DataType::List(_) => check_nulls(&path, item, &items(array.as_list::<i32>()), None),
                DataType::LargeList(_) => check_nulls(&path, item, &items(array.as_list::<i64>()), None),
                DataType::FixedSizeList(_, size) => {
                    // The items of a null vector are null themselves, or anything.
                    let hidden = nulls.map(|nulls| nulls.expand(*size as usize));
                    check_nulls(&path, item, array.as_fixed_size_list().values().as_ref(), hidden.as_ref())
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Of the rows of a list alone, not of the array that it is a slice of.
fn items<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> ArrayRef {
    let (from, to) = (list.value_offsets()[0].as_usize(), list.value_offsets()[list.len()].as_usize());
    list.values().slice(from, to - from)
}

fn check_structs(path: &str, array: &dyn Array) -> Result<()> {
    match array.data_type() {
        DataType::Struct(_) if array.null_count() > 0 => Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "column '{path}' holds a null struct, which file format 2.0 cannot tell from a struct of nulls; create the \
                 table with data storage version 2.1 or newer"
            ),
        )),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            fields
                .iter()
                .zip(columns)
                .try_for_each(|(f, child)| check_structs(&format!("{path}.{}", f.name()), child.as_ref()))
        }
        DataType::List(_) => check_structs(path, array.as_list::<i32>().values().as_ref()),
        DataType::LargeList(_) => check_structs(path, array.as_list::<i64>().values().as_ref()),
        DataType::FixedSizeList(..) => check_structs(path, array.as_fixed_size_list().values().as_ref()),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use arrow_array::types::Float32Type;
    use arrow_array::{FixedSizeListArray, Int64Array, LargeStringArray, ListArray, StringArray, StructArray};

    use super::*;

    fn vector_type(size: i32) -> DataType {
        DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Float32, true)), size)
    }

    fn wanted() -> Schema {
        Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("a.b", DataType::Utf8, true),
            Field::new("v", vector_type(2), true),
        ])
    }

    fn fit(batch: &RecordBatch) -> Result<RecordBatch> {
        Fit::new(&wanted(), batch.schema(), "2.2")?.apply(batch)
    }

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap()
    }

    fn ids(values: impl Into<Int64Array>) -> ArrayRef {
        Arc::new(values.into())
    }

    #[test]
    fn columns_come_in_any_order_and_missing_ones_become_nulls() {
        let fitted =
            fit(&batch(vec![("a.b", Arc::new(LargeStringArray::from(vec!["x", "y"]))), ("id", ids(vec![1, 2]))]))
                .unwrap();
        assert_eq!(fitted.schema().fields()[1].name(), "a%2Eb");
        assert_eq!(fitted.column(1).as_string::<i32>(), &StringArray::from(vec!["x", "y"]));
        assert_eq!(fitted.column(2).null_count(), 2);
    }

    #[test]
    fn a_misfit_names_the_column_and_both_types() {
        let message = |batch| {
            let error = fit(&batch).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
            error.message().to_owned()
        };
        let unknown = message(batch(vec![("id", ids(vec![1])), ("ab", ids(vec![1]))]));
        assert!(unknown.contains("'ab'") && unknown.contains("'a.b'"), "{unknown}");
        let missing = message(batch(vec![("a.b", Arc::new(StringArray::from(vec!["x"])))]));
        assert!(missing.contains("'id'"), "{missing}");
        let null = message(batch(vec![("id", ids(vec![Some(1), None]))]));
        assert!(null.contains("'id'") && null.contains("NOT NULL"), "{null}");
        let typed = message(batch(vec![("id", Arc::new(StringArray::from(vec!["1"])))]));
        assert!(typed.contains("expected Int64, got Utf8"), "{typed}");
        let three = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0); 3])], 3);
        let length = message(batch(vec![("id", ids(vec![1])), ("v", Arc::new(three))]));
        assert!(length.contains("'v'") && length.contains('2') && length.contains('3'), "{length}");
    }

    #[test]
    fn a_list_becomes_a_vector_if_every_length_fits() {
        let list = |rows: Vec<Option<Vec<Option<f32>>>>| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
        };
        let good = list(vec![Some(vec![Some(1.0), Some(2.0)]), None]);
        let fitted = fit(&batch(vec![("id", ids(vec![1, 2])), ("v", good)])).unwrap();
        assert_eq!(fitted.column(2).data_type(), &vector_type(2));
        assert!(fitted.column(2).is_null(1));
        let error = fit(&batch(vec![("id", ids(vec![1])), ("v", list(vec![Some(vec![Some(1.0)])]))])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
        assert!(error.message().contains("'v'"), "{error}");
    }

    #[test]
    fn a_required_field_may_be_null_only_below_a_null_struct() {
        let inner = Field::new("x", DataType::Int64, false);
        let wanted = Schema::new(vec![Field::new("s", DataType::Struct(vec![inner].into()), true)]);
        let structs = |valid: Vec<bool>| {
            let loose = Field::new("x", DataType::Int64, true);
            let array = StructArray::new(vec![loose].into(), vec![ids(vec![Some(1), None])], Some(valid.into()));
            let batch = batch(vec![("s", Arc::new(array))]);
            Fit::new(&wanted, batch.schema(), "2.2").and_then(|fit| fit.apply(&batch))
        };
        assert!(structs(vec![true, false]).is_ok());
        let error = structs(vec![true, true]).unwrap_err();
        assert_eq!(error.message(), "column 's.x' is NOT NULL, but a batch holds nulls in it");
    }
}
