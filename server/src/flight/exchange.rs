//! DoExchange: queries in, answers out, each by itself and in no order. Those of searches are here.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use lance_gateway_lake::{self as lake, Found, Searcher};
use lance_gateway_proto::flight::{Encoder, Error as FlightError, Message};
use lance_gateway_proto::v1::exchange_command::Kind;
use lance_gateway_proto::{Reason, v1};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;

use super::about;
use super::descriptor::exchange_command;
use super::lookups;
use super::outbox::{self, Failure, Outbox, Pieces, sizes};
use super::queries::{self, Template, vector_of};
use super::source::Source;
use crate::convert::{self, search};
use crate::middleware::context;
use crate::state::Gateway;
use crate::status::{from_flight, from_lake, of_query};
use crate::telemetry::Metrics;

/// Answers a DoExchange. Dropping the stream ends its queries.
pub(super) fn exchange(gateway: Gateway, body: Body) -> Result<Pieces, Status> {
    let permit = gateway.admission.scan()?;
    let source = Source::new(body, &gateway.config.write);
    let config = gateway.config.scan.clone();
    Ok(outbox::stream(&config, |outbox| async move {
        let answered = answer(gateway, source, &outbox).await;
        drop(permit);
        (outbox, answered)
    }))
}

async fn answer(gateway: Gateway, mut source: Source, outbox: &Outbox) -> Result<(), Failure> {
    let (descriptor, schema) = source.open().await?;
    let (kind, json) = exchange_command(&descriptor)?;
    match kind {
        Kind::Search(request) => Exchange { gateway, source }.run((request, json), &schema, outbox).await,
        Kind::Lookup(request) => lookups::run(&gateway, source, (request, json), &schema, outbox).await,
    }
}

struct Exchange {
    gateway: Gateway,
    source: Source,
}

type Answered = Result<Found, v1::QueryError>;

/// Queries that are answered together: rows of one batch.
struct Unit {
    queries: RecordBatch,
    rows: Range<usize>,
    /// Which query of the stream the first row of the batch is.
    first: u64,
    searcher: Result<Searcher, v1::QueryError>,
}

impl Exchange {
    async fn run(
        mut self,
        (request, json): (v1::ScanRequest, bool),
        schema: &SchemaRef,
        outbox: &Outbox,
    ) -> Result<(), Failure> {
        let batch_bytes = request.batch.filter(|batch| batch.bytes > 0).map(|batch| convert::saturating(batch.bytes));
        let depth = convert::saturating(self.gateway.config.scan.max_filter_depth);
        let (spec, wanted) = search::of_scan(request, depth)?;
        let template = Arc::new(Template::new(wanted, schema)?);
        let lake = self.gateway.lake()?;
        let searcher = lake.searcher(&spec).await.map_err(from_lake)?;
        let rows = searcher.schema(template.kind());
        let mut answers = Answers::new(&self.gateway, template.answer_schema(&rows), batch_bytes, json);
        outbox.send(answers.encoder.schema_message(None, Bytes::new())).await?;

        let most = convert::saturating(self.gateway.config.search.stream_queries);
        let (mut waiting, mut running) = (VecDeque::new(), FuturesUnordered::new());
        let (mut in_flight, mut num_queries, mut ended) = (0, 0_u64, false);
        loop {
            while let Some(unit) =
                waiting.pop_front_if(|unit: &mut Unit| in_flight == 0 || in_flight + unit.rows.len() <= most)
            {
                in_flight += unit.rows.len();
                running.push(self.start(unit, &template));
            }
            if ended && running.is_empty() {
                return Ok(outbox.drained().await?);
            }
            self.source.patient = !running.is_empty();
            tokio::select! {
                Some((unit, answered)) = running.next() => {
                    in_flight -= unit.rows.len();
                    for (row, answered) in unit.rows.clone().zip(answered) {
                        answers.send(&unit, row, answered, outbox).await?;
                    }
                }
                batch = self.source.batch(), if !ended && waiting.is_empty() => match batch? {
                    None => ended = true,
                    Some((queries, _)) => {
                        let searcher = lake.searcher(&spec).await.and_then(|searcher| alike(searcher, &template, &rows));
                        let searcher = searcher.map_err(|error| of_query(&error));
                        let first = num_queries;
                        num_queries += queries.num_rows() as u64;
                        waiting = units(queries, first, searcher, &template, most).await;
                    }
                },
            }
        }
    }

    fn start(
        &self,
        unit: Unit,
        template: &Arc<Template>,
    ) -> impl Future<Output = (Arc<Unit>, Vec<Answered>)> + Send + use<> {
        let (admission, template) = (Arc::clone(&self.gateway.admission), Arc::clone(template));
        let limit = self.gateway.config.request.timeout.get();
        let unit = Arc::new(unit);
        let task = context::spawn({
            let unit = Arc::clone(&unit);
            async move {
                let answered = async {
                    let _permit = admission.search_in_turn().await;
                    unit.answer(&template).await
                };
                let late = || vec![Err(late(limit)); unit.rows.len()];
                tokio::time::timeout(limit, answered).await.unwrap_or_else(|_| late())
            }
        });
        let task = AbortOnDropHandle::new(task);
        async move {
            let answered = task.await.unwrap_or_else(|lost| {
                let lost = lake::Error::internal("a search of the gateway ended early").with_source(lost);
                vec![Err(of_query(&lost)); unit.rows.len()]
            });
            (unit, answered)
        }
    }
}

