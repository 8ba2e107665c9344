//! Searches: the nearest vectors, the best texts, and both.

use std::error::Error as StdError;
use std::fmt;
use std::io::Cursor;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::FlightDescriptor;
use arrow_ipc::reader::StreamReader;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use lance_gateway_proto::flight::Item;
use lance_gateway_proto::{Reason, v1};
use prost::Message;

use crate::client::{Call, send};
use crate::scan::RowMetadata;
use crate::{Client, ColumnPath, Error, Filter, Result, TableId, VersionSelector, flight};

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
pub struct VectorQuery(v1::VectorQuery);

impl VectorQuery {
    /// The 10 nearest in a column.
    pub fn new(column: impl Into<ColumnPath>, vector: impl Into<Vector>) -> Self {
        Self(v1::VectorQuery { vector: Some(vector.into().0), ..Self::of(column).0 })
    }

    /// The same for vectors that come later, see [`Search::run_many`].
    pub fn of(column: impl Into<ColumnPath>) -> Self {
        Self(v1::VectorQuery { column: Some(column.into().into_wire()), ..v1::VectorQuery::default() })
    }

    /// Finds so many rows.
    pub fn k(mut self, rows: u64) -> Self {
        self.0.k = Some(rows);
        self
    }

    /// Leaves out so many of the nearest.
    pub fn offset(mut self, rows: u64) -> Self {
        self.0.offset = rows;
        self
    }

