use std::time::Instant;

use futures::TryStreamExt;
use lance::Dataset;
use lance_gateway_client::{Client, Scan};
use serde_json::{Value, json};

use crate::{Args, Result, path_of};

/// Rows of a batch in process: Lance's default, and what reads narrow tables faster; each is told. The gateway keeps to its
/// configuration.
const BATCH_ROWS: [usize; 2] = [8_192, 65_536];

pub async fn measure(
    args: &Args,
    client: Client,
    also: Option<Client>,
    table: &str,
    tuned: &(dyn Fn(Scan) -> Scan + Sync),
) -> Result<Value> {
    let dataset = Dataset::open(&path_of(args, table)).await?;
    let rows = dataset.count_rows(None).await? as u64;
    let mut in_process = BATCH_ROWS.map(|_| Vec::new());
    let (mut gateway, mut second) = (Vec::new(), Vec::new());
    for run in 0..=args.runs {
        // The first run of each side is not counted.
        let keep = |times: &mut Vec<f64>, time: f64| times.extend((run > 0).then_some(time));
        for (times, batch_rows) in in_process.iter_mut().zip(BATCH_ROWS) {
            keep(times, drained(rows, by_lance(&dataset, batch_rows)).await?);
        }
        keep(&mut gateway, drained(rows, by_gateway(tuned(client.scan(table)))).await?);
        if let Some(also) = &also {
            keep(&mut second, drained(rows, by_gateway(tuned(also.scan(table)))).await?);
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

async fn by_gateway(scan: Scan) -> Result<u64> {
    let stream = scan.plan().await?.stream();
    Ok(stream.try_fold(0, |sum, batch| async move { Ok(sum + batch.num_rows() as u64) }).await?)
}
