//! The words of a search.

use std::fmt;
use std::str::FromStr;

use arrow_array::{ArrayRef, RecordBatch};

use crate::types::{ColumnPath, Filter, RowMetadata, TableId, VersionSelector};

/// How far two vectors are from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The square of the Euclidean distance.
    L2,
    /// 1 - cosine of the angle.
    Cosine,
    /// 1 - dot product.
    Dot,
    /// Bits that differ.
    Hamming,
}

impl Metric {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::Cosine => "cosine",
            Self::Dot => "dot",
            Self::Hamming => "hamming",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Metric {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Self::L2, Self::Cosine, Self::Dot, Self::Hamming];
        all.into_iter().find(|metric| text.trim().eq_ignore_ascii_case(metric.name())).ok_or(())
    }
}

/// Where and in which rows is searched, and what comes out.
#[derive(Debug, Clone)]
pub struct SearchSpec {
    /// The table.
    pub table: TableId,
    /// Its version.
    pub version: VersionSelector,
    /// None: all columns. Empty: none.
    pub projection: Option<Vec<ColumnPath>>,
    /// Rows to search.
    pub filter: Option<Filter>,
    /// Columns that Lance keeps.
    pub metadata: RowMetadata,
}

/// What is searched for.
#[derive(Debug, Clone)]
pub enum Search {
    /// The nearest vectors.
    Vector(VectorQuery),
    /// The best texts.
    Text(TextSearch),
    /// Both.
    Hybrid(Box<HybridQuery>),
}

/// The kind of a search, which decides the columns of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SearchKind {
    Vector,
    Text,
    Hybrid,
}

impl Search {
    /// Its kind.
    pub fn kind(&self) -> SearchKind {
        match self {
            Self::Vector(_) => SearchKind::Vector,
            Self::Text(_) => SearchKind::Text,
            Self::Hybrid(_) => SearchKind::Hybrid,
        }
    }
}

/// A vector, or several that are one query: arrays of float16, float32, float64, int8 or uint8.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum QueryVector {
    One(ArrayRef),
    Many(Vec<ArrayRef>),
}

/// See `lancegateway.v1.VectorQuery`.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct VectorQuery {
    pub column: ColumnPath,
    pub vector: QueryVector,
    pub metric: Option<Metric>,
    pub k: Option<u64>,
    pub offset: u64,
    pub lower_bound: Option<f32>,
    pub upper_bound: Option<f32>,
    /// None: Lance decides.
    pub min_nprobes: Option<u32>,
    /// None: all.
    pub max_nprobes: Option<u32>,
    pub ef: Option<u32>,
    pub refine_factor: Option<u32>,
    pub exact: bool,
    pub postfilter: bool,
}

/// See `lancegateway.v1.FullTextQuery`.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct TextSearch {
    pub query: TextQuery,
    pub k: Option<u64>,
    pub offset: u64,
    pub postfilter: bool,
}

/// See `lancegateway.v1.TextQuery`.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum TextQuery {
    Match {
        column: ColumnPath,
        text: String,
        all_words: bool,
        fuzziness: u32,
        max_expansions: Option<u32>,
        prefix_length: u32,
        boost: Option<f32>,
    },
    Phrase {
        column: ColumnPath,
        text: String,
        slop: u32,
    },
    Boolean {
        must: Vec<TextQuery>,
        should: Vec<TextQuery>,
        must_not: Vec<TextQuery>,
    },
    Boost {
        positive: Box<TextQuery>,
        negative: Box<TextQuery>,
        negative_boost: Option<f32>,
    },
}

/// See `lancegateway.v1.HybridQuery`.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct HybridQuery {
    pub vector: VectorQuery,
    pub text: TextSearch,
    pub k: Option<u64>,
    pub offset: u64,
    pub rrf_k: Option<u32>,
    pub vector_weight: Option<f32>,
    pub text_weight: Option<f32>,
}

/// The rows of a search, the best first, and how they were found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The rows.
    pub rows: RecordBatch,
    /// How they were found.
    pub info: SearchInfo,
}

/// How a search is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchInfo {
    /// The version that is searched.
    pub version: u64,
    /// How vectors are compared.
    pub metric: Option<Metric>,
    /// How vectors are found.
    pub vector: Option<IndexUse>,
    /// How texts are found.
    pub text: Option<IndexUse>,
}

/// What an index has to do with a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexUse {
    /// Empty: none.
    pub indexes: Vec<String>,
    /// Rows that they do not cover.
    pub num_unindexed_rows: u64,
}
