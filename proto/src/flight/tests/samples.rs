//! One column of every Arrow type, with nulls.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, Int32Builder, MapBuilder, StringBuilder};
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{
    ArrowNativeType, IntervalDayTime, IntervalMonthDayNano, NullBuffer, OffsetBuffer, ScalarBuffer, i256,
};
use arrow_schema::{DataType, Field, Fields, UnionFields};

type F16 = <Float16Type as ArrowPrimitiveType>::Native;

fn some<T>(i: usize, value: T) -> Option<T> {
    (i % 7 != 3).then_some(value)
}

fn primitive<T: ArrowPrimitiveType>(n: usize) -> PrimitiveArray<T> {
    (0..n).map(|i| some(i, T::Native::usize_as(i % 101))).collect()
}

fn text(i: usize) -> String {
    "é".repeat(i % 23) + &i.to_string()
}

fn lists(n: usize) -> impl Iterator<Item = Option<Vec<Option<i32>>>> {
    (0..n).map(|i| some(i, (0..i % 5).map(|j| some(j + i, (i * j) as i32)).collect()))
}

fn nulls(n: usize) -> NullBuffer {
    (0..n).map(|i| i % 5 != 2).collect::<Vec<bool>>().into()
}

fn field(name: &str, array: &dyn Array) -> Field {
    Field::new(name, array.data_type().clone(), true)
}

fn structs(columns: Vec<(&str, ArrayRef)>, n: usize) -> StructArray {
    let fields: Fields = columns.iter().map(|(name, column)| field(name, column)).collect();
    StructArray::new(fields, columns.into_iter().map(|(_, column)| column).collect(), Some(nulls(n)))
}

/// Lists of 0 to 3 values each, over values that begin before the first list.
fn list_over(values: ArrayRef, n: usize) -> ListArray {
    let lengths = (0..n).map(|i| i % 4);
    let total: usize = lengths.clone().sum();
    let values = values.slice(values.len() - total, total);
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    ListArray::new(item, OffsetBuffer::from_lengths(lengths), values, Some(nulls(n)))
}

fn list_view<O: OffsetSizeTrait>(n: usize) -> GenericListViewArray<O> {
    let values: ArrayRef = Arc::new(primitive::<Int32Type>(n + 4));
    // Backwards and overlapping, as only views can be.
    let offsets: Vec<O> = (0..n).map(|i| O::usize_as(n - i)).collect();
    let sizes: Vec<O> = (0..n).map(|i| O::usize_as(i % 4)).collect();
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    GenericListViewArray::new(item, offsets.into(), sizes.into(), values, Some(nulls(n)))
}

fn union_fields() -> UnionFields {
    UnionFields::try_new([5, 7], [Field::new("a", DataType::Int32, true), Field::new("b", DataType::Utf8, true)])
        .unwrap()
}

fn sparse_union(n: usize) -> UnionArray {
    let ids: ScalarBuffer<i8> = (0..n).map(|i| if i % 3 == 0 { 5 } else { 7 }).collect();
    let strings: StringArray = (0..n).map(|i| some(i, text(i))).collect();
    UnionArray::try_new(union_fields(), ids, None, vec![Arc::new(primitive::<Int32Type>(n)), Arc::new(strings)])
        .unwrap()
}

fn dense_union(n: usize) -> UnionArray {
    let (mut ids, mut offsets, mut next) = (Vec::new(), Vec::new(), [0_i32; 2]);
    for i in 0..n {
        let child = usize::from(i % 3 != 0);
        ids.push([5_i8, 7][child]);
        offsets.push(next[child]);
        next[child] += 1;
    }
    let ints = primitive::<Int32Type>(next[0] as usize);
    let strings: StringArray = (0..next[1] as usize).map(|i| some(i, text(i))).collect();
    UnionArray::try_new(union_fields(), ids.into(), Some(offsets.into()), vec![Arc::new(ints), Arc::new(strings)])
        .unwrap()
}

fn dictionary<K: ArrowDictionaryKeyType>(n: usize) -> DictionaryArray<K> {
    let values: Vec<String> = (0..n).map(|i| text(i % 50)).collect();
    (0..n).map(|i| some(i, values[i].as_str())).collect()
}

fn runs<R: RunEndIndexType>(n: usize) -> RunArray<R> {
    let values: Vec<String> = (0..n).map(|i| text(i / 5)).collect();
    (0..n).map(|i| (i / 5 % 3 != 1).then_some(values[i].as_str())).collect()
}

fn map(n: usize) -> MapArray {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for i in 0..n {
        for j in 0..i % 3 {
            builder.keys().append_value(text(i + j));
            builder.values().append_option(some(i + j, j as i32));
        }
        builder.append(i % 5 != 2).unwrap();
    }
    builder.finish()
}

fn fixed_binary(n: usize) -> FixedSizeBinaryArray {
    let mut builder = FixedSizeBinaryBuilder::new(3);
    for i in 0..n {
        match some(i, [i as u8, 1, 2]) {
            Some(value) => builder.append_value(value).unwrap(),
            None => builder.append_null(),
        }
    }
    builder.finish()
}

