//! What is searched for.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use lance_gateway_proto::v1;

use crate::setters::setters;
use crate::{ColumnPath, Error, Result};

/// How far two vectors are from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The square of the Euclidean distance.
    L2,
    /// 1 - cosine of the angle.
    Cosine,
    /// 1 - dot product.
    Dot,
    /// Bits that differ, for vectors of bytes.
    Hamming,
}

impl Metric {
    const ALL: [(Self, v1::Metric, &'static str); 4] = [
        (Self::L2, v1::Metric::L2, "l2"),
        (Self::Cosine, v1::Metric::Cosine, "cosine"),
        (Self::Dot, v1::Metric::Dot, "dot"),
        (Self::Hamming, v1::Metric::Hamming, "hamming"),
    ];

    pub(crate) fn to_wire(self) -> v1::Metric {
        Self::ALL.iter().find(|(metric, ..)| *metric == self).map_or(v1::Metric::Unspecified, |(_, wire, _)| *wire)
    }

    pub(crate) fn from_wire(wire: v1::Metric) -> Option<Self> {
        Self::ALL.iter().find(|(_, found, _)| *found == wire).map(|(metric, ..)| *metric)
    }

    /// Its name, as people write it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(metric, ..)| *metric == self).map_or("", |(.., name)| name)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(.., name)| text.eq_ignore_ascii_case(name));
        found.map(|(metric, ..)| *metric).ok_or_else(|| {
            Error::invalid_request(format!("{text:?} is no metric; there are l2, cosine, dot and hamming"))
        })
    }
}

/// A vector with its type. Its numbers become those of the column if they can.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector(v1::Vector);

impl Vector {
    fn new(kind: v1::vector::Kind) -> Self {
        Self(v1::Vector { kind: Some(kind) })
    }

    /// IEEE 754 halves, little-endian.
    pub fn float16(bytes: impl Into<Bytes>) -> Self {
        Self::new(v1::vector::Kind::Float16(bytes.into()))
    }

    /// Bits, eight in a byte.
    pub fn binary(bytes: impl Into<Bytes>) -> Self {
        Self::new(v1::vector::Kind::Binary(bytes.into()))
    }

    /// Several vectors that are one query, for a column of lists of vectors.
    pub fn multi(vectors: impl IntoIterator<Item = impl Into<Self>>) -> Self {
        let vectors = vectors.into_iter().map(|vector| vector.into().0).collect();
        Self::new(v1::vector::Kind::Multi(v1::MultiVector { vectors }))
    }
}

impl From<Vec<f32>> for Vector {
    fn from(values: Vec<f32>) -> Self {
        Self::new(v1::vector::Kind::Float32(v1::Float32Values { values }))
    }
}

impl From<&[f32]> for Vector {
    fn from(values: &[f32]) -> Self {
        values.to_vec().into()
    }
}

impl From<Vec<f64>> for Vector {
    fn from(values: Vec<f64>) -> Self {
        Self::new(v1::vector::Kind::Float64(v1::Float64Values { values }))
    }
}

impl From<Vec<i8>> for Vector {
    fn from(values: Vec<i8>) -> Self {
        let bytes: Vec<u8> = values.into_iter().map(i8::cast_unsigned).collect();
        Self::new(v1::vector::Kind::Int8(bytes.into()))
    }
}

/// The nearest rows to a vector. What is not said, the gateway or Lance decides.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorQuery(pub(super) v1::VectorQuery);

impl VectorQuery {
    /// The 10 nearest in a column.
    pub fn new(column: impl Into<ColumnPath>, vector: impl Into<Vector>) -> Self {
        Self(v1::VectorQuery { vector: Some(vector.into().0), ..Self::of(column).0 })
    }

    /// The same for vectors that come later, see [`Search::run_many`].
    pub fn of(column: impl Into<ColumnPath>) -> Self {
        Self(v1::VectorQuery { column: Some(column.into().into_wire()), ..v1::VectorQuery::default() })
    }

