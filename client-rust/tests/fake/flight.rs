use std::result::Result;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::*;
use arrow_schema::{Schema, SchemaRef};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use lance_gateway_client::Reason;
use lance_gateway_proto::flight::schema_to_ipc;
use lance_gateway_proto::v1::{self, ScanRequest, ScanTicket};
use prost::Message;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::{BATCHES_PER_SPLIT, Fault, Service, Table, name, refusal};

fn projected(schema: &SchemaRef, projection: Option<&v1::Projection>) -> Result<Vec<usize>, Status> {
    match projection {
        None => Ok((0..schema.fields().len()).collect()),
        Some(projection) => projection
            .columns
            .iter()
            .map(|column| {
                let missing = || refusal(Reason::ColumnNotFound, &format!("there is no column {:?}", column.path));
                Ok(schema.column_with_name(&column.path.join("/")).ok_or_else(missing)?.0)
            })
            .collect(),
    }
}

fn project(batch: &RecordBatch, columns: &[usize]) -> RecordBatch {
    let schema = Arc::new(batch.schema().project(columns).unwrap());
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.iter().map(|&n| batch.column(n).clone()).collect();
    RecordBatch::try_new_with_options(schema, columns, &options).unwrap()
}

/// Skips and keeps rows across batches.
fn window(batches: Vec<RecordBatch>, mut skip: usize, mut take: usize) -> Vec<RecordBatch> {
    let mut out = Vec::new();
    for batch in batches {
        let skipped = skip.min(batch.num_rows());
        skip -= skipped;
        let rows = (batch.num_rows() - skipped).min(take);
        take -= rows;
        if rows > 0 {
            out.push(batch.slice(skipped, rows));
        }
    }
    out
}

impl Service {
    async fn rows_of(
        incoming: Streaming<FlightData>,
        first: FlightData,
    ) -> Result<(SchemaRef, Vec<RecordBatch>), Status> {
        let data = stream::iter([Ok(first)]).chain(incoming.map_err(FlightError::from));
        let mut rows = FlightRecordBatchStream::new_from_flight_data(data);
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await {
            batches.push(batch.map_err(|e| match e {
                FlightError::Tonic(status) => *status,
                other => Status::invalid_argument(other.to_string()),
            })?);
        }
        let schema = rows.schema().cloned().unwrap_or_else(|| Arc::new(Schema::empty()));
        Ok((schema, batches))
    }

