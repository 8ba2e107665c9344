//! The lookups of a DoExchange: batches of keys in, their rows out, each batch by itself and in no order.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use lance_gateway_lake::{self as lake, Lookup};
use lance_gateway_proto::flight::{Encoder, Message};
use lance_gateway_proto::v1;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::about;
use super::exchange::{late, unsendable};
use super::outbox::{Failure, Outbox, sizes};
use super::source::Source;
use crate::convert::{self, lookup};
use crate::middleware::context;
use crate::state::Gateway;
use crate::status::{from_flight, from_lake, of_query};

/// Batches of rows of one answer that wait while those of another are sent.
const ROWS_AHEAD: usize = 2;

/// Answers batches of keys of that schema.
pub(super) async fn run(
    gateway: &Gateway,
    mut source: Source,
    (request, json): (v1::LookupRequest, bool),
    keys: &SchemaRef,
    outbox: &Outbox,
) -> Result<(), Failure> {
    let spec = lookup::spec(request, convert::saturating(gateway.config.scan.max_filter_depth))?;
    let lake = gateway.lake()?;
    let schema = lake.lookup(&spec, keys).await.map_err(from_lake)?.schema();
    let encoder = Encoder::new(&schema, sizes(&gateway.config.scan, spec.batch_bytes));
    let mut answers = Answers { gateway, encoder, schema: schema.clone(), json };
    outbox.send(answers.encoder.schema_message(None, Bytes::new())).await?;

    let config = &gateway.config.search;
    let (most, most_keys) = (convert::saturating(config.stream_queries), convert::saturating(config.lookup_keys));
    let (mut waiting, mut running) = (None, FuturesUnordered::new());
    let (mut num_batches, mut num_keys, mut keys_in_flight, mut ended) = (0, 0, 0, false);
    loop {
        let fits = |unit: &mut Unit| running.len() < most && keys_in_flight + unit.keys.num_rows() <= most_keys;
        if let Some(unit) = waiting.take_if(|unit| running.is_empty() || fits(unit)) {
            keys_in_flight += unit.keys.num_rows();
            running.push(first_rows(start(gateway, unit)));
        }
        if ended && waiting.is_none() && running.is_empty() {
            return Ok(outbox.drained().await?);
        }
        source.patient = !running.is_empty();
        tokio::select! {
            Some((found, looking)) = running.next() => {
                keys_in_flight -= looking.num_keys;
                answers.send(found, looking, outbox).await?;
            }
            batch = source.batch(), if !ended && waiting.is_none() => match batch? {
                None => ended = true,
                Some((batch, _)) => {
                    let lookup = lake.lookup(&spec, keys).await.and_then(|lookup| alike(lookup, &schema));
                    let lookup = lookup.map_err(|error| of_query(&error));
                    let unit = Unit { batch: num_batches, first: num_keys, keys: batch, lookup };
                    num_batches += 1;
                    num_keys += unit.keys.num_rows() as u64;
                    waiting = Some(unit);
                }
            },
        }
    }
}

/// Refuses a table whose columns are others than those that the stream began with.
fn alike(lookup: Lookup, schema: &SchemaRef) -> lake::Result<Lookup> {
    if lookup.schema() == *schema { Ok(lookup) } else { Err(super::exchange::changed()) }
}

/// A batch of keys.
struct Unit {
    batch: u64,
    /// The number of the first key.
    first: u64,
    keys: RecordBatch,
    lookup: Result<Lookup, v1::QueryError>,
}

/// A batch of keys whose rows are read.
struct Looking {
    batch: u64,
    first: u64,
    num_keys: usize,
    version: u64,
    rows: mpsc::Receiver<RecordBatch>,
    end: AbortOnDropHandle<Result<(), v1::QueryError>>,
}

impl Looking {
    /// How it ended, once it has no more rows.
    async fn ended(self) -> Result<(), v1::QueryError> {
        self.end.await.unwrap_or_else(|lost| {
            let lost = lake::Error::internal("a lookup of the gateway ended early").with_source(lost);
            Err(of_query(&lost))
        })
    }
}

fn start(gateway: &Gateway, unit: Unit) -> Looking {
    let (admission, limit) = (Arc::clone(&gateway.admission), gateway.config.request.timeout.get());
    let Unit { batch, first, keys, lookup } = unit;
    let num_keys = keys.num_rows();
    let version = lookup.as_ref().map_or(0, Lookup::version);
    let (sender, rows) = mpsc::channel(ROWS_AHEAD);
    let task = context::spawn(async move {
        let mut rows = lookup?.rows(keys, first);
        let _permit = in_time(limit, admission.search_in_turn()).await?;
        while let Some(batch) = in_time(limit, rows.next()).await? {
            if sender.send(batch.map_err(|error| of_query(&error))?).await.is_err() {
                break;
            }
        }
        Ok(())
    });
    Looking { batch, first, num_keys, version, rows, end: AbortOnDropHandle::new(task) }
}

/// The gateway's own time is bounded, not that of a client that takes its rows slowly.
async fn in_time<T>(limit: Duration, future: impl Future<Output = T>) -> Result<T, v1::QueryError> {
    tokio::time::timeout(limit, future).await.map_err(|_| late(limit))
}

async fn first_rows(mut looking: Looking) -> (Option<RecordBatch>, Looking) {
    (looking.rows.recv().await, looking)
}

/// What is sent.
struct Answers<'a> {
    gateway: &'a Gateway,
    schema: SchemaRef,
    encoder: Encoder,
    json: bool,
}

impl Answers<'_> {
    /// Sends the rows as they come, and with the last ones how it ended.
    async fn send(&mut self, first: Option<RecordBatch>, mut looking: Looking, outbox: &Outbox) -> Result<(), Failure> {
        let (mut found, mut num_rows, mut failed) = (first, 0, None);
        let mut last: Vec<Message> = Vec::new();
        while let Some(rows) = found {
            for message in std::mem::take(&mut last) {
                outbox.send(message).await?;
            }
            match self.encoder.encode(&rows, Bytes::new()) {
                Ok(messages) => last = messages,
                Err(error) => {
                    failed = Some(unsendable(error));
                    break;
                }
            }
            num_rows += rows.num_rows() as u64;
            found = looking.rows.recv().await;
        }
        let (batch, first_query, version) = (looking.batch, looking.first, looking.version);
        let error = match failed {
            None => looking.ended().await.err(),
            failed => failed,
        };
        if error.is_some() {
            num_rows = 0;
        }
        self.gateway.metrics.rows_found(num_rows);
        let answer = v1::LookupAnswer { batch, first_query, version, num_rows, error };
        if last.is_empty() {
            let none = RecordBatch::new_empty(self.schema.clone());
            last = self.encoder.encode(&none, Bytes::new()).map_err(from_flight)?;
        }
        if let Some(message) = last.last_mut() {
            message.app_metadata = about("LookupAnswer", &answer, self.json)?;
        }
        for message in last {
            outbox.send(message).await?;
        }
        Ok(())
    }
}
