//! Stages rows in two streams and commits them as one version: `cargo run --example write -- TABLE`

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use lance_gateway_client::{BeginOptions, Client, ClientOptions, CommitId, CreateOptions, Staged, Write};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table = std::env::args().nth(1).ok_or("which table?")?;
    let client = Client::connect("grpc://127.0.0.1:8815", ClientOptions::default()).await?;

    let options = BeginOptions {
        schema: Some(numbers(0..1)?.schema()),
        create: Some(CreateOptions::default()),
        ..BeginOptions::default()
    };
    let write = client.begin_write(table, &options).await?;
    let (a, b) = tokio::try_join!(stage(&write, 0), stage(&write, 1000))?;

    // A program that must survive a crash keeps the committable in durable storage before it goes on.
    let committable = write.prepare(CommitId::first_of_new_epoch(), [a, b], &HashMap::new()).await?;
    let committed = client.commit(&committable).await?;
    println!("version {}", committed.version);
    Ok(())
}

async fn stage(write: &Write, first: i64) -> Result<Staged, Box<dyn std::error::Error>> {
    let mut stage = write.stage();
    stage.write(&numbers(first..first + 1000)?).await?;
    Ok(stage.finish().await?)
}

fn numbers(range: std::ops::Range<i64>) -> Result<RecordBatch, arrow_schema::ArrowError> {
    RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(range)) as ArrayRef)])
}
