#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema};
use futures::TryStreamExt;
use lance::dataset::{InsertBuilder, WriteMode as LanceWriteMode, WriteParams};
use tempfile::TempDir;

use super::*;
use crate::testing::*;
use crate::{ErrorKind, LakeOptions, SearchOptions};

/// Another tool that appends, two rows a fragment.
async fn foreign(folder: &TempDir, name: &str, rows: RecordBatch) {
    let uri = folder.path().join(format!("warehouse/{name}.lance"));
    let params = WriteParams { mode: LanceWriteMode::Append, max_rows_per_file: 2, ..Default::default() };
    InsertBuilder::new(uri.to_str().unwrap()).with_params(&params).execute(vec![rows]).await.unwrap();
}

/// A table of this column and ids from 0.
async fn table_of(folder: &TempDir, name: &str, column: ArrayRef) {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..column.len() as i64));
    foreign(folder, name, batch(&[("id", id), ("c", column)])).await;
}

fn batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, column)| (*name, column.clone(), true)))
        .unwrap()
}

fn keys(columns: &[ArrayRef]) -> RecordBatch {
    let names: Vec<String> = (0..columns.len()).map(|n| format!("k{n}")).collect();
    batch(&names.iter().map(String::as_str).zip(columns.iter().cloned()).collect::<Vec<_>>())
}

fn spec(name: &str, keys: &[&str]) -> LookupSpec {
    LookupSpec {
        table: table(name),
        version: VersionSelector::Latest,
        projection: Some(vec![vec!["id".into()]]),
        filter: None,
        metadata: RowMetadata::default(),
        batch_rows: None,
        batch_bytes: None,
        keys: keys.iter().map(|key| key.split('/').map(str::to_owned).collect()).collect(),
    }
}

async fn batches(lake: &Lake, spec: &LookupSpec, keys: RecordBatch) -> Result<Vec<RecordBatch>> {
    let lookup = lake.lookup(spec, &keys.schema()).await?;
    let found: Vec<RecordBatch> = lookup.rows(keys, 0).try_collect().await?;
    assert!(found.iter().all(|rows| rows.schema() == lookup.schema()));
    Ok(found)
}

/// Pairs of a key and the id of a row that it found.
async fn found(lake: &Lake, spec: &LookupSpec, keys: RecordBatch) -> Vec<(u64, i64)> {
    let mut pairs = Vec::new();
    for rows in batches(lake, spec, keys).await.unwrap() {
        let queries = rows.column(0).as_primitive::<UInt64Type>().values().to_vec();
        pairs.extend(queries.into_iter().zip(rows.column(1).as_primitive::<Int64Type>().values().iter().copied()));
    }
    pairs.sort_unstable();
    pairs
}

async fn refused(lake: &Lake, spec: &LookupSpec, keys: &RecordBatch) -> Error {
    lake.lookup(spec, &keys.schema()).await.err().expect("it is refused")
}

#[tokio::test]
async fn a_key_finds_all_rows_that_equal_it_once_for_each_time_it_is_asked_for() {
    let (folder, lake) = local_lake().await;
    table_of(&folder, "t", Arc::new(Int64Array::from(vec![Some(7), None, Some(7), Some(9), Some(7)]))).await;
    let asked: ArrayRef = Arc::new(Int64Array::from(vec![Some(9), Some(7), None, Some(8), Some(9)]));
    let pairs = found(&lake, &spec("t", &["c"]), keys(&[asked])).await;
    assert_eq!(pairs, [(0, 3), (1, 0), (1, 2), (1, 4), (4, 3)]);
    let nothing: ArrayRef = Arc::new(NullArray::new(2));
    assert!(found(&lake, &spec("t", &["c"]), keys(&[nothing])).await.is_empty());
    let none: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
    assert!(found(&lake, &spec("t", &["c"]), keys(&[none])).await.is_empty());
}

#[tokio::test]
async fn a_key_of_several_columns_finds_rows_that_equal_it_in_all_of_them() {
    let (folder, lake) = local_lake().await;
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
    let a: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(1), Some(2), Some(2), None]));
    let b: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "x", "y", "x"]));
    foreign(&folder, "t", batch(&[("id", id), ("a", a), ("b", b)])).await;
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None]));
    let b: ArrayRef = Arc::new(LargeStringArray::from(vec!["y", "x", "x"]));
    let both = spec("t", &["a", "b"]);
    assert_eq!(found(&lake, &both, keys(&[a.clone(), b.clone()])).await, [(0, 1), (1, 2)]);
    assert_eq!(found(&lake, &spec("t", &["b", "a"]), keys(&[b.clone(), a.clone()])).await, [(0, 1), (1, 2)]);
    let filtered = LookupSpec { filter: Some(Filter::Sql("id > 1".into())), ..both.clone() };
    assert_eq!(found(&lake, &filtered, keys(&[a.clone(), b])).await, [(1, 2)]);
    let error = refused(&lake, &both, &keys(&[a])).await;
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::InvalidArgument, "the keys have 1 columns; this lookup compares 2")
    );
}

