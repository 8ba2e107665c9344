//! A gateway in memory that notes what it is asked and fails when told to. It speaks Flight with the stock codec of
//! arrow-flight, so each test also shows that ours understands it.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod flight;
mod tables;
mod writes;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_flight::flight_service_server::FlightServiceServer;
use arrow_schema::SchemaRef;
use lance_gateway_client::{Client, ClientOptions, Reason, RetryOptions};
use lance_gateway_proto::v1::status_service_server::StatusServiceServer;
use lance_gateway_proto::v1::table_service_server::TableServiceServer;
use lance_gateway_proto::v1::write_service_server::WriteServiceServer;
use lance_gateway_proto::{ERROR_DOMAIN, STORAGE_OPTIONS_HEADER, v1};
use prost::Message as _;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// Each split holds this many of the batches that were written.
const BATCHES_PER_SPLIT: usize = 2;

pub struct FakeGateway {
    pub uri: String,
    pub state: Arc<Mutex<State>>,
    server: JoinHandle<()>,
}

#[derive(Default)]
pub struct State {
    pub tables: BTreeMap<String, Table>,
    pub namespaces: Vec<String>,
    /// Versions by who holds them.
    pub held: std::collections::HashMap<String, u64>,
    pub calls: Vec<Call>,
    faults: HashMap<&'static str, VecDeque<Fault>>,
    staged: HashMap<String, Vec<RecordBatch>>,
    prepared: HashMap<String, Prepared>,
    puts: HashMap<String, v1::PutAck>,
}

/// What was asked.
#[derive(Debug, Clone)]
pub struct Call {
    pub rpc: &'static str,
    /// Of the header.
    pub request_id: String,
    /// Of the header.
    pub storage: HashMap<String, String>,
    /// Whatever the test may want to see.
    pub detail: String,
}

pub struct Table {
    pub schema: SchemaRef,
    /// Version 1 is the first.
    pub versions: Vec<Version>,
    pub ledger: BTreeMap<(String, u64), v1::CommitState>,
    pub ledger_versions: BTreeMap<(String, u64), u64>,
    pub primary_key: Vec<String>,
}

pub struct Version {
    pub operation: &'static str,
    pub batches: Vec<RecordBatch>,
}

struct Prepared {
    table: String,
    id: (String, u64),
    batches: Vec<RecordBatch>,
}

/// What goes wrong with one call.
pub enum Fault {
    /// It is refused before it does anything.
    Refuse(Status),
    /// It is done, and then the reply is lost.
    LoseReply,
    /// The stream breaks after so many batches.
    BreakAfter(usize),
    /// It is neither done nor answered.
    Hang,
}

#[derive(Clone)]
pub struct Service(Arc<Mutex<State>>);

impl FakeGateway {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("grpc://{}", listener.local_addr().unwrap());
        Self::serve(uri, |routes| {
            tokio::spawn(async move {
                let incoming = TcpListenerStream::new(listener);
                Server::builder().add_routes(routes).serve_with_incoming(incoming).await.unwrap();
            })
        })
    }

    pub async fn start_on_socket(path: &std::path::Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        Self::serve(format!("grpc+unix://{}", path.display()), |routes| {
            tokio::spawn(async move {
                let incoming = UnixListenerStream::new(listener);
                Server::builder().add_routes(routes).serve_with_incoming(incoming).await.unwrap();
            })
        })
    }

    pub async fn start_with_tls(identity: Identity) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = incoming.local_addr().unwrap().port();
        Self::serve(format!("grpc+tls://localhost:{port}"), |routes| {
            let tls = ServerTlsConfig::new().identity(identity);
            let mut server = Server::builder().tls_config(tls).unwrap();
            tokio::spawn(async move { server.add_routes(routes).serve_with_incoming(incoming).await.unwrap() })
        })
    }

    fn serve(uri: String, spawn: impl FnOnce(Routes) -> JoinHandle<()>) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let service = Service(state.clone());
        const LIMIT: usize = 64 << 20;
        let flight = FlightServiceServer::new(service.clone()).max_decoding_message_size(LIMIT);
        let routes = Routes::new(flight.max_encoding_message_size(LIMIT))
            .add_service(TableServiceServer::new(service.clone()))
            .add_service(WriteServiceServer::new(service.clone()))
            .add_service(StatusServiceServer::new(service));
        Self { uri, state, server: spawn(routes) }
    }

    /// A client that repeats quickly.
    pub async fn client(&self) -> Client {
        Client::connect(&self.uri, quick()).await.unwrap()
    }

    /// The next call of this kind goes wrong.
    pub fn fail_next(&self, rpc: &'static str, fault: Fault) {
        self.state.lock().unwrap().faults.entry(rpc).or_default().push_back(fault);
    }

    pub fn calls(&self, rpc: &str) -> Vec<Call> {
        self.state.lock().unwrap().calls.iter().filter(|call| call.rpc == rpc).cloned().collect()
    }

    /// Puts rows there, one version for each list of batches.
    pub fn add_table(&self, name: &str, schema: &SchemaRef, versions: Vec<Vec<RecordBatch>>) {
        let mut table = Table::new(schema.clone());
        for batches in versions {
            table.append(batches);
        }
        self.state.lock().unwrap().tables.insert(name.to_owned(), table);
    }

    pub fn num_rows(&self, name: &str) -> usize {
        self.state.lock().unwrap().tables[name].newest().iter().map(RecordBatch::num_rows).sum()
    }

    pub fn num_versions(&self, name: &str) -> usize {
        self.state.lock().unwrap().tables[name].versions.len()
    }
}

