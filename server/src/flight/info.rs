//! The small calls of Flight.

use std::sync::Arc;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest,
    HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use lance_gateway_lake::{self as lake, ErrorKind};
use lance_gateway_proto::flight::decode_command;
use lance_gateway_proto::{Reason, v1};
use prost::Message as _;
use tonic::{Request, Response, Status, Streaming};

use super::about;
use super::descriptor::{is_json, scan_request};
use crate::convert::{self, changes, search};
use crate::state::Gateway;
use crate::status::{from_flight, from_lake, status};

type Answer<T> = Result<Response<T>, Status>;
type Answers<T> = BoxStream<'static, Result<T, Status>>;

/// Tables that ListFlights opens at once.
const DESCRIBED_AT_ONCE: usize = 8;

/// All of Flight but DoGet, DoPut and DoExchange.
pub struct FlightApi {
    gateway: Gateway,
}

impl FlightApi {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }

    /// A search as Flight tells it: checked, and one endpoint whose ticket is the search.
    async fn search(&self, request: v1::ScanRequest) -> Result<(SchemaRef, v1::ScanTicket, v1::SearchInfo), Status> {
        let depth = convert::saturating(self.gateway.config.scan.max_filter_depth);
        let (spec, wanted) = search::of_scan(request.clone(), depth)?;
        let wanted = search::search(wanted)?;
        let searcher = self.gateway.lake()?.searcher(&spec).await.map_err(from_lake)?;
        let info = searcher.check(&wanted).await.map_err(from_lake)?;
        let ticket = v1::ScanTicket {
            table: request.table,
            version: searcher.version(),
            projection: request.projection,
            filter: request.filter,
            metadata: request.metadata,
            batch: request.batch,
            search: request.search,
            ..Default::default()
        };
        Ok((searcher.schema(wanted.kind()), ticket, search::info(&info)))
    }

    /// Changes as Flight tells them: one endpoint a part.
    async fn changes(&self, request: v1::ScanRequest) -> Result<lake::ChangesPlan, Status> {
        self.gateway.lake()?.plan_changes(&changes::spec(request)?).await.map_err(from_lake)
    }

    async fn plan(&self, request: v1::ScanRequest) -> Result<lake::ScanPlan, Status> {
        let depth = convert::saturating(self.gateway.config.scan.max_filter_depth);
        let spec = convert::scan_spec(request, depth)?;
        self.gateway.lake()?.plan_scan(&spec).await.map_err(from_lake)
    }
}

/// The plan as Flight tells it: one endpoint a split, each to be read here.
fn flight_info(
    descriptor: FlightDescriptor,
    request: v1::ScanRequest,
    plan: &lake::ScanPlan,
    max_bytes: usize,
) -> Result<FlightInfo, Status> {
    let filtered = request.filter.is_some();
    // What all tickets have in common; the rest of each is appended, as protobuf allows.
    let common = v1::ScanTicket {
        table: request.table,
        version: plan.version,
        projection: request.projection,
        filter: request.filter,
        metadata: request.metadata,
        batch: request.batch,
        ..Default::default()
    }
    .encode_to_vec();
    check_tickets(plan.splits.len(), common.len(), max_bytes)?;
    let endpoint = plan.splits.iter().map(|split| endpoint(&common, split)).collect();
    let app_metadata = v1::ScanPlan { version: plan.version, num_rows: plan.num_rows, num_bytes: plan.num_bytes };
    Ok(FlightInfo {
        schema: convert::schema_message(&plan.schema),
        flight_descriptor: Some(descriptor),
        endpoint,
        // How many rows a filter keeps is not known before.
        total_records: if filtered { -1 } else { total(plan.num_rows) },
        total_bytes: if filtered { -1 } else { total(plan.num_bytes) },
        ordered: true,
        app_metadata: app_metadata.encode_to_vec().into(),
    })
}

