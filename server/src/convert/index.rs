//! Of indexes.

use lance_gateway_lake as lake;
use lance_gateway_proto::v1;
use lance_gateway_proto::v1::index_build::Kind;

use super::search::{metric, named_metric};
use super::{Result, column_path, given, invalid, required, to_timestamp};

/// Bytes of the name of an index.
const MAX_NAME_BYTES: usize = 255;

/// An index to build.
pub fn index_spec(build: &v1::IndexBuild) -> Result<lake::IndexSpec> {
    let name = Some(build.name.clone()).filter(|name| !name.is_empty());
    if let Some(name) = &name
        && (name.len() > MAX_NAME_BYTES || name.starts_with("__") || name.chars().any(char::is_control))
    {
        return Err(invalid(format!(
            "the name of an index has at most {MAX_NAME_BYTES} bytes, no control characters, and does not begin with __"
        )));
    }
    let kind = match required(build.kind.as_ref(), "kind")? {
        Kind::Vector(vector) => lake::IndexKind::Vector(vector_index(vector)?),
        Kind::Scalar(scalar) => lake::IndexKind::Scalar(scalar_type(scalar.r#type)?),
        Kind::FullText(text) => lake::IndexKind::FullText(full_text_index(text)),
    };
    Ok(lake::IndexSpec {
        column: column_path(required(build.column.clone(), "column")?)?,
        name,
        replace: build.replace,
        kind,
    })
}

fn vector_index(vector: &v1::VectorIndex) -> Result<lake::VectorIndex> {
    use v1::VectorIndexType as Type;
    let index_type = match Type::try_from(vector.r#type) {
        Ok(Type::IvfFlat) => lake::VectorIndexType::IvfFlat,
        Ok(Type::IvfPq) => lake::VectorIndexType::IvfPq,
        Ok(Type::IvfSq) => lake::VectorIndexType::IvfSq,
        Ok(Type::IvfRq) => lake::VectorIndexType::IvfRq,
        Ok(Type::IvfHnswFlat) => lake::VectorIndexType::IvfHnswFlat,
        Ok(Type::IvfHnswSq) => lake::VectorIndexType::IvfHnswSq,
        Ok(Type::IvfHnswPq) => lake::VectorIndexType::IvfHnswPq,
        Ok(Type::Unspecified) | Err(_) => return Err(invalid("vector.type is missing, or newer than this gateway")),
    };
    Ok(lake::VectorIndex {
        num_partitions: given(vector.num_partitions),
        max_iterations: given(vector.max_iterations),
        sample_rate: given(vector.sample_rate),
        num_sub_vectors: given(vector.num_sub_vectors),
        num_bits: given(vector.num_bits),
        max_level: given(vector.max_level),
        m: given(vector.m),
        ef_construction: given(vector.ef_construction),
        centroids: Some(vector.centroids.clone()).filter(|bytes| !bytes.is_empty()),
        codebook: Some(vector.codebook.clone()).filter(|bytes| !bytes.is_empty()),
        metric: metric(vector.metric)?,
        ..lake::VectorIndex::new(index_type)
    })
}

fn scalar_type(scalar: i32) -> Result<lake::ScalarIndexType> {
    use v1::ScalarIndexType as Type;
    Ok(match Type::try_from(scalar) {
        Ok(Type::Btree) => lake::ScalarIndexType::BTree,
        Ok(Type::Bitmap) => lake::ScalarIndexType::Bitmap,
        Ok(Type::LabelList) => lake::ScalarIndexType::LabelList,
        Ok(Type::Ngram) => lake::ScalarIndexType::NGram,
        Ok(Type::Zonemap) => lake::ScalarIndexType::ZoneMap,
        Ok(Type::BloomFilter) => lake::ScalarIndexType::BloomFilter,
        Ok(Type::Unspecified) | Err(_) => return Err(invalid("scalar.type is missing, or newer than this gateway")),
    })
}

fn full_text_index(text: &v1::FullTextIndex) -> lake::FullTextIndex {
    let named = |name: &String| Some(name.clone()).filter(|name| !name.is_empty());
    lake::FullTextIndex {
        tokenizer: named(&text.tokenizer),
        language: named(&text.language),
        with_position: text.with_position,
        lower_case: text.lower_case,
        stem: text.stem,
        remove_stop_words: text.remove_stop_words,
        ascii_folding: text.ascii_folding,
        max_token_length: given(text.max_token_length),
        ngram_min_length: given(text.ngram_min_length),
        ngram_max_length: given(text.ngram_max_length),
    }
}

/// Which indexes are brought up to date.
pub fn optimize_spec(optimization: &v1::IndexOptimization) -> lake::OptimizeSpec {
    lake::OptimizeSpec {
        names: optimization.names.clone(),
        segments_to_merge: optimization.num_segments_to_merge,
        retrain: optimization.retrain,
    }
}

/// How far an index reaches in a version.
pub fn index_statistics(index: lake::IndexStatistics, version: u64) -> v1::IndexStatistics {
    v1::IndexStatistics {
        name: index.name,
        columns: index.columns,
        r#type: index.index_type,
        metric: named_metric(index.metric).into(),
        num_indexed_rows: index.num_indexed_rows,
        num_unindexed_rows: index.num_unindexed_rows,
        num_segments: index.num_segments,
        num_bytes: index.num_bytes,
        created_at: index.created_at.map(to_timestamp),
        deferred: index.deferred,
        version,
    }
}

/// What a job made of an index.
pub fn index_result(index: lake::IndexStatistics, version: u64) -> v1::IndexResult {
    v1::IndexResult {
        name: index.name,
        version,
        num_indexed_rows: index.num_indexed_rows,
        num_unindexed_rows: index.num_unindexed_rows,
        deferred: index.deferred,
    }
}
