//! What each command does.

mod changes;
mod commits;
mod index;
mod jobs;
mod put;
mod rows;
mod scan;
mod search;
mod status;
mod tables;

use std::fs;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::CommandFactory;
use lance_gateway_client::{Cleanup, Client, ClientOptions, JobKind, StorageOptions, TlsOptions};

use crate::args::{Args, Command, Global, PutMode, StorageOption};
use crate::console::Console;
use crate::failure::{Failure, Result};

pub async fn run(args: &Args, console: &Console) -> Result<()> {
    let global = &args.global;
    match &args.command {
        Command::Status => status::status(&connect(global).await?, global, console).await,
        Command::Tables { namespace } => tables::list(&connect(global).await?, namespace.as_ref(), console).await,
        Command::Create { table, schema, like, primary_key } => {
            let schema = tables::schema_to_create(schema.as_ref(), like.as_deref())?;
            tables::create(&connect(global).await?, table, &schema, primary_key, console).await
        }
        Command::Describe { table } => tables::describe(&connect(global).await?, table, console).await,
        Command::Drop { table, yes } => {
            if !yes && !console.confirm(&format!("Delete table {table} with all its versions?"))? {
                return Err(Failure::local("nothing was deleted"));
            }
            tables::drop(&connect(global).await?, table, console).await
        }
        Command::Put { table, files, mode, create, on } => {
            let sources = put::open(files)?;
            if *mode != PutMode::Merge && !on.is_empty() {
                return Err(Failure::Usage("--on is for --mode merge".to_owned()));
            }
            put::put(&connect(global).await?, table, &sources, *mode, *create, on, console).await
        }
        Command::Delete { table, filter } => rows::delete(&connect(global).await?, table, filter, console).await,
        Command::Update { table, set, filter } => {
            rows::update(&connect(global).await?, table, set, filter, console).await
        }
        Command::Scan { table, columns, filter, limit, at, to } => {
            let client = connect(global).await?;
            let mut scan = client.scan(table.as_str()).version(at.selector());
            if let Some(columns) = columns {
                scan = scan.columns(columns.0.iter().cloned());
            }
            if let Some(filter) = filter {
                scan = scan.filter(filter.as_str());
            }
            if let Some(limit) = limit {
                scan = scan.limit(*limit);
            }
            scan::scan(scan, to.as_deref(), console).await
        }
        Command::Changes { table, span, columns, follow, hold, out } => {
            let client = connect(global).await?;
            let (columns, holder) = (columns.as_ref(), hold.as_deref());
            let feed = changes::Feed { client: &client, table, span, columns, holder };
            match follow {
                true => feed.follow(console).await,
                false => feed.read(out.as_deref(), console).await,
            }
        }
        Command::Search { table, column, wanted, effort, columns, filter, at } => {
            let client = connect(global).await?;
            let mut search = search::describe(&client, table, column, wanted, effort)?.version(at.selector());
            if let Some(columns) = columns {
                search = search.columns(columns.0.iter().cloned());
            }
            if let Some(filter) = filter {
                search = search.filter(filter.as_str());
            }
            match &wanted.vectors {
                Some(file) => search::many(search, file, console).await,
                None => search::one(search, console).await,
            }
        }
        Command::Count { table, filter, at } => {
            scan::count(&connect(global).await?, table, filter.as_deref(), at, console).await
        }
        Command::Versions { table, limit } => tables::versions(&connect(global).await?, table, *limit, console).await,
        Command::Commits { table, action } => {
            commits::run(&connect(global).await?, table, action.as_ref(), console).await
        }
        Command::Compact { table } => jobs::run(&connect(global).await?, table, &JobKind::Compaction, console).await,
        Command::Cleanup { table, older_than, keep, dry_run } => {
            let cleanup = Cleanup { older_than: *older_than, keep_versions: *keep, dry_run: *dry_run };
            jobs::run(&connect(global).await?, table, &JobKind::Cleanup(cleanup), console).await
        }
        Command::Sweep { table, dry_run } => {
            jobs::run(&connect(global).await?, table, &JobKind::Sweep { dry_run: *dry_run }, console).await
        }
        Command::Index { action } => index::run(&connect(global).await?, action, console).await,
        Command::Jobs { action } => jobs::jobs(&connect(global).await?, action.as_ref(), console).await,
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Args::command(), "lgw", &mut console.results());
            Ok(())
        }
    }
}

async fn connect(global: &Global) -> Result<Client> {
    let mut options = ClientOptions::default();
    if let Some(timeout) = global.timeout {
        options.connect_timeout = options.connect_timeout.min(timeout);
        options.request_timeout = timeout;
        options.stream_idle_timeout = timeout;
    }
    if let Some(ca) = &global.ca {
        let pem = fs::read(ca).map_err(|e| Failure::local(format!("{}: {e}", ca.display())))?;
        options.tls = TlsOptions { ca_pem: Some(pem), ..TlsOptions::default() };
    }
    options.storage = storage_options(global)?;
    Ok(Client::connect(&global.uri, options).await?)
}

/// Messages hold names and no values, which may be secrets.
fn storage_options(global: &Global) -> Result<StorageOptions> {
    let mut options = Vec::with_capacity(global.storage_options.len());
    for StorageOption { key, value } in &global.storage_options {
        if value.is_empty() {
            return Err(Failure::Usage("--storage-option is KEY=VALUE or KEY=@FILE".to_owned()));
        }
        let value = match value.strip_prefix('@') {
            Some(file) => fs::read_to_string(file)
                .map_err(|e| Failure::local(format!("--storage-option {key}: {file}: {e}")))?
                .trim_end()
                .to_owned(),
            None => value.clone(),
        };
        options.push((key.clone(), value));
    }
    Ok(options.into_iter().collect())
}

/// A time to the second, for people and programs alike.
fn time(time: Option<DateTime<Utc>>) -> Option<String> {
    Some(time?.to_rfc3339_opts(SecondsFormat::Secs, true))
}
