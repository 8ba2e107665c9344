//! Indexes: what to build, the jobs that do it, and what is known of them.

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use lance_gateway_proto::v1;

use crate::client::{Call, send};
use crate::ids::time_from_wire;
use crate::setters::setters;
use crate::{Client, ColumnPath, Error, Job, JobKind, Metric, Result, TableId};

/// How an index keeps vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorIndexType {
    /// As they are.
    IvfFlat,
    /// As codes of their parts.
    IvfPq,
    /// As a byte for each number.
    IvfSq,
    /// As bits after a rotation.
    IvfRq,
    /// A graph of them as they are.
    IvfHnswFlat,
    /// A graph of a byte for each number.
    IvfHnswSq,
    /// A graph of codes.
    IvfHnswPq,
}

/// How an index keeps scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarIndexType {
    /// Sorted, for ranges and single values.
    BTree,
    /// For few different values.
    Bitmap,
    /// For lists of labels.
    LabelList,
    /// For parts of texts.
    NGram,
    /// The least and the greatest of each few thousand rows.
    ZoneMap,
    /// For single values, small.
    BloomFilter,
}

/// An index to build.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSpec(v1::IndexBuild);

/// An index over vectors; what is not set is Lance's default.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorIndex(v1::VectorIndex);

/// An index over text; what is not set is Lance's default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FullTextIndex(v1::FullTextIndex);

/// Which indexes are brought up to date, and how.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Optimization(v1::IndexOptimization);

/// What a job made of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Indexed {
    /// Its name.
    pub name: String,
    /// The version that shows it.
    pub version: u64,
    /// Rows that it finds.
    pub num_indexed_rows: u64,
    /// Rows that are searched without it.
    pub num_unindexed_rows: u64,
    /// There were too few rows to train it: searches read all rows until an optimization finds enough.
    pub deferred: bool,
}

/// How far an index reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexStatistics {
    /// Its name.
    pub name: String,
    /// As people write it.
    pub columns: Vec<String>,
    /// Lance's name, such as `IVF_PQ`.
    pub index_type: String,
    /// Of an index over vectors.
    pub metric: Option<Metric>,
    /// Rows that it finds.
    pub num_indexed_rows: u64,
    /// Rows that are searched without it.
    pub num_unindexed_rows: u64,
    /// Parts that a search asks one by one.
    pub num_segments: u32,
    /// Of its files.
    pub num_bytes: u64,
    /// When its newest part was built.
    pub created_at: Option<DateTime<Utc>>,
    /// There were too few rows to train it.
    pub deferred: bool,
    /// The version that was asked.
    pub version: u64,
}

impl Client {
    /// Builds an index as a job. Errors of the build are those of the job.
    pub async fn create_index(&self, table: impl Into<TableId>, spec: &IndexSpec) -> Result<Job> {
        self.start_job(table, &JobKind::IndexBuild(spec.clone())).await
    }

    /// Brings rows that came later into indexes, as a job.
    pub async fn optimize_index(&self, table: impl Into<TableId>, optimization: &Optimization) -> Result<Job> {
        self.start_job(table, &JobKind::IndexOptimization(optimization.clone())).await
    }

    /// Removes an index. Answers the version that has it no longer.
    pub async fn drop_index(&self, table: impl Into<TableId>, name: &str) -> Result<u64> {
        let call = Call::changes("drop index");
        let message = v1::DropIndexRequest {
            request_id: call.request_id.clone(),
            table: table.into().to_wire(),
            name: name.to_owned(),
        };
        Ok(send!(self.indexes().drop_index, call, message)?.version)
    }

    /// The indexes of a table, by name.
    pub async fn list_indexes(&self, table: impl Into<TableId>) -> Result<Vec<IndexStatistics>> {
        let message = v1::ListIndexesRequest { table: table.into().to_wire() };
        let answer = send!(self.indexes().list_indexes, Call::reads("list indexes"), message)?;
        Ok(answer.indexes.into_iter().map(IndexStatistics::from_wire).collect())
    }

