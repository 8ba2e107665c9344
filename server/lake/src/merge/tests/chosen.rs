//! Changes of rows that were chosen in a version, told apart by their ids.

use arrow_array::UInt64Array;
use arrow_array::types::UInt64Type;
use lance::dataset::{InsertBuilder, WriteParams};

use super::*;

const ROW_ID: &str = "_rowid";

/// Two of the rows are the same.
const ROWS: [Row; 4] = [(1, Some("a")), (2, Some("b")), (2, Some("b")), (3, None)];

async fn filled() -> (tempfile::TempDir, Lake) {
    let (folder, lake) = local_lake().await;
    create(&lake, "t", schema(), "2.2").await.unwrap();
    append(&lake, "t", vec![texts(&ROWS)]).await.unwrap();
    (folder, lake)
}

fn texts(rows: &[Row]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1)));
    RecordBatch::try_new(Arc::new(schema()), vec![ids, texts]).unwrap()
}

/// The version, and its rows with their ids, in order.
async fn chosen(lake: &Lake, name: &str) -> (u64, Vec<(i64, u64)>) {
    let metadata = RowMetadata { row_id: true, ..Default::default() };
    let spec = ScanSpec { metadata, ..spec(name) };
    let version = lake.plan_scan(&spec).await.unwrap().version;
    let found = read(lake, &spec).await.unwrap();
    let ids = found.column_by_name("id").unwrap().as_primitive::<Int64Type>();
    let row_ids = found.column_by_name(ROW_ID).unwrap().as_primitive::<UInt64Type>();
    let mut rows: Vec<_> = ids.values().iter().copied().zip(row_ids.values().iter().copied()).collect();
    rows.sort_unstable();
    (version, rows)
}

async fn begin(lake: &Lake, version: u64, columns: Option<Schema>) -> Result<BegunWrite> {
    let rows = ChangedRows { by_id: true, chosen_in: Some(version), ..Default::default() };
    lake.begin_merge(&table("t"), columns.map(Arc::new), None, rows, "").await
}

/// Changes that set the text of rows, or delete them.
fn set(rows: &[(i8, u64, Option<&str>)]) -> RecordBatch {
    set_column("a.b", rows)
}

fn set_column(name: &str, rows: &[(i8, u64, Option<&str>)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.1)));
    let texts: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(|row| row.2)));
    let kinds: ArrayRef = Arc::new(Int8Array::from_iter_values(rows.iter().map(|row| row.0)));
    RecordBatch::try_from_iter_with_nullable([(ROW_ID, ids, false), (name, texts, true), (CHANGE_KIND, kinds, false)])
        .unwrap()
}

fn text_column() -> Option<Schema> {
    Some(Schema::new(vec![schema().field(1).clone()]))
}

/// A statement that is ready to be committed.
async fn ready(lake: &Lake, version: u64, changes: RecordBatch) -> Bytes {
    let set = Schema::new(vec![changes.schema().field(1).clone()]);
    let write = begin(lake, version, Some(set)).await.unwrap();
    let part = staged(lake, &write, vec![changes]).await;
    prepared(lake, &write, id(&uuid::Uuid::new_v4().to_string(), 1), &[part]).await
}

async fn change(lake: &Lake, version: u64, changes: RecordBatch) -> Result<Committed> {
    lake.commit(&ready(lake, version, changes).await).await
}

async fn compact(lake: &Lake) -> Compacted {
    lake.compact(&table("t"), crate::Merge::All, &ProgressSender::default()).await.unwrap()
}

#[tokio::test]
async fn only_the_rows_of_the_ids_change_though_others_are_the_same() {
    let (_folder, lake) = filled().await;
    let (version, rows) = chosen(&lake, "t").await;
    let changes = [(AFTER, rows[1].1, Some("B")), (DELETE, rows[3].1, None), (AFTER, rows[0].1, None)];
    let committed = change(&lake, version, set(&changes)).await.unwrap();
    assert_eq!((committed.version, counts(&committed)), (version + 1, (0, 2, 1, 0)));
    assert_eq!(super::rows(&lake, "t").await, expect(&[(1, None), (2, Some("B")), (2, Some("b"))]));
}