    /// Compares so. Without it: as the table declares, else as the index does.
    pub fn metric(mut self, metric: Metric) -> Self {
        self.0.metric = metric.to_wire().into();
        self
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

    /// Searches at least so many partitions of the index.
    pub fn min_nprobes(mut self, partitions: u32) -> Self {
        self.0.min_nprobes = partitions;
        self
    }

    /// Searches at most so many partitions of the index.
    pub fn max_nprobes(mut self, partitions: u32) -> Self {
        self.0.max_nprobes = partitions;
        self
    }

    /// Candidates of an HNSW index.
    pub fn ef(mut self, candidates: u32) -> Self {
        self.0.ef = candidates;
        self
    }

    /// Reads so many times the rows, and ranks them by their own vectors.
    pub fn refine_factor(mut self, factor: u32) -> Self {
        self.0.refine_factor = factor;
        self
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
pub struct FullTextQuery(v1::FullTextQuery);

impl FullTextQuery {
    /// The 10 best.
    pub fn new(query: TextQuery) -> Self {
        Self(v1::FullTextQuery { query: Some(query.0), ..v1::FullTextQuery::default() })
    }

    /// Finds so many rows.
    pub fn k(mut self, rows: u64) -> Self {
        self.0.k = Some(rows);
        self
    }

    /// Leaves out so many of the best.
    pub fn offset(mut self, rows: u64) -> Self {
        self.0.offset = rows;
        self
    }

    /// Applies the filter to the rows that were found, of which fewer may be left.
    pub fn postfilter(mut self) -> Self {
        self.0.postfilter = true;
        self
    }
}

/// Both, as one ranking by reciprocal rank fusion.
#[derive(Debug, Clone, PartialEq)]
pub struct HybridQuery(v1::HybridQuery);

impl HybridQuery {
    /// The 10 most relevant. The `k` of a side is the number of its candidates.
    pub fn new(vector: VectorQuery, text: FullTextQuery) -> Self {
        Self(v1::HybridQuery { vector: Some(vector.0), text: Some(text.0), ..v1::HybridQuery::default() })
    }

    /// Finds so many rows.
    pub fn k(mut self, rows: u64) -> Self {
        self.0.k = Some(rows);
        self
    }

    /// Leaves out so many of the most relevant.
    pub fn offset(mut self, rows: u64) -> Self {
        self.0.offset = rows;
        self
    }

    /// The larger, the less the first places count. 60 without it.
    pub fn rrf_k(mut self, k: u32) -> Self {
        self.0.rrf_k = Some(k);
        self
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
    fn into_wire(self) -> v1::Search {
        let kind = match self {
            Self::Vector(query) => v1::search::Kind::Vector(query.0),
            Self::FullText(query) => v1::search::Kind::Text(query.0),
            Self::Hybrid(query) => v1::search::Kind::Hybrid(query.0),
        };
        v1::Search { kind: Some(kind) }
    }
}

/// How a search was done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchInfo {
    /// The version that was searched.
    pub version: u64,
    /// Rows of the result.
    pub num_rows: u64,
    /// How vectors were compared; None in a search of texts alone.
    pub metric: Option<Metric>,
    /// How the vectors were found.
    pub vector: Option<IndexUse>,
    /// How the texts were found.
    pub text: Option<IndexUse>,
}

/// What an index had to do with a search.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexUse {
    /// The indexes that were used; empty: none.
    pub indexes: Vec<String>,
    /// Rows that they do not cover, and that were searched one by one.
    pub num_unindexed_rows: u64,
}

impl SearchInfo {
    fn from_wire(info: v1::SearchInfo) -> Self {
        let index_use =
            |used: v1::IndexUse| IndexUse { indexes: used.indexes, num_unindexed_rows: used.num_unindexed_rows };
        Self {
            version: info.version,
            num_rows: info.num_rows,
            metric: Metric::from_wire(info.metric()),
            vector: info.vector.map(index_use),
            text: info.text.map(index_use),
        }
    }
}

/// The rows of a search, the best first.
#[derive(Debug, Clone)]
pub struct Found {
    /// The rows.
    pub rows: RecordBatch,
    /// How they were found.
    pub info: SearchInfo,
}

/// The answer to one query of many.
#[derive(Debug)]
pub struct Answer {
    /// Which query it was, counted over all batches from 0.
    pub query: u64,
    /// Its rows, with the id of the query as the first column `_query`; or why it failed.
    pub found: Result<Found>,
}

/// A search that is being described. End it with [`run`](Self::run), or with [`run_many`](Self::run_many).
#[derive(Debug, Clone)]
#[must_use = "a search does nothing before it is run"]
pub struct Search {
    client: Client,
    request: v1::ScanRequest,
    query: Query,
}

impl Client {
    /// Begins to describe a search of all rows of the newest version.
    ///
    /// ```no_run
    /// # use lance_gateway_client::{Client, Metric, VectorQuery};
    /// # async fn example(client: Client) -> Result<(), lance_gateway_client::Error> {
    /// let query = VectorQuery::new("embedding", vec![0.1_f32, 0.2]).k(5).metric(Metric::Cosine);
    /// let found = client.search("words", query).filter("frequency > 1000").columns(["word"]).run().await?;
    /// println!("{} rows of version {}", found.rows.num_rows(), found.info.version);
    /// # Ok(())
    /// # }
    /// ```
    pub fn search(&self, table: impl Into<TableId>, query: impl Into<Query>) -> Search {
        let request = v1::ScanRequest { table: table.into().to_wire(), ..v1::ScanRequest::default() };
        Search { client: self.clone(), request, query: query.into() }
    }
}

impl Search {
    /// Reads these columns, in this order.
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<ColumnPath>>) -> Self {
        let columns = columns.into_iter().map(|column| column.into().into_wire()).collect();
        self.request.projection = Some(v1::Projection { columns });
        self
    }

    /// Searches these rows.
    pub fn filter(mut self, filter: impl Into<Filter>) -> Self {
        self.request.filter = Some(filter.into().into_wire());
        self
    }

    /// Searches this version.
    pub fn version(mut self, version: impl Into<VersionSelector>) -> Self {
        self.request.version = version.into().to_wire();
        self
    }

    /// Adds columns that Lance keeps.
    pub fn row_metadata(mut self, metadata: RowMetadata) -> Self {
        let RowMetadata { row_id, row_address, row_versions } = metadata;
        self.request.metadata = Some(v1::RowMetadata { row_id, row_address, row_versions });
        self
    }

    /// Searches.
    pub async fn run(self) -> Result<Found> {
        let v1::ScanRequest { table, version, projection, filter, metadata, .. } = self.request;
        let (client, call) = (self.client, Call::reads("search"));
        let (info, rows) = match self.query {
            Query::Vector(VectorQuery(query)) => {
                let query = Some(query);
                let message = v1::VectorSearchRequest { table, version, projection, filter, metadata, query };
                let answer = send!(client.searches().vector_search, call, message)?;
                (answer.info, answer.rows)
            }
            Query::FullText(FullTextQuery(query)) => {
                let query = Some(query);
                let message = v1::FullTextSearchRequest { table, version, projection, filter, metadata, query };
                let answer = send!(client.searches().full_text_search, call, message)?;
                (answer.info, answer.rows)
            }
            Query::Hybrid(query) => {
                let query = Some(query.0);
                let message = v1::HybridSearchRequest { table, version, projection, filter, metadata, query };
                let answer = send!(client.searches().hybrid_search, call, message)?;
                (answer.info, answer.rows)
            }
        };
        let info = info.ok_or_else(|| Error::protocol("the gateway did not say how it searched"))?;
        Ok(Found { rows: decode(&rows)?, info: SearchInfo::from_wire(info) })
    }

    /// Searches for many vectors, texts or both on one stream. `queries` are batches with the columns `id`, `vector`, `text` and `k`, as
    /// far as the search needs them; see `ExchangeCommand` of the protocol. Answers come in no order, and one that failed disturbs
    /// no other. What is searched for here has no vector ([`VectorQuery::of`]) and no words.
    pub async fn run_many<E>(
        self,
        schema: &SchemaRef,
        queries: impl Stream<Item = Result<RecordBatch, E>> + Send + 'static,
    ) -> Result<(SchemaRef, BoxStream<'static, Result<Answer>>)>
    where
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let search = v1::ScanRequest { search: Some(self.query.into_wire()), ..self.request };
        let command = v1::ExchangeCommand { kind: Some(v1::exchange_command::Kind::Search(search)) };
        let descriptor = FlightDescriptor::new_cmd(command.encode_to_vec());
        let call = Call::reads("search");
        let mut messages = flight::do_exchange(&self.client, &call, &descriptor, schema, queries).await?;
        let schema = match messages.next().await.transpose()?.map(|decoded| decoded.item) {
            Some(Item::Schema(schema)) => schema,
            _ => return Err(Error::protocol("the answers have no schema")),
        };
        let answering = Answering { messages, schema: schema.clone() };
        let answers = futures::stream::try_unfold(answering, |mut answering| async move {
            Ok(answering.next().await?.map(|answer| (answer, answering)))
        });
        Ok((schema, answers.boxed()))
    }
}

struct Answering {
    messages: flight::Messages,
    schema: SchemaRef,
}

impl Answering {
    async fn next(&mut self) -> Result<Option<Answer>> {
        let Some((about, mut rows)) = self.message().await? else { return Ok(None) };
        let answer = v1::QueryAnswer::decode(about)
            .map_err(|e| Error::protocol(format!("the gateway sent no answer to a query: {e}")))?;
        let query = answer.query;
        let Some(info) = answer.info else {
            let error = answer.error.unwrap_or_default();
            let refused = match error.reason.parse::<Reason>() {
                Ok(reason) => Error::refused(reason, error.message),
                Err(_) => Error::protocol(error.message),
            };
            return Ok(Some(Answer { query, found: Err(refused) }));
        };
        let info = SearchInfo::from_wire(info);
        let mut batches = Vec::new();
        loop {
            batches.extend(rows);
            let num_rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            if num_rows as u64 >= info.num_rows {
                break;
            }
            (_, rows) = self.message().await?.ok_or_else(|| Error::protocol("an answer ended before its rows"))?;
        }
        let rows = joined(&self.schema, &batches)?;
        Ok(Some(Answer { query, found: Ok(Found { rows, info }) }))
    }

    async fn message(&mut self) -> Result<Option<(Bytes, Option<RecordBatch>)>> {
        loop {
            let Some(decoded) = self.messages.next().await.transpose()? else { return Ok(None) };
            match decoded.item {
                Item::Batch(batch) => return Ok(Some((decoded.app_metadata, Some(batch)))),
                Item::Metadata => return Ok(Some((decoded.app_metadata, None))),
                Item::Schema(_) | Item::Dictionary => {}
            }
        }
    }
}

fn decode(rows: &Bytes) -> Result<RecordBatch> {
    let wrong = |e| Error::protocol(format!("the gateway sent no rows: {e}"));
    let reader = StreamReader::try_new(Cursor::new(rows.clone()), None).map_err(wrong)?;
    let schema = reader.schema();
    let batches = reader.collect::<std::result::Result<Vec<_>, _>>().map_err(wrong)?;
    joined(&schema, &batches)
}

fn joined(schema: &Arc<Schema>, batches: &[RecordBatch]) -> Result<RecordBatch> {
    match batches {
        [one] => Ok(one.clone()),
        several => arrow_select::concat::concat_batches(schema, several)
            .map_err(|e| Error::protocol(format!("the rows of an answer do not fit together: {e}"))),
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
