#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod filters;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::{InsertBuilder, WriteMode as LanceWriteMode, WriteParams};
use tempfile::TempDir;

use crate::testing::*;
use crate::*;

/// Another tool that appends, `rows_per_file` rows a fragment.
async fn foreign(folder: &TempDir, name: &str, batch: RecordBatch, rows_per_file: usize) -> Dataset {
    let uri = folder.path().join(format!("warehouse/{name}.lance"));
    let params = WriteParams {
        mode: LanceWriteMode::Append,
        max_rows_per_file: rows_per_file,
        enable_stable_row_ids: true,
        ..Default::default()
    };
    InsertBuilder::new(uri.to_str().unwrap()).with_params(&params).execute(vec![batch]).await.unwrap()
}

fn ids(range: std::ops::Range<i64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(range));
    RecordBatch::try_from_iter_with_nullable([("id", column, true)]).unwrap()
}

fn values(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

fn sql(text: &str) -> Option<Filter> {
    Some(Filter::Sql(text.to_owned()))
}

async fn read_ids(lake: &Lake, spec: &ScanSpec) -> Vec<i64> {
    values(&read(lake, spec).await.unwrap())
}

async fn read_ticket(lake: &Lake, ticket: &SplitSpec) -> Vec<i64> {
    let batches: Vec<RecordBatch> = lake.scan(ticket).await.unwrap().try_collect().await.unwrap();
    batches.iter().flat_map(values).collect()
}

#[tokio::test]
async fn a_plan_reads_its_version_whatever_is_committed_meanwhile() {
    let (folder, lake) = local_lake().await;
    for step in 0..5 {
        foreign(&folder, "t", ids(step * 20..step * 20 + 20), 8).await;
    }
    let spec = ScanSpec { split_bytes: Some(1), ..spec("t") };
    let plan = lake.plan_scan(&spec).await.unwrap();
    assert_eq!((plan.version, plan.num_rows), (5, 100));
    assert!(plan.splits.len() > 5);
    let mut dataset = foreign(&folder, "t", ids(100..150), 8).await;
    dataset.delete("id >= 10 AND id < 20").await.unwrap();
    let mut found = Vec::new();
    for split in &plan.splits {
        found.extend(read_ticket(&lake, &ticket(&spec, &plan, split)).await);
    }
    assert_eq!(found, (0..100).collect::<Vec<_>>());
    assert_eq!(read_ids(&lake, &spec).await.len(), 140);
}

#[tokio::test]
async fn splits_of_a_table_with_deletions_hold_each_live_row_once() {
    let (folder, lake) = local_lake().await;
    let mut dataset = foreign(&folder, "t", ids(0..1000), 300).await;
    dataset.delete("id % 3 = 0 OR (id >= 400 AND id < 450)").await.unwrap();
    let live: Vec<i64> = (0..1000).filter(|id| id % 3 != 0 && !(400..450).contains(id)).collect();
    for (split_bytes, max_splits) in [(1, 7), (1, 1000), (300, 1000), (1 << 30, 1000)] {
        let spec = ScanSpec { split_bytes: Some(split_bytes), max_splits: Some(max_splits), ..spec("t") };
        let plan = lake.plan_scan(&spec).await.unwrap();
        assert!(plan.splits.len() <= max_splits);
        assert_eq!(plan.num_rows, live.len() as u64);
        assert_eq!(plan.splits.iter().map(|s| s.num_rows).sum::<u64>(), live.len() as u64);
        assert_eq!(read_ids(&lake, &spec).await, live, "{split_bytes} {max_splits}");
        let even = ScanSpec { filter: sql("id % 2 = 0"), ..spec };
        let wanted: Vec<i64> = live.iter().copied().filter(|id| id % 2 == 0).collect();
        assert_eq!(read_ids(&lake, &even).await, wanted, "a filter sees the rows of its range only");
    }
}

#[tokio::test]
async fn a_split_can_be_resumed_at_any_row() {
    let (folder, lake) = local_lake().await;
    let mut dataset = foreign(&folder, "t", ids(0..100), 40).await;
    dataset.delete("id % 7 = 0").await.unwrap();
    for filter in [None, sql("id % 2 = 1")] {
        for limit in [None, Some(20)] {
            let spec = ScanSpec { filter: filter.clone(), limit, ..spec("t") };
            let plan = lake.plan_scan(&spec).await.unwrap();
            assert_eq!(plan.splits.len(), 1);
            let whole = SplitSpec { batch_rows: Some(7), ..ticket(&spec, &plan, &plan.splits[0]) };
            let all = read_ticket(&lake, &whole).await;
            for row_offset in [0, 1, 6, 7, 8, 19, 20, 35, 1000] {
                let found = read_ticket(&lake, &SplitSpec { row_offset, ..whole.clone() }).await;
                assert_eq!(found, all[all.len().min(row_offset as usize)..], "{row_offset} {limit:?} {filter:?}");
            }
        }
    }
}

#[tokio::test]
async fn limits_hold_over_all_splits_together() {
    let (folder, lake) = local_lake().await;
    foreign(&folder, "t", ids(0..90), 30).await;
    for limit in [1, 29, 30, 31, 60, 89, 90, 91] {
        let spec = ScanSpec { limit: Some(limit), split_bytes: Some(1), ..spec("t") };
        let plan = lake.plan_scan(&spec).await.unwrap();
        assert_eq!(plan.num_rows, limit.min(90));
        assert_eq!(plan.splits.iter().map(|s| s.limit.unwrap()).sum::<u64>(), limit.min(90));
        assert_eq!(read_ids(&lake, &spec).await, (0..limit.min(90) as i64).collect::<Vec<_>>());
        let filtered = ScanSpec { filter: sql("id >= 50"), ..spec };
        assert_eq!(lake.plan_scan(&filtered).await.unwrap().splits.len(), 1);
        assert_eq!(read_ids(&lake, &filtered).await, (50..90.min(50 + limit as i64)).collect::<Vec<_>>());
    }
    let none = lake.plan_scan(&ScanSpec { limit: Some(0), ..spec("t") }).await.unwrap();
    assert!(none.splits.is_empty() && none.num_rows == 0 && none.schema.fields().len() == 1);
    let none = lake.plan_scan(&ScanSpec { limit: Some(0), filter: sql("id > 1"), ..spec("t") }).await.unwrap();
    assert!(none.splits.is_empty());
}

#[tokio::test]
async fn metadata_columns_come_last_and_no_column_gives_row_counts() {
    let (folder, lake) = local_lake().await;
    let mut dataset = foreign(&folder, "t", ids(0..10), 4).await;
    dataset.delete("id = 5").await.unwrap();
    let all = RowMetadata { row_id: true, row_address: true, row_versions: true };
    let found = read(&lake, &ScanSpec { metadata: all, ..spec("t") }).await.unwrap();
    let names: Vec<String> = found.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["id", "_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]);
    let addresses = found.column(2).as_primitive::<UInt64Type>();
    assert_eq!((addresses.value(0), addresses.value(5)), (0, (1 << 32) + 2));
    assert!(found.column(3).as_primitive::<UInt64Type>().values().iter().all(|version| *version == 1));
    let only = RowMetadata { row_address: true, ..Default::default() };
    let found = read(&lake, &ScanSpec { projection: Some(vec![]), metadata: only, ..spec("t") }).await.unwrap();
    assert_eq!((found.num_columns(), found.num_rows()), (1, 9));
    for (filter, wanted) in [(None, 9), (sql("id >= 4"), 5)] {
        let spec = ScanSpec { projection: Some(vec![]), filter, ..spec("t") };
        let plan = lake.plan_scan(&spec).await.unwrap();
        let mut rows = 0;
        for split in &plan.splits {
            let stream = lake.scan(&ticket(&spec, &plan, split)).await.unwrap();
            let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
            rows += batches.iter().map(RecordBatch::num_rows).sum::<usize>();
            assert!(batches.iter().all(|batch| batch.num_columns() == 0));
        }
        assert_eq!(rows, wanted);
    }
}

#[tokio::test]
async fn an_empty_table_has_a_schema_and_no_split() {
    let (_folder, lake) = local_lake().await;
    create(&lake, "t", ids(0..0).schema().as_ref().clone(), "2.1").await.unwrap();
    let plan = lake.plan_scan(&spec("t")).await.unwrap();
    assert_eq!((plan.num_rows, plan.num_bytes, plan.splits.len(), plan.schema.fields().len()), (0, 0, 0, 1));
    let filter = sql("id > 1");
    assert_eq!(lake.count_rows(&table("t"), &VersionSelector::Latest, filter.as_ref()).await.unwrap(), (0, 1));
}

#[tokio::test]
async fn tickets_that_do_not_fit_the_version_are_refused() {
    let (folder, lake) = local_lake().await;
    foreign(&folder, "t", ids(0..10), 10).await;
    let spec = spec("t");
    let plan = lake.plan_scan(&spec).await.unwrap();
    let good = ticket(&spec, &plan, &plan.splits[0]);
    let range = |fragment_id, first_row, num_rows| FragmentRange { fragment_id, first_row, num_rows };
    for fragments in [
        vec![range(1, 0, None)],
        vec![range(0, 11, None)],
        vec![range(0, 5, Some(6))],
        vec![range(0, u64::MAX, Some(u64::MAX))],
        vec![range(0, 0, Some(1)), range(0, 1, Some(1))],
        vec![range(u64::MAX, 0, None)],
    ] {
        let error = lake.scan(&SplitSpec { fragments: fragments.clone(), ..good.clone() }).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{fragments:?}");
    }
    let error = lake.scan(&SplitSpec { version: 2, ..good.clone() }).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::TableVersionNotFound);
    let error = lake.scan(&SplitSpec { table: table("u"), ..good.clone() }).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::TableNotFound);
    assert!(read_ticket(&lake, &SplitSpec { fragments: vec![], ..good }).await.is_empty());
}