    setters! {
        /// Finds so many rows.
        k: u64 => Some(k);
        /// Leaves out so many of the nearest.
        offset: u64 => offset;
        /// Compares so. Without it: as the table declares, else as the index does.
        metric: Metric => metric.to_wire().into();
        /// Searches at least so many partitions of the index.
        min_nprobes: u32 => min_nprobes;
        /// Searches at most so many partitions of the index.
        max_nprobes: u32 => max_nprobes;
        /// Candidates of an HNSW index.
        ef: u32 => ef;
        /// Reads so many times the rows, and ranks them by their own vectors.
        refine_factor: u32 => refine_factor;
    }

    /// Only rows at `lower` or farther, and nearer than `upper`.
    pub fn distance_range(mut self, lower: Option<f32>, upper: Option<f32>) -> Self {
        (self.0.lower_bound, self.0.upper_bound) = (lower, upper);
        self
    }

    /// Searches so many partitions of the index.
    pub fn nprobes(self, partitions: u32) -> Self {
        self.min_nprobes(partitions).max_nprobes(partitions)
    }

    /// Compares with every vector, and looks at no index.
    pub fn exact(mut self) -> Self {
        self.0.exact = true;
        self
    }

    /// Applies the filter to the rows that were found, of which fewer may be left.
    pub fn postfilter(mut self) -> Self {
        self.0.postfilter = true;
        self
    }
}

/// A condition on texts, and what it adds to the score.
#[derive(Debug, Clone, PartialEq)]
pub struct TextQuery(v1::TextQuery);

impl TextQuery {
    fn new(kind: v1::text_query::Kind) -> Self {
        Self(v1::TextQuery { kind: Some(kind) })
    }

    fn matching(column: impl Into<ColumnPath>, text: impl Into<String>, more: v1::MatchQuery) -> Self {
        let column = Some(column.into().into_wire());
        Self::new(v1::text_query::Kind::Match(v1::MatchQuery { column, text: text.into(), ..more }))
    }

    /// Any of the words.
    pub fn any(column: impl Into<ColumnPath>, words: impl Into<String>) -> Self {
        Self::matching(column, words, v1::MatchQuery::default())
    }

    /// All of the words.
    pub fn all(column: impl Into<ColumnPath>, words: impl Into<String>) -> Self {
        Self::matching(column, words, v1::MatchQuery { all_words: true, ..v1::MatchQuery::default() })
    }

    /// Any of the words, in which so many letters may differ.
    pub fn fuzzy(column: impl Into<ColumnPath>, words: impl Into<String>, letters: u32) -> Self {
        Self::matching(column, words, v1::MatchQuery { fuzziness: letters, ..v1::MatchQuery::default() })
    }

    /// The words in this order, with so many moves.
    pub fn phrase(column: impl Into<ColumnPath>, words: impl Into<String>, slop: u32) -> Self {
        let column = Some(column.into().into_wire());
        Self::new(v1::text_query::Kind::Phrase(v1::PhraseQuery { column, text: words.into(), slop }))
    }

    /// All of `must`, none of `must_not`, and at least one of `should` if `must` is empty.
    pub fn boolean(
        must: impl IntoIterator<Item = Self>,
        should: impl IntoIterator<Item = Self>,
        must_not: impl IntoIterator<Item = Self>,
    ) -> Self {
        let (must, should, must_not) = (wire(must), wire(should), wire(must_not));
        Self::new(v1::text_query::Kind::Boolean(v1::BooleanQuery { must, should, must_not }))
    }

    /// Takes from the score of rows that match `negative` too, by this factor.
    pub fn demoting(self, negative: Self, factor: f32) -> Self {
        Self::new(v1::text_query::Kind::Boost(Box::new(v1::BoostQuery {
            positive: Some(Box::new(self.0)),
            negative: Some(Box::new(negative.0)),
            negative_boost: Some(factor),
        })))
    }
}

