//! What an index is built of, checked against its column before anything is read.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, FixedSizeListArray};
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use bytes::Bytes;
use lance::Dataset;
use lance::index::vector::VectorIndexParams;
use lance_core::datatypes::Field;
use lance_index::pb::VectorMetricType;
use lance_index::scalar::{InvertedIndexParams, ScalarIndexParams};
use lance_index::vector::bq::RQBuildParams;
use lance_index::vector::hnsw::builder::HnswBuildParams;
use lance_index::vector::ivf::IvfBuildParams;
use lance_index::vector::pq::PQBuildParams;
use lance_index::vector::sq::builder::SQBuildParams;
use lance_index::{IndexParams, IndexType};

use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Found, find_path};
use crate::search::{Metric, declared_metric, default_metric};
use crate::table::excerpt;
use crate::types::ColumnPath;

/// Dimensions of one sub-vector of PQ, if nothing else is said and they divide the dimension.
const SUB_VECTORS: [i32; 2] = [16, 8];
/// Bits of a code of PQ, if nothing else is said.
const PQ_BITS: u32 = 8;

/// An index to build.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSpec {
    /// What it is over.
    pub column: ColumnPath,
    /// None: the column and `_idx`.
    pub name: Option<String>,
    /// Whether an index of this name is replaced.
    pub replace: bool,
    /// What kind of index.
    pub kind: IndexKind,
}

/// The kinds.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexKind {
    /// Over vectors.
    Vector(VectorIndex),
    /// Over scalars, or lists of them.
    Scalar(ScalarIndexType),
    /// Over text.
    FullText(FullTextIndex),
}

/// How vectors are kept, by Lance's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum VectorIndexType {
    IvfFlat,
    IvfPq,
    IvfSq,
    IvfRq,
    IvfHnswFlat,
    IvfHnswSq,
    IvfHnswPq,
}

/// An index over vectors. What is None is Lance's default.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorIndex {
    /// How vectors are kept.
    pub index_type: VectorIndexType,
    /// How far two of them are from each other. None: as the table declares, else L2, and hamming for bytes.
    pub metric: Option<Metric>,
    /// Partitions.
    pub num_partitions: Option<u32>,
    /// Rounds of k-means.
    pub max_iterations: Option<u32>,
    /// Vectors that train one centroid.
    pub sample_rate: Option<u32>,
    /// Parts of a vector, of PQ.
    pub num_sub_vectors: Option<u32>,
    /// Bits of a code, of PQ, SQ and RQ.
    pub num_bits: Option<u32>,
    /// Of HNSW.
    pub max_level: Option<u32>,
    /// Of HNSW.
    pub m: Option<u32>,
    /// Of HNSW.
    pub ef_construction: Option<u32>,
    /// Trained elsewhere: an Arrow IPC stream with one column of vectors.
    pub centroids: Option<Bytes>,
    /// Trained elsewhere: an Arrow IPC stream with one column of sub-vectors.
    pub codebook: Option<Bytes>,
}

/// By Lance's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ScalarIndexType {
    BTree,
    Bitmap,
    LabelList,
    NGram,
    ZoneMap,
    BloomFilter,
}

/// An index over text. What is None is Lance's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FullTextIndex {
    pub tokenizer: Option<String>,
    pub language: Option<String>,
    pub with_position: Option<bool>,
    pub lower_case: Option<bool>,
    pub stem: Option<bool>,
    pub remove_stop_words: Option<bool>,
    pub ascii_folding: Option<bool>,
    pub max_token_length: Option<u32>,
    pub ngram_min_length: Option<u32>,
    pub ngram_max_length: Option<u32>,
}

/// An index that fits its table, in Lance's terms.
pub(super) struct Fitting {
    pub(super) column: String,
    pub(super) name: String,
    pub(super) index_type: IndexType,
    pub(super) params: Box<dyn IndexParams>,
}