/// Strings that files hold in almost no bytes, so that nothing but their rows tells how wide they are.
fn wide_strings(rows: usize, bytes: usize) -> RecordBatch {
    let wide = "x".repeat(bytes);
    let strings: ArrayRef = Arc::new(LargeStringArray::from_iter_values((0..rows).map(|_| wide.as_str())));
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    RecordBatch::try_from_iter([("id", id), ("s", strings)]).unwrap()
}

#[tokio::test]
async fn wide_rows_come_in_batches_of_few_rows() {
    let (folder, lake) = local_lake().await;
    for (version, name) in [("2.0", "t"), ("2.1", "u"), ("2.2", "v")] {
        let uri = folder.path().join(format!("warehouse/{name}.lance"));
        let params = WriteParams { data_storage_version: Some(version.parse().unwrap()), ..Default::default() };
        let rows = wide_strings(96, 1 << 20);
        InsertBuilder::new(uri.to_str().unwrap()).with_params(&params).execute(vec![rows]).await.unwrap();
        for filter in [None, sql("id >= 10"), sql("s LIKE 'x%' AND id >= 10")] {
            let spec = ScanSpec { filter: filter.clone(), ..spec(name) };
            let plan = lake.plan_scan(&spec).await.unwrap();
            let mut rows = 0;
            for split in &plan.splits {
                let mut stream = lake.scan(&ticket(&spec, &plan, split)).await.unwrap();
                while let Some(batch) = stream.try_next().await.unwrap() {
                    // What a batch holds on to, not only what it shows.
                    let held = batch.column(1).to_data().buffers()[1].len();
                    assert!(held <= 4 << 20, "{held} bytes in {version} {filter:?}");
                    rows += batch.num_rows();
                }
            }
            assert_eq!(rows, if filter.is_none() { 96 } else { 86 });
        }
    }
}