/// All tickets together must fit into one answer. `bytes`: of one.
fn check_tickets(tickets: usize, bytes: usize, max_bytes: usize) -> Result<(), Status> {
    let bytes = bytes.saturating_mul(tickets);
    if bytes <= max_bytes {
        return Ok(());
    }
    let why = format!("the {tickets} tickets of the scan take {bytes} bytes, above {max_bytes}; ask for fewer splits");
    Err(status(Reason::InvalidArgument, why))
}

/// Changes that were planned; how many there are is not known before.
fn changes_info(
    descriptor: FlightDescriptor,
    request: v1::ScanRequest,
    plan: lake::ChangesPlan,
    max_bytes: usize,
) -> Result<FlightInfo, Status> {
    let version = plan.splits.first().map_or(0, |split| split.to);
    let ticket = v1::ScanTicket {
        table: request.table,
        projection: request.projection,
        batch: request.batch,
        ..Default::default()
    };
    check_tickets(plan.splits.len(), ticket.encoded_len(), max_bytes)?;
    let endpoint = |split| FlightEndpoint {
        ticket: Some(Ticket::new(
            v1::ScanTicket { changes: Some(changes::split(split)), ..ticket.clone() }.encode_to_vec(),
        )),
        location: Vec::new(),
        expiration_time: None,
        app_metadata: v1::ScanSplit::default().encode_to_vec().into(),
    };
    Ok(FlightInfo {
        schema: convert::schema_message(&plan.schema),
        flight_descriptor: Some(descriptor),
        endpoint: plan.splits.into_iter().map(endpoint).collect(),
        total_records: -1,
        total_bytes: -1,
        ordered: false,
        app_metadata: v1::ScanPlan { version, ..Default::default() }.encode_to_vec().into(),
    })
}

/// A search that was checked: its rows are to be read at one endpoint, here.
fn found_info(
    descriptor: FlightDescriptor,
    schema: &SchemaRef,
    ticket: &v1::ScanTicket,
    info: &v1::SearchInfo,
) -> Result<FlightInfo, Status> {
    let endpoint = FlightEndpoint {
        ticket: Some(Ticket::new(ticket.encode_to_vec())),
        location: Vec::new(),
        expiration_time: None,
        app_metadata: v1::ScanSplit::default().encode_to_vec().into(),
    };
    Ok(FlightInfo {
        schema: convert::schema_message(schema),
        flight_descriptor: Some(descriptor),
        endpoint: vec![endpoint],
        total_records: -1,
        total_bytes: -1,
        ordered: true,
        app_metadata: about("SearchInfo", info, ticket.json)?,
    })
}

fn endpoint(common: &[u8], split: &lake::PlannedSplit) -> FlightEndpoint {
    let own = v1::ScanTicket { limit: split.limit, fragments: convert::fragments(split), ..Default::default() };
    let ticket = [common, &own.encode_to_vec()].concat();
    let app_metadata = v1::ScanSplit { num_rows: split.num_rows, num_bytes: split.num_bytes };
    FlightEndpoint {
        ticket: Some(Ticket::new(ticket)),
        location: Vec::new(),
        expiration_time: None,
        app_metadata: app_metadata.encode_to_vec().into(),
    }
}

