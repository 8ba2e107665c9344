//! Compaction, cleanup and the sweep: what goes, what must stay, and that no row and no commit notices.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::single_range_in_vec_init)]

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use futures::{StreamExt, stream};
use lance::Dataset;
use lance::dataset::{InsertBuilder, WriteMode as LanceMode, WriteParams};
use lance::index::DatasetIndexExt;
use lance_gateway_lake::{
    CleanupSpec, CommitId, CreateOptions, ErrorKind, Lake, LakeOptions, Merge, Policy, Progress, ProgressSender, Swept,
    TableId, VersionSelector, WriteMode,
};
use lance_index::IndexType;
use lance_index::scalar::ScalarIndexParams;
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::sync::watch;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Six days of a committable, and one for the clocks.
const DEAD: Duration = Duration::from_secs(7 * 24 * 3600 + 60);
const EPOCH: &str = "5f0c1e0e-7f5f-4f0e-9d52-6a0f0f1f0001";

struct Table {
    lake: Lake,
    id: TableId,
    folder: PathBuf,
    _dir: TempDir,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]))
}

fn rows(range: Range<i64>) -> RecordBatch {
    RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from_iter_values(range))]).unwrap()
}

fn nobody() -> ProgressSender {
    watch::channel(Progress::default()).0
}

fn commit_id(seq: u64) -> CommitId {
    CommitId { epoch: EPOCH.into(), seq }
}

fn keep(versions: u64) -> CleanupSpec {
    CleanupSpec { keep_versions: Some(versions), ..CleanupSpec::default() }
}

impl Table {
    async fn new() -> Self {
        Self::with(|_| {}, &[]).await
    }

    /// A table whose gateway and whose configuration are set up so.
    async fn with(set: impl FnOnce(&mut LakeOptions), properties: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut options = LakeOptions { warehouse: dir.path().to_str().unwrap().to_owned(), ..LakeOptions::default() };
        set(&mut options);
        let lake = Lake::open(options).await.unwrap();
        let id = TableId::Name(vec!["t".into()]);
        lake.create_table(&id, schema(), &CreateOptions::default(), "", false).await.unwrap();
        let folder = dir.path().join("t.lance");
        let table = Self { lake, id, folder, _dir: dir };
        if !properties.is_empty() {
            table.foreign().await.update_config(properties.iter().copied()).await.unwrap();
        }
        table
    }

    async fn foreign(&self) -> Dataset {
        Dataset::open(self.folder.to_str().unwrap()).await.unwrap()
    }

    async fn foreign_write(&self, mode: LanceMode, batch: RecordBatch) {
        InsertBuilder::new(Arc::new(self.foreign().await))
            .with_params(&WriteParams { mode, ..WriteParams::default() })
            .execute(vec![batch])
            .await
            .unwrap();
    }

    async fn prepare(&self, seq: u64, range: Range<i64>) -> Bytes {
        let begun = self.lake.begin_write(&self.id, None, None, WriteMode::Append, "", "").await.unwrap();
        let (progress, _) = watch::channel(Default::default());
        let batches = stream::iter([Ok(rows(range))]).boxed();
        let staged = self.lake.stage(&begun.write, None, batches, progress).await.unwrap().staged;
        self.lake.prepare(commit_id(seq), &begun.write, &[staged], HashMap::new()).await.unwrap().committable
    }

    async fn append(&self, seq: u64, range: Range<i64>) -> u64 {
        self.lake.commit(&self.prepare(seq, range).await).await.unwrap().version
    }

    async fn count(&self) -> u64 {
        self.lake.count_rows(&self.id, &VersionSelector::Latest, None).await.unwrap().0
    }

    async fn fragments(&self) -> usize {
        self.foreign().await.count_fragments()
    }

    async fn versions(&self) -> Vec<u64> {
        self.foreign().await.versions().await.unwrap().iter().map(|version| version.version).collect()
    }

    async fn sweep(&self) -> Swept {
        self.lake.sweep(&self.id, false, &nobody()).await.unwrap()
    }

