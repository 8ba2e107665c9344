#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chosen;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int8Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use proptest::prelude::*;

use super::CHANGE_KIND;
use crate::testing::*;
use crate::*;

const INSERT: i8 = 0;
const BEFORE: i8 = 1;
const AFTER: i8 = 2;
const DELETE: i8 = 3;

type Row = (i64, Option<&'static str>);
type Change<'a> = (i8, i64, Option<&'a str>);
type Case = (&'static [Change<'static>], &'static [Row]);

fn schema() -> Schema {
    Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("a.b", DataType::Utf8, true)])
}

async fn keyed(lake: &Lake, name: &str, schema: Schema, key: &[&str]) {
    let primary_key = key.iter().map(|name| (*name).to_owned()).collect();
    let options = CreateOptions { primary_key, ..Default::default() };
    lake.create_table(&table(name), Arc::new(schema), &options, "", false).await.unwrap();
}

fn changes(rows: &[Change<'_>]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|row| row.2)));
    let kinds: ArrayRef = Arc::new(Int8Array::from_iter_values(rows.iter().map(|row| row.0)));
    let nullable = [(false, "id", ids), (true, "a.b", texts), (false, CHANGE_KIND, kinds)];
    let fields: Vec<Field> =
        nullable.iter().map(|(null, name, values)| Field::new(*name, values.data_type().clone(), *null)).collect();
    let columns = nullable.into_iter().map(|(_, _, values)| values).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

async fn begun(lake: &Lake, name: &str) -> BegunWrite {
    lake.begin_merge(&table(name), None, None, ChangedRows::default(), "").await.unwrap()
}

async fn staged(lake: &Lake, write: &BegunWrite, batches: Vec<RecordBatch>) -> Bytes {
    stage(lake, &write.write, batches.into_iter().map(Ok).collect()).await.unwrap().staged
}

fn id(epoch: &str, seq: u64) -> CommitId {
    CommitId { epoch: epoch.to_owned(), seq }
}

async fn prepared(lake: &Lake, write: &BegunWrite, id: CommitId, parts: &[Bytes]) -> Bytes {
    lake.prepare(id, &write.write, parts, HashMap::new()).await.unwrap().committable
}

/// One checkpoint.
async fn merge(lake: &Lake, name: &str, rows: &[Change<'_>]) -> Committed {
    let write = begun(lake, name).await;
    let staged = staged(lake, &write, vec![changes(rows)]).await;
    let committable = prepared(lake, &write, id(&uuid::Uuid::new_v4().to_string(), 1), &[staged]).await;
    lake.commit(&committable).await.unwrap()
}

fn counts(committed: &Committed) -> (u64, u64, u64, u64) {
    let MergeCounts { num_inserted, num_updated, num_deleted, num_unchanged } = committed.merged.unwrap();
    (num_inserted, num_updated, num_deleted, num_unchanged)
}

async fn rows(lake: &Lake, name: &str) -> Vec<(i64, Option<String>)> {
    let found = read(lake, &spec(name)).await.unwrap();
    let ids = found.column(0).as_primitive::<Int64Type>();
    let texts = found.column(1).as_string::<i32>();
    let text = |row: usize| texts.is_valid(row).then(|| texts.value(row).to_owned());
    let mut rows: Vec<_> = (0..found.num_rows()).map(|row| (ids.value(row), text(row))).collect();
    rows.sort();
    rows
}

fn expect(rows: &[Row]) -> Vec<(i64, Option<String>)> {
    rows.iter().map(|(id, text)| (*id, text.map(str::to_owned))).collect()
}

#[tokio::test]
async fn the_last_change_of_a_key_wins() {
    let (_folder, lake) = local_lake().await;
    keyed(&lake, "t", schema(), &["id"]).await;
    let cases: [Case; 7] = [
        (&[(INSERT, 1, Some("a")), (DELETE, 1, None)], &[]),
        (&[(DELETE, 1, None), (INSERT, 1, Some("b"))], &[(1, Some("b"))]),
        (&[(INSERT, 1, Some("a")), (BEFORE, 1, None), (AFTER, 1, Some("c")), (DELETE, 1, None)], &[]),
        (&[(INSERT, 1, Some("a")), (BEFORE, 1, Some("a")), (AFTER, 1, Some("c"))], &[(1, Some("c"))]),
        (&[(AFTER, 1, Some("a")), (AFTER, 1, Some("b"))], &[(1, Some("b"))]),
        (&[(BEFORE, 1, Some("b"))], &[]),
        (&[(INSERT, 1, None), (INSERT, 2, Some("x"))], &[(1, None), (2, Some("x"))]),
    ];
    for (changes, wanted) in cases {
        merge(&lake, "t", changes).await;
        assert_eq!(rows(&lake, "t").await, expect(wanted), "{changes:?}");
    }
}

#[tokio::test]
async fn one_commit_is_one_version_and_tells_what_became_of_the_keys() {
    let (_folder, lake) = local_lake().await;
    keyed(&lake, "t", schema(), &["id"]).await;
    let first = merge(&lake, "t", &[(INSERT, 1, Some("a")), (INSERT, 2, Some("b")), (INSERT, 3, Some("c"))]).await;
    assert_eq!((first.version, counts(&first)), (2, (3, 0, 0, 0)));
    let second =
        merge(&lake, "t", &[(AFTER, 1, Some("A")), (DELETE, 2, None), (INSERT, 4, Some("d")), (DELETE, 9, None)]).await;
    assert_eq!((second.version, counts(&second)), (3, (1, 1, 1, 1)));
    assert_eq!(rows(&lake, "t").await, expect(&[(1, Some("A")), (3, Some("c")), (4, Some("d"))]));
    let nothing = merge(&lake, "t", &[(DELETE, 77, None)]).await;
    assert_eq!(counts(&nothing), (0, 0, 0, 1));
    assert_eq!(rows(&lake, "t").await.len(), 3);
}

#[tokio::test]
async fn a_replay_answers_the_same_and_changes_nothing() {
    let (folder, lake) = local_lake().await;
    keyed(&lake, "t", schema(), &["id"]).await;
    merge(&lake, "t", &[(INSERT, 1, Some("a"))]).await;
    let write = begun(&lake, "t").await;
    let part = staged(&lake, &write, vec![changes(&[(AFTER, 1, Some("b")), (INSERT, 2, Some("c"))])]).await;
    let committable = prepared(&lake, &write, id("e", 1), &[part]).await;
    let first = lake.commit(&committable).await.unwrap();
    merge(&lake, "t", &[(AFTER, 1, Some("later"))]).await;
    let again = Lake::open(lake.inner.options.clone()).await.unwrap().commit(&committable).await.unwrap();
    assert_eq!(again, Committed { already_committed: true, ..first.clone() });
    assert_eq!(counts(&first), (1, 1, 0, 0));
    assert_eq!(rows(&lake, "t").await, expect(&[(1, Some("later")), (2, Some("c"))]));
    let left = folder.path().join("warehouse/t.lance/_lance_gateway/changes");
    assert_eq!(std::fs::read_dir(left).unwrap().count(), 0, "changes are gone once they are committed");
}

#[tokio::test]
async fn commits_of_an_epoch_land_in_their_order() {
    let (_folder, lake) = local_lake().await;
    keyed(&lake, "t", schema(), &["id"]).await;
    let write = begun(&lake, "t").await;
    let mut committables = Vec::new();
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c")] {
        let part = staged(&lake, &write, vec![changes(&[(AFTER, 1, Some(text))])]).await;
        committables.push(prepared(&lake, &write, id("e", seq), &[part]).await);
    }
    let early = lake.commit(&committables[1]).await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::CommitOutOfOrder);
    assert!(early.message().contains("before commit 1"), "{early}");
    lake.commit(&committables[0]).await.unwrap();
    assert_eq!(lake.commit(&committables[2]).await.unwrap_err().kind(), ErrorKind::CommitOutOfOrder);
    // One that was given up is no obstacle.
    lake.abort(&committables[1]).await.unwrap();
    let third = lake.commit(&committables[2]).await.unwrap();
    assert_eq!(third.version, 4, "two commits and an abort");
    assert_eq!(rows(&lake, "t").await, expect(&[(1, Some("c"))]));
}

#[tokio::test]
async fn what_several_writers_staged_is_applied_in_the_order_in_which_it_is_prepared() {
    let (_folder, lake) = local_lake().await;
    keyed(&lake, "t", schema(), &["id"]).await;
    let write = begun(&lake, "t").await;
    let parts = [
        staged(&lake, &write, vec![changes(&[(INSERT, 1, Some("x")), (INSERT, 2, Some("x"))])]).await,
        staged(&lake, &write, vec![changes(&[(DELETE, 3, None)])]).await,
        staged(
            &lake,
            &write,
            vec![changes(&[(INSERT, 3, Some("z"))]), changes(&[(AFTER, 1, Some("y")), (DELETE, 2, None)])],
        )
        .await,
    ];
    let committable = prepared(&lake, &write, id("e", 1), &parts).await;
    let committed = lake.commit(&committable).await.unwrap();
    assert_eq!(counts(&committed), (2, 0, 0, 1));
    assert_eq!(rows(&lake, "t").await, expect(&[(1, Some("y")), (3, Some("z"))]));
}

#[tokio::test]
async fn a_merge_that_another_writer_overtakes_looks_for_its_rows_anew() {
    let (_folder, lake) = local_lake().await;
    keyed(&lake, "t", schema(), &["id"]).await;
    let other = Lake::open(lake.inner.options.clone()).await.unwrap();
    let all: Vec<_> = (1..=10).map(|id| (AFTER, id, Some("x"))).collect();
    for round in 0..10 {
        let lakes = [lake.clone(), other.clone(), lake.clone(), other.clone()];
        let merges = lakes.map(|lake| {
            let all = all.clone();
            tokio::spawn(async move { merge(&lake, "t", &all).await })
        });
        for merge in merges {
            merge.await.unwrap();
        }
        assert_eq!(rows(&lake, "t").await.len(), 10, "round {round}");
    }
}

#[tokio::test]
async fn bad_changes_are_refused_and_leave_nothing() {
    let (folder, lake) = local_lake().await;
    keyed(&lake, "t", schema(), &["id"]).await;
    let write = begun(&lake, "t").await;
    let good = changes(&[(INSERT, 1, Some("a"))]);
    let bad_kind = changes(&[(7, 1, Some("a"))]);
    let error = stage(&lake, &write.write, vec![Ok(good.clone()), Ok(bad_kind)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("_change_kind is 7"), "{error}");
    let no_key: ArrayRef = Arc::new(Int64Array::from(vec![None]));
    let kind: ArrayRef = Arc::new(Int8Array::from(vec![INSERT]));
    let null_key =
        RecordBatch::try_from_iter_with_nullable([("id", no_key, true), (CHANGE_KIND, kind, false)]).unwrap();
    let error = stage(&lake, &write.write, vec![Ok(good), Ok(null_key)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(data_files(&folder, "t").is_empty(), "{:?}", data_files(&folder, "t"));
    assert!(!folder.path().join("warehouse/t.lance/_lance_gateway/changes").exists_with_files());
    // Nothing at all.
    assert!(stage(&lake, &write.write, vec![Ok(changes(&[]))]).await.unwrap().staged.is_empty());
}

trait Files {
    fn exists_with_files(&self) -> bool;
}

impl Files for std::path::PathBuf {
    fn exists_with_files(&self) -> bool {
        std::fs::read_dir(self).is_ok_and(|mut files| files.next().is_some())
    }
}

#[tokio::test]
async fn a_table_without_a_key_needs_one_to_be_named() {
    let (_folder, lake) = local_lake().await;
    create(&lake, "t", schema(), "2.2").await.unwrap();
    let refused = |key: Vec<String>| {
        let lake = lake.clone();
        async move { lake.begin_merge(&table("t"), None, None, ChangedRows::of(&key), "").await.unwrap_err().kind() }
    };
    assert_eq!(refused(vec![]).await, ErrorKind::InvalidArgument);
    assert_eq!(refused(vec!["nope".into()]).await, ErrorKind::ColumnNotFound);
    assert_eq!(refused(vec!["id".into(), "id".into()]).await, ErrorKind::InvalidArgument);
    let key = ["a.b".to_owned()];
    let write = lake.begin_merge(&table("t"), None, None, ChangedRows::of(&key), "").await.unwrap();
    let batch = changes(&[(INSERT, 1, Some("k")), (INSERT, 2, Some("k"))]);
    let part = staged(&lake, &write, vec![batch]).await;
    lake.commit(&prepared(&lake, &write, id("e", 1), &[part]).await).await.unwrap();
    assert_eq!(rows(&lake, "t").await, expect(&[(2, Some("k"))]));
}

#[tokio::test]
async fn another_primary_key_than_that_of_the_table_is_refused() {
    let (_folder, lake) = local_lake().await;
    keyed(&lake, "t", schema(), &["id"]).await;
    let create = CreateOptions { primary_key: vec!["a.b".into()], ..Default::default() };
    let given = Some(Arc::new(schema()));
    let error = lake.begin_merge(&table("t"), given, Some(&create), ChangedRows::default(), "").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.message().contains("is (id), not (a.b)"), "{error}");
}

fn wide() -> Schema {
    let name = Field::new("name", DataType::Utf8, false);
    let place = DataType::Struct(vec![Field::new("city", DataType::Utf8, true)].into());
    Schema::new(vec![
        Field::new("vector", DataType::Int64, true),
        name,
        Field::new("status", DataType::Utf8, true),
        Field::new("place", place, true),
    ])
}

fn partial(names: &[&str], statuses: &[Option<&str>]) -> RecordBatch {
    let kinds: ArrayRef = Arc::new(Int8Array::from_iter_values(names.iter().map(|_| AFTER)));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let statuses: ArrayRef = Arc::new(StringArray::from_iter(statuses.iter()));
    RecordBatch::try_from_iter_with_nullable([
        ("name", names, false),
        ("status", statuses, true),
        (CHANGE_KIND, kinds, false),
    ])
    .unwrap()
}

#[tokio::test]
async fn columns_that_a_change_does_not_have_stay_as_they_are() {
    let (_folder, lake) = local_lake().await;
    keyed(&lake, "t", wide(), &["name"]).await;
    let some = Schema::new(vec![wide().field(1).clone(), wide().field(2).clone()]);
    let some = Some(Arc::new(some));
    let all = lake.begin_merge(&table("t"), None, None, ChangedRows::default(), "").await.unwrap();
    let vectors: ArrayRef = Arc::new(Int64Array::from_iter_values(0..64));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..64).map(|n| format!("p{n}"))));
    let kinds: ArrayRef = Arc::new(Int8Array::from_iter_values((0..64).map(|_| INSERT)));
    let full = RecordBatch::try_from_iter_with_nullable([
        ("vector", vectors, true),
        ("name", names, false),
        (CHANGE_KIND, kinds, false),
    ]);
    let part = staged(&lake, &all, vec![full.unwrap()]).await;
    lake.commit(&prepared(&lake, &all, id("e", 1), &[part]).await).await.unwrap();

    let write = lake.begin_merge(&table("t"), some, None, ChangedRows::default(), "").await.unwrap();
    let names: Vec<String> = write.schema.fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["name", "status", CHANGE_KIND]);
    let batch = partial(&["p3", "p60", "p3", "new"], &[Some("lost"), None, Some("won"), Some("n")]);
    let part = staged(&lake, &write, vec![batch]).await;
    let committed = lake.commit(&prepared(&lake, &write, id("f", 1), &[part]).await).await.unwrap();
    assert_eq!(counts(&committed), (1, 2, 0, 0));

    let found = read(&lake, &spec("t")).await.unwrap();
    assert_eq!(found.num_rows(), 65);
    let names = found.column(1).as_string::<i32>();
    let by_name: BTreeMap<&str, usize> = (0..65).map(|row| (names.value(row), row)).collect();
    let vector = |name| {
        let vectors = found.column(0).as_primitive::<Int64Type>();
        vectors.is_valid(by_name[name]).then(|| vectors.value(by_name[name]))
    };
    let status = |name| {
        let statuses = found.column(2).as_string::<i32>();
        statuses.is_valid(by_name[name]).then(|| statuses.value(by_name[name]))
    };
    assert_eq!((vector("p3"), status("p3")), (Some(3), Some("won")));
    assert_eq!((vector("p60"), status("p60")), (Some(60), None));
    assert_eq!((vector("new"), status("new")), (None, Some("n")));
    assert_eq!((vector("p7"), status("p7")), (Some(7), None));
}

