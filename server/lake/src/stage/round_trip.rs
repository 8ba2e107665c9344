//! Each type, there and back, in each file format.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, i256};
use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema};

use crate::testing::*;
use crate::*;

const FILE_VERSIONS: [&str; 3] = ["2.0", "2.1", "2.2"];

fn array<A: Array + 'static>(array: A) -> ArrayRef {
    Arc::new(array)
}

/// Three rows of each type that Lance keeps everywhere, the middle one null.
fn plain() -> Vec<ArrayRef> {
    let zone: Arc<str> = "UTC".into();
    let text = ["", "Grüße", "x"];
    let text = || [Some(text[0]), None, Some(text[1])];
    vec![
        array(BooleanArray::from(vec![Some(true), None, Some(false)])),
        array(Int8Array::from(vec![Some(i8::MIN), None, Some(i8::MAX)])),
        array(Int16Array::from(vec![Some(i16::MIN), None, Some(i16::MAX)])),
        array(Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX)])),
        array(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)])),
        array(UInt8Array::from(vec![Some(0), None, Some(u8::MAX)])),
        array(UInt16Array::from(vec![Some(0), None, Some(u16::MAX)])),
        array(UInt32Array::from(vec![Some(0), None, Some(u32::MAX)])),
        array(UInt64Array::from(vec![Some(0), None, Some(u64::MAX)])),
        array(Float32Array::from(vec![Some(-0.0), None, Some(f32::NAN)])),
        array(Float64Array::from(vec![Some(f64::MIN_POSITIVE), None, Some(f64::INFINITY)])),
        array(StringArray::from_iter(text())),
        array(LargeStringArray::from_iter(text())),
        array(BinaryArray::from_iter(text())),
        array(LargeBinaryArray::from_iter(text())),
        array(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                [Some([1_u8; 16]), None, Some([2; 16])].into_iter(),
                16,
            )
            .unwrap(),
        ),
        array(Date32Array::from(vec![Some(-1), None, Some(19_723)])),
        array(Date64Array::from(vec![Some(-86_400_000), None, Some(86_400_000)])),
        array(Time32SecondArray::from(vec![Some(0), None, Some(86_399)])),
        array(Time32MillisecondArray::from(vec![Some(0), None, Some(86_399_999)])),
        array(Time64MicrosecondArray::from(vec![Some(0), None, Some(86_399_999_999)])),
        array(Time64NanosecondArray::from(vec![Some(0), None, Some(86_399_999_999_999)])),
        array(TimestampSecondArray::from(vec![Some(-1), None, Some(1)])),
        array(TimestampMillisecondArray::from(vec![Some(-500), None, Some(1)])),
        array(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(1)])),
        array(TimestampNanosecondArray::from(vec![Some(-1), None, Some(1)])),
        array(TimestampSecondArray::from(vec![Some(-1), None, Some(1)]).with_timezone(zone.clone())),
        array(TimestampMillisecondArray::from(vec![Some(-500), None, Some(1)]).with_timezone(zone.clone())),
        array(TimestampMicrosecondArray::from(vec![Some(-1), None, Some(1)]).with_timezone("Asia/Kolkata")),
        array(TimestampNanosecondArray::from(vec![Some(-1), None, Some(1)]).with_timezone(zone)),
        array(
            Decimal128Array::from(vec![Some(-123), None, Some(i128::from(i64::MAX))])
                .with_precision_and_scale(38, 5)
                .unwrap(),
        ),
        array(
            Decimal256Array::from(vec![Some(i256::from(-1)), None, Some(i256::from(7))])
                .with_precision_and_scale(60, 5)
                .unwrap(),
        ),
        array(Float16Array::from_iter([Some(half(1.5)), None, Some(half(-2.0))])),
        array(DurationMicrosecondArray::from(vec![Some(-1), None, Some(1)])),
        array(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])])),
        array(LargeListArray::from_iter_primitive::<Float32Type, _, _>([Some(vec![Some(1.0)]), None, Some(vec![])])),
        vectors(),
        array(DictionaryArray::<Int32Type>::from_iter([Some("a"), None, Some("b")])),
        lists_of_strings(),
        array(NullArray::new(3)),
        vectors_with_nulls(),
        lists_of_vectors(),
        array(TimestampMillisecondArray::from(vec![Some(-500), None, Some(1)]).with_timezone("+05:30")),
    ]
}

fn half(value: f32) -> <Float16Type as ArrowPrimitiveType>::Native {
    <<Float16Type as ArrowPrimitiveType>::Native>::from_f32(value)
}

/// A null vector between two.
fn vectors() -> ArrayRef {
    let rows = [Some([1.0, 2.0, 3.0, 4.0].map(Some)), None, Some([5.0, 6.0, 7.0, 8.0].map(Some))];
    array(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 4))
}

/// Vectors with null items.
fn vectors_with_nulls() -> ArrayRef {
    let rows = [Some([Some(1.0), None]), None, Some([None, Some(2.0)])];
    array(FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(rows, 2))
}

fn lists_of_vectors() -> ArrayRef {
    let item = Arc::new(Field::new("item", vectors().data_type().clone(), true));
    let nulls = NullBuffer::from(vec![true, false, true]);
    array(ListArray::new(item, OffsetBuffer::from_lengths([2, 0, 1]), vectors(), Some(nulls)))
}

/// A list of structs, one of them null, a null list and an empty one.
fn lists_of_structs() -> ArrayRef {
    let item = Arc::new(Field::new("item", structs().data_type().clone(), true));
    let nulls = NullBuffer::from(vec![true, false, true]);
    array(ListArray::new(item, OffsetBuffer::from_lengths([3, 0, 0]), structs(), Some(nulls)))
}

