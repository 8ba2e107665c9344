//! Searches: the nearest vectors, the best texts, and both.

mod query;

use std::error::Error as StdError;
use std::io::Cursor;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::FlightDescriptor;
use arrow_ipc::reader::StreamReader;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use lance_gateway_proto::flight::{EncodeOptions, Item};
use lance_gateway_proto::v1;
use prost::Message;

use crate::client::{Call, send};
use crate::scan::{RowMetadata, Scan};
use crate::{Client, ColumnPath, Error, Filter, Result, TableId, VersionSelector, flight};

pub use query::{FullTextQuery, HybridQuery, Metric, Query, TextQuery, Vector, VectorQuery};

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
    /// Where and in which rows.
    scan: Scan,
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
        Search { scan: self.scan(table), query: query.into() }
    }
}

impl Search {
    /// Reads these columns, in this order.
    pub fn columns(self, columns: impl IntoIterator<Item = impl Into<ColumnPath>>) -> Self {
        Self { scan: self.scan.columns(columns), ..self }
    }

    /// Searches these rows.
    pub fn filter(self, filter: impl Into<Filter>) -> Self {
        Self { scan: self.scan.filter(filter), ..self }
    }

    /// Searches this version.
    pub fn version(self, version: impl Into<VersionSelector>) -> Self {
        Self { scan: self.scan.version(version), ..self }
    }

    /// Adds columns that Lance keeps.
    pub fn row_metadata(self, metadata: RowMetadata) -> Self {
        Self { scan: self.scan.row_metadata(metadata), ..self }
    }

    /// Searches.
    pub async fn run(self) -> Result<Found> {
        let Scan { client, request } = self.scan;
        let v1::ScanRequest { table, version, projection, filter, metadata, .. } = request;
        let call = Call::reads("search");
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
        let Scan { client, request } = self.scan;
        let search = v1::ScanRequest { search: Some(self.query.into_wire()), ..request };
        let command = v1::ExchangeCommand { kind: Some(v1::exchange_command::Kind::Search(search)) };
        let descriptor = FlightDescriptor::new_cmd(command.encode_to_vec());
        let call = Call::reads("search");
        let sizes = EncodeOptions { max_row_bytes: client.options().max_message_bytes, ..EncodeOptions::default() };
        let mut messages = flight::do_exchange(&client, &call, &descriptor, schema, sizes, queries).await?;
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
            let refused = Error::of_query(answer.error.unwrap_or_default());
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

/// The rows of one answer.
pub(crate) fn joined(schema: &Arc<Schema>, batches: &[RecordBatch]) -> Result<RecordBatch> {
    match batches {
        [one] => Ok(one.clone()),
        several => arrow_select::concat::concat_batches(schema, several)
            .map_err(|e| Error::protocol(format!("the rows of an answer do not fit together: {e}"))),
    }
}
