//! DoGet: the batches of one split, or the rows of one search, as fast as the client takes them and no faster.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_flight::Ticket;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use lance_gateway_lake as lake;
use lance_gateway_proto::flight::{Encoder, SmallMessages, decode_command};
use lance_gateway_proto::{Reason, v1};
use tonic::Status;
use tonic::body::Body;

use super::outbox::{self, Failure, Outbox, Pieces, sizes};
use super::{MAX_COMMAND_BYTES, idle, within};
use crate::admission::Permit;
use crate::convert::{self, changes, search};
use crate::state::Gateway;
use crate::status::{from_flight, from_lake, status};

type Batch = lake::Result<RecordBatch>;

/// Answers a DoGet. Dropping the stream ends the scan.
pub(super) async fn get(gateway: Gateway, body: Body) -> Result<Pieces, Status> {
    let ticket = ticket(&gateway, body).await?;
    if ticket.search.is_some() {
        return found(gateway, ticket).await;
    }
    if ticket.changes.is_some() {
        return changed(gateway, ticket).await;
    }
    let spec = convert::split_spec(ticket, max_depth(&gateway))?;
    let permit = gateway.admission.scan()?;
    let scan = gateway.lake()?.scan(&spec).await.map_err(from_lake)?;
    let schema = scan.schema();
    let sending = Sending { batches: counted(&gateway, scan), about: Bytes::new(), _permit: permit };
    Ok(sending.over(&gateway, &schema, spec.batch_bytes))
}

/// One part of what changed.
async fn changed(gateway: Gateway, ticket: v1::ScanTicket) -> Result<Pieces, Status> {
    let read = changes::read(ticket)?;
    let permit = gateway.admission.scan()?;
    let rows = gateway.lake()?.changes(&read).await.map_err(from_lake)?;
    let schema = rows.schema();
    let sending = Sending { batches: counted(&gateway, rows), about: Bytes::new(), _permit: permit };
    Ok(sending.over(&gateway, &schema, read.batch_bytes))
}

fn counted(gateway: &Gateway, rows: impl Stream<Item = Batch> + Send + 'static) -> BoxStream<'static, Batch> {
    let metrics = Arc::clone(&gateway.metrics);
    let count = move |batch: &Batch| {
        if let Ok(batch) = batch {
            metrics.rows_scanned(batch.num_rows() as u64);
        }
    };
    rows.inspect(count).boxed()
}

/// The rows of a search, which are few: they are there before the stream begins.
async fn found(gateway: Gateway, ticket: v1::ScanTicket) -> Result<Pieces, Status> {
    if !ticket.fragments.is_empty() || ticket.limit.is_some() {
        return Err(status(Reason::InvalidArgument, "the ticket of a search has neither fragments nor a limit"));
    }
    let (json, offset, batch) = (ticket.json, convert::saturating(ticket.row_offset), ticket.batch.unwrap_or_default());
    let version = v1::VersionSelector { kind: Some(v1::version_selector::Kind::Version(ticket.version)) };
    let t = ticket;
    let spec = search::spec(t.table, Some(version), t.projection, t.filter, t.metadata, max_depth(&gateway))?;
    let wanted = search::search(convert::required(t.search, "search")?)?;
    let permit = gateway.admission.search()?;
    let searcher = gateway.lake()?.searcher(&spec).await.map_err(from_lake)?;
    let limit = gateway.config.request.timeout.get();
    let late = || status(Reason::DeadlineExceeded, format!("nothing was found within {limit:?} (request.timeout)"));
    let found = within(limit, searcher.search(&wanted), late).await?.map_err(from_lake)?;
    let num_rows = found.rows.num_rows();
    gateway.metrics.rows_found(num_rows as u64);
    let about = super::about("SearchInfo", &search::found(&found), json)?;
    let rest = found.rows.slice(offset.min(num_rows), num_rows.saturating_sub(offset));
    let rows_of_batch = if batch.rows > 0 { convert::saturating(batch.rows) } else { rest.num_rows() };
    let starts = (0..rest.num_rows().max(1)).step_by(rows_of_batch.max(1));
    let batches: Vec<_> =
        starts.map(|start| Ok(rest.slice(start, rows_of_batch.min(rest.num_rows() - start)))).collect();
    let sending = Sending { batches: stream::iter(batches).boxed(), about, _permit: permit };
    let bytes = (batch.bytes > 0).then(|| convert::saturating(batch.bytes));
    Ok(sending.over(&gateway, &found.rows.schema(), bytes))
}

async fn ticket(gateway: &Gateway, body: Body) -> Result<v1::ScanTicket, Status> {
    let limit = gateway.config.write.idle_timeout.get();
    let mut requests = SmallMessages::<_, Ticket>::request(body, MAX_COMMAND_BYTES);
    let ticket = within(limit, requests.next(), || idle("the client sent no ticket", limit, "write.idle-timeout"))
        .await?
        .ok_or_else(|| status(Reason::InvalidArgument, "the call has no ticket"))?
        .map_err(from_flight)?;
    decode_command("ScanTicket", &ticket.ticket).map_err(from_flight)
}

fn max_depth(gateway: &Gateway) -> usize {
    convert::saturating(gateway.config.scan.max_filter_depth)
}

/// What the task of a stream holds.
struct Sending {
    batches: BoxStream<'static, Batch>,
    /// Goes with the first batch.
    about: Bytes,
    _permit: Permit,
}

impl Sending {
    fn over(mut self, gateway: &Gateway, schema: &SchemaRef, batch_bytes: Option<usize>) -> Pieces {
        let config = &gateway.config.scan;
        let mut encoder = Encoder::new(schema, sizes(config, batch_bytes));
        outbox::stream(config, |outbox| async move {
            let sent = self.all(&mut encoder, &outbox).await;
            (outbox, sent)
        })
    }

    async fn all(&mut self, encoder: &mut Encoder, outbox: &Outbox) -> Result<(), Failure> {
        outbox.send(encoder.schema_message(None, Bytes::new())).await?;
        while let Some(batch) = self.batches.next().await {
            let batch = batch.map_err(from_lake)?;
            for message in encoder.encode(&batch, std::mem::take(&mut self.about)).map_err(from_flight)? {
                outbox.send(message).await?;
            }
        }
        Ok(outbox.drained().await?)
    }
}