    /// One index.
    pub async fn describe_index(&self, table: impl Into<TableId>, name: &str) -> Result<IndexStatistics> {
        let message = v1::DescribeIndexRequest { table: table.into().to_wire(), name: name.to_owned() };
        let answer = send!(self.indexes().describe_index, Call::reads("describe index"), message)?;
        let wrong = || Error::protocol("the gateway answered without the index");
        Ok(IndexStatistics::from_wire(answer.index.ok_or_else(wrong)?))
    }

    pub(crate) async fn start_index_build(&self, table: TableId, spec: &IndexSpec) -> Result<Option<v1::Job>> {
        let call = Call::changes("create index");
        let message = v1::CreateIndexRequest {
            request_id: call.request_id.clone(),
            table: table.to_wire(),
            build: Some(spec.0.clone()),
        };
        Ok(send!(self.indexes().create_index, call, message)?.job)
    }

    pub(crate) async fn start_optimization(&self, table: TableId, what: &Optimization) -> Result<Option<v1::Job>> {
        let call = Call::changes("optimize index");
        let message = v1::OptimizeIndexRequest {
            request_id: call.request_id.clone(),
            table: table.to_wire(),
            optimization: Some(what.0.clone()),
        };
        Ok(send!(self.indexes().optimize_index, call, message)?.job)
    }
}

impl IndexSpec {
    fn new(column: impl Into<ColumnPath>, kind: v1::index_build::Kind) -> Self {
        let column = Some(column.into().into_wire());
        Self(v1::IndexBuild { column, kind: Some(kind), ..v1::IndexBuild::default() })
    }

    /// Over a column of vectors.
    pub fn vector(column: impl Into<ColumnPath>, index: VectorIndex) -> Self {
        Self::new(column, v1::index_build::Kind::Vector(index.0))
    }

