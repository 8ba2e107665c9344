//! `lgw put`

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_schema::{Schema, SchemaRef};
use futures::StreamExt;
use lance_gateway_client::{Client, CreateOptions, MergeOptions, PutOptions, Reason, VersionSelector, WriteMode};
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
    #[serde(flatten)]
    merged: Option<Merged>,
}

#[derive(Serialize)]
struct Merged {
    num_inserted: u64,
    num_updated: u64,
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
    on: &[String],
    console: &Console,
) -> Result<()> {
    let schema = target(client, table, sources, mode, create, on).await?;
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
    let written = match mode {
        PutMode::Merge => client.merge_repeatable(table, &schema, batches, &merge(on, create)).await,
        _ => client.put_repeatable(table, &schema, batches, &write(mode, create)).await,
    };
    bar.finish_and_clear();
    let written = written?;
    console.note(summary(written.num_rows, written.num_bytes, started.elapsed()));
    let merged =
        written.merged.map(|merged| Merged { num_inserted: merged.num_inserted, num_updated: merged.num_updated });
    let (version, num_rows, num_bytes) = (written.version, written.num_rows, written.num_bytes);
    let mut cells = vec![
        ("table", table.to_owned()),
        ("version", version.to_string()),
        ("rows", num_rows.to_string()),
        ("bytes", num_bytes.to_string()),
    ];
    if let Some(merged) = &merged {
        cells.push(("inserted", merged.num_inserted.to_string()));
        cells.push(("updated", merged.num_updated.to_string()));
    }
    console.record(&Written { table, version, num_rows, num_bytes, merged }, &cells)
}

/// Of the table, the columns that the files have: a merge leaves the others as they are.
fn some_columns(table: &SchemaRef, sources: &[Source]) -> Result<SchemaRef> {
    let mut merged: Option<BTreeSet<String>> = None;
    for source in sources {
        let columns = source.schema()?.fields().iter().map(|field| field.name().clone()).collect();
        if merged.as_ref().is_some_and(|known| *known != columns) {
            return Err(Failure::local("the files have different columns; merge each by itself"));
        }
        merged = Some(columns);
    }
    let merged = merged.unwrap_or_default();
    let fields: Vec<_> = table.fields().iter().filter(|field| merged.contains(field.name())).cloned().collect();
    // What only the files have is refused as in any put: by the table's own columns.
    if fields.len() < merged.len() {
        return Ok(table.clone());
    }
    Ok(Arc::new(Schema::new_with_metadata(fields, table.metadata().clone())))
}

/// What a file says of nulls is that it could hold some; a key holds none.
fn with_key(schema: &SchemaRef, on: &[String]) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match on.contains(field.name()) {
        true => Arc::new(field.as_ref().clone().with_nullable(false)),
        false => field.clone(),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

fn write(mode: PutMode, create: bool) -> PutOptions {
    let mode = if mode == PutMode::Overwrite { WriteMode::Overwrite } else { WriteMode::Append };
    PutOptions { mode, create: create.then(CreateOptions::default), ..PutOptions::default() }
}

/// A table that is made has the key as its primary key.
fn merge(on: &[String], create: bool) -> MergeOptions {
    let create = create.then(|| CreateOptions { primary_key: on.to_vec(), ..CreateOptions::default() });
    MergeOptions { on: on.to_vec(), create, ..MergeOptions::default() }
}

/// The schema to write: the table's, unless there is none or typed files replace it.
async fn target(
    client: &Client,
    table: &str,
    sources: &[Source],
    mode: PutMode,
    create: bool,
    on: &[String],
) -> Result<SchemaRef> {
    let first = sources.first().ok_or_else(|| Failure::Usage("there is no file to put".to_owned()))?;
    match client.describe_table(table, VersionSelector::Latest).await {
        Ok(_) if mode == PutMode::Overwrite && first.is_typed() => first.schema(),
        Ok(found) if mode == PutMode::Merge => some_columns(&found.schema, sources),
        Ok(found) => Ok(found.schema),
        Err(e) if create && e.reason() == Some(Reason::TableNotFound) => Ok(with_key(&first.schema()?, on)),
        Err(e) => Err(e.into()),
    }
}

/// How much went how fast.
pub fn summary(rows: u64, bytes: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let rate = rows as f64 / seconds.max(1e-3);
    format!("{rows} rows, {} in {seconds:.1} s ({rate:.0} rows/s)", human_bytes(bytes))
}