#[tokio::test]
async fn a_partial_change_that_could_not_make_a_row_is_refused_at_the_start() {
    let (_folder, lake) = local_lake().await;
    keyed(&lake, "t", wide(), &["name"]).await;
    let given = |columns: &[usize]| {
        Some(Arc::new(Schema::new(columns.iter().map(|at| wide().field(*at).clone()).collect::<Vec<_>>())))
    };
    let no_key = lake.begin_merge(&table("t"), given(&[0, 2]), None, ChangedRows::default(), "").await.unwrap_err();
    assert!(no_key.message().contains("column 'name' of the key is missing"), "{no_key}");
    keyed(&lake, "u", wide(), &["name"]).await;
    let key = ["vector".to_owned()];
    let not_null = lake.begin_merge(&table("u"), given(&[0, 2]), None, ChangedRows::of(&key), "").await.unwrap_err();
    assert!(not_null.message().contains("column 'name' is NOT NULL and missing"), "{not_null}");
}

#[tokio::test]
async fn memory_for_few_keys_is_enough_for_any_number() {
    let (_folder, lake) = local_lake().await;
    let options = LakeOptions { merge: MergeOptions { keys: 7 }, ..lake.inner.options.clone() };
    let lake = Lake::open(options).await.unwrap();
    keyed(&lake, "t", schema(), &["id"]).await;
    let first: Vec<_> = (0..200).map(|id| (INSERT, id, Some("a"))).collect();
    assert_eq!(counts(&merge(&lake, "t", &first).await), (200, 0, 0, 0));
    let second: Vec<_> =
        (100..300).map(|id| if id % 3 == 0 { (DELETE, id, None) } else { (AFTER, id, Some("b")) }).collect();
    let committed = merge(&lake, "t", &second).await;
    assert_eq!(counts(&committed), (67, 67, 33, 33));
    let wanted: Vec<Row> =
        (0..300).filter(|id| *id < 100 || id % 3 != 0).map(|id| (id, Some(if id < 100 { "a" } else { "b" }))).collect();
    assert_eq!(rows(&lake, "t").await, expect(&wanted));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_changes_ends_as_in_a_map(
        checkpoints in prop::collection::vec(
            (prop::collection::vec((0..4_i8, 0..12_i64, 0..3_usize), 1..20), any::<bool>()),
            1..5,
        ),
    ) {
        const TEXTS: [Option<&str>; 3] = [None, Some(""), Some("x")];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let (_folder, lake) = local_lake().await;
            keyed(&lake, "t", schema(), &["id"]).await;
            let mut wanted = BTreeMap::new();
            for (rows, compact) in checkpoints {
                let rows: Vec<_> = rows.into_iter().map(|(kind, id, text)| (kind, id, TEXTS[text])).collect();
                for (kind, id, text) in &rows {
                    match *kind {
                        INSERT | AFTER => wanted.insert(*id, text.map(str::to_owned)),
                        _ => wanted.remove(id),
                    };
                }
                merge(&lake, "t", &rows).await;
                if compact {
                    lake.compact(&table("t"), crate::Merge::All, &ProgressSender::default()).await.unwrap();
                }
                assert_eq!(self::rows(&lake, "t").await, wanted.clone().into_iter().collect::<Vec<_>>());
            }
        });
    }
}
