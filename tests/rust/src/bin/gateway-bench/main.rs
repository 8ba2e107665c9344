//! Measures a running gateway beside Lance in this process, on the same files, alternately, in one run. `make bench` calls it.
//!
//! Prints one JSON object: the seconds of each run of each side.

mod bulk;
mod busy;
mod commit;
mod first;
mod index;
mod knn;
mod lookup;
mod merge;
mod put;
mod qps;
mod scan;
mod sides;

use std::process::ExitCode;
use std::str::FromStr;

use clap::{Parser, Subcommand};
use lance::dataset::WriteParams;
use lance_gateway_client::{Client, ClientOptions};
use serde_json::Value;

use index::Build;
use sides::{Effort, Searched};

/// The gateway's own: neither side shall win by its allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Parser)]
struct Args {
    /// Where the gateway is.
    #[arg(long)]
    uri: String,
    /// Its warehouse, a local folder.
    #[arg(long)]
    warehouse: String,
    /// Measured runs of each side; one more before them is not counted.
    #[arg(long, default_value_t = 7)]
    runs: usize,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Drains a table: DoGet beside a scan in process.
    Scan {
        table: String,
        /// A second way to the same gateway, measured alternately, too.
        #[arg(long)]
        also: Option<String>,
        /// Most splits; 0: as the gateway cuts.
        #[arg(long, default_value_t = 0)]
        max_splits: u32,
        /// Bytes of a batch; 0: as the gateway is configured.
        #[arg(long, default_value_t = 0)]
        batch_bytes: u64,
    },
    /// Writes a file of Arrow batches, held in memory, as a new table: DoPut beside a write in process.
    Put {
        /// Arrow IPC file.
        file: String,
    },
    /// Opens a table and reads its first batch.
    First { table: String },
    /// Commits one staged row: Commit beside a commit in process; and the same commit again.
    Commit,
    /// Merges rows by their keys: stage, prepare and commit beside a merge in process.
    Merge(merge::Keys),
    /// Looks rows up by their keys.
    Lookup(lookup::Keys),
    /// Searches for the nearest vectors, one search after the other.
    Knn {
        #[command(flatten)]
        searched: Searched,
        #[command(flatten)]
        effort: Effort,
    },
    /// Searches for all queries on one stream: DoExchange beside one call after the other.
    Bulk {
        #[command(flatten)]
        searched: Searched,
        #[command(flatten)]
        effort: Effort,
    },
    /// Searches for all queries, several at once.
    Qps {
        #[command(flatten)]
        searched: Searched,
        #[command(flatten)]
        effort: Effort,
        /// How many at once.
        #[arg(long, value_delimiter = ',')]
        in_flight: Vec<usize>,
    },
    /// The same with different efforts.
    Curve {
        #[command(flatten)]
        searched: Searched,
        #[arg(long, value_delimiter = ',')]
        nprobes: Vec<u32>,
        /// 0: nothing is refined.
        #[arg(long, value_delimiter = ',')]
        refine_factors: Vec<u32>,
        #[arg(long)]
        in_flight: usize,
    },
    /// Builds an index: a job beside a build in process.
    Index(Build),
    /// Commits one staged row while an index is built, and without.
    Busy(Build),
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(measured) => {
            println!("{measured}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("gateway-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<Value> {
    let client = connect(&args.uri).await?;
    match &args.what {
        What::Scan { table, also, max_splits, batch_bytes } => {
            let also = match also {
                Some(uri) => Some(connect(uri).await?),
                None => None,
            };
            scan::measure(&args, client, also, table, &|scan| scan.max_splits(*max_splits).batch_size(0, *batch_bytes))
                .await
        }
        What::Put { file } => put::measure(&args, client, file).await,
        What::First { table } => first::measure(&args, client, table).await,
        What::Commit => commit::measure(&args, client).await,
        What::Merge(keys) => merge::measure(&args, client, keys).await,
        What::Lookup(keys) => lookup::measure(&args, client, keys).await,
        What::Knn { searched, effort } => knn::measure(&args, client, searched, *effort).await,
        What::Bulk { searched, effort } => bulk::measure(&args, client, searched, *effort).await,
        What::Qps { searched, effort, in_flight } => qps::measure(&args, client, searched, *effort, in_flight).await,
        What::Curve { searched, nprobes, refine_factors, in_flight } => {
            qps::curve(&args, client, searched, nprobes, refine_factors, *in_flight).await
        }
        What::Index(build) => index::measure(&args, client, build).await,
        What::Busy(build) => busy::measure(&args, client, build).await,
    }
}

async fn connect(uri: &str) -> Result<Client> {
    Ok(Client::connect(uri, ClientOptions::default()).await?)
}

fn path_of(args: &Args, table: &str) -> String {
    format!("{}/{table}.lance", args.warehouse)
}

/// As the gateway writes by default.
fn write_params() -> Result<WriteParams> {
    Ok(WriteParams {
        max_rows_per_file: 1_000_000,
        data_storage_version: Some(FromStr::from_str("2.2")?),
        ..WriteParams::default()
    })
}
