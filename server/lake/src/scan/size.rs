//! Bytes of rows, counted without looking at each row.

use std::ops::Range;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::ArrowNativeType;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema};

/// Bytes that some rows of a batch take on the wire, about.
pub(crate) fn rows_bytes(columns: &[ArrayData], rows: Range<usize>) -> u64 {
    columns.iter().map(|column| range_bytes(column, rows.start, rows.end - rows.start)).sum()
}

/// The columns of a batch, to be counted.
pub(crate) fn columns(batch: &RecordBatch) -> Vec<ArrayData> {
    batch.columns().iter().map(|column| column.to_data()).collect()
}

/// Bytes of one row if that is the same for all rows.
pub(crate) fn fixed_row_bytes(schema: &Schema) -> Option<u64> {
    schema.fields().iter().map(|field| fixed_bits(field.data_type())).sum::<Option<u64>>().map(|bits| bits.div_ceil(8))
}

fn fixed_bits(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Null => Some(0),
        DataType::Boolean => Some(1),
        DataType::FixedSizeBinary(size) => Some(8 * u64::try_from(*size).ok()?),
        DataType::FixedSizeList(item, size) => Some(fixed_bits(item.data_type())? * u64::try_from(*size).ok()?),
        DataType::Struct(fields) => fields.iter().map(|field| fixed_bits(field.data_type())).sum(),
        other => other.primitive_width().map(|width| 8 * width as u64),
    }
}

fn range_bytes(data: &ArrayData, start: usize, len: usize) -> u64 {
    let validity = if data.nulls().is_some() { len.div_ceil(8) as u64 } else { 0 };
    validity + values_bytes(data, start, len)
}

fn values_bytes(data: &ArrayData, start: usize, len: usize) -> u64 {
    let rows = len as u64;
    match data.data_type() {
        DataType::Null => 0,
        DataType::Boolean => rows.div_ceil(8),
        DataType::Utf8 | DataType::Binary => {
            let (from, to) = offsets::<i32>(data, start, len);
            4 * rows + (to - from) as u64
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            let (from, to) = offsets::<i64>(data, start, len);
            8 * rows + (to - from) as u64
        }
        DataType::List(_) | DataType::Map(..) => {
            let (from, to) = offsets::<i32>(data, start, len);
            4 * rows + child_bytes(data, from, to - from)
        }
        DataType::LargeList(_) => {
            let (from, to) = offsets::<i64>(data, start, len);
            8 * rows + child_bytes(data, from, to - from)
        }
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or_default();
            child_bytes(data, (data.offset() + start) * size, len * size)
        }
        DataType::FixedSizeBinary(size) => rows * u64::try_from(*size).unwrap_or_default(),
        DataType::Struct(_) => {
            data.child_data().iter().map(|child| range_bytes(child, data.offset() + start, len)).sum()
        }
        DataType::Dictionary(key, _) => rows * key.primitive_width().unwrap_or_default() as u64,
        other => rows * other.primitive_width().unwrap_or(16) as u64,
    }
}

fn child_bytes(data: &ArrayData, start: usize, len: usize) -> u64 {
    data.child_data().first().map_or(0, |child| range_bytes(child, start, len))
}

fn offsets<O: ArrowNativeType>(data: &ArrayData, start: usize, len: usize) -> (usize, usize) {
    let Some(buffer) = data.buffers().first().filter(|buffer| !buffer.is_empty()) else {
        return (0, 0);
    };
    let offsets = buffer.typed_data::<O>();
    let first = data.offset() + start;
    (offsets[first].as_usize(), offsets[first + len].as_usize())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, BooleanArray, FixedSizeListArray, Int64Array, ListArray, StringArray, StructArray};
    use arrow_schema::Field;

    use super::*;

    fn bytes(array: ArrayRef, rows: Range<usize>) -> u64 {
        rows_bytes(&[array.to_data()], rows)
    }

    #[test]
    fn strings_count_what_they_hold_also_in_slices() {
        let strings: ArrayRef = Arc::new(StringArray::from(vec!["a", "bb", "", "dddd"]));
        assert_eq!(bytes(strings.clone(), 0..4), 16 + 7);
        assert_eq!(bytes(strings.clone(), 3..4), 4 + 4);
        assert_eq!(bytes(strings.slice(1, 3), 0..1), 4 + 2);
        assert_eq!(bytes(strings.slice(4, 0), 0..0), 0);
    }

    #[test]
    fn nested_columns_count_their_items() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1); 3]),
            Some(vec![]),
            Some(vec![Some(1)]),
        ]);
        let list: ArrayRef = Arc::new(list);
        let per_row = |rows| bytes(list.clone(), rows);
        assert_eq!(per_row(0..3), per_row(0..1) + per_row(1..2) + per_row(2..3));
        assert!(per_row(0..1) > per_row(2..3));
        let vectors = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>((0..4).map(|_| Some([Some(1); 8])), 8);
        let vectors: ArrayRef = Arc::new(vectors);
        assert!((64..=67).contains(&bytes(vectors.clone(), 1..3)));
        assert!((32..=34).contains(&bytes(vectors.slice(2, 2), 1..2)));
        let fields = vec![Field::new("x", DataType::Int64, false), Field::new("b", DataType::Boolean, false)];
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(vec![1; 16])), Arc::new(BooleanArray::from(vec![true; 16]))];
        let structs: ArrayRef = Arc::new(StructArray::new(fields.into(), columns, None));
        assert_eq!(bytes(structs.slice(8, 8), 0..8), 64 + 1);
    }

    #[test]
    fn only_schemas_of_fixed_width_have_a_fixed_row() {
        let vector = DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Float32, true)), 50);
        let schema =
            |types: Vec<DataType>| Schema::new(types.into_iter().map(|t| Field::new("x", t, true)).collect::<Vec<_>>());
        assert_eq!(fixed_row_bytes(&schema(vec![DataType::Int64, vector, DataType::Boolean])), Some(209));
        assert_eq!(fixed_row_bytes(&schema(vec![DataType::Int64, DataType::Utf8])), None);
        assert_eq!(fixed_row_bytes(&schema(vec![])), Some(0));
    }
}