fn total(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A table in a listing: its schema and size; a plan is made when somebody wants to read it.
fn listed(parts: Vec<String>, table: &lake::TableDescription) -> FlightInfo {
    FlightInfo {
        schema: convert::schema_message(&table.schema),
        flight_descriptor: Some(FlightDescriptor::new_path(parts)),
        endpoint: Vec::new(),
        total_records: total(table.num_rows),
        total_bytes: total(table.num_bytes),
        ordered: false,
        app_metadata: Bytes::new(),
    }
}

/// Empty: the root. Else one name, or a `ListTablesRequest` as JSON.
fn listed_namespace(criteria: &Criteria) -> Result<Vec<String>, Status> {
    let expression = &criteria.expression;
    if expression.is_empty() {
        return Ok(Vec::new());
    }
    let parts = if expression.first() == Some(&b'{') {
        decode_command::<v1::ListTablesRequest>("ListTablesRequest", expression).map_err(from_flight)?.namespace
    } else {
        let name = std::str::from_utf8(expression).map_err(|_| {
            status(Reason::InvalidArgument, "the criteria must be empty, the name of a namespace, or json")
        })?;
        vec![name.to_owned()]
    };
    convert::namespace(parts)
}

fn unsupported<T>(what: &str) -> Result<T, Status> {
    Err(status(Reason::Unsupported, format!("the gateway does not support {what}")))
}

#[tonic::async_trait]
impl FlightService for FlightApi {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Answers<FlightData>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        let descriptor = request.into_inner();
        let request = scan_request(&descriptor)?;
        if request.search.is_some() && request.changes.is_none() {
            let json = is_json(&descriptor.cmd);
            let (schema, ticket, info) = self.search(request).await?;
            let ticket = v1::ScanTicket { json, ..ticket };
            return found_info(descriptor, &schema, &ticket, &info).map(Response::new);
        }
        let max_bytes = self.gateway.config.write.max_message_bytes.as_usize();
        if request.changes.is_some() {
            let plan = self.changes(request.clone()).await?;
            return changes_info(descriptor, request, plan, max_bytes).map(Response::new);
        }
        let plan = self.plan(request.clone()).await?;
        flight_info(descriptor, request, &plan, max_bytes).map(Response::new)
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        let request = scan_request(&request.into_inner())?;
        let schema = match (&request.changes, &request.search) {
            (Some(_), _) => self.changes(request).await?.schema,
            (None, Some(_)) => self.search(request).await?.0,
            (None, None) => self.plan(request).await?.schema,
        };
        Ok(Response::new(SchemaResult { schema: convert::schema_message(&schema) }))
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        let namespace: Arc<[String]> = listed_namespace(&request.into_inner())?.into();
        let page = convert::saturating(self.gateway.config.table.max_list);
        let lake = self.gateway.lake()?;
        let names = stream::try_unfold(Some(None), move |token: Option<Option<String>>| {
            let (lake, namespace) = (lake.clone(), Arc::clone(&namespace));
            async move {
                let Some(token) = token else { return Ok(None) };
                let (names, next) = lake.list_tables(&namespace, token.as_deref(), page).await.map_err(from_lake)?;
                Ok::<_, Status>(Some((stream::iter(names.into_iter().map(Ok)), next.map(Some))))
            }
        });
        let lake = self.gateway.lake()?;
        let infos = names.try_flatten().map_ok(move |parts| {
            let lake = lake.clone();
            async move {
                match lake.describe(&lake::TableId::Name(parts.clone()), &lake::VersionSelector::Latest).await {
                    Ok(table) => Ok(Some(listed(parts, &table))),
                    // Dropped since it was listed.
                    Err(error) if error.kind() == ErrorKind::TableNotFound => Ok(None),
                    Err(error) => Err(from_lake(error)),
                }
            }
        });
        let infos = infos.try_buffered(DESCRIBED_AT_ONCE).try_filter_map(|info| std::future::ready(Ok(info)));
        Ok(Response::new(infos.boxed()))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Answer<Self::ListActionsStream> {
        Ok(Response::new(stream::empty().boxed()))
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let name: String = request.into_inner().r#type.chars().take(64).collect();
        unsupported(&format!("the action {name:?}"))
    }

    async fn handshake(&self, _: Request<Streaming<HandshakeRequest>>) -> Answer<Self::HandshakeStream> {
        unsupported("Handshake; it needs no authentication on loopback")
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<PollInfo> {
        unsupported("PollFlightInfo; GetFlightInfo answers at once")
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Answer<Self::DoExchangeStream> {
        unsupported("DoExchange here: it is answered on the level of HTTP")
    }

    async fn do_get(&self, _: Request<Ticket>) -> Answer<Self::DoGetStream> {
        unsupported("DoGet here: it is answered on the level of HTTP")
    }

    async fn do_put(&self, _: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        unsupported("DoPut here: it is answered on the level of HTTP")
    }
}
