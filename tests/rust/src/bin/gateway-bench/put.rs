use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_ipc::reader::FileReader;
use futures::stream;
use lance::Dataset;
use lance_gateway_client::{Client, CreateOptions, PutOptions};
use serde_json::{Value, json};

use crate::{Args, Result, path_of, write_params};

pub async fn measure(args: &Args, client: Client, file: &str) -> Result<Value> {
    let reader = FileReader::try_new(BufReader::new(File::open(file)?), None)?;
    let schema = reader.schema();
    let batches = reader.collect::<std::result::Result<Vec<RecordBatch>, _>>()?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let options = PutOptions { create: Some(CreateOptions::default()), ..PutOptions::default() };

    let (mut in_process, mut gateway) = (Vec::new(), Vec::new());
    for run in 0..=args.runs {
        let path = path_of(args, "bench_in_process");
        let again = RecordBatchIterator::new(batches.clone().into_iter().map(Ok), schema.clone());
        let start = Instant::now();
        Dataset::write(again, &path, Some(write_params()?)).await?;
        let direct = start.elapsed().as_secs_f64();
        std::fs::remove_dir_all(&path)?;

        let again = stream::iter(batches.clone().into_iter().map(Ok::<_, std::io::Error>));
        let start = Instant::now();
        let summary = client.put("bench_put", &schema, again, &options).await?;
        let through = start.elapsed().as_secs_f64();
        if summary.num_rows != rows as u64 {
            return Err(format!("{} rows were written instead of {rows}", summary.num_rows).into());
        }
        client.drop_table("bench_put").await?;
        if run > 0 {
            in_process.push(direct);
            gateway.push(through);
        }
    }
    Ok(json!({ "rows": rows, "in_process": in_process, "gateway": gateway }))
}