    /// Over a column of scalars, or of lists of them.
    pub fn scalar(column: impl Into<ColumnPath>, index_type: ScalarIndexType) -> Self {
        let index_type = match index_type {
            ScalarIndexType::BTree => v1::ScalarIndexType::Btree,
            ScalarIndexType::Bitmap => v1::ScalarIndexType::Bitmap,
            ScalarIndexType::LabelList => v1::ScalarIndexType::LabelList,
            ScalarIndexType::NGram => v1::ScalarIndexType::Ngram,
            ScalarIndexType::ZoneMap => v1::ScalarIndexType::Zonemap,
            ScalarIndexType::BloomFilter => v1::ScalarIndexType::BloomFilter,
        };
        Self::new(column, v1::index_build::Kind::Scalar(v1::ScalarIndex { r#type: index_type.into() }))
    }

    /// Over a column of text.
    pub fn full_text(column: impl Into<ColumnPath>, index: FullTextIndex) -> Self {
        Self::new(column, v1::index_build::Kind::FullText(index.0))
    }

    /// Default: the column and `_idx`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.0.name = name.into();
        self
    }

    /// In place of an index of this name, if there is one.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.0.replace = replace;
        self
    }

    pub(crate) fn from_wire(build: v1::IndexBuild) -> Self {
        Self(build)
    }
}

impl VectorIndex {
    /// Of this type, with the metric that the table declares, else L2, hamming for bytes, and cosine for lists of vectors.
    pub fn new(index_type: VectorIndexType) -> Self {
        let index_type = match index_type {
            VectorIndexType::IvfFlat => v1::VectorIndexType::IvfFlat,
            VectorIndexType::IvfPq => v1::VectorIndexType::IvfPq,
            VectorIndexType::IvfSq => v1::VectorIndexType::IvfSq,
            VectorIndexType::IvfRq => v1::VectorIndexType::IvfRq,
            VectorIndexType::IvfHnswFlat => v1::VectorIndexType::IvfHnswFlat,
            VectorIndexType::IvfHnswSq => v1::VectorIndexType::IvfHnswSq,
            VectorIndexType::IvfHnswPq => v1::VectorIndexType::IvfHnswPq,
        };
        Self(v1::VectorIndex { r#type: index_type.into(), ..v1::VectorIndex::default() })
    }

    setters! {
        /// How near two vectors are.
        metric: Metric => metric.to_wire().into();
        /// Partitions; default: from the number of rows.
        num_partitions: u32 => num_partitions;
        /// Rounds of k-means.
        max_iterations: u32 => max_iterations;
        /// Vectors that train one centroid.
        sample_rate: u32 => sample_rate;
        /// Parts of a vector, of PQ.
        num_sub_vectors: u32 => num_sub_vectors;
        /// Bits of a code, of PQ, SQ and RQ.
        num_bits: u32 => num_bits;
        /// Of HNSW.
        max_level: u32 => max_level;
        /// Of HNSW.
        m: u32 => m;
        /// Of HNSW.
        ef_construction: u32 => ef_construction;
    }

    /// Centroids of the partitions that were trained elsewhere.
    pub fn centroids(mut self, centroids: &FixedSizeListArray) -> Result<Self> {
        self.0.centroids = ipc(centroids)?;
        Ok(self)
    }

    /// The codebook of PQ that was trained elsewhere, with its centroids.
    pub fn codebook(mut self, codebook: &FixedSizeListArray) -> Result<Self> {
        self.0.codebook = ipc(codebook)?;
        Ok(self)
    }
}

fn ipc(vectors: &FixedSizeListArray) -> Result<Bytes> {
    let column: ArrayRef = Arc::new(vectors.clone());
    let batch = RecordBatch::try_from_iter([("vectors", column)]).map_err(Error::input)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).map_err(Error::input)?;
    writer.write(&batch).map_err(Error::input)?;
    Ok(writer.into_inner().map_err(Error::input)?.into())
}

impl FullTextIndex {
    setters! {
        /// `simple`, `whitespace`, `raw` or `ngram`.
        tokenizer: &str => tokenizer.to_owned();
        /// Of stemming and stop words.
        language: &str => language.to_owned();
        /// Whether positions are kept, which phrases need.
        with_position: bool => Some(with_position);
        /// Whether case is ignored.
        lower_case: bool => Some(lower_case);
        /// Whether words are reduced to their stems.
        stem: bool => Some(stem);
        /// Whether frequent words are left out.
        remove_stop_words: bool => Some(remove_stop_words);
        /// Whether accents are ignored.
        ascii_folding: bool => Some(ascii_folding);
        /// Longer words are left out.
        max_token_length: u32 => max_token_length;
        /// Of the tokenizer `ngram`.
        ngram_min_length: u32 => ngram_min_length;
        /// Of the tokenizer `ngram`.
        ngram_max_length: u32 => ngram_max_length;
    }
}

impl Optimization {
    setters! {
        /// Default: all.
        names: Vec<String> => names;
        /// How many of the newest parts of each index are merged with the new rows; 0: none.
        num_segments_to_merge: u32 => Some(num_segments_to_merge);
        /// Train anew, with all rows.
        retrain: bool => retrain;
    }

    pub(crate) fn from_wire(optimization: v1::IndexOptimization) -> Self {
        Self(optimization)
    }
}

impl Indexed {
    pub(crate) fn from_wire(result: v1::IndexResult) -> Self {
        Self {
            name: result.name,
            version: result.version,
            num_indexed_rows: result.num_indexed_rows,
            num_unindexed_rows: result.num_unindexed_rows,
            deferred: result.deferred,
        }
    }
}

impl IndexStatistics {
    fn from_wire(index: v1::IndexStatistics) -> Self {
        Self {
            metric: Metric::from_wire(index.metric()),
            name: index.name,
            columns: index.columns,
            index_type: index.r#type,
            num_indexed_rows: index.num_indexed_rows,
            num_unindexed_rows: index.num_unindexed_rows,
            num_segments: index.num_segments,
            num_bytes: index.num_bytes,
            created_at: time_from_wire(index.created_at),
            deferred: index.deferred,
            version: index.version,
        }
    }
}
