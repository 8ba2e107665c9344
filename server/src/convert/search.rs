//! Searches: from messages to the words of the lake and back.

use std::sync::Arc;

use arrow_array::types::Float16Type;
use arrow_array::{ArrayRef, Float32Array, Float64Array, Int8Array, PrimitiveArray, UInt8Array};
use arrow_buffer::{Buffer, ScalarBuffer};
use lance_gateway_lake::{self as lake, QueryVector};
use lance_gateway_proto::v1;
use v1::vector::Kind;

use super::{Result, column_path, filter, given, invalid, projection, required, row_metadata, table_id, version};

/// Where and in which rows is searched.
pub fn spec(
    table: Option<v1::Table>,
    selector: Option<v1::VersionSelector>,
    columns: Option<v1::Projection>,
    rows: Option<v1::Filter>,
    metadata: Option<v1::RowMetadata>,
    max_filter_depth: usize,
) -> Result<lake::SearchSpec> {
    Ok(lake::SearchSpec {
        table: table_id(table)?,
        version: version(selector)?,
        projection: projection(columns)?,
        filter: filter(rows, max_filter_depth)?,
        metadata: row_metadata(metadata),
    })
}

/// The search of a command, and where it searches.
pub fn of_scan(request: v1::ScanRequest, max_filter_depth: usize) -> Result<(lake::SearchSpec, v1::Search)> {
    let r = request;
    if r.limit.is_some() {
        return Err(invalid("a search has no limit; its k says how many rows are found"));
    }
    let search = required(r.search, "search")?;
    Ok((spec(r.table, r.version, r.projection, r.filter, r.metadata, max_filter_depth)?, search))
}

/// What is searched for.
pub fn search(search: v1::Search) -> Result<lake::Search> {
    Ok(match required(search.kind, "search.vector, search.text or search.hybrid")? {
        v1::search::Kind::Vector(query) => lake::Search::Vector(vector_query(query)?),
        v1::search::Kind::Text(query) => lake::Search::Text(text_search(query)?),
        v1::search::Kind::Hybrid(query) => lake::Search::Hybrid(Box::new(hybrid_query(query)?)),
    })
}

/// A query of vectors.
pub fn vector_query(q: v1::VectorQuery) -> Result<lake::VectorQuery> {
    let vector = vector(required(q.vector, "query.vector")?)?;
    Ok(lake::VectorQuery {
        column: column_path(required(q.column, "query.column")?)?,
        vector,
        metric: metric(q.metric)?,
        k: q.k,
        offset: q.offset,
        lower_bound: q.lower_bound,
        upper_bound: q.upper_bound,
        min_nprobes: given(q.min_nprobes),
        max_nprobes: given(q.max_nprobes),
        ef: given(q.ef),
        refine_factor: given(q.refine_factor),
        exact: q.exact,
        postfilter: q.postfilter,
    })
}

pub(super) fn metric(raw: i32) -> Result<Option<lake::Metric>> {
    Ok(match v1::Metric::try_from(raw) {
        Ok(v1::Metric::Unspecified) => None,
        Ok(v1::Metric::L2) => Some(lake::Metric::L2),
        Ok(v1::Metric::Cosine) => Some(lake::Metric::Cosine),
        Ok(v1::Metric::Dot) => Some(lake::Metric::Dot),
        Ok(v1::Metric::Hamming) => Some(lake::Metric::Hamming),
        Err(_) => return Err(invalid(format!("the gateway knows no metric {raw}"))),
    })
}

fn vector(vector: v1::Vector) -> Result<QueryVector> {
    match required(vector.kind, "the kind of a vector")? {
        Kind::Multi(multi) => {
            let vectors = multi.vectors.into_iter().map(|vector| match vector.kind {
                Some(Kind::Multi(_)) => Err(invalid("a multivector holds another one")),
                Some(kind) => numbers(kind),
                None => Err(invalid("the kind of a vector is missing")),
            });
            vectors.collect::<Result<_>>().map(QueryVector::Many)
        }
        kind => numbers(kind).map(QueryVector::One),
    }
}

fn numbers(kind: Kind) -> Result<ArrayRef> {
    Ok(match kind {
        Kind::Float32(vector) => Arc::new(Float32Array::from(vector.values)),
        Kind::Float64(vector) => Arc::new(Float64Array::from(vector.values)),
        Kind::Float16(bytes) => {
            if bytes.len() % 2 != 0 {
                return Err(invalid(format!("a vector of float16 has {} bytes, which is odd", bytes.len())));
            }
            let halves: Vec<u16> = bytes.as_chunks().0.iter().map(|half| u16::from_le_bytes(*half)).collect();
            let values = ScalarBuffer::from(Buffer::from_vec(halves));
            Arc::new(PrimitiveArray::<Float16Type>::new(values, None))
        }
        Kind::Int8(bytes) => Arc::new(bytes.iter().map(|byte| Some(byte.cast_signed())).collect::<Int8Array>()),
        Kind::Binary(bytes) => Arc::new(UInt8Array::from(bytes.to_vec())),
        Kind::Multi(_) => return Err(invalid("a multivector holds another one")),
    })
}

