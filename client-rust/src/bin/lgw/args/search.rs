//! What `lgw search` takes.

use std::path::PathBuf;

use lance_gateway_client::{Metric, VectorQuery};

/// What is searched for.
#[derive(Debug, clap::Args)]
pub struct SearchFor {
    /// A vector as JSON, such as '[0.1, 0.2]'; a list of vectors for a column that has several in a row.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub vector: Option<String>,
    /// A file (parquet, json lines, arrow) with a query in each row: its column `vector`, and if there are `id` and `k`.
    #[arg(long, value_name = "FILE")]
    pub vectors: Option<PathBuf>,
    /// Words, any of which may match.
    #[arg(long, value_name = "WORDS")]
    pub text: Option<String>,
}

/// How it is searched.
#[derive(Debug, clap::Args)]
pub struct Effort {
    /// Rows to find.
    #[arg(short, value_name = "N", default_value_t = 10)]
    pub k: u64,
    /// l2, cosine, dot or hamming; without it as the table declares, else as the index does.
    #[arg(long, value_name = "M", conflicts_with = "text")]
    pub metric: Option<Metric>,
    /// Partitions of the index to search.
    #[arg(long, value_name = "N", conflicts_with = "text")]
    pub nprobes: Option<u32>,
    /// Candidates of an HNSW index.
    #[arg(long, value_name = "N", conflicts_with = "text")]
    pub ef: Option<u32>,
    /// Read so many times the rows and rank them by their own vectors.
    #[arg(long, value_name = "N", conflicts_with = "text")]
    pub refine: Option<u32>,
    /// Look at no index.
    #[arg(long, conflicts_with = "text")]
    pub exact: bool,
    /// Apply the filter to the rows that were found.
    #[arg(long, requires = "filter")]
    pub postfilter: bool,
}

impl Effort {
    pub fn apply(&self, query: VectorQuery) -> VectorQuery {
        let mut query = query.k(self.k);
        if let Some(metric) = self.metric {
            query = query.metric(metric);
        }
        if let Some(partitions) = self.nprobes {
            query = query.nprobes(partitions);
        }
        if let Some(candidates) = self.ef {
            query = query.ef(candidates);
        }
        if let Some(factor) = self.refine {
            query = query.refine_factor(factor);
        }
        if self.exact {
            query = query.exact();
        }
        if self.postfilter { query.postfilter() } else { query }
    }
}