#[tokio::test]
async fn values_are_compared_exactly_whatever_their_width_and_unit() {
    let (folder, lake) = local_lake().await;
    let decimal = |values: Vec<i128>, scale| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(20, scale).unwrap())
    };
    let bytes =
        |values: [&[u8]; 2]| -> ArrayRef { Arc::new(FixedSizeBinaryArray::try_from_iter(values.into_iter()).unwrap()) };
    // A column of two values, and keys of which the second finds the second.
    let cases: [(ArrayRef, ArrayRef); 16] = [
        (Arc::new(Int8Array::from(vec![44, 5])), Arc::new(Int64Array::from(vec![300, 5]))),
        (Arc::new(Int64Array::from(vec![1, -5])), Arc::new(Int8Array::from(vec![0, -5]))),
        (Arc::new(UInt64Array::from(vec![1, u64::MAX])), Arc::new(UInt64Array::from(vec![0, u64::MAX]))),
        (Arc::new(UInt8Array::from(vec![255, 7])), Arc::new(Int32Array::from(vec![-1, 7]))),
        (Arc::new(Float64Array::from(vec![0.1, 2.0])), Arc::new(Int32Array::from(vec![0, 2]))),
        (Arc::new(Float32Array::from(vec![0.1, 0.5])), Arc::new(Float64Array::from(vec![0.1, 0.5]))),
        (Arc::new(Int32Array::from(vec![2, 3])), Arc::new(Float64Array::from(vec![2.5, 3.0]))),
        (decimal(vec![150, 1200], 2), decimal(vec![15, 12], 0)),
        (decimal(vec![150, 1200], 2), Arc::new(Int32Array::from(vec![15, 12]))),
        (Arc::new(BooleanArray::from(vec![true, false])), Arc::new(BooleanArray::from(vec![None, Some(false)]))),
        (Arc::new(StringArray::from(vec!["a", ""])), Arc::new(StringViewArray::from(vec!["A", ""]))),
        (bytes([b"ab", b"cd"]), Arc::new(BinaryArray::from_vec(vec![b"a", b"cd"]))),
        (Arc::new(Date32Array::from(vec![0, 1])), Arc::new(Date64Array::from(vec![1, 86_400_000]))),
        (
            Arc::new(TimestampMillisecondArray::from(vec![0, -500])),
            Arc::new(TimestampNanosecondArray::from(vec![1, -500_000_000])),
        ),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![1, 2_000_000]).with_timezone("UTC")),
            Arc::new(TimestampSecondArray::from(vec![0, 2]).with_timezone("+02:00")),
        ),
        (Arc::new(Time32SecondArray::from(vec![1, 2])), Arc::new(Time64NanosecondArray::from(vec![1, 2_000_000_000]))),
    ];
    for (at, (column, asked)) in cases.into_iter().enumerate() {
        let name = format!("t{at}");
        let types = format!("{} in {}", asked.data_type(), column.data_type());
        table_of(&folder, &name, column).await;
        assert_eq!(found(&lake, &spec(&name, &["c"]), keys(&[asked])).await, [(1, 1)], "{types}");
    }
}

#[tokio::test]
async fn a_nan_finds_nothing_and_both_zeros_are_one() {
    let (folder, lake) = local_lake().await;
    table_of(&folder, "t", Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]))).await;
    for zero in [0.0, -0.0] {
        for more in [vec![], vec![5.0, 6.0, 7.0, 8.0]] {
            let asked = [vec![zero, f64::NAN], more].concat();
            let asked: ArrayRef = Arc::new(Float64Array::from(asked));
            assert_eq!(found(&lake, &spec("t", &["c"]), keys(&[asked])).await, [(0, 0), (0, 1)], "{zero}");
        }
    }
}

#[tokio::test]
async fn keys_that_cannot_be_compared_are_refused_with_both_types_before_anything_is_read() {
    let (folder, lake) = local_lake().await;
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    table_of(&folder, "t", Arc::new(TimestampSecondArray::from(vec![1]))).await;
    for (column, asked, types) in [
        ("id", text.clone(), ["Utf8", "Int64"]),
        ("c", text, ["Utf8", "Timestamp(s)"]),
        ("c", Arc::new(TimestampSecondArray::from(vec![1]).with_timezone("UTC")) as ArrayRef, ["UTC", "Timestamp(s)"]),
    ] {
        let error = refused(&lake, &spec("t", &[column]), &keys(&[asked])).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(types.iter().all(|name| error.message().contains(name)), "{error}");
        assert!(error.message().contains(&format!("'{column}'")), "{error}");
    }
    let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let error = refused(&lake, &spec("t", &["ID"]), &keys(std::slice::from_ref(&number))).await;
    assert_eq!(error.kind(), ErrorKind::ColumnNotFound);
    let error = refused(&lake, &spec("t", &["id", "id"]), &keys(&[number.clone(), number])).await;
    assert!(error.message().contains("twice"), "{error}");
}

