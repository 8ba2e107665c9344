#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use futures::{StreamExt, stream};
use tokio::sync::watch;

use crate::testing::*;
use crate::*;

fn schema() -> Schema {
    Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("a.b", DataType::Utf8, true)])
}

fn batch(ids: std::ops::Range<i64>) -> RecordBatch {
    let names: StringArray = ids.clone().map(|id| Some(format!("name {id}"))).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(ids)), Arc::new(names)];
    RecordBatch::try_new(Arc::new(schema()), columns).unwrap()
}

async fn begun(lake: &Lake) -> BegunWrite {
    create(lake, "t", schema(), "2.2").await.unwrap();
    lake.begin_write(&table("t"), None, None, WriteMode::Append, "", "").await.unwrap()
}

#[tokio::test]
async fn staged_rows_are_invisible_until_they_are_committed() {
    let (_folder, lake) = local_lake().await;
    let begun = begun(&lake).await;
    let (progress, watched) = watch::channel(StageProgress::default());
    let batches = stream::iter([Ok(batch(0..3)), Ok(batch(3..3)), Ok(batch(3..7))]).boxed();
    let staged = lake.stage(&begun.write, Some(2), batches, progress).await.unwrap();
    assert_eq!(staged.num_rows, 7);
    assert!(staged.num_bytes > 0);
    assert_eq!(fragments(&staged.staged).len(), 4, "two rows a file");
    let progress = *watched.borrow();
    assert_eq!((progress.num_rows, progress.num_durable_rows), (7, 7));
    assert!(progress.num_bytes > 7 * 8);
    assert_eq!(lake.count_rows(&table("t"), &VersionSelector::Latest, None).await.unwrap(), (0, 1));

    commit(&lake, "t", &staged.staged).await;
    let found = read(&lake, &spec("t")).await.unwrap();
    assert_eq!(found, batch(0..7));
}

#[tokio::test]
async fn a_stage_without_rows_is_empty_and_touches_nothing() {
    let (folder, lake) = local_lake().await;
    let begun = begun(&lake).await;
    let staged = stage(&lake, &begun.write, vec![Ok(batch(0..0))]).await.unwrap();
    assert!(staged.staged.is_empty());
    assert!(stage(&lake, &begun.write, vec![]).await.unwrap().staged.is_empty());
    assert!(data_files(&folder, "t").is_empty());
}

#[tokio::test]
async fn an_error_in_mid_stream_comes_out_as_it_was_and_leaves_no_file() {
    let (folder, lake) = local_lake().await;
    let begun = begun(&lake).await;
    let (progress, _) = watch::channel(StageProgress::default());
    let fault = Error::new(ErrorKind::Overloaded, "the client was too slow");
    let batches = stream::iter([Ok(batch(0..10)), Ok(batch(10..20)), Err(fault)]).boxed();
    let error = lake.stage(&begun.write, Some(5), batches, progress).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Overloaded, "the client was too slow"));
    assert!(data_files(&folder, "t").is_empty(), "{:?}", data_files(&folder, "t"));
}

#[tokio::test]
async fn a_misfit_in_a_later_batch_leaves_no_file() {
    let (folder, lake) = local_lake().await;
    let begun = begun(&lake).await;
    let column: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    let misfit = RecordBatch::try_from_iter([("id", column)]).unwrap();
    let error = stage(&lake, &begun.write, vec![Ok(batch(0..10)), Ok(misfit)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.message().contains("'id': expected Int64, got Utf8"), "{error}");
    assert!(data_files(&folder, "t").is_empty());
}

#[tokio::test]
async fn a_stage_that_is_dropped_deletes_its_files() {
    let (folder, lake) = local_lake().await;
    let begun = begun(&lake).await;
    let (progress, mut watched) = watch::channel(StageProgress::default());
    let batches = stream::iter([Ok(batch(0..10))]).chain(stream::pending()).boxed();
    let staging = {
        let lake = lake.clone();
        tokio::spawn(async move { lake.stage(&begun.write, Some(5), batches, progress).await })
    };
    watched.wait_for(|progress| progress.num_durable_rows == 10).await.unwrap();
    assert_eq!(data_files(&folder, "t").len(), 2);
    staging.abort();
    // The writer holds the other end of `progress` until it has cleaned up.
    while watched.changed().await.is_ok() {}
    assert!(data_files(&folder, "t").is_empty());
}

#[tokio::test]
async fn a_handle_of_an_earlier_table_at_the_place_is_refused() {
    let (_folder, lake) = local_lake().await;
    let begun = begun(&lake).await;
    lake.drop_table(&table("t"), false).await.unwrap();
    let gone = stage(&lake, &begun.write, vec![Ok(batch(0..1))]).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::TableNotFound);
    create(&lake, "t", schema(), "2.2").await.unwrap();
    let replaced = stage(&lake, &begun.write, vec![Ok(batch(0..1))]).await.unwrap_err();
    assert_eq!(replaced.kind(), ErrorKind::TableReplaced);
}