impl IndexSpec {
    /// Checks what can be known without reading rows.
    pub(super) fn fit(&self, dataset: &Dataset) -> Result<Fitting> {
        let Found { field, path, shown } = find_path(dataset.schema(), &self.column, "the index")?;
        let (index_type, params): (IndexType, Box<dyn IndexParams>) = match &self.kind {
            IndexKind::Vector(vector) => vector.params(field, &shown, declared_metric(dataset, &shown)?)?,
            IndexKind::Scalar(scalar) => scalar.params(field, &shown)?,
            IndexKind::FullText(text) => text.params(field, &shown)?,
        };
        let name = self.name.clone().unwrap_or_else(|| format!("{shown}_idx"));
        Ok(Fitting { column: path, name, index_type, params })
    }
}

/// What the column holds, if it is vectors: the type of an element, their dimension, and whether a row has several.
fn vectors(data_type: &DataType) -> Option<(&DataType, i32, bool)> {
    let (vectors, multi) = match data_type {
        DataType::List(inner) => (inner.data_type(), true),
        other => (other, false),
    };
    match vectors {
        DataType::FixedSizeList(element, dimension) => Some((element.data_type(), *dimension, multi)),
        _ => None,
    }
}

impl VectorIndex {
    /// Of this type, and else as Lance has it.
    pub fn new(index_type: VectorIndexType) -> Self {
        Self {
            index_type,
            metric: None,
            num_partitions: None,
            max_iterations: None,
            sample_rate: None,
            num_sub_vectors: None,
            num_bits: None,
            max_level: None,
            m: None,
            ef_construction: None,
            centroids: None,
            codebook: None,
        }
    }

    fn params(
        &self,
        field: &Field,
        column: &str,
        declared: Option<Metric>,
    ) -> Result<(IndexType, Box<dyn IndexParams>)> {
        let data_type = field.data_type();
        let Some((element, dimension, multi)) = vectors(&data_type) else {
            return Err(Error::invalid(format!(
                "column '{column}' is {data_type}: an index over vectors needs a FixedSizeList of numbers"
            )));
        };
        let bytes = *element == DataType::UInt8;
        if let (Some(metric), Some(declared)) = (self.metric, declared)
            && metric != declared
        {
            return Err(Error::new(
                ErrorKind::MetricMismatch,
                format!(
                    "the index is to have the metric {metric}, and the table declares {declared} for column '{column}'"
                ),
            ));
        }
        if bytes && multi {
            return Err(Error::invalid(format!(
                "column '{column}' has lists of vectors of bytes, which no index is over: those over lists are for floats"
            )));
        }
        let metric = self.metric.or(declared).unwrap_or_else(|| default_metric(element, multi));
        if bytes != (metric == Metric::Hamming) {
            return Err(Error::invalid(format!(
                "the metric {metric} does not fit column '{column}' of {element}: hamming is for bytes, the others for floats"
            )));
        }
        if multi && metric != Metric::Cosine {
            return Err(Error::invalid(format!(
                "the metric {metric} does not fit column '{column}': an index over lists of vectors has cosine"
            )));
        }
        if bytes && self.index_type != VectorIndexType::IvfFlat {
            return Err(Error::invalid(format!("column '{column}' holds bytes: only IVF_FLAT indexes them")));
        }
        let metric = VectorMetricType::from(metric).into();
        let ivf = self.ivf(element, dimension)?;
        let params = match self.index_type {
            VectorIndexType::IvfFlat => VectorIndexParams::with_ivf_flat_params(metric, ivf),
            VectorIndexType::IvfPq => {
                VectorIndexParams::with_ivf_pq_params(metric, ivf, self.pq(element, dimension, column)?)
            }
            VectorIndexType::IvfSq => VectorIndexParams::with_ivf_sq_params(metric, ivf, self.sq()?),
            VectorIndexType::IvfRq => VectorIndexParams::with_ivf_rq_params(metric, ivf, self.rq()?),
            VectorIndexType::IvfHnswFlat => VectorIndexParams::ivf_hnsw(metric, ivf, self.hnsw()?),
            VectorIndexType::IvfHnswSq => {
                VectorIndexParams::with_ivf_hnsw_sq_params(metric, ivf, self.hnsw()?, self.sq()?)
            }
            VectorIndexType::IvfHnswPq => {
                let pq = self.pq(element, dimension, column)?;
                VectorIndexParams::with_ivf_hnsw_pq_params(metric, ivf, self.hnsw()?, pq)
            }
        };
        Ok((params.index_type(), Box::new(params)))
    }