    fn files(&self, folder: &str) -> BTreeSet<String> {
        let Ok(entries) = fs::read_dir(self.folder.join(folder)) else { return BTreeSet::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// A file as a dead process may leave it.
    fn leave(&self, path: &str) -> PathBuf {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "left").unwrap();
        path
    }

    fn age(&self, path: &str, age: Duration) {
        let file = File::options().append(true).open(self.folder.join(path)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    /// Everything in these folders was written so long ago.
    fn age_all(&self, age: Duration) {
        for folder in ["data", "_transactions", "_deletions"] {
            for file in self.files(folder) {
                self.age(&format!("{folder}/{file}"), age);
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Fate {
    named: bool,
    age: Duration,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let age = prop_oneof![Just(Duration::ZERO), Just(6 * DAY), Just(DEAD - 2 * Duration::from_secs(60)), Just(DEAD)];
    prop::collection::vec((any::<bool>(), age).prop_map(|(named, age)| Fate { named, age }), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_file_is_deleted_exactly_if_it_is_unnamed_and_old(fates in fates()) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let t = Table::new().await;
            let mut expected = BTreeSet::new();
            let mut gone = BTreeSet::new();
            let mut named_rows = 0;
            for (n, fate) in (0i64..).zip(&fates) {
                let before = t.files("data");
                let committable = t.prepare(n as u64 + 1, n * 10..n * 10 + 10).await;
                let file = t.files("data").difference(&before).next().unwrap().clone();
                if fate.named {
                    t.lake.commit(&committable).await.unwrap();
                    named_rows += 10;
                }
                t.age(&format!("data/{file}"), fate.age);
                if fate.named || fate.age < DEAD { expected.insert(file); } else { gone.insert(format!("data/{file}")); }
            }
            let listed = t.lake.sweep(&t.id, true, &nobody()).await.unwrap();
            assert_eq!(t.files("data").len(), fates.len(), "a dry run deletes nothing");
            let swept = t.sweep().await;
            assert_eq!(listed, swept);
            assert_eq!(t.files("data"), expected);
            assert_eq!(swept.files.iter().map(|file| file.path.clone()).collect::<BTreeSet<_>>(), gone);
            assert_eq!(swept.num_files, gone.len() as u64);
            assert_eq!(t.count().await, named_rows);
            assert_eq!(t.sweep().await.num_files, 0);
        });
    }
}

#[tokio::test]
async fn what_dead_processes_leave_goes_and_what_is_not_known_stays() {
    let t = Table::new().await;
    t.append(1, 0..10).await;
    let index = "_indices/6b1b2f9e-1f43-4d2c-9a77-111111111111";
    let building = "_indices/6b1b2f9e-1f43-4d2c-9a77-222222222222";
    let dead = [
        "data/.tmpX1",
        "data/dead.lance",
        "data/dead/0001.blob",
        "_transactions/1-dead.txn",
        "_deletions/0-1-7.arrow",
        "_versions/.tmp_x",
        "_lance_gateway/prepared/e.1",
        &format!("{index}/page.lance"),
        &format!("{index}/aux/page.lance"),
    ];
    let alive = [
        "_lance_gateway/other/x",
        "_refs/tags/x.txt",
        "tree/b/data/x.lance",
        "data/notes.txt",
        "notes.txt",
        &format!("{building}/old.lance"),
    ];
    for path in dead.iter().chain(&alive) {
        t.leave(path);
        t.age(path, DEAD);
    }
    // A build that still writes.
    t.leave(&format!("{building}/new.lance"));
    let swept = t.sweep().await;
    for path in dead {
        assert!(!t.folder.join(path).exists(), "{path} is left");
    }
    for path in alive {
        assert!(t.folder.join(path).exists(), "{path} is gone");
    }
    assert_eq!((swept.num_files, swept.num_bytes, swept.num_failed), (dead.len() as u64, 4 * dead.len() as u64, 0));
    assert_eq!(t.count().await, 10);
}

#[tokio::test]
async fn what_only_an_old_version_a_tag_or_a_branch_names_is_not_swept() {
    let t = Table::new().await;
    let tagged = t.append(1, 0..10).await;
    t.foreign().await.tags().create("kept", tagged).await.unwrap();
    let mut branch = t.foreign().await.create_branch("side", tagged, None).await.unwrap();
    t.foreign_write(LanceMode::Overwrite, rows(0..3)).await;
    t.lake.cleanup(&t.id, &keep(1), &nobody()).await.unwrap();
    t.age_all(DEAD);
    assert_eq!(t.sweep().await.num_files, 0);
    branch.checkout_latest().await.unwrap();
    assert_eq!(branch.count_rows(None).await.unwrap(), 10);
    let at_tag = t.lake.count_rows(&t.id, &VersionSelector::Tag("kept".into()), None).await.unwrap();
    assert_eq!((at_tag.0, t.count().await), (10, 3));
}

#[tokio::test]
async fn the_files_of_deleted_rows_and_of_indexes_are_named() {
    let t = Table::new().await;
    t.append(1, 0..100).await;
    let mut foreign = t.foreign().await;
    foreign.create_index(&["id"], IndexType::BTree, None, &ScalarIndexParams::default(), true).await.unwrap();
    foreign.delete("id < 10").await.unwrap();
    t.age_all(DEAD);
    for index in t.files("_indices") {
        for file in t.files(&format!("_indices/{index}")) {
            t.age(&format!("_indices/{index}/{file}"), DEAD);
        }
    }
    assert_eq!(t.sweep().await.num_files, 0);
    assert_eq!(t.count().await, 90);
}

#[tokio::test]
async fn an_absent_table_is_not_clean_but_absent() {
    let t = Table::new().await;
    let absent = TableId::Name(vec!["absent".into()]);
    assert_eq!(t.lake.sweep(&absent, false, &nobody()).await.unwrap_err().kind(), ErrorKind::TableNotFound);
    assert_eq!(t.lake.compact(&absent, Merge::All, &nobody()).await.unwrap_err().kind(), ErrorKind::TableNotFound);
    assert_eq!(t.lake.cleanup(&absent, &keep(1), &nobody()).await.unwrap_err().kind(), ErrorKind::TableNotFound);
}

#[tokio::test]
async fn an_auto_cleanup_that_others_set_deletes_no_staged_file_and_no_version_through_our_commits() {
    let auto_cleanup = [("lance.auto_cleanup.interval", "1"), ("lance.auto_cleanup.older_than", "0s")];
    let t = Table::with(|options| options.commit.max_committable_age = 60 * DAY, &auto_cleanup).await;
    let versions = t.versions().await;
    let staged = t.prepare(1, 0..10).await;
    // Old enough for Lance to take the staged file for dead.
    t.age_all(8 * DAY);
    for seq in 2..8 {
        t.append(seq, 0..10).await;
    }
    assert_eq!(t.lake.compact(&t.id, Merge::All, &nobody()).await.unwrap().fragments_removed, 6);
    assert!(t.versions().await.starts_with(&versions), "a commit of ours removed versions");
    t.lake.commit(&staged).await.unwrap();
    assert_eq!(t.count().await, 70);
}

#[tokio::test]
async fn an_auto_cleanup_inside_a_foreign_commit_leaves_staged_files_that_can_be_committed() {
    let auto_cleanup = [("lance.auto_cleanup.interval", "1"), ("lance.auto_cleanup.older_than", "0s")];
    let t = Table::with(|_| {}, &auto_cleanup).await;
    let staged = t.prepare(1, 0..10).await;
    t.age_all(6 * DAY);
    t.foreign_write(LanceMode::Append, rows(10..20)).await;
    t.foreign_write(LanceMode::Append, rows(20..30)).await;
    assert!(t.versions().await.len() <= 2, "the foreign writer cleans up");
    t.lake.commit(&staged).await.unwrap();
    assert_eq!(t.count().await, 30);
}

#[tokio::test]
async fn a_cleanup_keeps_the_newest_the_tagged_and_the_ledger() {
    let t = Table::new().await;
    let mut versions = Vec::new();
    for seq in 1..=6 {
        versions.push(t.append(seq, 0..10).await);
    }
    t.foreign().await.tags().create("kept", versions[0]).await.unwrap();
    let told = t.lake.cleanup(&t.id, &CleanupSpec { dry_run: true, ..keep(2) }, &nobody()).await.unwrap();
    assert_eq!(t.versions().await.len(), 7);
    let cleaned = t.lake.cleanup(&t.id, &keep(2), &nobody()).await.unwrap();
    assert_eq!(told, cleaned);
    assert_eq!(cleaned.num_versions, 4);
    assert_eq!(t.versions().await, [versions[0], versions[4], versions[5]]);
    assert_eq!(t.lake.count_rows(&t.id, &VersionSelector::Tag("kept".into()), None).await.unwrap().0, 10);
    assert_eq!(t.lake.commits(&t.id).await.unwrap().epochs[0].contiguous_seq, 6);
    assert_eq!(t.count().await, 60);
}

#[tokio::test]
async fn a_cleanup_by_age_and_number_removes_only_what_fits_both() {
    let t = Table::new().await;
    for seq in 1..=4 {
        t.append(seq, 0..10).await;
    }
    let old = CleanupSpec { older_than: Some(DAY), keep_versions: Some(1), dry_run: false };
    assert_eq!(t.lake.cleanup(&t.id, &old, &nobody()).await.unwrap().num_versions, 0);
    let both = CleanupSpec { older_than: Some(Duration::ZERO), keep_versions: Some(3), dry_run: false };
    assert_eq!(t.lake.cleanup(&t.id, &both, &nobody()).await.unwrap().num_versions, 2);
    let all = CleanupSpec { older_than: Some(Duration::ZERO), ..CleanupSpec::default() };
    assert_eq!(t.lake.cleanup(&t.id, &all, &nobody()).await.unwrap().num_versions, 2);
    assert_eq!((t.versions().await.len(), t.count().await), (1, 40));
    let neither = t.lake.cleanup(&t.id, &CleanupSpec::default(), &nobody()).await;
    assert_eq!(neither.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn a_cleanup_leaves_staged_files_however_old_and_takes_those_of_its_versions() {
    let t = Table::with(|options| options.commit.max_committable_age = 60 * DAY, &[]).await;
    t.append(1, 0..10).await;
    let replaced = t.files("data");
    let staged = t.prepare(2, 10..20).await;
    t.foreign_write(LanceMode::Overwrite, rows(0..5)).await;
    t.age_all(30 * DAY);
    t.lake.cleanup(&t.id, &keep(1), &nobody()).await.unwrap();
    assert!(t.files("data").is_disjoint(&replaced), "the rows that were replaced are still there");
    t.lake.commit(&staged).await.unwrap();
    assert_eq!(t.count().await, 15);
}

#[tokio::test]
async fn a_compaction_merges_fragments_and_keeps_rows_ledger_and_indexes() {
    let t = Table::new().await;
    let mut committables = Vec::new();
    for seq in 1..=20 {
        let range = seq as i64 * 10..seq as i64 * 10 + 10;
        committables.push(t.prepare(seq, range).await);
        t.lake.commit(committables.last().unwrap()).await.unwrap();
    }
    let mut foreign = t.foreign().await;
    foreign.create_index(&["id"], IndexType::BTree, None, &ScalarIndexParams::default(), true).await.unwrap();
    foreign.delete("id >= 10 AND id < 15").await.unwrap();
    let ids = foreign.scan().try_into_batch().await.unwrap();
    let compacted = t.lake.compact(&t.id, Merge::All, &nobody()).await.unwrap();
    assert_eq!((compacted.fragments_removed, compacted.fragments_added), (20, 1));
    assert_eq!((t.fragments().await, t.count().await), (1, 195));
    assert_eq!(t.foreign().await.scan().try_into_batch().await.unwrap(), ids, "rows are others, or in another order");
    assert_eq!(t.foreign().await.count_rows(Some("id = 77".into())).await.unwrap(), 1);
    for committable in &committables {
        assert!(t.lake.commit(committable).await.unwrap().already_committed);
    }
    let again = t.lake.compact(&t.id, Merge::All, &nobody()).await.unwrap();
    assert_eq!((again.fragments_removed, again.version), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maintenance_beside_commits_loses_no_row_and_fails_no_commit() {
    let t = Arc::new(Table::new().await);
    let (stop, stopped) = watch::channel(false);
    let maintenance = tokio::spawn({
        let t = t.clone();
        async move {
            let mut merged = 0;
            while !*stopped.borrow() {
                merged += t.lake.compact(&t.id, Merge::All, &nobody()).await.unwrap().fragments_removed;
                t.lake.cleanup(&t.id, &keep(3), &nobody()).await.unwrap();
                t.sweep().await;
            }
            merged
        }
    });
    for seq in 1..=60 {
        t.append(seq, seq as i64 * 10..seq as i64 * 10 + 10).await;
    }
    stop.send(true).unwrap();
    assert!(maintenance.await.unwrap() > 0, "nothing was compacted meanwhile");
    let ids = t.foreign().await.scan().try_into_batch().await.unwrap();
    let ids: &Int64Array = ids.column(0).as_any().downcast_ref().unwrap();
    assert_eq!(ids.values().iter().copied().collect::<BTreeSet<_>>(), (10..610).collect());
    assert_eq!(ids.len(), 600);
    assert_eq!(t.lake.commits(&t.id).await.unwrap().epochs[0].contiguous_seq, 60);
}

#[tokio::test]
async fn a_compaction_that_is_dropped_shows_nothing_and_its_files_go_with_the_sweep() {
    let t = Table::new().await;
    for seq in 1..=10 {
        t.append(seq, 0..10).await;
    }
    let data = t.files("data");
    let (progress, mut seen) = watch::channel(Progress::default());
    tokio::select! {
        _ = t.lake.compact(&t.id, Merge::All, &progress) => panic!("it came to its end"),
        _ = seen.wait_for(|progress| progress.stage == "committing") => {}
    }
    assert_eq!((t.fragments().await, t.count().await), (10, 100));
    t.age_all(DEAD);
    t.sweep().await;
    assert_eq!(t.files("data"), data);
}

#[tokio::test]
async fn a_policy_rewrites_a_fragment_only_once_those_behind_it_have_outgrown_it() {
    let t = Table::new().await;
    t.append(1, 0..100).await;
    t.append(2, 100..110).await;
    t.append(3, 110..120).await;
    let policy = Policy { compact_fragments: Some(4), ..Policy::default() };
    assert!(t.lake.compaction_is_due(&t.id, &policy).await.unwrap());
    let compacted = t.lake.compact(&t.id, Merge::Outgrown, &nobody()).await.unwrap();
    assert_eq!((compacted.fragments_removed, compacted.fragments_added), (2, 1));
    assert!(!t.lake.compaction_is_due(&t.id, &policy).await.unwrap());

    t.append(4, 120..140).await;
    let compacted = t.lake.compact(&t.id, Merge::Outgrown, &nobody()).await.unwrap();
    assert_eq!((compacted.fragments_removed, compacted.fragments_added), (3, 1));
    assert_eq!((t.count().await, t.fragments().await), (140, 1));
}

#[tokio::test]
async fn a_policy_asks_for_what_is_above_its_numbers_and_for_nothing_else() {
    let t = Table::new().await;
    let policy = Policy { compact_fragments: Some(6), keep_versions: Some(4), ..Policy::default() };
    for seq in 1..=2 {
        t.append(seq, 0..10).await;
    }
    let due = async |policy: &Policy| {
        let compaction = t.lake.compaction_is_due(&t.id, policy).await.unwrap();
        (compaction, t.lake.due_cleanup(&t.id, policy).await.unwrap())
    };
    assert_eq!(due(&policy).await, (false, None));
    for seq in 3..=5 {
        t.append(seq, 0..10).await;
    }
    assert_eq!(due(&policy).await, (true, Some(keep(4))));
    t.lake.compact(&t.id, Merge::All, &nobody()).await.unwrap();
    t.lake.cleanup(&t.id, &keep(4), &nobody()).await.unwrap();
    assert_eq!(due(&policy).await, (false, None));
    let by_age = Policy { keep_age: Some(DAY), ..Policy::default() };
    assert_eq!(due(&by_age).await, (false, None));
    let by_age = Policy { keep_age: Some(Duration::from_nanos(1)), ..Policy::default() };
    let (compaction, cleanup) = due(&by_age).await;
    assert!(!compaction && cleanup.is_some());
}