#[tokio::test]
async fn a_field_of_a_struct_is_compared_and_comes_only_if_it_is_asked_for() {
    let (folder, lake) = local_lake().await;
    let fields = vec![Field::new("a.b", DataType::Int32, true), Field::new("c", DataType::Int8, true)];
    let a: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 2]));
    let c: ArrayRef = Arc::new(Int8Array::from(vec![10, 20, 30]));
    let nulls = NullBuffer::from(vec![true, true, false]);
    let s: ArrayRef = Arc::new(StructArray::new(fields.into(), vec![a, c], Some(nulls)));
    table_of(&folder, "t", s).await;
    let asked = || keys(&[Arc::new(Int64Array::from(vec![2])) as ArrayRef]);
    let by_field = spec("t", &["c/a.b"]);
    assert_eq!(found(&lake, &by_field, asked()).await, [(0, 1)], "a struct that is null has no fields");
    let path = |path: &[&str]| path.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
    let beside = LookupSpec { projection: Some(vec![path(&["c", "c"])]), ..by_field.clone() };
    let rows = batches(&lake, &beside, asked()).await.unwrap();
    let s = rows[0].column(1).as_struct();
    assert_eq!(s.column_names(), ["c"]);
    assert_eq!(s.column(0).as_primitive::<Int8Type>().values(), &[20]);
    let whole = LookupSpec { projection: Some(vec![path(&["c"])]), ..by_field.clone() };
    let rows = batches(&lake, &whole, asked()).await.unwrap();
    assert_eq!(rows[0].column(1).as_struct().column(0).as_primitive::<Int32Type>().values(), &[2]);
    let nothing = LookupSpec {
        projection: Some(vec![]),
        metadata: RowMetadata { row_id: true, ..Default::default() },
        ..by_field
    };
    let rows = batches(&lake, &nothing, asked()).await.unwrap();
    assert_eq!(rows[0].schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), ["_query", "_rowid"]);
    assert_eq!(refused(&lake, &spec("t", &["c"]), &asked()).await.kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn many_keys_take_several_scans_and_many_matches_several_batches() {
    let (folder, _) = local_lake().await;
    let search = SearchOptions { lookup_keys: 3, ..Default::default() };
    let warehouse = folder.path().join("warehouse").to_str().unwrap().to_owned();
    let lake = Lake::open(LakeOptions { warehouse, search, ..Default::default() }).await.unwrap();
    table_of(&folder, "t", Arc::new(Int64Array::from(vec![1, 1, 2]))).await;
    let asked: ArrayRef = Arc::new(Int64Array::from(vec![1, 3, 2, 1, 1, 1, 2, 9]));
    let small = LookupSpec { batch_rows: Some(2), ..spec("t", &["c"]) };
    let wanted = [(0, 0), (0, 1), (2, 2), (3, 0), (3, 1), (4, 0), (4, 1), (5, 0), (5, 1), (6, 2)];
    assert_eq!(found(&lake, &small, keys(std::slice::from_ref(&asked))).await, wanted);
    let rows = batches(&lake, &small, keys(std::slice::from_ref(&asked))).await.unwrap();
    assert!(rows.iter().all(|rows| rows.num_rows() <= 2));
    let bytes = LookupSpec { batch_bytes: Some(16), ..spec("t", &["c"]) };
    let rows = batches(&lake, &bytes, keys(&[asked])).await.unwrap();
    assert!(rows.iter().all(|rows| rows.num_rows() <= 2), "a row has 16 bytes");
}

#[tokio::test]
async fn a_table_without_rows_has_nothing_to_find_and_a_column_of_our_name_is_refused() {
    let (_folder, lake) = local_lake().await;
    let columns = vec![Field::new("id", DataType::Int64, true), Field::new("_query", DataType::Int64, true)];
    create(&lake, "t", Schema::new(columns), "2.2").await.unwrap();
    let asked = || keys(&[Arc::new(Int64Array::from(vec![1])) as ArrayRef]);
    assert!(found(&lake, &spec("t", &["_query"]), asked()).await.is_empty());
    let all = LookupSpec { projection: None, ..spec("t", &["id"]) };
    assert!(refused(&lake, &all, &asked()).await.message().contains("'_query'"));
}
