//! Lookups: keys in, rows out, many batches of keys on one stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_flight::FlightDescriptor;
use arrow_schema::SchemaRef;
use futures::{StreamExt, stream};
use lance_gateway_proto::flight::{EncodeOptions, Item};
use lance_gateway_proto::v1;
use prost::Message;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::client::Call;
use crate::retry::Pauses;
use crate::scan::{RowMetadata, Scan};
use crate::search::joined;
use crate::{Client, ColumnPath, Error, Filter, Result, TableId, VersionSelector, flight};

/// A lookup that is being described. End it with [`open`](Self::open).
#[derive(Debug, Clone)]
#[must_use = "a lookup does nothing before it is opened"]
pub struct Lookup {
    /// In which rows.
    scan: Scan,
    keys: Vec<ColumnPath>,
}

/// The rows that some keys found, in no order.
#[derive(Debug, Clone)]
pub struct LookedUp {
    /// The rows. Their first column, `_query`, is the row of the key that found them.
    pub rows: RecordBatch,
    /// The version that was read.
    pub version: u64,
}

impl Client {
    /// Begins to describe lookups: rows of the newest version whose columns `keys` equal given keys.
    ///
    /// ```no_run
    /// # use arrow_array::RecordBatch;
    /// # use lance_gateway_client::Client;
    /// # async fn example(client: Client, ids: RecordBatch) -> Result<(), lance_gateway_client::Error> {
    /// let words = client.lookup("words", ["id"]).columns(["word"]).open(&ids.schema()).await?;
    /// let found = words.find(&ids).await?;
    /// println!("{} rows of version {}", found.rows.num_rows(), found.version);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lookup(&self, table: impl Into<TableId>, keys: impl IntoIterator<Item = impl Into<ColumnPath>>) -> Lookup {
        Lookup { scan: self.scan(table), keys: keys.into_iter().map(Into::into).collect() }
    }
}

impl Lookup {
    /// Reads these columns, in this order.
    pub fn columns(self, columns: impl IntoIterator<Item = impl Into<ColumnPath>>) -> Self {
        Self { scan: self.scan.columns(columns), ..self }
    }

    /// Finds only these rows.
    pub fn filter(self, filter: impl Into<Filter>) -> Self {
        Self { scan: self.scan.filter(filter), ..self }
    }

    /// Reads this version, not the one that is the newest when keys come.
    pub fn version(self, version: impl Into<VersionSelector>) -> Self {
        Self { scan: self.scan.version(version), ..self }
    }

    /// Adds columns that Lance keeps.
    pub fn row_metadata(self, metadata: RowMetadata) -> Self {
        Self { scan: self.scan.row_metadata(metadata), ..self }
    }

    /// Bounds a message by rows and by bytes; the smaller bound wins, 0: as the gateway is configured.
    pub fn batch_size(self, rows: u32, bytes: u64) -> Self {
        Self { scan: self.scan.batch_size(rows, bytes), ..self }
    }

    /// Opens a stream for keys of this schema: a column for each of the keys, in their order and under any name.
    pub async fn open(self, keys: &SchemaRef) -> Result<Lookups> {
        let Scan { client, request } = self.scan;
        let v1::ScanRequest { table, version, projection, filter, metadata, batch, .. } = request;
        let compared = self.keys.into_iter().map(ColumnPath::into_wire).collect();
        let lookup = v1::LookupRequest { table, version, projection, filter, metadata, batch, keys: compared };
        let command = v1::ExchangeCommand { kind: Some(v1::exchange_command::Kind::Lookup(lookup)) };
        let descriptor = FlightDescriptor::new_cmd(command.encode_to_vec());
        let (exchange, schema) = Exchange::open(&client, &descriptor, keys).await?;
        let in_flight = Semaphore::new(client.options().lookups_in_flight.max(1));
        let current = tokio::sync::Mutex::new(exchange);
        let inner = Inner { client, descriptor, keys: keys.clone(), schema, in_flight, current };
        Ok(Lookups { inner: Arc::new(inner) })
    }
}

/// Looks up keys, on one stream that is opened anew when it breaks. Cloning is cheap and shares the stream.
#[derive(Debug, Clone)]
pub struct Lookups {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    descriptor: FlightDescriptor,
    keys: SchemaRef,
    schema: SchemaRef,
    in_flight: Semaphore,
    current: tokio::sync::Mutex<Exchange>,
}