#[tokio::test]
async fn bytes_that_are_no_handle_are_refused() {
    let (_folder, lake) = local_lake().await;
    assert_eq!(stage(&lake, b"nonsense", vec![]).await.unwrap_err().kind(), ErrorKind::CorruptData);
    assert_eq!(lake.write_schema(b"").unwrap_err().kind(), ErrorKind::CorruptData);
}

#[tokio::test]
async fn an_overwrite_may_bring_another_schema() {
    let (_folder, lake) = local_lake().await;
    begun(&lake).await;
    let other =
        Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true), Field::new("y", DataType::Int64, true)]));
    let begin =
        async |run| lake.begin_write(&table("t"), Some(other.clone()), None, WriteMode::Overwrite, run, "").await;
    assert_eq!(begin("").await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let begun = begin("run").await.unwrap();
    assert_eq!(begun.schema, other);
    assert_eq!(lake.write_schema(&begun.write).unwrap(), other);
    let column: ArrayRef = Arc::new(Int64Array::from(vec![5]));
    let rows = RecordBatch::try_from_iter([("y", column)]).unwrap();
    let staged = stage(&lake, &begun.write, vec![Ok(rows)]).await.unwrap();
    // Both columns are there, with the ids of the new schema, also the one that no batch had.
    assert_eq!(fragments(&staged.staged)[0].files[0].fields.as_ref(), [0, 1]);
}

#[tokio::test]
async fn begin_write_creates_the_table_once_for_whoever_races() {
    let (_folder, lake) = local_lake().await;
    let begin = |n: usize| {
        let lake = lake.clone();
        async move {
            let options = CreateOptions::default();
            let request = format!("request {n}");
            lake.begin_write(&table("t"), Some(Arc::new(schema())), Some(&options), WriteMode::Append, "", &request)
                .await
        }
    };
    let begun = futures::future::try_join_all((0..8).map(begin)).await.unwrap();
    assert_eq!(begun.iter().filter(|begun| begun.created).count(), 1);
    for begun in &begun {
        let staged = stage(&lake, &begun.write, vec![Ok(batch(0..3))]).await.unwrap();
        commit(&lake, "t", &staged.staged).await;
    }
    assert_eq!(lake.count_rows(&table("t"), &VersionSelector::Latest, None).await.unwrap().0, 24);
    let versions = lake.versions(&table("t"), 100).await.unwrap();
    let operations: Vec<&str> = versions.iter().map(|version| version.operation.as_str()).collect();
    assert_eq!(operations.iter().filter(|operation| **operation == "Overwrite").count(), 1, "{operations:?}");
    assert_eq!(operations.last(), Some(&"Overwrite"));
}

#[tokio::test]
async fn begin_write_without_create_needs_the_table_and_checks_the_schema() {
    let (_folder, lake) = local_lake().await;
    let missing = lake.begin_write(&table("t"), None, None, WriteMode::Append, "", "").await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::TableNotFound);
    begun(&lake).await;
    let other =
        Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("z", DataType::Int64, true)]));
    let misfit = lake.begin_write(&table("t"), Some(other), None, WriteMode::Append, "", "").await.unwrap_err();
    assert_eq!(misfit.kind(), ErrorKind::SchemaMismatch);
    assert!(misfit.message().contains("'z'"), "{misfit}");
}

#[tokio::test]
async fn a_table_of_another_tool_is_marked_once() {
    use lance::dataset::InsertBuilder;
    let (folder, lake) = local_lake().await;
    let uri = folder.path().join("warehouse/t.lance");
    InsertBuilder::new(uri.to_str().unwrap()).execute(vec![batch(0..4).project(&[0]).unwrap()]).await.unwrap();
    let begin = |_| {
        let lake = lake.clone();
        async move { lake.begin_write(&table("t"), None, None, WriteMode::Append, "", "").await }
    };
    let begun = futures::future::try_join_all((0..8).map(begin)).await.unwrap();
    let location = lake.locate(&table("t")).unwrap();
    let marked = lake.open_latest(&location).await.unwrap();
    assert_eq!(marked.manifest().version, 2, "one commit marks the table");
    let rows = batch(4..6).project(&[0]).unwrap();
    for begun in begun {
        let staged = stage(&lake, &begun.write, vec![Ok(rows.clone())]).await.unwrap();
        assert_eq!(staged.num_rows, 2);
    }
    let found = read(&lake, &ScanSpec { version: VersionSelector::Version(1), ..spec("t") }).await.unwrap();
    assert_eq!(found.column(0).as_primitive::<Int64Type>().values(), &[0, 1, 2, 3]);
}