#[tokio::test]
async fn whole_rows_are_staged_where_all_columns_are_set() {
    let (_folder, lake) = filled().await;
    let (version, rows) = chosen(&lake, "t").await;
    let write = begin(&lake, version, None).await.unwrap();
    let names: Vec<_> = write.schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, [ROW_ID, "id", "a.b", CHANGE_KIND]);
    let row_ids: ArrayRef = Arc::new(UInt64Array::from(vec![rows[0].1, rows[2].1]));
    let values = changes(&[(AFTER, 7, Some("x")), (DELETE, 0, None)]);
    let columns = std::iter::once(&row_ids).chain(values.columns()).cloned().collect();
    let part = staged(&lake, &write, vec![RecordBatch::try_new(write.schema.clone(), columns).unwrap()]).await;
    let committed = lake.commit(&prepared(&lake, &write, id("e", 1), &[part]).await).await.unwrap();
    assert_eq!(counts(&committed), (0, 1, 1, 0));
    assert_eq!(super::rows(&lake, "t").await, expect(&[(2, Some("b")), (3, None), (7, Some("x"))]));
}

#[tokio::test]
async fn rows_are_deleted_by_their_ids_alone() {
    let (_folder, lake) = filled().await;
    let (version, rows) = chosen(&lake, "t").await;
    let write = begin(&lake, version, Some(Schema::empty())).await.unwrap();
    let row_ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows[..3].iter().map(|row| row.1)));
    let kinds: ArrayRef = Arc::new(Int8Array::from(vec![DELETE; 3]));
    let batch = RecordBatch::try_new(write.schema.clone(), vec![row_ids, kinds]).unwrap();
    let part = staged(&lake, &write, vec![batch]).await;
    let committed = lake.commit(&prepared(&lake, &write, id("e", 1), &[part]).await).await.unwrap();
    assert_eq!(counts(&committed), (0, 0, 3, 0));
    assert_eq!(super::rows(&lake, "t").await, expect(&[(3, None)]));
}

#[tokio::test]
async fn a_compaction_and_new_properties_in_between_are_no_conflict() {
    let (_folder, lake) = filled().await;
    append(&lake, "t", vec![texts(&[(4, Some("d"))])]).await.unwrap();
    let (version, rows) = chosen(&lake, "t").await;
    let late = ready(&lake, version, set(&[(AFTER, rows[4].1, Some("D")), (DELETE, rows[0].1, None)])).await;
    assert!(compact(&lake).await.version > version);
    lake.abort_id(&table("t"), id("other", 1)).await.unwrap();
    assert_eq!(counts(&lake.commit(&late).await.unwrap()), (0, 1, 1, 0));
    let wanted = [(2, Some("b")), (2, Some("b")), (3, None), (4, Some("D"))];
    assert_eq!(super::rows(&lake, "t").await, expect(&wanted));
}

#[tokio::test]
async fn a_version_with_other_rows_in_between_is_a_conflict_that_changes_nothing() {
    let (folder, lake) = filled().await;
    let (version, rows) = chosen(&lake, "t").await;
    let late = ready(&lake, version, set(&[(AFTER, rows[0].1, Some("late"))])).await;
    change(&lake, version, set(&[(AFTER, rows[1].1, Some("first"))])).await.unwrap();
    let before = data_files(&folder, "t").len();
    for _ in 0..2 {
        let error = lake.commit(&late).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitConflict);
        let (version, next) = (version, version + 1);
        let wanted = format!("chosen in version {version}, and version {next} changed rows");
        assert!(error.message().contains(&wanted), "{error}");
    }
    assert_eq!(data_files(&folder, "t").len(), before);
    let wanted = [(1, Some("a")), (2, Some("b")), (2, Some("first")), (3, None)];
    assert_eq!(super::rows(&lake, "t").await, expect(&wanted));
}

#[tokio::test]
async fn of_two_statements_that_race_one_is_refused() {
    let (_folder, lake) = filled().await;
    let other = Lake::open(lake.inner.options.clone()).await.unwrap();
    for round in 0..5 {
        let (version, rows) = chosen(&lake, "t").await;
        let text = format!("{round}");
        let late = [
            ready(&lake, version, set(&[(AFTER, rows[0].1, Some(&text))])).await,
            ready(&other, version, set(&[(AFTER, rows[3].1, Some(&text))])).await,
        ];
        let (one, two) = tokio::join!(lake.commit(&late[0]), other.commit(&late[1]));
        let failed = one.err().xor(two.err()).expect("exactly one is refused");
        assert_eq!(failed.kind(), ErrorKind::CommitConflict);
    }
}

