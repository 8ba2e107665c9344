//! Scans: a plan that is pinned to one version, and streams of its rows.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_flight::{FlightDescriptor, FlightEndpoint};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use lance_gateway_proto::v1;
use prost::Message;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::client::{Call, send};
use crate::retry::Pauses;
use crate::{Client, ColumnPath, Error, Filter, Result, TableId, VersionSelector, flight, schema};

/// Columns that Lance keeps for each row; they follow the projected ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowMetadata {
    /// `_rowid`: stable over compaction if the table was created with stable row ids.
    pub row_id: bool,
    /// `_rowaddr`: fragment and offset.
    pub row_address: bool,
    /// `_row_created_at_version` and `_row_last_updated_at_version`; they need stable row ids.
    pub row_versions: bool,
}

/// A scan that is being described. End it with [`plan`](Self::plan).
#[derive(Debug, Clone)]
#[must_use = "a scan does nothing before it is planned"]
pub struct Scan {
    pub(crate) client: Client,
    pub(crate) request: v1::ScanRequest,
}

impl Client {
    /// Begins to describe a scan of all columns and rows of the newest version.
    pub fn scan(&self, table: impl Into<TableId>) -> Scan {
        let request = v1::ScanRequest { table: table.into().to_wire(), ..v1::ScanRequest::default() };
        Scan { client: self.clone(), request }
    }

    /// Reads one split of a plan, in this process or another than the one that planned it.
    pub fn read(&self, split: &Split) -> Read {
        Read { client: self.clone(), ticket: split.ticket.clone(), row_offset: None }
    }
}

impl Scan {
    /// Reads these columns, in this order. None at all: rows without columns.
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<ColumnPath>>) -> Self {
        let columns = columns.into_iter().map(|column| column.into().into_wire()).collect();
        self.request.projection = Some(v1::Projection { columns });
        self
    }

    /// Keeps these rows.
    pub fn filter(mut self, filter: impl Into<Filter>) -> Self {
        self.request.filter = Some(filter.into().into_wire());
        self
    }

    /// Reads at most this many rows over all splits together; 0: the schema alone.
    pub fn limit(mut self, rows: u64) -> Self {
        self.request.limit = Some(rows);
        self
    }

    /// Reads this version.
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

    /// Bounds a batch by rows and by bytes; the smaller bound wins, 0: as the gateway is configured.
    pub fn batch_size(mut self, rows: u32, bytes: u64) -> Self {
        self.request.batch = Some(v1::BatchSize { rows, bytes });
        self
    }

    /// Wishes for splits of about this many bytes.
    pub fn split_bytes(mut self, bytes: u64) -> Self {
        self.request.split_bytes = bytes;
        self
    }

    /// Cuts into at most this many splits.
    pub fn max_splits(mut self, splits: u32) -> Self {
        self.request.max_splits = splits;
        self
    }

    /// Pins the version and cuts the scan into splits.
    pub async fn plan(self) -> Result<Plan> {
        let client = self.client;
        let descriptor = FlightDescriptor::new_cmd(self.request.encode_to_vec());
        let info = send!(client.flights().get_flight_info, Call::reads("plan a scan"), descriptor)?;
        let plan = v1::ScanPlan::decode(info.app_metadata)
            .map_err(|e| Error::protocol(format!("the gateway sent no plan of a scan: {e}")))?;
        Ok(Plan {
            client,
            schema: schema::from_wire(&info.schema)?,
            version: plan.version,
            num_rows: plan.num_rows,
            num_bytes: plan.num_bytes,
            splits: info.endpoint.into_iter().map(Split::from_wire).collect::<Result<_>>()?,
        })
    }
}

/// A scan with everything pinned: whatever is committed meanwhile, all its splits read one version.
#[derive(Debug, Clone)]
pub struct Plan {
    client: Client,
    schema: SchemaRef,
    version: u64,
    num_rows: u64,
    num_bytes: u64,
    splits: Vec<Split>,
}

impl Plan {
    /// Schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The pinned version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Rows before the filter, bounded by the limit.
    pub fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// Bytes of the data files that are read, about.
    pub fn num_bytes(&self) -> u64 {
        self.num_bytes
    }

    /// The parts, in reading order.
    pub fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// The rows of all splits in order. Some splits are read ahead, as
    /// [`ClientOptions::prefetch_splits`](crate::ClientOptions::prefetch_splits) bounds it.
    ///
    /// Must be polled within a tokio runtime.
    pub fn stream(self) -> RowStream {
        RowStream {
            client: self.client,
            schema: self.schema,
            waiting: self.splits.into(),
            open: VecDeque::new(),
            begun: false,
            tasks: JoinSet::new(),
        }
    }
}

/// A part of a plan. Its ticket is all that another process needs to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    ticket: Bytes,
    num_rows: u64,
    num_bytes: u64,
}

impl Split {
    /// A split from the ticket of another process.
    pub fn from_ticket(ticket: impl Into<Bytes>) -> Self {
        Self { ticket: ticket.into(), num_rows: 0, num_bytes: 0 }
    }

    fn from_wire(endpoint: FlightEndpoint) -> Result<Self> {
        let split = v1::ScanSplit::decode(endpoint.app_metadata)
            .map_err(|e| Error::protocol(format!("the gateway sent no split of a scan: {e}")))?;
        let ticket = endpoint.ticket.ok_or_else(|| Error::protocol("the gateway sent a split without a ticket"))?;
        Ok(Self { ticket: ticket.ticket, num_rows: split.num_rows, num_bytes: split.num_bytes })
    }