    fn put(&self, put: v1::PutRequest, schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<v1::PutAck, Status> {
        let mut state = self.state();
        if let Some(done) = state.puts.get(&put.request_id) {
            return Ok(*done);
        }
        let table = name(put.table.clone());
        if put.create.is_some() && !state.tables.contains_key(&table) {
            state.tables.insert(table.clone(), Table::new(schema));
        }
        let found = state.table_mut(&table)?;
        if put.mode() == v1::WriteMode::Overwrite {
            found.versions.push(super::Version { operation: "Overwrite", batches: Vec::new() });
        }
        let num_rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let version = found.append(batches);
        let id = (put.request_id.clone(), 1);
        found.ledger.insert(id.clone(), v1::CommitState::Committed);
        found.ledger_versions.insert(id, version);
        let ack = v1::PutAck { version, num_rows, num_bytes: 1234, merged: None };
        state.puts.insert(put.request_id, ack);
        Ok(ack)
    }
}

fn as_put(merge: v1::MergeRequest) -> v1::PutRequest {
    let v1::MergeRequest { table, request_id, create, .. } = merge;
    v1::PutRequest { table, request_id, create, ..Default::default() }
}

#[async_trait]
impl FlightService for Service {
    type HandshakeStream = BoxStream<'static, Result<HandshakeResponse, Status>>;
    type ListFlightsStream = BoxStream<'static, Result<FlightInfo, Status>>;
    type DoGetStream = BoxStream<'static, Result<FlightData, Status>>;
    type DoPutStream = BoxStream<'static, Result<PutResult, Status>>;
    type DoActionStream = BoxStream<'static, Result<arrow_flight::Result, Status>>;
    type ListActionsStream = BoxStream<'static, Result<ActionType, Status>>;
    type DoExchangeStream = BoxStream<'static, Result<FlightData, Status>>;

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        let scan = ScanRequest::decode(request.get_ref().cmd.clone()).unwrap();
        self.begin("GetFlightInfo", &request, format!("{scan:?}")).await?;
        let state = self.state();
        let table = state.table(&name(scan.table.clone()))?;
        let (version, found) = table.at(scan.version.clone())?;
        let columns = projected(&table.schema, scan.projection.as_ref())?;
        let schema = table.schema.project(&columns).unwrap();
        let whole: Vec<usize> = (0..found.batches.len()).collect();
        let parts: Vec<&[usize]> = match scan.limit {
            Some(0) => Vec::new(),
            Some(_) => vec![&whole],
            None => whole.chunks(BATCHES_PER_SPLIT).collect(),
        };
        let num_rows: usize = found.batches.iter().map(RecordBatch::num_rows).sum();
        let plan = v1::ScanPlan { version, num_rows: num_rows as u64, num_bytes: 10 * num_rows as u64 };
        let mut info = FlightInfo::new().with_app_metadata(plan.encode_to_vec());
        info.schema = schema_to_ipc(&schema);
        for part in parts {
            let ticket = ScanTicket {
                table: scan.table.clone(),
                version,
                projection: scan.projection.clone(),
                limit: scan.limit,
                fragments: part
                    .iter()
                    .map(|&n| v1::FragmentRange { fragment_id: n as u64, ..v1::FragmentRange::default() })
                    .collect(),
                ..ScanTicket::default()
            };
            let rows: usize = part.iter().map(|&n| found.batches[n].num_rows()).sum();
            let split = v1::ScanSplit { num_rows: rows as u64, num_bytes: 10 * rows as u64 };
            let endpoint = FlightEndpoint::new()
                .with_ticket(Ticket::new(ticket.encode_to_vec()))
                .with_app_metadata(split.encode_to_vec());
            info = info.with_endpoint(endpoint);
        }
        Ok(Response::new(info))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let ticket = ScanTicket::decode(request.get_ref().ticket.clone()).unwrap();
        let detail = format!("fragments {:?} offset {}", ticket.fragments.len(), ticket.row_offset);
        let break_after = match self.note("DoGet", &request, detail) {
            Some(Fault::Refuse(status)) => return Err(status),
            Some(Fault::BreakAfter(batches)) => Some(batches),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::LoseReply) => return Err(Status::unavailable("lost")),
            None => None,
        };
        let state = self.state();
        let table = state.table(&name(ticket.table.clone()))?;
        let batches = &table.versions[ticket.version as usize - 1].batches;
        let columns = projected(&table.schema, ticket.projection.as_ref())?;
        let rows = ticket.fragments.iter().map(|range| project(&batches[range.fragment_id as usize], &columns));
        let limit = ticket.limit.map_or(usize::MAX, |limit| limit as usize - ticket.row_offset as usize);
        let rows = window(rows.collect(), ticket.row_offset as usize, limit);
        let schema = Arc::new(table.schema.project(&columns).unwrap());
        let broken = || Err(FlightError::from(Status::unavailable("the stream broke")));
        let rows: Vec<_> = match break_after {
            Some(n) => rows.into_iter().map(Ok).take(n).chain([broken()]).collect(),
            None => rows.into_iter().map(Ok).collect(),
        };
        let data = FlightDataEncoderBuilder::new().with_schema(schema).build(stream::iter(rows));
        Ok(Response::new(data.map_err(Status::from).boxed()))
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        let fault = self.note("DoPut", &request, "");
        let lose = match fault {
            Some(Fault::Refuse(status)) => return Err(status),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::LoseReply) => true,
            Some(Fault::BreakAfter(_)) | None => false,
        };
        let mut incoming = request.into_inner();
        let first = incoming.message().await?.expect("a put without a message");
        let descriptor = first.flight_descriptor.clone().expect("a put without a descriptor");
        let command = v1::PutCommand::decode(descriptor.cmd).unwrap().kind.expect("a put without a command");
        let ack = match command {
            v1::put_command::Kind::Put(_) | v1::put_command::Kind::Merge(_) => {
                // All rows are new here.
                let (put, is_merge) = match command {
                    v1::put_command::Kind::Merge(merge) => (as_put(merge), true),
                    v1::put_command::Kind::Put(put) => (put, false),
                    v1::put_command::Kind::Stage(_) => unreachable!(),
                };
                let id = put.request_id.clone();
                self.state().calls.last_mut().unwrap().detail = id.clone();
                // A put that is done is answered without looking at its rows.
                let done = self.state().puts.get(&id).copied();
                let mut ack = match done {
                    Some(done) => done,
                    None => {
                        let (schema, batches) = Self::rows_of(incoming, first).await?;
                        self.put(put, schema, batches)?
                    }
                };
                let inserted = v1::MergeCounts { num_inserted: ack.num_rows, ..Default::default() };
                ack.merged = is_merge.then_some(inserted);
                ack.encode_to_vec()
            }
            v1::put_command::Kind::Stage(_) => {
                let (_, batches) = Self::rows_of(incoming, first).await?;
                let num_rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
                let mut state = self.state();
                let staged = format!("staged-{}", state.staged.len());
                if num_rows > 0 {
                    state.staged.insert(staged.clone(), batches);
                }
                let staged = if num_rows > 0 { staged.into_bytes().into() } else { bytes::Bytes::new() };
                v1::StageAck { num_rows, num_bytes: 99, num_durable_rows: num_rows, staged, done: true }.encode_to_vec()
            }
        };
        if lose {
            return Err(Status::unavailable("connection reset by a proxy"));
        }
        Ok(Response::new(stream::iter([Ok(PutResult { app_metadata: ack.into() })]).boxed()))
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn do_action(&self, _: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(Status::unimplemented(""))
    }
}
