use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use futures::{StreamExt, TryStreamExt, stream};
use lance::deps::datafusion::prelude::{col, lit};
use lance_gateway_client::Client;
use serde_json::{Value, json};

use crate::sides::opened;
use crate::{Args, Error, Result};

/// What is looked up.
#[derive(Debug, clap::Args)]
pub struct Keys {
    /// Table with the column `id` that counts from 0, and an index over it.
    table: String,
    /// Batches of keys.
    #[arg(long)]
    batches: usize,
    /// Keys of a batch.
    #[arg(long)]
    keys: usize,
    /// Batches that are looked up at once.
    #[arg(long)]
    in_flight: usize,
}

/// Rows by their keys: one stream beside a filter in process, so many batches of keys in flight.
pub async fn measure(args: &Args, client: Client, keys: &Keys) -> Result<Value> {
    let dataset = Arc::new(opened(args, &keys.table).await?);
    let rows = dataset.count_rows(None).await?;
    // Far from each other, and the same ones on both sides.
    let key = |n: usize| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as i64 % rows as i64;
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let batches = (0..keys.batches)
        .map(|batch| {
            let ids = Int64Array::from_iter_values((batch * keys.keys..).take(keys.keys).map(key));
            RecordBatch::try_new(schema.clone(), vec![Arc::new(ids)])
        })
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let lookups = client.lookup(keys.table.as_str(), ["id"]).columns(["id", "vector"]).open(&schema).await?;
    let (mut in_process, mut gateway) = (Vec::new(), Vec::new());
    for run in 0..=args.runs {
        let start = Instant::now();
        let direct = stream::iter(batches.clone()).map(|ids| {
            let dataset = dataset.clone();
            async move {
                let ids = ids["id"].as_primitive::<Int64Type>().values().iter().map(|id| lit(*id)).collect();
                let mut scan = dataset.scan();
                scan.project(&["id", "vector"])?.filter_expr(col("id").in_list(ids, false));
                Ok::<_, Error>(scan.try_into_batch().await?.num_rows())
            }
        });
        let found: usize = direct.buffer_unordered(keys.in_flight).try_fold(0, |a, b| async move { Ok(a + b) }).await?;
        let direct = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let through = stream::iter(batches.clone()).map(|ids| {
            let lookups = lookups.clone();
            async move { Ok::<_, Error>(lookups.find(&ids).await?.rows.num_rows()) }
        });
        let same: usize = through.buffer_unordered(keys.in_flight).try_fold(0, |a, b| async move { Ok(a + b) }).await?;
        let through = start.elapsed().as_secs_f64();
        // Keys that come twice in a batch are found once in process.
        if same < found {
            return Err(format!("{same} rows were found instead of {found}").into());
        }
        if run > 0 {
            in_process.push(direct);
            gateway.push(through);
        }
    }
    Ok(json!({ "keys": keys.batches * keys.keys, "in_process": in_process, "gateway": gateway }))
}
