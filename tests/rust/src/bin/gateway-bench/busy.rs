use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use lance_gateway_client::{BeginOptions, Client, CommitId, CreateOptions};
use serde_json::{Value, json};

use crate::index::{Build, succeeded};
use crate::{Args, Result};

const TABLE: &str = "bench_busy";

/// Commits of one row to a table, while an index of another is built, and as many without. Stages are not counted.
pub async fn measure(args: &Args, client: Client, build: &Build) -> Result<Value> {
    let (mut beside, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let job = build.start(&client).await?;
        let done = tokio::spawn({
            let client = client.clone();
            async move { succeeded(&client, &job).await }
        });
        let times = commits(&client, |_| !done.is_finished()).await?;
        done.await??;
        alone.extend(commits(&client, |commits| commits < times.len()).await?);
        beside.extend(times);
    }
    Ok(json!({ "beside": beside, "alone": alone }))
}

/// The time of each, to a new table.
async fn commits(client: &Client, more: impl Fn(usize) -> bool) -> Result<Vec<f64>> {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let row = RecordBatch::try_new(schema.clone(), vec![Arc::new(Int64Array::from(vec![1]))])?;
    let options =
        BeginOptions { schema: Some(schema), create: Some(CreateOptions::default()), ..BeginOptions::default() };
    let write = client.begin_write(TABLE, &options).await?;
    let mut id = CommitId::first_of_new_epoch();
    let mut times = Vec::new();
    while more(times.len()) {
        let mut stage = write.stage();
        stage.write(&row).await?;
        let committable = write.prepare(id.clone(), [stage.finish().await?], &HashMap::new()).await?;
        id = id.next();
        let start = Instant::now();
        client.commit(&committable).await?;
        times.push(start.elapsed().as_secs_f64());
    }
    client.drop_table(TABLE).await?;
    Ok(times)
}
