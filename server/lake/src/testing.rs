//! What the tests inside this crate share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use futures::{StreamExt, TryStreamExt, stream};
use lance::Dataset;
use lance::dataset::CommitBuilder;
use lance::dataset::transaction::{Operation, TransactionBuilder};
use lance_table::format::{Fragment, pb};
use prost::Message;
use tokio::sync::watch;

use crate::commit::envelope::{self, Kind};
use crate::commit::messages::StagedWrite;
use crate::*;

/// A lake in a folder that goes away with the first value.
pub(crate) async fn local_lake() -> (tempfile::TempDir, Lake) {
    let folder = tempfile::tempdir().unwrap();
    let warehouse = folder.path().join("warehouse").to_str().unwrap().to_owned();
    let lake = Lake::open(LakeOptions { warehouse, ..Default::default() }).await.unwrap();
    (folder, lake)
}

pub(crate) fn table(name: &str) -> TableId {
    TableId::Name(vec![name.to_owned()])
}

pub(crate) async fn create(lake: &Lake, name: &str, schema: Schema, file_version: &str) -> Result<(u64, bool)> {
    let options = CreateOptions { data_storage_version: Some(file_version.to_owned()), ..Default::default() };
    lake.create_table(&table(name), Arc::new(schema), &options, "", false).await
}

pub(crate) async fn stage(lake: &Lake, write: &[u8], batches: Vec<Result<RecordBatch>>) -> Result<Staged> {
    let (progress, _) = watch::channel(StageProgress::default());
    lake.stage(write, None, stream::iter(batches).boxed(), progress).await
}

/// Appends through begin and stage, and commits with Lance as it is.
pub(crate) async fn append(lake: &Lake, name: &str, batches: Vec<RecordBatch>) -> Result<u64> {
    let begun = lake.begin_write(&table(name), None, None, WriteMode::Append, "", "").await?;
    let staged = stage(lake, &begun.write, batches.into_iter().map(Ok).collect()).await?;
    Ok(commit(lake, name, &staged.staged).await.manifest().version)
}

pub(crate) async fn commit(lake: &Lake, name: &str, staged: &[u8]) -> Dataset {
    let location = lake.locate(&table(name)).unwrap();
    let dataset = lake.open_latest(&location).await.unwrap();
    let operation = Operation::Append { fragments: fragments(staged) };
    let read_version = dataset.manifest().version;
    CommitBuilder::new(dataset).execute(TransactionBuilder::new(read_version, operation).build()).await.unwrap()
}

pub(crate) fn fragments(staged: &[u8]) -> Vec<Fragment> {
    let staged: StagedWrite = envelope::open(Kind::StagedWrite, staged).unwrap();
    let decode = |bytes: &bytes::Bytes| Fragment::try_from(pb::DataFragment::decode(bytes.as_ref()).unwrap()).unwrap();
    staged.fragments.iter().map(decode).collect()
}

pub(crate) fn spec(name: &str) -> ScanSpec {
    ScanSpec {
        table: table(name),
        version: VersionSelector::Latest,
        projection: None,
        filter: None,
        limit: None,
        metadata: RowMetadata::default(),
        split_bytes: None,
        max_splits: None,
    }
}

/// The ticket of one split of a plan.
pub(crate) fn ticket(spec: &ScanSpec, plan: &ScanPlan, split: &PlannedSplit) -> SplitSpec {
    SplitSpec {
        table: spec.table.clone(),
        version: plan.version,
        projection: spec.projection.clone(),
        filter: spec.filter.clone(),
        limit: split.limit,
        metadata: spec.metadata,
        batch_rows: None,
        batch_bytes: None,
        fragments: split.fragments.clone(),
        row_offset: 0,
    }
}

/// Plans and reads all splits, one after the other.
pub(crate) async fn read(lake: &Lake, spec: &ScanSpec) -> Result<RecordBatch> {
    let plan = lake.plan_scan(spec).await?;
    let mut batches = Vec::new();
    for split in &plan.splits {
        let stream = lake.scan(&ticket(spec, &plan, split)).await?;
        assert_eq!(stream.schema(), plan.schema);
        batches.extend(stream.try_collect::<Vec<_>>().await?);
    }
    Ok(concat(&plan.schema, &batches))
}

pub(crate) fn concat(schema: &SchemaRef, batches: &[RecordBatch]) -> RecordBatch {
    concat_batches(schema, batches).unwrap()
}

/// All files below the data folder of a table.
pub(crate) fn data_files(folder: &tempfile::TempDir, name: &str) -> Vec<String> {
    let data = folder.path().join(format!("warehouse/{name}.lance/data"));
    match std::fs::read_dir(data) {
        Ok(entries) => entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect(),
        Err(_) => Vec::new(),
    }
}
