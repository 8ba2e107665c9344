//! Indexes: what they are built of, building them, bringing them up to date, and what is known of them.
//!
//! A build reads one version and commits to the latest. Lance rebases it: rows of fragments that came meanwhile stay outside of
//! the index and are searched without it, rows that were changed leave it, and an index that was dropped stays away.

mod build;
mod known;
mod progress;
mod spec;

use chrono::{DateTime, Utc};

use crate::search::Metric;

pub(crate) use known::{covers, is_of_others, vector_details};
pub use spec::{FullTextIndex, IndexKind, IndexSpec, ScalarIndexType, VectorIndex, VectorIndexType};

/// Which indexes are brought up to date, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptimizeSpec {
    /// None: all.
    pub names: Vec<String>,
    /// How many of the newest segments of each index are merged with the new rows into one. None: as Lance finds good; 0: the new
    /// rows become a segment of their own.
    pub segments_to_merge: Option<u32>,
    /// Train anew, with all rows.
    pub retrain: bool,
}

/// How far an index reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexStatistics {
    /// Of the index.
    pub name: String,
    /// As people write it.
    pub columns: Vec<String>,
    /// Lance's name, such as `IVF_PQ` or `BTree`.
    pub index_type: String,
    /// Of an index over vectors.
    pub metric: Option<Metric>,
    /// Rows that it finds. Deleted ones count until their fragment is compacted.
    pub num_indexed_rows: u64,
    /// Rows that are searched without it.
    pub num_unindexed_rows: u64,
    /// Segments that are asked one by one.
    pub num_segments: u32,
    /// Of its files, as far as the table knows them.
    pub num_bytes: u64,
    /// When the newest segment was built.
    pub created_at: Option<DateTime<Utc>>,
    /// It is defined, but there were too few rows to train it.
    pub deferred: bool,
}

/// What a build or an optimization came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Indexed {
    /// The version that shows it; 0 if there was nothing to do.
    pub version: u64,
    /// The indexes it was about, as they are in that version or a later one.
    pub indexes: Vec<IndexStatistics>,
}