#[tokio::test]
async fn a_replay_answers_the_same_whatever_has_changed_since() {
    let (_folder, lake) = filled().await;
    let (version, rows) = chosen(&lake, "t").await;
    let committable = ready(&lake, version, set(&[(AFTER, rows[0].1, Some("x"))])).await;
    let first = lake.commit(&committable).await.unwrap();
    append(&lake, "t", vec![texts(&[(9, None)])]).await.unwrap();
    let again = Lake::open(lake.inner.options.clone()).await.unwrap().commit(&committable).await.unwrap();
    assert_eq!(again, Committed { already_committed: true, ..first });
    assert_eq!(super::rows(&lake, "t").await.len(), 5);
}

#[tokio::test]
async fn an_id_that_no_row_has_is_refused_and_inserts_nothing() {
    let (folder, lake) = filled().await;
    let (version, rows) = chosen(&lake, "t").await;
    let before = data_files(&folder, "t").len();
    for unknown in [999, 7 << 32] {
        let changes = set(&[(AFTER, rows[0].1, Some("x")), (AFTER, unknown, Some("y"))]);
        let error = change(&lake, version, changes).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains(&format!("no row with _rowid = {unknown}")), "{error}");
    }
    assert_eq!(data_files(&folder, "t").len(), before);
    assert_eq!(super::rows(&lake, "t").await, expect(&ROWS));
}

#[tokio::test]
async fn without_stable_ids_a_compaction_in_between_is_a_conflict_and_else_rows_change() {
    let (folder, lake) = local_lake().await;
    let uri = folder.path().join("warehouse/t.lance");
    let set = |rows: &[_]| set_column("text", rows);
    for row in ROWS {
        let params = WriteParams { mode: lance::dataset::WriteMode::Append, ..Default::default() };
        let insert = InsertBuilder::new(uri.to_str().unwrap()).with_params(&params);
        let columns = texts(&[row]).columns().to_vec();
        let schema = Schema::new(vec![schema().field(0).clone(), schema().field(1).clone().with_name("text")]);
        insert.execute(vec![RecordBatch::try_new(Arc::new(schema), columns).unwrap()]).await.unwrap();
    }
    let (version, rows) = chosen(&lake, "t").await;
    let late = ready(&lake, version, set(&[(AFTER, rows[0].1, Some("late"))])).await;
    compact(&lake).await;
    let error = lake.commit(&late).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitConflict);
    assert!(error.message().contains("moved rows, which have no stable ids"), "{error}");
    let (version, rows) = chosen(&lake, "t").await;
    let changes = set(&[(AFTER, rows[0].1, Some("x")), (DELETE, rows[1].1, None)]);
    assert_eq!(counts(&change(&lake, version, changes).await.unwrap()), (0, 1, 1, 0));
    assert_eq!(super::rows(&lake, "t").await, expect(&[(1, Some("x")), (2, Some("b")), (3, None)]));
}

#[tokio::test]
async fn memory_for_few_ids_is_enough_for_any_number() {
    let (_folder, lake) = local_lake().await;
    let options = LakeOptions { merge: MergeOptions { keys: 7 }, ..lake.inner.options.clone() };
    let lake = Lake::open(options).await.unwrap();
    create(&lake, "t", schema(), "2.2").await.unwrap();
    let all: Vec<Row> = (0..100).map(|id| (id, None)).collect();
    for part in all.chunks(20) {
        append(&lake, "t", vec![texts(part)]).await.unwrap();
    }
    let (version, rows) = chosen(&lake, "t").await;
    let changes: Vec<_> = rows[..60].iter().map(|(_, row_id)| (AFTER, *row_id, Some("x"))).collect();
    assert_eq!(counts(&change(&lake, version, set(&changes)).await.unwrap()), (0, 60, 0, 0));
    let wanted: Vec<Row> = (0..100).map(|id| (id, (id < 60).then_some("x"))).collect();
    assert_eq!(super::rows(&lake, "t").await, expect(&wanted));
}

#[tokio::test]
async fn what_cannot_be_is_refused_at_the_start() {
    let (_folder, lake) = filled().await;
    let (version, _) = chosen(&lake, "t").await;
    assert_eq!(begin(&lake, version + 1, None).await.unwrap_err().kind(), ErrorKind::TableVersionNotFound);
    let rows = ChangedRows { by_id: true, ..Default::default() };
    let unpinned = lake.begin_merge(&table("t"), None, None, rows, "").await.unwrap_err();
    assert!(unpinned.message().contains("name the version"), "{unpinned}");
    let unknown = Schema::new(vec![Field::new("nope", DataType::Utf8, true)]);
    assert_eq!(begin(&lake, version, Some(unknown)).await.unwrap_err().kind(), ErrorKind::SchemaMismatch);
}