/// A query that takes as long as no call may.
pub(super) fn late(limit: Duration) -> v1::QueryError {
    let message = format!("the query was not answered within {limit:?} (request.timeout)");
    v1::QueryError { reason: Reason::DeadlineExceeded.name().to_owned(), message }
}

/// Refuses a table whose columns are others than those that the stream began with.
fn alike(searcher: Searcher, template: &Template, rows: &SchemaRef) -> lake::Result<Searcher> {
    if searcher.schema(template.kind()) == *rows {
        return Ok(searcher);
    }
    Err(changed())
}

pub(super) fn changed() -> lake::Error {
    let why = "the columns of the table have changed since the stream began; begin it anew";
    lake::Error::new(lake::ErrorKind::SchemaMismatch, why)
}

/// A batch in parts that are answered together: as large as half of what may be in flight where that shares work, so that the next
/// is worked on meanwhile.
async fn units(
    queries: RecordBatch,
    first: u64,
    searcher: Result<Searcher, v1::QueryError>,
    template: &Template,
    most: usize,
) -> VecDeque<Unit> {
    let shared = match (&searcher, template.vectors_alone()) {
        (Ok(searcher), Some(query)) => searcher.shares(query).await,
        _ => false,
    };
    let step = if shared { (most / 2).max(1) } else { 1 };
    let num_rows = queries.num_rows();
    let unit = |start: usize| Unit {
        queries: queries.clone(),
        rows: start..num_rows.min(start + step),
        first,
        searcher: searcher.clone(),
    };
    (0..num_rows).step_by(step).map(unit).collect()
}

impl Unit {
    /// In the order of the rows.
    async fn answer(&self, template: &Template) -> Vec<Answered> {
        let searcher = match &self.searcher {
            Ok(searcher) => searcher,
            Err(error) => return vec![Err(error.clone()); self.rows.len()],
        };
        if let Some(answered) = self.answer_together(searcher, template).await {
            return answered;
        }
        let mut answered = Vec::with_capacity(self.rows.len());
        for row in self.rows.clone() {
            let found = match template.query(&self.queries, row) {
                Ok(search) => searcher.search(&search).await,
                Err(error) => Err(error),
            };
            answered.push(found.map_err(|error| of_query(&error)));
        }
        answered
    }

    async fn answer_together(&self, searcher: &Searcher, template: &Template) -> Option<Vec<Answered>> {
        let query = template.vectors_alone().filter(|_| self.rows.len() > 1)?;
        // A row without a vector is refused when each is answered by itself.
        let vectors: Vec<_> =
            self.rows.clone().map(|row| vector_of(&self.queries, row)).collect::<lake::Result<_>>().ok()?;
        let found = searcher.search_each(query, &vectors).await.ok()?;
        Some(found.into_iter().map(|found| found.map_err(|error| of_query(&error))).collect())
    }
}

/// What is sent.
struct Answers {
    schema: SchemaRef,
    encoder: Encoder,
    json: bool,
    metrics: Arc<Metrics>,
}

impl Answers {
    fn new(gateway: &Gateway, schema: SchemaRef, batch_bytes: Option<usize>, json: bool) -> Self {
        let encoder = Encoder::new(&schema, sizes(&gateway.config.scan, batch_bytes));
        Self { schema, encoder, json, metrics: Arc::clone(&gateway.metrics) }
    }

    async fn send(&mut self, unit: &Unit, row: usize, answered: Answered, outbox: &Outbox) -> Result<(), Failure> {
        let query = unit.first + row as u64;
        let messages = match answered {
            Ok(found) => {
                let rows = queries::answer(&self.schema, &unit.queries, row, &found.rows)?;
                let answer = v1::QueryAnswer { query, info: Some(search::found(&found)), error: None };
                self.metrics.rows_found(rows.num_rows() as u64);
                match self.encoder.encode(&rows, about("QueryAnswer", &answer, self.json)?) {
                    Ok(messages) => messages,
                    Err(error) => self.failed(query, unsendable(error))?,
                }
            }
            Err(error) => self.failed(query, error)?,
        };
        for message in messages {
            outbox.send(message).await?;
        }
        Ok(())
    }

    /// An answer without rows.
    fn failed(&mut self, query: u64, error: v1::QueryError) -> Result<Vec<Message>, Status> {
        let answer = v1::QueryAnswer { query, info: None, error: Some(error) };
        let none = RecordBatch::new_empty(self.schema.clone());
        self.encoder.encode(&none, about("QueryAnswer", &answer, self.json)?).map_err(from_flight)
    }
}

/// Why rows cannot be sent.
pub(super) fn unsendable(error: FlightError) -> v1::QueryError {
    match error {
        FlightError::Codec { reason, message } => v1::QueryError { reason: reason.name().to_owned(), message },
        FlightError::Status(_) | FlightError::Transport(_) => {
            of_query(&lake::Error::internal("the rows of an answer cannot be encoded"))
        }
    }
}