/// Columns of `n` rows (at most 30,000), by name.
pub fn columns(n: usize) -> Vec<(&'static str, ArrayRef)> {
    let mut out: Vec<(&'static str, ArrayRef)> = Vec::new();
    macro_rules! add {
        ($($name:literal: $array:expr;)*) => { $(out.push(($name, Arc::new($array)));)* };
    }
    let strings = || (0..n).map(move |i| some(i, text(i)));
    add! {
        "null": NullArray::new(n);
        "bool": BooleanArray::from_iter((0..n).map(|i| some(i, i % 3 == 0)));
        "bool without nulls": BooleanArray::from_iter((0..n).map(|i| Some(i % 3 == 0)));
        "int8": primitive::<Int8Type>(n);
        "int16": primitive::<Int16Type>(n);
        "int32": primitive::<Int32Type>(n);
        "int64": primitive::<Int64Type>(n);
        "int64 without nulls": Int64Array::from_iter_values((0..n).map(|i| i as i64));
        "int64 all null": Int64Array::new_null(n);
        "uint8": primitive::<UInt8Type>(n);
        "uint16": primitive::<UInt16Type>(n);
        "uint32": primitive::<UInt32Type>(n);
        "uint64": primitive::<UInt64Type>(n);
        "float16": Float16Array::from_iter((0..n).map(|i| some(i, F16::from_f64(i as f64))));
        "float32": Float32Array::from_iter((0..n).map(|i| some(i, i as f32 / 3.0)));
        "float64": Float64Array::from_iter((0..n).map(|i| some(i, i as f64 / 3.0)));
        "decimal32": primitive::<Decimal32Type>(n).with_precision_and_scale(7, 2).unwrap();
        "decimal64": primitive::<Decimal64Type>(n).with_precision_and_scale(15, 3).unwrap();
        "decimal128": primitive::<Decimal128Type>(n).with_precision_and_scale(38, 10).unwrap();
        "decimal256": Decimal256Array::from_iter((0..n).map(|i| some(i, i256::from_i128(-(i as i128) << 80))));
        "date32": primitive::<Date32Type>(n);
        "date64": Date64Array::from_iter((0..n).map(|i| some(i, i as i64 * 86_400_000)));
        "time32 s": primitive::<Time32SecondType>(n);
        "time32 ms": primitive::<Time32MillisecondType>(n);
        "time64 us": primitive::<Time64MicrosecondType>(n);
        "time64 ns": primitive::<Time64NanosecondType>(n);
        "timestamp s": primitive::<TimestampSecondType>(n);
        "timestamp ms utc": primitive::<TimestampMillisecondType>(n).with_timezone("UTC");
        "timestamp us": primitive::<TimestampMicrosecondType>(n);
        "timestamp ns zone": primitive::<TimestampNanosecondType>(n).with_timezone("America/Los_Angeles");
        "duration s": primitive::<DurationSecondType>(n);
        "duration ms": primitive::<DurationMillisecondType>(n);
        "duration us": primitive::<DurationMicrosecondType>(n);
        "duration ns": primitive::<DurationNanosecondType>(n);
        "interval months": primitive::<IntervalYearMonthType>(n);
        "interval days": IntervalDayTimeArray::from_iter((0..n).map(|i| some(i, IntervalDayTime::new(i as i32, -1))));
        "interval": IntervalMonthDayNanoArray::from_iter(
            (0..n).map(|i| some(i, IntervalMonthDayNano::new(i as i32, -1, 1 << 40))));
        "utf8": StringArray::from_iter(strings());
        "utf8 all empty": StringArray::from_iter_values((0..n).map(|_| ""));
        "large utf8": LargeStringArray::from_iter(strings());
        "utf8 view": StringViewArray::from_iter(strings());
        "binary": BinaryArray::from_iter(strings());
        "large binary": LargeBinaryArray::from_iter(strings());
        "binary view": BinaryViewArray::from_iter(strings());
        "fixed size binary": fixed_binary(n);
        "list": ListArray::from_iter_primitive::<Int32Type, _, _>(lists(n));
        "large list": LargeListArray::from_iter_primitive::<Int32Type, _, _>(lists(n));
        "list view": list_view::<i32>(n);
        "large list view": list_view::<i64>(n);
        "fixed size list": FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
            (0..n).map(|i| some(i, (0..4).map(|j| Some((i + j) as f32)).collect::<Vec<_>>())), 4);
        "struct": structs(vec![("a", Arc::new(primitive::<Int32Type>(n))), ("b", Arc::new(StringArray::from_iter(strings())))], n);
        "map": map(n);
        "sparse union": sparse_union(n);
        "dense union": dense_union(n);
        "dictionary int8": dictionary::<Int8Type>(n);
        "dictionary uint32": dictionary::<UInt32Type>(n);
        "run ends 16": runs::<Int16Type>(n);
        "run ends 32": runs::<Int32Type>(n);
        "run ends 64": runs::<Int64Type>(n);
        "list of structs": list_over(Arc::new(structs(vec![
            ("a", Arc::new(BooleanArray::from_iter((0..n * 3).map(|i| some(i, i % 2 == 0))))),
            ("b", Arc::new(StringArray::from_iter((0..n * 3).map(|i| some(i, text(i)))))),
        ], n * 3)), n);
        "list of lists": list_over(Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists(n * 3))), n);
        "list of views": list_over(Arc::new(StringViewArray::from_iter((0..n * 3).map(|i| some(i, text(i))))), n);
        "list of dictionaries": list_over(Arc::new(dictionary::<Int32Type>(n * 3)), n);
        "list of vectors": list_over(Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
            (0..n * 3).map(|i| some(i, vec![Some(i as f32), None])), 2)), n);
        "list of dense unions": list_over(Arc::new(dense_union(n * 3)), n);
        "list of sparse unions": list_over(Arc::new(sparse_union(n * 3)), n);
        "list of runs": list_over(Arc::new(runs::<Int64Type>(n * 3)), n);
        "list of nulls": list_over(Arc::new(NullArray::new(n * 3)), n);
        "struct of vectors and dictionaries": structs(vec![
            ("v", Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
                (0..n).map(|i| some(i, vec![Some(i as f32), None])), 2))),
            ("d", Arc::new(dictionary::<Int16Type>(n))),
        ], n);
        "empty struct": StructArray::new_empty_fields(n, Some(nulls(n)));
    }
    out
}
