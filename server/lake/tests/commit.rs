//! A checkpoint's rows become visible once: the ledger under races, replays, cleanup, compaction and foreign writers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::single_range_in_vec_init)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use futures::{StreamExt, stream};
use lance::Dataset;
use lance::dataset::{InsertBuilder, WriteMode as LanceMode, WriteParams};
use lance_gateway_lake::{
    CommitId, CommitRecord, CommitState, Commits, Committed, CreateOptions, ErrorKind, Lake, LakeOptions, RecordState,
    TableId, VersionSelector, WriteMode,
};
use tempfile::TempDir;
use tokio::sync::watch;
use uuid::Uuid;

struct Table {
    lake: Lake,
    id: TableId,
    uri: String,
    dir: TempDir,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("name", DataType::Utf8, true)]))
}

fn rows(range: std::ops::Range<i64>) -> RecordBatch {
    let names = range.clone().map(|i| format!("row {i}"));
    RecordBatch::try_new(
        schema(),
        vec![Arc::new(Int64Array::from_iter_values(range)), Arc::new(StringArray::from_iter_values(names))],
    )
    .unwrap()
}

fn options(dir: &TempDir) -> LakeOptions {
    LakeOptions { warehouse: dir.path().to_str().unwrap().to_owned(), ..LakeOptions::default() }
}

impl Table {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let lake = Lake::open(options(&dir)).await.unwrap();
        let uri = dir.path().join("t.lance").to_str().unwrap().to_owned();
        Self { lake, id: TableId::Name(vec!["t".into()]), uri, dir }
    }

    /// Another gateway process on the same table.
    async fn second_gateway(&self) -> Lake {
        Lake::open(options(&self.dir)).await.unwrap()
    }

    async fn begin(&self, mode: WriteMode, run: &str) -> Bytes {
        self.lake
            .begin_write(
                &self.id,
                Some(schema()),
                Some(&CreateOptions::default()),
                mode,
                run,
                &Uuid::new_v4().to_string(),
            )
            .await
            .unwrap()
            .write
    }

    async fn stage(&self, write: &Bytes, range: std::ops::Range<i64>) -> Bytes {
        let (progress, _) = watch::channel(Default::default());
        self.lake.stage(write, None, stream::iter([Ok(rows(range))]).boxed(), progress).await.unwrap().staged
    }

    async fn prepare(&self, write: &Bytes, id: &CommitId, ranges: &[std::ops::Range<i64>]) -> Bytes {
        let mut staged = Vec::new();
        for range in ranges {
            staged.push(self.stage(write, range.clone()).await);
        }
        self.lake.prepare(id.clone(), write, &staged, HashMap::new()).await.unwrap().committable
    }

    async fn append(&self, id: &CommitId, range: std::ops::Range<i64>) -> Bytes {
        let write = self.begin(WriteMode::Append, "").await;
        self.prepare(&write, id, &[range]).await
    }

    async fn count(&self) -> u64 {
        self.lake.count_rows(&self.id, &VersionSelector::Latest, None).await.unwrap().0
    }

    async fn version(&self) -> u64 {
        self.lake.describe(&self.id, &VersionSelector::Latest).await.unwrap().version
    }

    async fn foreign(&self) -> Dataset {
        Dataset::open(&self.uri).await.unwrap()
    }

    async fn foreign_write(&self, mode: LanceMode, batch: RecordBatch) {
        InsertBuilder::new(Arc::new(self.foreign().await))
            .with_params(&WriteParams { mode, ..WriteParams::default() })
            .execute(vec![batch])
            .await
            .unwrap();
    }
}

fn commit_id(seq: u64) -> CommitId {
    CommitId { epoch: "5f0c1e0e-7f5f-4f0e-9d52-6a0f0f1f0001".into(), seq }
}