impl Drop for FakeGateway {
    fn drop(&mut self) {
        self.server.abort();
    }
}

pub fn quick() -> ClientOptions {
    let retry = RetryOptions {
        max_attempts: 4,
        initial_backoff: Duration::from_millis(1),
        max_backoff: Duration::from_millis(20),
    };
    ClientOptions { retry, ..ClientOptions::default() }
}

pub fn refusal(reason: Reason, message: &str) -> Status {
    Status::with_error_details(
        reason.code(),
        message,
        ErrorDetails::with_error_info(reason.name(), ERROR_DOMAIN, HashMap::new()),
    )
}

pub fn overloaded(retry_after: Duration) -> Status {
    let mut details = ErrorDetails::with_error_info(Reason::Overloaded.name(), ERROR_DOMAIN, HashMap::new());
    details.set_retry_info(Some(retry_after));
    Status::with_error_details(Reason::Overloaded.code(), "too many streams", details)
}

impl Table {
    pub fn new(schema: SchemaRef) -> Self {
        let first = Version { operation: "Overwrite", batches: Vec::new() };
        Self {
            schema,
            versions: vec![first],
            ledger: BTreeMap::new(),
            ledger_versions: BTreeMap::new(),
            primary_key: Vec::new(),
        }
    }

    pub fn newest(&self) -> &[RecordBatch] {
        &self.versions.last().unwrap().batches
    }

    fn append(&mut self, batches: Vec<RecordBatch>) -> u64 {
        let all = self.newest().iter().cloned().chain(batches).collect();
        self.versions.push(Version { operation: "Append", batches: all });
        self.versions.len() as u64
    }

    fn at(&self, selector: Option<v1::VersionSelector>) -> Result<(u64, &Version), Status> {
        let wanted = match selector.and_then(|selector| selector.kind) {
            Some(v1::version_selector::Kind::Version(version)) => version,
            _ => self.versions.len() as u64,
        };
        let version = usize::try_from(wanted).ok().and_then(|n| self.versions.get(n.checked_sub(1)?));
        let missing = || refusal(Reason::TableVersionNotFound, &format!("the table has no version {wanted}"));
        Ok((wanted, version.ok_or_else(missing)?))
    }
}

impl State {
    fn table(&self, name: &str) -> Result<&Table, Status> {
        self.tables.get(name).ok_or_else(|| refusal(Reason::TableNotFound, &format!("there is no table {name}")))
    }

    fn table_mut(&mut self, name: &str) -> Result<&mut Table, Status> {
        self.tables.get_mut(name).ok_or_else(|| refusal(Reason::TableNotFound, &format!("there is no table {name}")))
    }
}

impl Service {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Notes a call and takes the fault that waits for it.
    fn note<T>(&self, rpc: &'static str, request: &Request<T>, detail: impl Into<String>) -> Option<Fault> {
        let request_id = request.metadata().get("x-request-id").map(|id| id.to_str().unwrap().to_owned());
        let storage = request.metadata().get_bin(STORAGE_OPTIONS_HEADER).map(|value| value.to_bytes().unwrap());
        let storage = v1::StorageOptions::decode(storage.unwrap_or_default()).unwrap().options;
        let mut state = self.state();
        state.calls.push(Call { rpc, request_id: request_id.unwrap_or_default(), storage, detail: detail.into() });
        state.faults.get_mut(rpc).and_then(VecDeque::pop_front)
    }

    /// As [`note`](Self::note) for a unary call: true if the reply is to be lost.
    async fn begin<T>(
        &self,
        rpc: &'static str,
        request: &Request<T>,
        detail: impl Into<String>,
    ) -> Result<bool, Status> {
        match self.note(rpc, request, detail) {
            None => Ok(false),
            Some(Fault::LoseReply) => Ok(true),
            Some(Fault::Refuse(status)) => Err(status),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::BreakAfter(_)) => panic!("{rpc} is no stream"),
        }
    }
}

fn lost<T>(reply_is_lost: bool, answer: T) -> Result<tonic::Response<T>, Status> {
    match reply_is_lost {
        true => Err(Status::unavailable("connection reset by a proxy")),
        false => Ok(tonic::Response::new(answer)),
    }
}

fn name(table: Option<v1::Table>) -> String {
    match table.and_then(|table| table.kind) {
        Some(v1::table::Kind::Name(name)) => name.parts.join("."),
        Some(v1::table::Kind::Uri(uri)) => uri,
        None => panic!("a request without a table"),
    }
}
