use std::time::Instant;

use futures::TryStreamExt;
use lance::Dataset;
use lance_gateway_client::Client;
use serde_json::{Value, json};

use crate::{Args, Result, path_of};

pub async fn measure(
    args: &Args,
    client: Client,
    also: Option<Client>,
    table: &str,
    batch_rows: usize,
) -> Result<Value> {
    let dataset = Dataset::open(&path_of(args, table)).await?;
    let rows = dataset.count_rows(None).await? as u64;
    let (mut in_process, mut gateway, mut second) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..=args.runs {
        let times = [
            Some(drained(rows, by_lance(&dataset, batch_rows)).await?),
            Some(drained(rows, by_gateway(&client, table)).await?),
            match &also {
                Some(also) => Some(drained(rows, by_gateway(also, table)).await?),
                None => None,
            },
        ];
        if run > 0 {
            for (kept, time) in [&mut in_process, &mut gateway, &mut second].into_iter().zip(times) {
                kept.extend(time);
            }
        }
    }
    Ok(json!({ "rows": rows, "in_process": in_process, "gateway": gateway, "also": second }))
}

async fn drained(expected: u64, work: impl Future<Output = Result<u64>>) -> Result<f64> {
    let start = Instant::now();
    let rows = work.await?;
    let time = start.elapsed().as_secs_f64();
    match rows == expected {
        true => Ok(time),
        false => Err(format!("{rows} rows came instead of {expected}").into()),
    }
}

async fn by_lance(dataset: &Dataset, batch_rows: usize) -> Result<u64> {
    let stream = dataset.scan().batch_size(batch_rows).try_into_stream().await?;
    Ok(stream.try_fold(0, |sum, batch| async move { Ok(sum + batch.num_rows() as u64) }).await?)
}

async fn by_gateway(client: &Client, table: &str) -> Result<u64> {
    let stream = client.scan(table).plan().await?.stream();
    Ok(stream.try_fold(0, |sum, batch| async move { Ok(sum + batch.num_rows() as u64) }).await?)
}