#[tokio::test]
async fn a_column_of_the_primary_key_is_not_set_by_id() {
    let (_folder, lake) = local_lake().await;
    keyed(&lake, "t", schema(), &["id"]).await;
    merge(&lake, "t", &[(INSERT, 1, Some("a"))]).await;
    let (version, rows) = chosen(&lake, "t").await;
    let error = begin(&lake, version, Some(schema())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("'id' is of the primary key"), "{error}");
    let others = begin(&lake, version, None).await.unwrap();
    assert_eq!(others.schema.fields().len(), 3, "{}", others.schema);
    change(&lake, version, set(&[(AFTER, rows[0].1, Some("b"))])).await.unwrap();
    assert_eq!(super::rows(&lake, "t").await, expect(&[(1, Some("b"))]));
}

#[tokio::test]
async fn null_in_a_column_that_takes_none_is_refused() {
    let (_folder, lake) = local_lake().await;
    let not_null = Schema::new(vec![schema().field(0).clone(), Field::new("a.b", DataType::Utf8, false)]);
    create(&lake, "t", not_null, "2.2").await.unwrap();
    append(&lake, "t", vec![texts(&ROWS[..1])]).await.unwrap();
    let (version, rows) = chosen(&lake, "t").await;
    let error = change(&lake, version, set(&[(AFTER, rows[0].1, None)])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch, "{error}");
    assert_eq!(super::rows(&lake, "t").await, expect(&ROWS[..1]));
}

#[tokio::test]
async fn what_was_staged_for_another_version_is_refused() {
    let (_folder, lake) = filled().await;
    let (version, rows) = chosen(&lake, "t").await;
    let write = begin(&lake, version, text_column()).await.unwrap();
    let part = staged(&lake, &write, vec![set(&[(AFTER, rows[0].1, None)])]).await;
    append(&lake, "t", vec![texts(&[(9, None)])]).await.unwrap();
    let newer = begin(&lake, version + 1, text_column()).await.unwrap();
    let error = lake.prepare(id("e", 1), &newer.write, &[part], HashMap::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn a_merge_by_key_is_refused_too_if_rows_have_changed_since_the_named_version() {
    let (_folder, lake) = local_lake().await;
    keyed(&lake, "t", schema(), &["id"]).await;
    let first = merge(&lake, "t", &[(INSERT, 1, Some("a"))]).await.version;
    let rows = ChangedRows { chosen_in: Some(first), ..Default::default() };
    for (epoch, refused) in [("e", false), ("f", true)] {
        let write = lake.begin_merge(&table("t"), None, None, rows, "").await.unwrap();
        let part = staged(&lake, &write, vec![changes(&[(AFTER, 1, Some(epoch)), (INSERT, 2, None)])]).await;
        let committed = lake.commit(&prepared(&lake, &write, id(epoch, 1), &[part]).await).await;
        assert_eq!(committed.err().map(|e| e.kind()), refused.then_some(ErrorKind::CommitConflict));
    }
    assert_eq!(super::rows(&lake, "t").await, expect(&[(1, Some("e")), (2, None)]));
}

#[tokio::test]
async fn rows_of_a_filter_are_deleted_in_the_version_they_were_chosen_in_or_one_with_the_same_rows() {
    let (_folder, lake) = filled().await;
    append(&lake, "t", vec![texts(&[(4, None)])]).await.unwrap();
    let (version, _) = chosen(&lake, "t").await;
    compact(&lake).await;
    let filter = Filter::Sql("id = 1".to_owned());
    let deleted = lake.delete_rows(&table("t"), Some(&filter), Some(version), id("e", 1)).await.unwrap();
    assert_eq!(counts(&deleted), (0, 0, 1, 0));
    let assignments = [Assignment { column: "a.b".to_owned(), value: Assigned::Sql("'x'".to_owned()) }];
    let update = |version, epoch: &str| {
        let (lake, id, assignments) = (lake.clone(), id(epoch, 1), assignments.clone());
        async move { lake.update_rows(&table("t"), None, Some(version), &assignments, id).await }
    };
    assert_eq!(update(version, "f").await.unwrap_err().kind(), ErrorKind::CommitConflict);
    assert_eq!(update(deleted.version + 9, "g").await.unwrap_err().kind(), ErrorKind::TableVersionNotFound);
    assert_eq!(counts(&update(deleted.version, "h").await.unwrap()), (0, 4, 0, 0));
}
