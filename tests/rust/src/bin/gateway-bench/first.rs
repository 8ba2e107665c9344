use std::time::Instant;

use futures::TryStreamExt;
use lance::Dataset;
use lance_gateway_client::Client;
use serde_json::{Value, json};

use crate::{Args, Result, path_of};

pub async fn measure(args: &Args, client: Client, table: &str) -> Result<Value> {
    let path = path_of(args, table);
    let (mut in_process, mut gateway) = (Vec::new(), Vec::new());
    for run in 0..=args.runs {
        let start = Instant::now();
        let dataset = Dataset::open(&path).await?;
        let first = dataset.scan().try_into_stream().await?.try_next().await?;
        let direct = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let through_first = client.scan(table).plan().await?.stream().try_next().await?;
        let through = start.elapsed().as_secs_f64();
        if first.is_none() || through_first.is_none() {
            return Err("the table is empty".into());
        }
        if run > 0 {
            in_process.push(direct);
            gateway.push(through);
        }
    }
    Ok(json!({ "in_process": in_process, "gateway": gateway }))
}
