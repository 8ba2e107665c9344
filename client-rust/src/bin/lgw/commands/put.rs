//! `lgw put`

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use futures::StreamExt;
use lance_gateway_client::{Client, CreateOptions, PutOptions, Reason, VersionSelector, WriteMode};
use serde::Serialize;

use crate::args::PutMode;
use crate::console::{Console, human_bytes};
use crate::failure::{Failure, Result};
use crate::input::{self, Source};

#[derive(Serialize)]
struct Written<'a> {
    table: &'a str,
    version: u64,
    num_rows: u64,
    num_bytes: u64,
}

pub fn open(files: &[PathBuf]) -> Result<Vec<Source>> {
    files.iter().map(|file| Source::open(file)).collect()
}

pub async fn put(
    client: &Client,
    table: &str,
    sources: &[Source],
    mode: PutMode,
    create: bool,
    console: &Console,
) -> Result<()> {
    let schema = target(client, table, sources, mode, create).await?;
    let options = PutOptions {
        mode: match mode {
            PutMode::Append => WriteMode::Append,
            PutMode::Overwrite => WriteMode::Overwrite,
        },
        create: create.then(CreateOptions::default),
        ..PutOptions::default()
    };
    let position = Arc::new(AtomicU64::new(0));
    let bar = console.progress(
        sources.iter().map(Source::len).sum(),
        "{spinner} {binary_bytes} of {binary_total_bytes} {wide_bar} {binary_bytes_per_sec}, {eta} left",
    )?;
    let started = Instant::now();
    let batches = || {
        let (position, bar) = (position.clone(), bar.clone());
        input::stream(sources, &schema, position.clone())
            .inspect(move |_| bar.set_position(position.load(Ordering::Relaxed)))
    };
    let written = client.put_repeatable(table, &schema, batches, &options).await;
    bar.finish_and_clear();
    let written = written?;
    console.note(summary(written.num_rows, written.num_bytes, started.elapsed()));
    let shown = Written { table, version: written.version, num_rows: written.num_rows, num_bytes: written.num_bytes };
    console.record(
        &shown,
        &[
            ("table", table.to_owned()),
            ("version", shown.version.to_string()),
            ("rows", shown.num_rows.to_string()),
            ("bytes", shown.num_bytes.to_string()),
        ],
    )
}

/// The schema to write: the table's, unless there is none or typed files replace it.
async fn target(client: &Client, table: &str, sources: &[Source], mode: PutMode, create: bool) -> Result<SchemaRef> {
    let first = sources.first().ok_or_else(|| Failure::Usage("there is no file to put".to_owned()))?;
    match client.describe_table(table, VersionSelector::Latest).await {
        Ok(_) if mode == PutMode::Overwrite && first.is_typed() => first.schema(),
        Ok(found) => Ok(found.schema),
        Err(e) if create && e.reason() == Some(Reason::TableNotFound) => first.schema(),
        Err(e) => Err(e.into()),
    }
}

/// How much went how fast.
pub fn summary(rows: u64, bytes: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let rate = rows as f64 / seconds.max(1e-3);
    format!("{rows} rows, {} in {seconds:.1} s ({rate:.0} rows/s)", human_bytes(bytes))
}
