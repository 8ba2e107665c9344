//! Batches of a file under the schema of a table: columns by name, types widened, nothing lost.

use arrow_array::{Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Fields, Schema, SchemaRef, TimeUnit};

/// How the columns of a file become those of a table.
#[derive(Debug)]
pub struct Fit {
    target: SchemaRef,
    /// For each column of the table, where it is in the file.
    columns: Vec<Option<usize>>,
}

impl Fit {
    pub fn new(file: &Schema, target: &SchemaRef) -> Result<Self, ArrowError> {
        if let Some(unknown) = file.fields().iter().find(|field| target.column_with_name(field.name()).is_none()) {
            return Err(wrong(unknown.name(), "the table has no such column"));
        }
        let columns = target.fields().iter().map(|field| match file.column_with_name(field.name()) {
            Some((n, found)) if becomes(found.data_type(), field.data_type()) => Ok(Some(n)),
            Some((_, found)) => Err(wrong(
                field.name(),
                format!("{} of the file does not become {}", found.data_type(), field.data_type()),
            )),
            None if field.is_nullable() => Ok(None),
            None => Err(wrong(field.name(), "it must not be null, and the file does not have it")),
        });
        Ok(Self { target: target.clone(), columns: columns.collect::<Result<_, _>>()? })
    }

    pub fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let columns = self.target.fields().iter().zip(&self.columns).map(|(field, column)| {
            let Some(n) = column else { return Ok(new_null_array(field.data_type(), batch.num_rows())) };
            let column = batch.column(*n);
            if !field.is_nullable() && column.null_count() > 0 {
                return Err(wrong(field.name(), "it must not be null, and the file has a null in it"));
            }
            match column.data_type() == field.data_type() {
                true => Ok(column.clone()),
                false => cast_with_options(column, field.data_type(), &options).map_err(|e| wrong(field.name(), &e)),
            }
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.target.clone(), columns, &options)
    }
}

fn wrong(column: &str, what: impl std::fmt::Display) -> ArrowError {
    ArrowError::SchemaError(format!("column {column:?}: {what}"))
}

/// Whether each value becomes the same value, or is refused by the cast. Floats may be rounded: who stores vectors as
/// FLOAT wants that.
fn becomes(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        _ if from == to => true,
        (Null, _) => true,
        (Dictionary(_, values), _) => becomes(values, to),
        _ if from.is_integer() => to.is_integer() || to.is_floating() || matches!(to, Decimal128(..) | Decimal256(..)),
        _ if from.is_floating() => to.is_floating(),
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => true,
        (Binary | LargeBinary | BinaryView | FixedSizeBinary(_), Binary | LargeBinary | BinaryView) => true,
        (Binary | LargeBinary, FixedSizeBinary(_)) => true,
        (Decimal128(_, from), Decimal128(_, to)) => from <= to,
        (Date32, Date64) => true,
        (Time32(from) | Time64(from), Time32(to) | Time64(to)) => is_finer(to, from),
        (Timestamp(from, a), Timestamp(to, b)) => is_finer(to, from) && a.is_some() == b.is_some(),
        (
            List(a) | LargeList(a) | FixedSizeList(a, _) | ListView(a) | LargeListView(a),
            List(b) | LargeList(b) | FixedSizeList(b, _),
        ) => becomes(a.data_type(), b.data_type()),
        (Struct(a), Struct(b)) => become_fields(a, b),
        (Map(a, _), Map(b, _)) => match (a.data_type(), b.data_type()) {
            // Entries have a key and a value, whatever these are called.
            (Struct(a), Struct(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| becomes(a.data_type(), b.data_type()))
            }
            _ => false,
        },
        _ => false,
    }
}

fn become_fields(from: &Fields, to: &Fields) -> bool {
    from.len() == to.len()
        && from.iter().zip(to).all(|(a, b)| a.name() == b.name() && becomes(a.data_type(), b.data_type()))
}

fn is_finer(a: &TimeUnit, b: &TimeUnit) -> bool {
    let digits = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    digits(a) >= digits(b)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, Float64Type, Int8Type};
    use arrow_array::{ArrayRef, Int64Array, ListArray, StringArray, TimestampMillisecondArray};

    use super::*;
    use crate::sql_type::parse_schema;

    fn fit(columns: Vec<(&str, ArrayRef)>, target: &str) -> Result<RecordBatch, String> {
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
        let fit = Fit::new(&batch.schema(), &parse_schema(target).unwrap()).map_err(|e| e.to_string())?;
        fit.apply(&batch).map_err(|e| e.to_string())
    }

    fn ints(values: Vec<Option<i64>>) -> ArrayRef {
        Arc::new(Int64Array::from(values))
    }

    #[test]
    fn columns_are_found_by_name_and_missing_ones_are_null() {
        let s: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        let batch =
            fit(vec![("s", s), ("id", ints(vec![Some(7)]))], "id TINYINT NOT NULL, n DOUBLE, s STRING").unwrap();
        assert_eq!(batch.column(0).as_primitive::<Int8Type>().value(0), 7);
        assert!(batch.column(1).is_null(0));
        assert_eq!(batch.column(2).as_string::<i32>().value(0), "x");
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error_that_names_its_column() {
        for (column, target, part) in [
            (ints(vec![Some(300)]), "c TINYINT", "300"),
            (ints(vec![None]), "c BIGINT NOT NULL", "null"),
            (ints(vec![Some(1)]), "c STRING", "does not become"),
            (ints(vec![Some(1)]), "d BIGINT", "no such column"),
            (Arc::new(TimestampMillisecondArray::from(vec![1])), "c TIMESTAMP(0)", "does not become"),
            (Arc::new(TimestampMillisecondArray::from(vec![1])), "c TIMESTAMP_LTZ(3)", "does not become"),
            (Arc::new(arrow_array::Float64Array::from(vec![1.5])), "c INT", "does not become"),
        ] {
            let error = fit(vec![("c", column)], target).unwrap_err();
            assert!(error.contains(part) && error.contains("\"c\""), "{target}: {error}");
        }
        let error = fit(vec![("c", ints(vec![Some(1)]))], "c BIGINT, d INT NOT NULL").unwrap_err();
        assert!(error.contains("\"d\""), "{error}");
    }

    #[test]
    fn lists_of_doubles_become_vectors_if_they_have_their_length() {
        let lists = |lengths: &[usize]| -> ArrayRef {
            let lists = lengths.iter().map(|&n| Some(vec![Some(0.5_f64); n]));
            Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists))
        };
        let batch = fit(vec![("v", lists(&[2, 2]))], "v FLOAT[2]").unwrap();
        let values = batch.column(0).as_fixed_size_list().values().clone();
        assert_eq!(values.as_primitive::<Float32Type>().values(), &[0.5; 4]);
        assert!(fit(vec![("v", lists(&[2, 3]))], "v FLOAT[2]").unwrap_err().contains("\"v\""));
    }
}
