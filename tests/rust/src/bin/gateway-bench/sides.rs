//! The two sides of a search, and how much of what an exact search finds they find.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::FileReader;
use lance::Dataset;
use lance::dataset::builder::DatasetBuilder;
use lance::session::Session;
use lance_gateway_client::{Client, VectorQuery};
use tokio::task::JoinSet;

use crate::{Args, Error, Result, connect, path_of};

pub const COLUMN: &str = "vector";
pub const K: usize = 10;
/// Caches of both sides: the gateway's default.
const INDEX_CACHE: usize = 256 << 20;
const METADATA_CACHE: usize = 128 << 20;

/// What is searched.
#[derive(Debug, clap::Args)]
pub struct Searched {
    /// Table with the columns `id` and `vector`.
    pub table: String,
    /// Arrow IPC file with the columns `id`, `vector` and `truth`, the ids of the nearest rows.
    pub queries: String,
    /// Only so many of the queries.
    #[arg(long)]
    first: Option<usize>,
    /// A second way to the same gateway, measured alternately, too.
    #[arg(long)]
    also: Option<String>,
}

/// How hard a search tries.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Effort {
    /// Partitions that are searched. Without it every vector is compared.
    #[arg(long)]
    pub nprobes: Option<u32>,
    /// So many times the rows are ranked by their own vectors.
    #[arg(long)]
    pub refine_factor: Option<u32>,
}

impl Effort {
    pub fn of(self, mut query: VectorQuery) -> VectorQuery {
        query = query.k(K as u64);
        query = match self.nprobes {
            Some(nprobes) => query.nprobes(nprobes),
            None => query.exact(),
        };
        match self.refine_factor {
            Some(factor) => query.refine_factor(factor),
            None => query,
        }
    }
}

/// Queries, and the ids that each should find.
pub struct Queries {
    pub rows: RecordBatch,
}

impl Queries {
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    fn vector(&self, query: usize) -> ArrayRef {
        self.rows[COLUMN].as_fixed_size_list().value(query)
    }

    /// How many of the nearest rows were found.
    pub fn hits(&self, query: usize, found: &RecordBatch) -> usize {
        let truth = self.rows["truth"].as_fixed_size_list().value(query);
        let truth = truth.as_primitive::<Int64Type>().values();
        found["id"].as_primitive::<Int64Type>().values().iter().filter(|id| truth.contains(id)).count()
    }

    pub fn recall(&self, hits: usize) -> f64 {
        hits as f64 / (self.len() * K) as f64
    }
}

#[derive(Clone)]
pub enum Side {
    Lance(Arc<Dataset>),
    Gateway(Client, String),
}

impl Side {
    pub async fn search(&self, queries: &Queries, query: usize, effort: Effort) -> Result<RecordBatch> {
        let vector = queries.vector(query);
        match self {
            Self::Lance(dataset) => {
                let mut scan = dataset.scan();
                scan.project(&["id", "_distance"])?.nearest(COLUMN, vector.as_ref(), K)?;
                match effort.nprobes {
                    Some(nprobes) => scan.nprobes(nprobes as usize),
                    None => scan.use_index(false),
                };
                if let Some(factor) = effort.refine_factor {
                    scan.refine(factor);
                }
                Ok(scan.try_into_batch().await?)
            }
            Self::Gateway(client, table) => {
                let query = effort.of(VectorQuery::new(COLUMN, vector.as_primitive::<Float32Type>().values().as_ref()));
                Ok(client.search(table.as_str(), query).columns(["id"]).run().await?.rows)
            }
        }
    }

    /// Seconds to answer all queries with so many in flight, and the hits.
    pub async fn answer_all(&self, queries: &Arc<Queries>, effort: Effort, in_flight: usize) -> Result<(f64, usize)> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let start = Instant::now();
        for _ in 0..in_flight {
            let (side, queries, next) = (self.clone(), queries.clone(), next.clone());
            tasks.spawn(async move {
                let mut hits = 0;
                loop {
                    let query = next.fetch_add(1, Ordering::Relaxed);
                    if query >= queries.len() {
                        return Ok::<_, Error>(hits);
                    }
                    hits += queries.hits(query, &side.search(&queries, query, effort).await?);
                }
            });
        }
        let mut hits = 0;
        while let Some(done) = tasks.join_next().await {
            hits += done??;
        }
        Ok((start.elapsed().as_secs_f64(), hits))
    }
}

/// A table in process, with the caches of a gateway.
pub async fn opened(args: &Args, table: &str) -> Result<Dataset> {
    let session = Arc::new(Session::new(INDEX_CACHE, METADATA_CACHE, Arc::default()));
    Ok(DatasetBuilder::from_uri(path_of(args, table)).with_session(session).load().await?)
}

impl Searched {
    pub fn queries(&self) -> Result<Arc<Queries>> {
        let mut reader = FileReader::try_new(BufReader::new(File::open(&self.queries)?), None)?;
        let rows = reader.next().ok_or("the file of the queries is empty")??;
        let first = self.first.unwrap_or(usize::MAX).min(rows.num_rows());
        Ok(Arc::new(Queries { rows: rows.slice(0, first) }))
    }

    /// In process, through the gateway, and through it in the second way.
    pub async fn sides(&self, args: &Args, client: Client) -> Result<Vec<(&'static str, Side)>> {
        let dataset = opened(args, &self.table).await?;
        let mut sides = vec![
            ("in_process", Side::Lance(Arc::new(dataset))),
            ("gateway", Side::Gateway(client, self.table.clone())),
        ];
        if let Some(uri) = &self.also {
            sides.push(("also", Side::Gateway(connect(uri).await?, self.table.clone())));
        }
        Ok(sides)
    }
}