impl Lookups {
    /// The schema of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.inner.schema
    }

    /// The rows that these keys find. Any number of calls may wait for theirs at once, and
    /// [`ClientOptions::lookups_in_flight`](crate::ClientOptions::lookups_in_flight) of them are sent.
    pub async fn find(&self, keys: &RecordBatch) -> Result<LookedUp> {
        let Inner { client, in_flight, .. } = self.inner.as_ref();
        let keys = flight::conform(keys, &self.inner.keys)?;
        let bytes: usize = keys.columns().iter().filter_map(|c| c.to_data().get_slice_memory_size().ok()).sum();
        let most = client.options().max_message_bytes;
        if bytes > most {
            return Err(Error::invalid_request(format!("the keys take {bytes} bytes, above {most} for one message")));
        }
        let _permit = in_flight.acquire().await.map_err(|_| ended())?;
        let mut pauses = Pauses::new(&client.options().retry);
        loop {
            match self.ask(keys.clone()).await {
                Err(error) if error.is_retriable() => pauses.wait(error).await?,
                answered => return answered,
            }
        }
    }

    async fn ask(&self, keys: RecordBatch) -> Result<LookedUp> {
        let (answer, answered) = oneshot::channel();
        let asks = self.exchange().await?;
        asks.send(Ask { keys, answer }).await.map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }

    /// The stream, opened anew if it has ended.
    async fn exchange(&self) -> Result<mpsc::Sender<Ask>> {
        let Inner { client, descriptor, keys, schema, current, .. } = self.inner.as_ref();
        let mut current = current.lock().await;
        if current.reading.is_finished() || current.asks.is_closed() {
            let (exchange, now) = Exchange::open(client, descriptor, keys).await?;
            if now != *schema {
                let why = "the columns of the table have changed since the lookup was opened; open it anew";
                return Err(Error::refused(lance_gateway_proto::Reason::SchemaMismatch, why));
            }
            *current = exchange;
        }
        Ok(current.asks.clone())
    }
}

fn ended() -> Error {
    Error::unavailable("the stream of the lookup has ended")
}

/// A batch of keys, and where its rows go.
#[derive(Debug)]
struct Ask {
    keys: RecordBatch,
    answer: oneshot::Sender<Result<LookedUp>>,
}

/// One DoExchange.
#[derive(Debug)]
struct Exchange {
    asks: mpsc::Sender<Ask>,
    reading: JoinHandle<()>,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Who waits for the answer to which batch; None: nobody will be answered any more.
type Waiting = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<Result<LookedUp>>>>>>;

impl Exchange {
    async fn open(client: &Client, descriptor: &FlightDescriptor, keys: &SchemaRef) -> Result<(Self, SchemaRef)> {
        let (asks, inbox) = mpsc::channel::<Ask>(1);
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let batches = stream::unfold((inbox, waiting.clone(), 0), |(mut inbox, waiting, batch)| async move {
            let Ask { keys, answer } = inbox.recv().await?;
            waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.insert(batch, answer);
            Some((Ok::<_, Error>(keys), (inbox, waiting, batch + 1)))
        });
        // A batch of keys is a message.
        let max_row_bytes = client.options().max_message_bytes;
        let sizes = EncodeOptions { target_bytes: usize::MAX, max_bytes: usize::MAX, max_row_bytes };
        let call = Call::reads("lookup");
        let mut messages = flight::do_exchange(client, &call, descriptor, keys, sizes, batches).await?;
        let schema = match messages.next().await.transpose()?.map(|decoded| decoded.item) {
            Some(Item::Schema(schema)) => schema,
            _ => return Err(Error::protocol("the answers have no schema")),
        };
        let reading = tokio::spawn({
            let schema = schema.clone();
            async move {
                let error = read(messages, &schema, &waiting).await.err().unwrap_or_else(ended);
                let left = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
                for answer in left.into_iter().flat_map(HashMap::into_values) {
                    // Who no longer waits wants no error.
                    answer.send(Err(error.again())).ok();
                }
            }
        });
        Ok((Self { asks, reading }, schema))
    }
}

/// Hands on answers until there are no more.
async fn read(mut messages: flight::Messages, schema: &SchemaRef, waiting: &Waiting) -> Result<()> {
    let mut batches = Vec::new();
    while let Some(decoded) = messages.next().await.transpose()? {
        if let Item::Batch(rows) = decoded.item {
            batches.push(rows);
        }
        if decoded.app_metadata.is_empty() {
            continue;
        }
        let answer = v1::LookupAnswer::decode(decoded.app_metadata)
            .map_err(|e| Error::protocol(format!("the gateway sent no answer to a lookup: {e}")))?;
        let batches = std::mem::take(&mut batches);
        let asked =
            waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut().and_then(|w| w.remove(&answer.batch));
        let asked = asked.ok_or_else(|| Error::protocol("the gateway answered keys that it was not sent"))?;
        // Who no longer waits needs no answer.
        asked.send(looked_up(answer, schema, &batches)).ok();
    }
    Ok(())
}

fn looked_up(answer: v1::LookupAnswer, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<LookedUp> {
    if let Some(error) = answer.error {
        return Err(Error::of_query(error));
    }
    let rows = joined(schema, batches)?;
    if rows.num_rows() as u64 != answer.num_rows {
        let (came, said) = (rows.num_rows(), answer.num_rows);
        return Err(Error::protocol(format!("the gateway sent {came} rows and said {said}")));
    }
    let queries = rows.columns().first().and_then(|column| column.as_primitive_opt::<UInt64Type>());
    let queries = queries.ok_or_else(|| Error::protocol("the gateway did not say whose rows they are"))?;
    let queries = queries.unary::<_, UInt64Type>(|query| query.wrapping_sub(answer.first_query));
    let columns = std::iter::once(Arc::new(queries) as _).chain(rows.columns()[1..].iter().cloned()).collect();
    let rows = RecordBatch::try_new(schema.clone(), columns)
        .map_err(|e| Error::protocol(format!("the rows of an answer do not fit together: {e}")))?;
    Ok(LookedUp { rows, version: answer.version })
}