fn wire(queries: impl IntoIterator<Item = TextQuery>) -> Vec<v1::TextQuery> {
    queries.into_iter().map(|query| query.0).collect()
}

/// The rows whose texts match best.
#[derive(Debug, Clone, PartialEq)]
pub struct FullTextQuery(pub(super) v1::FullTextQuery);

impl FullTextQuery {
    /// The 10 best.
    pub fn new(query: TextQuery) -> Self {
        Self(v1::FullTextQuery { query: Some(query.0), ..v1::FullTextQuery::default() })
    }

    setters! {
        /// Finds so many rows.
        k: u64 => Some(k);
        /// Leaves out so many of the best.
        offset: u64 => offset;
    }

    /// Applies the filter to the rows that were found, of which fewer may be left.
    pub fn postfilter(mut self) -> Self {
        self.0.postfilter = true;
        self
    }
}

/// Both, as one ranking by reciprocal rank fusion.
#[derive(Debug, Clone, PartialEq)]
pub struct HybridQuery(pub(super) v1::HybridQuery);

impl HybridQuery {
    /// The 10 most relevant. The `k` of a side is the number of its candidates.
    pub fn new(vector: VectorQuery, text: FullTextQuery) -> Self {
        Self(v1::HybridQuery { vector: Some(vector.0), text: Some(text.0), ..v1::HybridQuery::default() })
    }

    setters! {
        /// Finds so many rows.
        k: u64 => Some(k);
        /// Leaves out so many of the most relevant.
        offset: u64 => offset;
        /// The larger, the less the first places count. 60 without it.
        rrf_k: u32 => Some(rrf_k);
    }

    /// How much each side counts. 1 without it.
    pub fn weights(mut self, vector: f32, text: f32) -> Self {
        (self.0.vector_weight, self.0.text_weight) = (Some(vector), Some(text));
        self
    }
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// The nearest vectors: adds `_distance` to the rows.
    Vector(VectorQuery),
    /// The best texts: adds `_score` to the rows.
    FullText(FullTextQuery),
    /// Both: adds `_distance`, `_score` and `_relevance_score` to the rows.
    Hybrid(Box<HybridQuery>),
}

impl From<VectorQuery> for Query {
    fn from(query: VectorQuery) -> Self {
        Self::Vector(query)
    }
}

impl From<FullTextQuery> for Query {
    fn from(query: FullTextQuery) -> Self {
        Self::FullText(query)
    }
}

impl From<HybridQuery> for Query {
    fn from(query: HybridQuery) -> Self {
        Self::Hybrid(Box::new(query))
    }
}

impl Query {
    pub(super) fn into_wire(self) -> v1::Search {
        let kind = match self {
            Self::Vector(query) => v1::search::Kind::Vector(query.0),
            Self::FullText(query) => v1::search::Kind::Text(query.0),
            Self::Hybrid(query) => v1::search::Kind::Hybrid(query.0),
        };
        v1::Search { kind: Some(kind) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_one_name_in_any_case() {
        for (metric, wire, name) in Metric::ALL {
            assert_eq!(name.to_uppercase().parse::<Metric>().unwrap(), metric);
            assert_eq!((metric.to_wire(), Metric::from_wire(wire)), (wire, Some(metric)));
        }
        assert!("euclid".parse::<Metric>().is_err());
        assert_eq!(Metric::from_wire(v1::Metric::Unspecified), None);
    }

    #[test]
    fn a_query_says_only_what_was_said() {
        let v1::VectorQuery { column, vector, k, metric, max_nprobes, .. } = VectorQuery::of("v").nprobes(3).0;
        assert_eq!((column.unwrap().path, vector, k, metric, max_nprobes), (vec!["v".to_owned()], None, None, 0, 3));
        let query = TextQuery::any("t", "fox").demoting(TextQuery::phrase("t", "red fox", 0), 0.2);
        let Some(v1::text_query::Kind::Boost(boost)) = query.0.kind else { panic!("no boost") };
        assert_eq!(boost.negative_boost, Some(0.2));
    }
}