/// A struct in a struct, null at either level.
fn structs_in_structs() -> ArrayRef {
    let fields: Fields = vec![Field::new("inner", structs().data_type().clone(), true)].into();
    array(StructArray::new(fields, vec![structs()], Some(NullBuffer::from(vec![true, true, false]))))
}

fn lists_of_strings() -> ArrayRef {
    let mut builder = builder::ListBuilder::new(StringBuilder::new());
    builder.append_value([Some("a"), None]);
    builder.append_null();
    builder.append_value(Vec::<Option<&str>>::new());
    array(builder.finish())
}

/// A struct of nulls, a null struct and a filled one.
fn structs() -> ArrayRef {
    let fields: Fields = vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, true)].into();
    let columns: Vec<ArrayRef> =
        vec![array(Int32Array::from(vec![None, None, Some(3)])), array(StringArray::from(vec![None, None, Some("z")]))];
    array(StructArray::new(fields, columns, Some(NullBuffer::from(vec![true, false, true]))))
}

/// A null struct that holds a vector, between two.
fn structs_with_vectors() -> ArrayRef {
    let vectors = vectors();
    let fields: Fields = vec![Field::new("v", vectors.data_type().clone(), true)].into();
    array(StructArray::new(fields, vec![vectors], Some(NullBuffer::from(vec![true, false, true]))))
}

fn maps() -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    builder.keys().append_value("a");
    builder.values().append_value(1);
    builder.append(true).unwrap();
    builder.append(false).unwrap();
    builder.append(true).unwrap();
    array(builder.finish())
}

fn rows(column: ArrayRef) -> RecordBatch {
    let ids = array(Int32Array::from_iter_values(0..column.len() as i32));
    let schema =
        Schema::new(vec![Field::new("id", DataType::Int32, false), Field::new("c", column.data_type().clone(), true)]);
    RecordBatch::try_new(Arc::new(schema), vec![ids, column]).unwrap()
}

/// Through create, begin, stage and scan.
async fn round_trip(lake: &Lake, name: &str, file_version: &str, batch: &RecordBatch) -> Result<RecordBatch> {
    create(lake, name, batch.schema().as_ref().clone(), file_version).await?;
    append(lake, name, vec![batch.clone()]).await?;
    read(lake, &spec(name)).await
}

async fn assert_round_trips(columns: Vec<ArrayRef>, file_versions: &[&str]) {
    let (_folder, lake) = local_lake().await;
    let mut faults = Vec::new();
    for (index, column) in columns.into_iter().enumerate() {
        for version in file_versions {
            let batch = rows(column.clone());
            let name = format!("t{index}-{version}");
            let label = format!("{} in {version}", column.data_type());
            match round_trip(&lake, &name, version, &batch).await {
                Ok(found) if found == batch && found.schema() == batch.schema() => {}
                Ok(found) => faults.push(format!("{label}: {:?}", found.column(1))),
                Err(e) => faults.push(format!("{label}: {:?} {e}", e.kind())),
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test]
async fn plain_types_come_back_as_they_were() {
    assert_round_trips(plain(), &FILE_VERSIONS).await;
}

#[tokio::test]
async fn null_structs_differ_from_structs_of_nulls() {
    let columns = vec![structs(), structs_with_vectors(), lists_of_structs(), structs_in_structs()];
    assert_round_trips(columns, &["2.1", "2.2"]).await;
}

#[tokio::test]
async fn maps_come_back_in_2_2() {
    assert_round_trips(vec![maps()], &["2.2"]).await;
}

#[tokio::test]
async fn format_2_0_refuses_a_null_struct_rather_than_change_it() {
    let (folder, lake) = local_lake().await;
    for (name, column) in [("t", structs()), ("u", structs_with_vectors())] {
        let error = round_trip(&lake, name, "2.0", &rows(column)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("'c'") && error.message().contains("2.1"), "{error}");
        assert!(data_files(&folder, name).is_empty());
    }
    let whole = rows(structs().slice(2, 1));
    assert_eq!(round_trip(&lake, "v", "2.0", &whole).await.unwrap(), whole);
}

#[tokio::test]
async fn types_that_lance_cannot_keep_are_refused_with_column_and_type() {
    let (_folder, lake) = local_lake().await;
    let map = maps().data_type().clone();
    let item = |t: DataType| Arc::new(Field::new("item", t, true));
    let cases = [
        (DataType::Interval(IntervalUnit::DayTime), "2.2"),
        (DataType::Decimal32(5, 2), "2.2"),
        (DataType::ListView(item(DataType::Int8)), "2.2"),
        (DataType::RunEndEncoded(item(DataType::Int32), item(DataType::Utf8)), "2.2"),
        (DataType::FixedSizeList(item(DataType::Float32), 0), "2.2"),
        (DataType::Struct(Fields::empty()), "2.2"),
        (map.clone(), "2.0"),
        (map.clone(), "2.1"),
        (DataType::List(item(DataType::Interval(IntervalUnit::YearMonth))), "2.2"),
    ];
    for (data_type, version) in cases {
        let schema = Schema::new(vec![Field::new("bad", data_type.clone(), true)]);
        let error = create(&lake, "t", schema, version).await.err();
        let named = |e: &Error| e.kind() == ErrorKind::Unsupported && e.message().contains("'bad");
        assert!(error.as_ref().is_some_and(named), "{data_type} in {version}: {error:?}");
    }
}
