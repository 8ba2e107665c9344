//! `lgw scan` and `count`

use std::path::Path;
use std::time::Instant;

use futures::TryStreamExt;
use lance_gateway_client::{Client, Filter, Scan};
use serde::Serialize;

use super::put::summary;
use crate::args::At;
use crate::console::Console;
use crate::failure::Result;
use crate::rows;

pub async fn scan(scan: Scan, to: Option<&Path>, console: &Console) -> Result<()> {
    let plan = scan.plan().await?;
    let mut out = match to {
        Some(file) => rows::to_file(file, plan.schema())?,
        None => rows::to_console(console, plan.schema())?,
    };
    // Rows on the terminal and a bar would paint over each other.
    let bar = match to {
        Some(_) => {
            console.progress(plan.num_rows(), "{spinner} {human_pos} of {human_len} rows {wide_bar} {eta} left")?
        }
        None => indicatif::ProgressBar::hidden(),
    };
    let (started, version) = (Instant::now(), plan.version());
    let (mut num_rows, mut num_bytes) = (0, 0);
    let mut batches = plan.stream();
    while let Some(batch) = batches.try_next().await? {
        num_rows += batch.num_rows() as u64;
        num_bytes += batch.get_array_memory_size() as u64;
        bar.set_position(num_rows);
        out.write(&batch)?;
    }
    out.finish()?;
    bar.finish_and_clear();
    console.note(format!("version {version}: {}", summary(num_rows, num_bytes, started.elapsed())));
    Ok(())
}

#[derive(Serialize)]
struct Count {
    num_rows: u64,
    version: u64,
}

pub async fn count(client: &Client, table: &str, filter: Option<&str>, at: &At, console: &Console) -> Result<()> {
    let count = client.count_rows(table, at.selector(), filter.map(Filter::from)).await?;
    let shown = Count { num_rows: count.num_rows, version: count.version };
    console.record(&shown, &[("rows", count.num_rows.to_string()), ("version", count.version.to_string())])
}