#[tokio::test]
async fn rows_of_8_mib_are_read_and_one_above_the_bound_is_an_error_that_names_it() {
    let (folder, lake) = local_lake().await;
    foreign(&folder, "t", wide_strings(3, 8 << 20), 10).await;
    assert_eq!(read(&lake, &spec("t")).await.unwrap().num_rows(), 3);
    let warehouse = folder.path().join("warehouse").to_str().unwrap().to_owned();
    let scan = ScanOptions { max_row_bytes: 4 << 20, ..Default::default() };
    let strict = Lake::open(LakeOptions { warehouse, scan, ..Default::default() }).await.unwrap();
    let error = read(&strict, &spec("t")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RowTooLarge);
    assert!(error.message().contains("8388624") && error.message().contains("4194304"), "{error}");
    let narrow = ScanSpec { projection: Some(vec![vec!["id".into()]]), ..spec("t") };
    assert_eq!(read(&strict, &narrow).await.unwrap().num_rows(), 3);
}

#[tokio::test]
async fn batches_keep_the_bounds_that_the_client_sets() {
    let (folder, lake) = local_lake().await;
    foreign(&folder, "t", ids(0..10_000), 100_000).await;
    let spec = spec("t");
    let plan = lake.plan_scan(&spec).await.unwrap();
    for (batch_rows, batch_bytes, most) in
        [(Some(100), None, 100), (None, Some(800), 200), (Some(7), Some(1 << 20), 7), (None, Some(1), 1)]
    {
        let ticket = SplitSpec { batch_rows, batch_bytes, ..ticket(&spec, &plan, &plan.splits[0]) };
        let batches: Vec<RecordBatch> = lake.scan(&ticket).await.unwrap().try_collect().await.unwrap();
        assert!(batches.iter().all(|batch| batch.num_rows() <= most), "{batch_rows:?} {batch_bytes:?}");
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 10_000);
    }
}