    fn ivf(&self, element: &DataType, dimension: i32) -> Result<IvfBuildParams> {
        let mut ivf = IvfBuildParams { num_partitions: self.num_partitions.map(|n| n as usize), ..Default::default() };
        if let Some(rounds) = self.max_iterations {
            ivf.max_iters = rounds as usize;
        }
        if let Some(rate) = self.sample_rate {
            ivf.sample_rate = rate as usize;
        }
        if let Some(bytes) = &self.centroids {
            let centroids = sent("centroids", bytes, element, dimension)?;
            if self.num_partitions.is_some_and(|n| n as usize != centroids.len()) {
                return Err(Error::invalid(format!(
                    "num_partitions is not the {} that centroids holds",
                    centroids.len()
                )));
            }
            ivf.num_partitions = Some(centroids.len());
            ivf.centroids = Some(Arc::new(centroids));
        }
        Ok(ivf)
    }

    fn pq(&self, element: &DataType, dimension: i32, column: &str) -> Result<PQBuildParams> {
        let default = || SUB_VECTORS.iter().find(|of| dimension % **of == 0).map_or(1, |of| dimension / of);
        let parts = self.num_sub_vectors.map_or_else(default, |parts| i32::try_from(parts).unwrap_or(i32::MAX));
        if parts < 1 || dimension % parts != 0 {
            return Err(Error::invalid(format!(
                "num_sub_vectors {parts} does not divide the dimension {dimension} of column '{column}'"
            )));
        }
        let bits = within("num_bits", self.num_bits.unwrap_or(PQ_BITS), &[4, 8])?;
        let mut pq = PQBuildParams::new(parts as usize, bits as usize);
        if let Some(rounds) = self.max_iterations {
            pq.max_iters = rounds as usize;
        }
        if let Some(rate) = self.sample_rate {
            pq.sample_rate = rate as usize;
        }
        if let Some(bytes) = &self.codebook {
            if self.centroids.is_none() {
                return Err(Error::invalid("codebook needs the centroids that it was trained with"));
            }
            let codebook = sent("codebook", bytes, element, dimension / parts)?;
            let wanted = (1_usize << bits) * parts as usize;
            if codebook.len() != wanted {
                return Err(Error::invalid(format!(
                    "codebook has {} sub-vectors: {parts} parts of {bits} bits need {wanted}",
                    codebook.len()
                )));
            }
            pq.codebook = Some(codebook.values().clone());
        }
        Ok(pq)
    }

    fn sq(&self) -> Result<SQBuildParams> {
        let mut sq = SQBuildParams::default();
        if let Some(bits) = self.num_bits {
            sq.num_bits = within("num_bits", bits, &[8])? as u16;
        }
        if let Some(rate) = self.sample_rate {
            sq.sample_rate = rate as usize;
        }
        Ok(sq)
    }

    fn rq(&self) -> Result<RQBuildParams> {
        let mut rq = RQBuildParams::default();
        if let Some(bits) = self.num_bits {
            rq.num_bits = within("num_bits", bits, &[1, 2, 3, 4, 5, 6, 7, 8, 9])? as u8;
        }
        Ok(rq)
    }

    fn hnsw(&self) -> Result<HnswBuildParams> {
        let mut hnsw = HnswBuildParams::default();
        if let Some(level) = self.max_level {
            hnsw.max_level = u16::try_from(level).map_err(|_| Error::invalid("max_level is at most 65535"))?;
        }
        if let Some(m) = self.m {
            hnsw.m = m as usize;
        }
        if let Some(ef) = self.ef_construction {
            hnsw.ef_construction = ef as usize;
        }
        Ok(hnsw)
    }
}

fn within(name: &str, value: u32, allowed: &[u32]) -> Result<u32> {
    if allowed.contains(&value) {
        return Ok(value);
    }
    let allowed = allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Err(Error::invalid(format!("{name} is {value}: {allowed} can be used")))
}

