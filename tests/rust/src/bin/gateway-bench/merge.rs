use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lance::Dataset;
use lance::dataset::{MergeInsertBuilder, WhenMatched};
use lance_gateway_client::{BeginOptions, Client, CommitId, WriteMode};
use serde_json::{Value, json};

use crate::{Args, Result, path_of};

/// Keys that are merged, each run others, half of which are there.
#[derive(Debug, clap::Args)]
pub struct Keys {
    /// A table with the columns `id` and `word`, an index on `id`, and ids from 0 to twice its rows, every other one.
    pub table: String,
    /// The same for Lance in process.
    in_process: String,
    #[arg(long)]
    rows: u64,
    #[arg(long)]
    keys: u64,
}

/// Stage, prepare and commit beside a merge in process; the commits by themselves, too.
pub async fn measure(args: &Args, client: Client, keys: &Keys) -> Result<Value> {
    let options = BeginOptions { mode: WriteMode::Merge, key: vec!["id".into()], ..BeginOptions::default() };
    let write = client.begin_write(keys.table.as_str(), &options).await?;
    let CommitId { epoch, .. } = CommitId::first_of_new_epoch();
    let (mut commits, mut gateway, mut in_process) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..=args.runs {
        let rows = keys.rows(run as u64)?;
        let start = Instant::now();
        let mut stage = write.stage();
        stage.write(&with_kind(&rows)?).await?;
        let staged = stage.finish().await?;
        let id = CommitId { epoch: epoch.clone(), seq: run as u64 + 1 };
        let committable = write.prepare(id, [staged], &Default::default()).await?;
        let committing = Instant::now();
        let committed = write.commit(&committable).await?;
        let (commit, through) = (committing.elapsed().as_secs_f64(), start.elapsed().as_secs_f64());
        let merged = committed.merged.unwrap_or_default();
        if merged.num_inserted + merged.num_updated != keys.keys {
            return Err(format!("{merged:?} of {} keys", keys.keys).into());
        }
        let start = Instant::now();
        let dataset = Arc::new(Dataset::open(&path_of(args, &keys.in_process)).await?);
        let mut merge = MergeInsertBuilder::try_new(dataset, vec!["id".to_owned()])?;
        let merge = merge.when_matched(WhenMatched::UpdateAll).try_build()?;
        merge.execute_batches(vec![rows]).await?;
        let direct = start.elapsed().as_secs_f64();
        if run > 0 {
            commits.push(commit);
            gateway.push(through);
            in_process.push(direct);
        }
    }
    Ok(json!({ "commit": commits, "gateway": gateway, "in_process": in_process }))
}

impl Keys {
    fn rows(&self, run: u64) -> Result<RecordBatch> {
        // A walk with a large odd step goes everywhere, and to no key twice.
        let ids = 2 * self.rows;
        let id = |n: u64| ((run * self.keys + n).wrapping_mul(2_654_435_761) % ids) as i64;
        let values: Vec<i64> = (0..self.keys).map(id).collect();
        let words: ArrayRef = Arc::new(StringArray::from_iter_values(values.iter().map(|id| format!("new {id}"))));
        let columns = vec![Arc::new(Int64Array::from(values)) as ArrayRef, words];
        Ok(RecordBatch::try_new(schema(), columns)?)
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("word", DataType::Utf8, true)]))
}

fn with_kind(rows: &RecordBatch) -> Result<RecordBatch> {
    let kind = Field::new("_change_kind", DataType::Int8, false);
    let fields: Vec<_> = schema().fields().iter().cloned().chain([Arc::new(kind)]).collect();
    let kinds: ArrayRef = Arc::new(Int8Array::from(vec![2_i8; rows.num_rows()]));
    let columns = rows.columns().iter().cloned().chain([kinds]).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}