/// A query of texts.
pub fn text_search(q: v1::FullTextQuery) -> Result<lake::TextSearch> {
    let query = text_query(required(q.query, "query.query")?)?;
    Ok(lake::TextSearch { query, k: q.k, offset: q.offset, postfilter: q.postfilter })
}

/// The decoder bounds the depth.
fn text_query(query: v1::TextQuery) -> Result<lake::TextQuery> {
    use v1::text_query::Kind;
    let all = |queries: Vec<v1::TextQuery>| queries.into_iter().map(text_query).collect::<Result<Vec<_>>>();
    Ok(match required(query.kind, "the kind of a text query")? {
        Kind::Match(q) => lake::TextQuery::Match {
            column: column_path(required(q.column, "match.column")?)?,
            text: q.text,
            all_words: q.all_words,
            fuzziness: q.fuzziness,
            max_expansions: given(q.max_expansions),
            prefix_length: q.prefix_length,
            boost: q.boost,
        },
        Kind::Phrase(q) => lake::TextQuery::Phrase {
            column: column_path(required(q.column, "phrase.column")?)?,
            text: q.text,
            slop: q.slop,
        },
        Kind::Boolean(q) => {
            lake::TextQuery::Boolean { must: all(q.must)?, should: all(q.should)?, must_not: all(q.must_not)? }
        }
        Kind::Boost(q) => lake::TextQuery::Boost {
            positive: Box::new(text_query(required(q.positive.map(|q| *q), "boost.positive")?)?),
            negative: Box::new(text_query(required(q.negative.map(|q| *q), "boost.negative")?)?),
            negative_boost: q.negative_boost,
        },
    })
}

/// Both.
pub fn hybrid_query(q: v1::HybridQuery) -> Result<lake::HybridQuery> {
    Ok(lake::HybridQuery {
        vector: vector_query(required(q.vector, "query.vector")?)?,
        text: text_search(required(q.text, "query.text")?)?,
        k: q.k,
        offset: q.offset,
        rrf_k: q.rrf_k,
        vector_weight: q.vector_weight,
        text_weight: q.text_weight,
    })
}

pub(super) fn named_metric(metric: Option<lake::Metric>) -> v1::Metric {
    match metric {
        None => v1::Metric::Unspecified,
        Some(lake::Metric::L2) => v1::Metric::L2,
        Some(lake::Metric::Cosine) => v1::Metric::Cosine,
        Some(lake::Metric::Dot) => v1::Metric::Dot,
        Some(lake::Metric::Hamming) => v1::Metric::Hamming,
    }
}

/// How a search is done, before it is known how many rows it finds.
pub fn info(info: &lake::SearchInfo) -> v1::SearchInfo {
    let metric = named_metric(info.metric);
    let index_use = |used: &lake::IndexUse| v1::IndexUse {
        indexes: used.indexes.clone(),
        num_unindexed_rows: used.num_unindexed_rows,
    };
    v1::SearchInfo {
        version: info.version,
        num_rows: 0,
        metric: metric.into(),
        vector: info.vector.as_ref().map(index_use),
        text: info.text.as_ref().map(index_use),
    }
}

/// How a search was done.
pub fn found(found: &lake::Found) -> v1::SearchInfo {
    v1::SearchInfo { num_rows: found.rows.num_rows() as u64, ..info(&found.info) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Int8Type;

    use super::*;

    fn read(kind: Kind) -> Result<QueryVector> {
        vector(v1::Vector { kind: Some(kind) })
    }

    #[test]
    fn a_vector_keeps_its_type_and_its_bits() {
        let QueryVector::One(halves) = read(Kind::Float16(vec![0x00, 0x3c, 0x00, 0xc0].into())).unwrap() else {
            panic!()
        };
        let halves: Vec<f32> = halves.as_primitive::<Float16Type>().values().iter().map(|half| half.to_f32()).collect();
        assert_eq!(halves, [1.0, -2.0]);
        assert!(read(Kind::Float16(vec![0].into())).is_err());
        let QueryVector::One(bytes) = read(Kind::Int8(vec![0xff, 0x7f].into())).unwrap() else { panic!() };
        assert_eq!(bytes.as_primitive::<Int8Type>().values(), &[-1, 127]);
        assert!(vector(v1::Vector { kind: None }).is_err());
    }

    #[test]
    fn a_multivector_has_one_level() {
        let one = v1::Vector { kind: Some(Kind::Binary(vec![1].into())) };
        let multi = v1::MultiVector { vectors: vec![one.clone(), one] };
        assert!(matches!(read(Kind::Multi(multi.clone())).unwrap(), QueryVector::Many(vectors) if vectors.len() == 2));
        let nested = v1::Vector { kind: Some(Kind::Multi(multi)) };
        assert!(read(Kind::Multi(v1::MultiVector { vectors: vec![nested] })).is_err());
    }

    #[test]
    fn a_metric_of_a_newer_client_is_refused() {
        assert_eq!(metric(0).unwrap(), None);
        assert_eq!(metric(3).unwrap(), Some(lake::Metric::Dot));
        assert!(metric(5).is_err());
    }
}