/// Vectors that a client has trained.
fn sent(name: &str, bytes: &Bytes, element: &DataType, dimension: i32) -> Result<FixedSizeListArray> {
    let wrong = |why: String| Error::invalid(format!("{name} {why}"));
    let no_arrow = |e| wrong("is no Arrow IPC stream".into()).with_source(e);
    let reader = StreamReader::try_new(bytes.as_ref(), None).map_err(no_arrow)?;
    let schema = reader.schema();
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>().map_err(no_arrow)?;
    let batch = arrow_select::concat::concat_batches(&schema, &batches).map_err(no_arrow)?;
    let [column] = batch.columns() else {
        return Err(wrong(format!("has {} columns: one of vectors is needed", batch.num_columns())));
    };
    let fits =
        matches!(column.data_type(), DataType::FixedSizeList(of, d) if of.data_type() == element && *d == dimension);
    let vectors = column
        .as_fixed_size_list_opt()
        .filter(|_| fits)
        .ok_or_else(|| wrong(format!("is {}: FixedSizeList({element}, {dimension}) is needed", column.data_type())))?;
    if vectors.is_empty() || vectors.null_count() > 0 || vectors.values().null_count() > 0 {
        return Err(wrong("has no vector, or some that are null".into()));
    }
    Ok(vectors.clone())
}

impl ScalarIndexType {
    /// Lance's name of it.
    fn lance(self) -> (IndexType, &'static str) {
        match self {
            Self::BTree => (IndexType::BTree, "btree"),
            Self::Bitmap => (IndexType::Bitmap, "bitmap"),
            Self::LabelList => (IndexType::LabelList, "labellist"),
            Self::NGram => (IndexType::NGram, "ngram"),
            Self::ZoneMap => (IndexType::ZoneMap, "zonemap"),
            Self::BloomFilter => (IndexType::BloomFilter, "bloomfilter"),
        }
    }

    fn params(self, field: &Field, column: &str) -> Result<(IndexType, Box<dyn IndexParams>)> {
        let data_type = field.data_type();
        let text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8);
        let (fits, needed) = match self {
            Self::LabelList => (matches!(data_type, DataType::List(_) | DataType::LargeList(_)), "a list"),
            Self::NGram => (text, "text"),
            _ => (!data_type.is_nested(), "a scalar"),
        };
        let (index_type, name) = self.lance();
        if !fits {
            return Err(Error::invalid(format!("column '{column}' is {data_type}: an index {name} needs {needed}")));
        }
        Ok((index_type, Box::new(ScalarIndexParams::new(name.to_owned()))))
    }
}

impl FullTextIndex {
    fn params(&self, field: &Field, column: &str) -> Result<(IndexType, Box<dyn IndexParams>)> {
        let data_type = field.data_type();
        let element = match &data_type {
            DataType::List(of) | DataType::LargeList(of) => of.data_type(),
            of => of,
        };
        if !matches!(element, DataType::Utf8 | DataType::LargeUtf8) {
            return Err(Error::invalid(format!(
                "column '{column}' is {data_type}: a full-text index needs text, or a list of texts"
            )));
        }
        let mut params = InvertedIndexParams::default();
        if let Some(tokenizer) = &self.tokenizer {
            let known = ["simple", "whitespace", "raw", "ngram"];
            if !known.contains(&tokenizer.as_str()) {
                let tokenizer = excerpt(tokenizer);
                return Err(Error::invalid(format!("there is no tokenizer '{tokenizer}': {}", known.join(", "))));
            }
            params = params.base_tokenizer(tokenizer.clone());
        }
        if let Some(language) = &self.language {
            let unknown = |e| {
                Error::invalid(format!("'{}' is no language that can be stemmed", excerpt(language))).with_source(e)
            };
            params = params.language(language).map_err(unknown)?;
        }
        if let Some(on) = self.with_position {
            params = params.with_position(on);
        }
        if let Some(on) = self.lower_case {
            params = params.lower_case(on);
        }
        if let Some(on) = self.stem {
            params = params.stem(on);
        }
        if let Some(on) = self.remove_stop_words {
            params = params.remove_stop_words(on);
        }
        if let Some(on) = self.ascii_folding {
            params = params.ascii_folding(on);
        }
        if let Some(length) = self.max_token_length {
            params = params.max_token_length(Some(length as usize));
        }
        if let Some(length) = self.ngram_min_length {
            params = params.ngram_min_length(length);
        }
        if let Some(length) = self.ngram_max_length {
            params = params.ngram_max_length(length);
        }
        Ok((IndexType::Inverted, Box::new(params)))
    }
}
