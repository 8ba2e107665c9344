use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Int64Array, RecordBatch, RecordBatchIterator};
use arrow_schema::{DataType, Field, Schema};
use lance::Dataset;
use lance::dataset::{CommitBuilder, InsertBuilder, WriteMode, WriteParams};
use lance_gateway_client::{BeginOptions, Client, CommitId, CreateOptions};
use serde_json::{Value, json};

use crate::{Args, Result, path_of, write_params};

const TABLE: &str = "bench_commit";

/// Stages are not counted: both sides commit one file of one row to a table that grows with each run. The reference keeps its handle,
/// and neither looks for other writers nor for the file.
pub async fn measure(args: &Args, client: Client) -> Result<Value> {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let row = RecordBatch::try_new(schema.clone(), vec![Arc::new(Int64Array::from(vec![1]))])?;

    let path = path_of(args, "bench_commit_in_process");
    let nothing = RecordBatchIterator::new([], schema.clone());
    let mut dataset = Arc::new(Dataset::write(nothing, &path, Some(write_params()?)).await?);
    let append = WriteParams { mode: WriteMode::Append, ..write_params()? };

    let options =
        BeginOptions { schema: Some(schema), create: Some(CreateOptions::default()), ..BeginOptions::default() };
    let write = client.begin_write(TABLE, &options).await?;
    let mut id = CommitId::first_of_new_epoch();

    let (mut in_process, mut gateway, mut replay) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..=args.runs {
        let staged = InsertBuilder::new(dataset.clone()).with_params(&append);
        let transaction = staged.execute_uncommitted(vec![row.clone()]).await?;
        let start = Instant::now();
        let builder = CommitBuilder::new(dataset.clone()).with_skip_auto_cleanup(true);
        dataset = Arc::new(builder.execute(transaction).await?);
        let direct = start.elapsed().as_secs_f64();

        let mut stage = write.stage();
        stage.write(&row).await?;
        let committable = write.prepare(id.clone(), [stage.finish().await?], &HashMap::new()).await?;
        id = id.next();
        let start = Instant::now();
        let committed = client.commit(&committable).await?;
        let through = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let again = client.commit(&committable).await?;
        let known = start.elapsed().as_secs_f64();
        if committed.already_committed || !again.already_committed || committed.version != again.version {
            return Err(format!("{committed:?} and then {again:?} is not one commit and its replay").into());
        }
        if run > 0 {
            in_process.push(direct);
            gateway.push(through);
            replay.push(known);
        }
    }
    client.drop_table(TABLE).await?;
    std::fs::remove_dir_all(&path)?;
    Ok(json!({ "in_process": in_process, "gateway": gateway, "replay": replay }))
}