fn kind<T: std::fmt::Debug>(result: Result<T, lance_gateway_lake::Error>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[tokio::test]
async fn all_staged_writes_of_a_checkpoint_become_one_version() {
    let t = Table::new().await;
    let write = t.begin(WriteMode::Append, "").await;
    let committable = t.prepare(&write, &commit_id(1), &[0..3, 3..6]).await;
    assert_eq!(t.count().await, 0);
    let before = t.version().await;
    let committed = t.lake.commit(&committable).await.unwrap();
    assert_eq!((committed.version, committed.already_committed), (before + 1, false));
    assert_eq!(t.count().await, 6);
}

#[tokio::test]
async fn a_repeated_commit_answers_the_same_and_changes_nothing() {
    let t = Table::new().await;
    let committable = t.append(&commit_id(1), 0..10).await;
    let first = t.lake.commit(&committable).await.unwrap();
    let again = t.lake.commit(&committable).await.unwrap();
    assert_eq!(again, Committed { already_committed: true, ..first.clone() });
    assert_eq!(t.second_gateway().await.commit(&committable).await.unwrap(), again);
    assert_eq!((t.count().await, t.version().await), (10, first.version));
}

#[tokio::test]
async fn two_committables_of_one_checkpoint_both_land_once() {
    let t = Table::new().await;
    let (a, b) = (t.append(&commit_id(1), 0..10).await, t.append(&commit_id(2), 10..20).await);
    for committable in [&a, &b, &a, &b] {
        t.lake.commit(committable).await.unwrap();
    }
    assert_eq!(t.count().await, 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_racing_commits_from_two_gateways_beside_foreign_appends_give_one_version() {
    let t = Arc::new(Table::new().await);
    let other = t.second_gateway().await;
    let committable = t.append(&commit_id(1), 0..500).await;
    let before = t.version().await;
    let mut commits = Vec::new();
    for n in 0..60 {
        let lake = if n % 2 == 0 { t.lake.clone() } else { other.clone() };
        let committable = committable.clone();
        commits.push(tokio::spawn(async move { lake.commit(&committable).await.unwrap() }));
    }
    let mut foreign = Vec::new();
    for n in 0..10 {
        let t = t.clone();
        foreign.push(tokio::spawn(async move { t.foreign_write(LanceMode::Append, rows(1000 + n..1001 + n)).await }));
    }
    let mut versions = Vec::new();
    for commit in commits {
        versions.push(commit.await.unwrap().version);
    }
    for append in foreign {
        append.await.unwrap();
    }
    versions.dedup();
    assert_eq!(versions.len(), 1, "every caller gets the same answer: {versions:?}");
    assert_eq!((t.count().await, t.version().await), (510, before + 11));
}

#[tokio::test]
async fn a_replay_after_cleanup_to_one_version_is_known() {
    let t = Table::new().await;
    let committable = t.append(&commit_id(1), 0..10).await;
    let first = t.lake.commit(&committable).await.unwrap();
    t.foreign_write(LanceMode::Append, rows(10..20)).await;
    t.foreign().await.cleanup_old_versions(chrono::TimeDelta::zero(), None, None).await.unwrap();
    assert_eq!(t.lake.commit(&committable).await.unwrap(), Committed { already_committed: true, ..first });
    assert_eq!(t.count().await, 20);
}

#[tokio::test]
async fn a_commit_whose_read_version_was_cleaned_lands() {
    let t = Table::new().await;
    let committable = t.append(&commit_id(1), 0..10).await;
    t.foreign_write(LanceMode::Append, rows(10..20)).await;
    t.foreign().await.cleanup_old_versions(chrono::TimeDelta::zero(), None, None).await.unwrap();
    t.lake.commit(&committable).await.unwrap();
    assert_eq!(t.count().await, 20);
}

#[tokio::test]
async fn a_replay_after_compaction_and_foreign_overwrite_is_known() {
    let t = Table::new().await;
    let (a, b) = (t.append(&commit_id(1), 0..10).await, t.append(&commit_id(2), 10..20).await);
    t.lake.commit(&a).await.unwrap();
    t.lake.commit(&b).await.unwrap();
    let mut foreign = t.foreign().await;
    lance::dataset::optimize::compact_files(&mut foreign, Default::default(), None).await.unwrap();
    assert!(t.lake.commit(&a).await.unwrap().already_committed);
    t.foreign_write(LanceMode::Overwrite, rows(0..7)).await;
    assert!(t.lake.commit(&b).await.unwrap().already_committed);
    assert_eq!(t.count().await, 7);
}

#[tokio::test]
async fn an_overwrite_replaces_once_per_run_then_appends() {
    let t = Table::new().await;
    t.lake.commit(&t.append(&commit_id(1), 0..100).await).await.unwrap();
    let write = t.begin(WriteMode::Overwrite, "run-1").await;
    let first = t.prepare(&write, &commit_id(2), &[100..110]).await;
    let second = t.prepare(&write, &commit_id(3), &[110..120]).await;
    assert_eq!(t.count().await, 100, "until the first commit readers see the old rows");
    t.lake.commit(&second).await.unwrap();
    assert_eq!(t.count().await, 10);
    t.lake.commit(&first).await.unwrap();
    assert_eq!(t.count().await, 20);
    assert!(t.lake.commit(&second).await.unwrap().already_committed);
    let write = t.begin(WriteMode::Overwrite, "run-2").await;
    t.lake.commit(&t.prepare(&write, &commit_id(4), &[0..5]).await).await.unwrap();
    assert_eq!(t.count().await, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_commits_of_one_overwriting_run_keep_all_its_rows() {
    let t = Table::new().await;
    t.lake.commit(&t.append(&commit_id(1), 0..100).await).await.unwrap();
    let other = t.second_gateway().await;
    let write = t.begin(WriteMode::Overwrite, "run-1").await;
    let mut commits = Vec::new();
    for seq in 2..10 {
        let committable = t.prepare(&write, &commit_id(seq), &[0..10]).await;
        let lake = if seq % 2 == 0 { t.lake.clone() } else { other.clone() };
        commits.push(tokio::spawn(async move { lake.commit(&committable).await.unwrap() }));
    }
    for commit in commits {
        commit.await.unwrap();
    }
    assert_eq!(t.count().await, 80);
}

#[tokio::test]
async fn an_overwrite_without_rows_empties_the_table_once() {
    let t = Table::new().await;
    t.lake.commit(&t.append(&commit_id(1), 0..100).await).await.unwrap();
    let write = t.begin(WriteMode::Overwrite, "run-1").await;
    let empty = t.prepare(&write, &commit_id(2), &[]).await;
    t.lake.commit(&empty).await.unwrap();
    assert_eq!(t.count().await, 0);
    t.lake.commit(&t.append(&commit_id(3), 0..4).await).await.unwrap();
    assert!(t.lake.commit(&empty).await.unwrap().already_committed);
    assert_eq!(t.count().await, 4);
}

#[tokio::test]
async fn an_overwrite_may_bring_another_schema() {
    let t = Table::new().await;
    t.lake.commit(&t.append(&commit_id(1), 0..100).await).await.unwrap();
    let other = Arc::new(Schema::new(vec![Field::new("Other", DataType::Utf8, true)]));
    let begun = t.lake.begin_write(&t.id, Some(other.clone()), None, WriteMode::Overwrite, "run-1", "r").await.unwrap();
    let batch = RecordBatch::try_new(other, vec![Arc::new(StringArray::from(vec!["x", "y"]))]).unwrap();
    let (progress, _) = watch::channel(Default::default());
    let staged = t.lake.stage(&begun.write, None, stream::iter([Ok(batch)]).boxed(), progress).await.unwrap().staged;
    let prepared = t.lake.prepare(commit_id(2), &begun.write, &[staged], HashMap::new()).await.unwrap();
    t.lake.commit(&prepared.committable).await.unwrap();
    let description = t.lake.describe(&t.id, &VersionSelector::Latest).await.unwrap();
    assert_eq!(description.schema.field(0).name(), "Other");
    assert_eq!(description.num_rows, 2);
}

#[tokio::test]
async fn an_aborted_commit_never_lands_and_its_files_are_gone() {
    let t = Table::new().await;
    let committable = t.append(&commit_id(1), 0..10).await;
    assert_eq!(t.lake.abort(&committable).await.unwrap().1, 1);
    assert_eq!(kind(t.lake.commit(&committable).await), ErrorKind::CommitAborted);
    assert_eq!(t.lake.abort(&committable).await.unwrap().1, 0, "a repeated abort is harmless");
    assert_eq!(t.lake.get_commit(&t.id, &commit_id(1)).await.unwrap(), CommitState::Aborted);
    assert_eq!(t.count().await, 0);
}

#[tokio::test]
async fn a_committed_id_cannot_be_aborted() {
    let t = Table::new().await;
    let committable = t.append(&commit_id(1), 0..10).await;
    t.lake.commit(&committable).await.unwrap();
    assert_eq!(kind(t.lake.abort(&committable).await), ErrorKind::CommitConflict);
    assert_eq!(kind(t.lake.abort_id(&t.id, commit_id(1)).await), ErrorKind::CommitConflict);
    assert_eq!(t.count().await, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abort_racing_with_commit_ends_in_exactly_one_of_them() {
    for seq in 1..=10 {
        let t = Table::new().await;
        let other = t.second_gateway().await;
        let committable = t.append(&commit_id(seq), 0..10).await;
        let (commit, abort) = tokio::join!(t.lake.commit(&committable), other.abort(&committable));
        assert_ne!(commit.is_ok(), abort.is_ok(), "{commit:?} {abort:?}");
        assert_eq!(t.count().await, if commit.is_ok() { 10 } else { 0 });
    }
}

#[tokio::test]
async fn a_dropped_and_remade_table_refuses_old_committables() {
    let t = Table::new().await;
    let committable = t.append(&commit_id(1), 0..10).await;
    t.lake.drop_table(&t.id, false).await.unwrap();
    assert_eq!(kind(t.lake.commit(&committable).await), ErrorKind::TableNotFound);
    t.begin(WriteMode::Append, "").await;
    assert_eq!(kind(t.lake.commit(&committable).await), ErrorKind::TableReplaced);
    assert_eq!(t.count().await, 0);
}

#[tokio::test]
async fn a_missing_staged_file_is_refused_with_its_own_reason() {
    let t = Table::new().await;
    let committable = t.append(&commit_id(1), 0..10).await;
    std::fs::remove_dir_all(t.dir.path().join("t.lance/data")).unwrap();
    assert_eq!(kind(t.lake.commit(&committable).await), ErrorKind::StagedFileMissing);
    assert_eq!(t.count().await, 0);
}

#[tokio::test]
async fn an_old_committable_is_refused_unless_it_is_known() {
    let t = Table::new().await;
    let (known, new) = (t.append(&commit_id(1), 0..10).await, t.append(&commit_id(2), 10..20).await);
    t.lake.commit(&known).await.unwrap();
    let mut strict = options(&t.dir);
    strict.commit.max_committable_age = Duration::ZERO;
    let strict = Lake::open(strict).await.unwrap();
    assert!(strict.commit(&known).await.unwrap().already_committed);
    assert_eq!(kind(strict.commit(&new).await), ErrorKind::CommittableExpired);
}

#[tokio::test]
async fn an_abort_of_an_old_committable_that_the_table_has_forgotten_deletes_nothing() {
    let t = Table::new().await;
    let committable = t.append(&commit_id(1), 0..10).await;
    t.lake.commit(&committable).await.unwrap();
    // As the ledger prunes epochs that no committable can name any more.
    let entry = format!("lance-gateway.ledger.{}", commit_id(1).epoch);
    t.foreign().await.update_metadata([(entry.as_str(), None)]).await.unwrap();
    let mut strict = options(&t.dir);
    strict.commit.max_committable_age = Duration::ZERO;
    let strict = Lake::open(strict).await.unwrap();
    assert_eq!(strict.get_commit(&t.id, &commit_id(1)).await.unwrap(), CommitState::NotCommitted);
    assert_eq!(kind(strict.abort(&committable).await), ErrorKind::CommittableExpired);
    assert_eq!(strict.get_commit(&t.id, &commit_id(1)).await.unwrap(), CommitState::NotCommitted);
    assert_eq!(t.foreign().await.scan().try_into_batch().await.unwrap().num_rows(), 10);
}

#[tokio::test]
async fn columns_changed_between_stage_and_commit() {
    use lance::dataset::{ColumnAlteration, NewColumnTransform};
    let t = Table::new().await;
    let added = t.append(&commit_id(1), 0..10).await;
    t.foreign()
        .await
        .add_columns(
            NewColumnTransform::AllNulls(Arc::new(Schema::new(vec![Field::new("extra", DataType::Int32, true)]))),
            None,
            None,
        )
        .await
        .unwrap();
    t.lake.commit(&added).await.unwrap();
    assert_eq!(t.count().await, 10);

    let renamed = t.lake.begin_write(&t.id, None, None, WriteMode::Append, "", "r").await.unwrap();
    drop(renamed);
    let renamed = t.append(&commit_id(2), 10..20).await;
    let mut foreign = t.foreign().await;
    foreign.alter_columns(&[ColumnAlteration::new("name".into()).rename("title".into())]).await.unwrap();
    t.lake.commit(&renamed).await.unwrap();
    let title = "title = 'row 15'".to_owned();
    let found = t.foreign().await.count_rows(Some(title)).await.unwrap();
    assert_eq!((t.count().await, found), (20, 1));

    let schema = t.lake.describe(&t.id, &VersionSelector::Latest).await.unwrap().schema;
    let begun = t.lake.begin_write(&t.id, None, None, WriteMode::Append, "", "r").await.unwrap();
    let batch = RecordBatch::try_new(
        schema,
        vec![
            Arc::new(Int64Array::from(vec![1])),
            Arc::new(StringArray::from(vec!["x"])),
            Arc::new(arrow_array::Int32Array::from(vec![1])),
        ],
    )
    .unwrap();
    let (progress, _) = watch::channel(Default::default());
    let staged = t.lake.stage(&begun.write, None, stream::iter([Ok(batch)]).boxed(), progress).await.unwrap().staged;
    let dropped = t.lake.prepare(commit_id(3), &begun.write, &[staged], HashMap::new()).await.unwrap().committable;
    t.foreign().await.drop_columns(&["title"]).await.unwrap();
    let error = t.lake.commit(&dropped).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.message().contains("title"), "{error}");
    assert_eq!(t.count().await, 20);
}

#[tokio::test]
async fn a_damaged_committable_is_refused() {
    let t = Table::new().await;
    let mut committable = t.append(&commit_id(1), 0..10).await.to_vec();
    let middle = committable.len() / 2;
    committable[middle] ^= 1;
    assert_eq!(kind(t.lake.commit(&committable).await), ErrorKind::CorruptData);
    assert_eq!(t.count().await, 0);
}

#[tokio::test]
async fn prepare_of_the_same_id_gives_the_same_committable() {
    let t = Table::new().await;
    let write = t.begin(WriteMode::Append, "").await;
    let staged = [t.stage(&write, 0..10).await];
    let properties = HashMap::from([("flink.job-id".to_owned(), "a".to_owned()), ("b".to_owned(), "c".to_owned())]);
    let a = t.lake.prepare(commit_id(1), &write, &staged, properties.clone()).await.unwrap();
    let b = t.lake.prepare(commit_id(1), &write, &staged, properties).await.unwrap();
    assert_eq!(a.committable, b.committable);
    assert_eq!(kind(t.lake.prepare(commit_id(1), &write, &[], HashMap::new()).await), ErrorKind::InvalidArgument);
    let twice = [staged[0].clone(), staged[0].clone()];
    assert_eq!(kind(t.lake.prepare(commit_id(1), &write, &twice, HashMap::new()).await), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn the_ledger_lists_what_was_committed_and_aborted() {
    let t = Table::new().await;
    let first = t.lake.commit(&t.append(&commit_id(1), 0..1).await).await.unwrap();
    t.lake.abort_id(&t.id, commit_id(2)).await.unwrap();
    let Commits { epochs, records } = t.lake.commits(&t.id).await.unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!((&records[0].id, records[0].state), (&commit_id(2), RecordState::Aborted));
    assert_eq!(
        (&records[1].id, records[1].state, records[1].num_rows),
        (&commit_id(1), RecordState::Committed(first.version), 1)
    );
    assert!(records[1].num_bytes > 0);
    assert_eq!(epochs.len(), 1);
    assert_eq!(epochs[0].contiguous_seq, 2);
    assert_eq!(epochs[0].aborted, [2]);
    assert_eq!(epochs[0].versions[&1], first.version);
    assert_eq!(t.lake.get_commit(&t.id, &commit_id(9)).await.unwrap(), CommitState::NotCommitted);
}

#[tokio::test]
async fn a_prepared_commit_is_listed_until_it_is_finished() {
    let t = Table::new().await;
    let first = t.append(&commit_id(1), 0..7).await;
    let second = t.append(&commit_id(2), 7..9).await;
    let listed = |records: Vec<CommitRecord>| {
        let mut all: Vec<_> = records.into_iter().map(|r| (r.id.seq, r.state, r.num_rows)).collect();
        all.sort_by_key(|(seq, ..)| *seq);
        all
    };
    let records = t.lake.commits(&t.id).await.unwrap().records;
    assert_eq!(listed(records), [(1, RecordState::Prepared, 7), (2, RecordState::Prepared, 2)]);

    let version = t.lake.commit(&first).await.unwrap().version;
    t.lake.abort(&second).await.unwrap();
    let records = t.lake.commits(&t.id).await.unwrap().records;
    assert_eq!(listed(records), [(1, RecordState::Committed(version), 7), (2, RecordState::Aborted, 0)]);
}