    /// What `DoGet` takes.
    pub fn ticket(&self) -> &Bytes {
        &self.ticket
    }

    /// Rows before the filter; 0 if made from a ticket.
    pub fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// Bytes of the data files that are read, about; 0 if made from a ticket.
    pub fn num_bytes(&self) -> u64 {
        self.num_bytes
    }
}

/// The reading of one split.
#[derive(Debug, Clone)]
#[must_use = "nothing is read before the stream is polled"]
pub struct Read {
    client: Client,
    ticket: Bytes,
    row_offset: Option<u64>,
}

impl Read {
    /// Skips the first rows of the split's result, which the caller has already.
    pub fn row_offset(mut self, rows: u64) -> Self {
        self.row_offset = Some(rows);
        self
    }

    /// The rows. A stream that breaks is opened again behind the last row that arrived, a bounded number of times in a row.
    pub fn stream(self) -> BoxStream<'static, Result<RecordBatch>> {
        let reader = Reader {
            pauses: Pauses::new(&self.client.options().retry),
            client: self.client,
            ticket: self.ticket,
            row_offset: self.row_offset,
            batches: None,
        };
        stream::unfold(Some(reader), |reader| async move {
            let mut reader = reader?;
            match reader.next().await {
                Ok(Some(batch)) => Some((Ok(batch), Some(reader))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }
}

struct Reader {
    client: Client,
    ticket: Bytes,
    /// Rows that the caller has. None: the offset within the ticket holds.
    row_offset: Option<u64>,
    pauses: Pauses,
    batches: Option<BoxStream<'static, Result<RecordBatch>>>,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match self.try_next().await {
                Ok(batch) => {
                    if let Some(batch) = &batch {
                        self.has_read(batch.num_rows())?;
                    }
                    return Ok(batch);
                }
                Err(error) if error.is_retriable() => {
                    self.batches = None;
                    self.pauses.wait(error).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn try_next(&mut self) -> Result<Option<RecordBatch>> {
        let batches = match &mut self.batches {
            Some(batches) => batches,
            none => {
                let call = Call::reads("read a split");
                let ticket = match self.row_offset {
                    Some(rows) => with_row_offset(&self.ticket, rows)?,
                    None => self.ticket.clone(),
                };
                none.insert(flight::do_get(&self.client, &call, ticket).await?)
            }
        };
        let idle = self.client.options().stream_idle_timeout;
        match tokio::time::timeout(idle, batches.next()).await {
            Ok(batch) => batch.transpose(),
            Err(_) => Err(Error::unavailable(format!("no row of a split came within {idle:?}"))),
        }
    }

    fn has_read(&mut self, rows: usize) -> Result<()> {
        if rows > 0 {
            let before = match self.row_offset {
                Some(rows) => rows,
                None => decode_ticket(&self.ticket)?.row_offset,
            };
            self.row_offset = Some(before + rows as u64);
            self.pauses = Pauses::new(&self.client.options().retry);
        }
        Ok(())
    }
}

fn decode_ticket(ticket: &Bytes) -> Result<v1::ScanTicket> {
    v1::ScanTicket::decode(ticket.clone()).map_err(|e| Error::invalid_request(format!("this is no ticket: {e}")))
}

fn with_row_offset(ticket: &Bytes, rows: u64) -> Result<Bytes> {
    Ok(v1::ScanTicket { row_offset: rows, ..decode_ticket(ticket)? }.encode_to_vec().into())
}

/// The rows of a plan, in order.
#[derive(Debug)]
pub struct RowStream {
    client: Client,
    schema: SchemaRef,
    waiting: VecDeque<Split>,
    open: VecDeque<mpsc::Receiver<Event>>,
    /// Something came. Until then nothing is read ahead, which would only delay it.
    begun: bool,
    // Dropping the set stops the tasks.
    tasks: JoinSet<()>,
}

/// The end is said, so that a reader that died is not taken for one that is done.
enum Event {
    Batch(Result<RecordBatch>),
    End,
}

impl RowStream {
    /// Schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn open_more(&mut self) {
        let options = self.client.options();
        let most = if self.begun { options.prefetch_splits } else { 1 };
        while self.open.len() < most
            && let Some(split) = self.waiting.pop_front()
        {
            let (sender, receiver) = mpsc::channel(options.prefetch_batches);
            let mut batches = self.client.read(&split).stream();
            self.tasks.spawn(async move {
                while let Some(batch) = batches.next().await {
                    if sender.send(Event::Batch(batch)).await.is_err() {
                        return;
                    }
                }
                // Nobody listens any more if this fails.
                sender.send(Event::End).await.ok();
            });
            self.open.push_back(receiver);
        }
    }

    fn fail(&mut self, error: Error) -> Poll<Option<Result<RecordBatch>>> {
        self.waiting.clear();
        self.open.clear();
        self.tasks.abort_all();
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for RowStream {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            this.open_more();
            let Some(first) = this.open.front_mut() else { return Poll::Ready(None) };
            let event = ready!(first.poll_recv(cx));
            this.begun = true;
            match event {
                Some(Event::Batch(Ok(batch))) => return Poll::Ready(Some(Ok(batch))),
                Some(Event::Batch(Err(error))) => return this.fail(error),
                Some(Event::End) => {
                    this.open.pop_front();
                    // Takes note of tasks that are done, so that the set does not grow.
                    while this.tasks.try_join_next().is_some() {}
                }
                None => return this.fail(Error::protocol("the reader of a split stopped without an end")),
            }
        }
    }
}
