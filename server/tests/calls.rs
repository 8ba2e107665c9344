//! What happens around every call, seen from a client.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use lance_gateway_proto::v1::table_service_client::TableServiceClient;
use lance_gateway_proto::v1::write_service_client::WriteServiceClient;
use lance_gateway_proto::v1::{
    Call, CommitRequest, CountRowsRequest, CreateNamespaceRequest, DropNamespaceRequest, Expression, ListTablesRequest,
    ListTablesResponse, Literal, Operator, Table, TableName, expression, literal, table,
};
use prost::Message as _;
use support::{Gateway, reason, soon};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt as _;

/// A unary call whose message the client holds back: it runs until `finish` is used or dropped.
struct Held {
    finish: oneshot::Sender<()>,
    answer: tokio::task::JoinHandle<Result<Response<ListTablesResponse>, Status>>,
}

impl Held {
    /// Returns when the gateway has the call.
    async fn start(gateway: &Gateway, path: &'static str) -> Self {
        let channel = gateway.channel().await;
        let (finish, finished) = oneshot::channel();
        let message = stream::once(async move {
            // Dropped without a word: the client changed its mind.
            let _ = finished.await;
            ListTablesRequest::default()
        });
        let answer = tokio::spawn(async move {
            let mut client = tonic::client::Grpc::new(channel);
            client.ready().await.map_err(|e| Status::unknown(e.to_string()))?;
            let codec = tonic_prost::ProstCodec::default();
            client.client_streaming(Request::new(message), http::uri::PathAndQuery::from_static(path), codec).await
        });
        gateway.wait_for("/metrics", |_, page| in_flight(page) == 1).await;
        Self { finish, answer }
    }

    async fn end(self) -> Result<Response<ListTablesResponse>, Status> {
        self.finish.send(()).unwrap();
        answer(self.answer).await
    }
}

async fn answer(
    answer: tokio::task::JoinHandle<Result<Response<ListTablesResponse>, Status>>,
) -> Result<Response<ListTablesResponse>, Status> {
    soon("the answer of the held call", answer).await.unwrap()
}

fn in_flight(metrics: &str) -> u32 {
    let of_ours =
        |line: &&str| line.starts_with("lance_gateway_calls_in_flight{") && line.contains("\"lancegateway.v1.");
    let lines = metrics.lines().filter(of_ours);
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u32>().unwrap()).sum()
}

const LIST: &str = "/lancegateway.v1.TableService/ListTables";
const COUNT: &str = "/lancegateway.v1.TableService/CountRows";
const COMMIT: &str = "/lancegateway.v1.WriteService/Commit";
const DROP: &str = "/lancegateway.v1.TableService/DropTable";

async fn list(channel: &Channel) -> Result<Response<ListTablesResponse>, Status> {
    TableServiceClient::new(channel.clone()).list_tables(ListTablesRequest::default()).await
}

#[tokio::test]
async fn after_a_termination_new_work_is_refused_as_retriable_what_runs_ends_and_the_code_is_0() {
    let gateway = Gateway::start(&[]).await;
    let channel = gateway.channel().await;
    let mut health = HealthClient::new(channel.clone());
    let check = HealthCheckRequest { service: "lancegateway.v1.TableService".into() };
    let serving = health.check(check.clone()).await.unwrap().into_inner().status();
    assert_eq!(serving, ServingStatus::Serving);
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let held = Held::start(&gateway, LIST).await;

    gateway.signal("TERM").await;
    gateway.wait_for("/ready", |code, page| code == 503 && page == "quiescing\n").await;
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert_eq!(health.check(check).await.unwrap().into_inner().status(), ServingStatus::NotServing);
    assert_eq!(gateway.get("/live").await.0, 200);
    let refused = list(&channel).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::Unavailable, "DRAINING"));
    assert!(refused.get_error_details().retry_info().is_some());

    held.end().await.expect("what runs may end");
    let (status, _, _) = gateway.end().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn what_does_not_end_within_the_drain_time_is_cut_with_a_true_reason_and_the_code_is_0() {
    for (path, expected) in [(LIST, "DRAINING"), (COMMIT, "COMMIT_STATE_UNKNOWN"), (DROP, "DEADLINE_EXCEEDED")] {
        let gateway = Gateway::start(&[("LANCE_GATEWAY_DRAIN_TIMEOUT", "0s")]).await;
        let held = Held::start(&gateway, path).await;
        gateway.signal("TERM").await;
        let cut = answer(held.answer).await.unwrap_err();
        assert_eq!(reason(&cut), expected);
        let (status, _, _) = gateway.end().await;
        assert_eq!(status.code(), Some(0));
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_with_code_1() {
    let gateway = Gateway::start(&[]).await;
    let _held = Held::start(&gateway, LIST).await;
    gateway.signal("TERM").await;
    gateway.wait_for("/ready", |code, _| code == 503).await;
    gateway.signal("TERM").await;
    let (status, _, _) = gateway.end().await;
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn over_the_bound_of_calls_the_answer_is_overloaded_with_a_hint_and_the_permit_returns() {
    let gateway = Gateway::start(&[("LANCE_GATEWAY_REQUEST_MAX_IN_FLIGHT", "1")]).await;
    let channel = gateway.channel().await;
    let held = Held::start(&gateway, LIST).await;
    let refused = list(&channel).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::ResourceExhausted, "OVERLOADED"));
    assert!(refused.get_error_details().retry_info().is_some());
    assert!(refused.message().contains("request.max-in-flight"), "{refused}");
    // The client goes away; its permit must come back.
    held.answer.abort();
    gateway.wait_for("/metrics", |_, page| page.contains("lance_gateway_permits_used{pool=\"calls\"} 0")).await;
    list(&channel).await.unwrap();
}

#[tokio::test]
async fn the_timeout_of_a_client_is_kept_and_a_commit_that_is_late_is_of_unknown_outcome() {
    let gateway = Gateway::start(&[]).await;
    // Not with a client of tonic, which would end the call by itself.
    let stream = TokioIo::new(TcpStream::connect(gateway.grpc).await.unwrap());
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    for (path, expected) in [(LIST, "DEADLINE_EXCEEDED"), (COMMIT, "COMMIT_STATE_UNKNOWN")] {
        let nothing = stream::pending::<Result<http_body::Frame<Bytes>, Status>>();
        let request = http::Request::post(format!("http://{}{path}", gateway.grpc))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("grpc-timeout", "200m")
            .body(http_body_util::StreamBody::new(nothing))
            .unwrap();
        let response = soon("the late answer", client.send_request(request)).await.unwrap();
        let late = Status::from_header_map(response.headers()).unwrap();
        assert_eq!(reason(&late), expected);
    }
}

#[tokio::test]
async fn the_request_id_comes_back_in_the_headers_and_in_the_error() {
    let gateway = Gateway::start(&[]).await;
    let mut tables = TableServiceClient::new(gateway.channel().await);
    let mut request = Request::new(ListTablesRequest::default());
    request.metadata_mut().insert("x-request-id", "job-7.cp-3".parse().unwrap());
    let response = tables.list_tables(request).await.unwrap();
    assert_eq!(response.metadata().get("x-request-id").unwrap(), "job-7.cp-3");

    let mut request = Request::new(ListTablesRequest { namespace: vec!["../etc".into()], ..Default::default() });
    request.metadata_mut().insert("x-request-id", "job-7.cp-4".parse().unwrap());
    let refused = tables.list_tables(request).await.unwrap_err();
    let details = refused.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!((info.reason.as_str(), info.domain.as_str()), ("INVALID_ARGUMENT", "lance-gateway"));
    assert_eq!(info.metadata["request_id"], "job-7.cp-4");
    assert_eq!(refused.metadata().get("x-request-id").unwrap(), "job-7.cp-4");
}

fn named(parts: &[&str]) -> Option<Table> {
    let parts = parts.iter().map(|part| (*part).to_owned()).collect();
    Some(Table { kind: Some(table::Kind::Name(TableName { parts })) })
}

/// A field of a message: its number, with length.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    prost::encoding::encode_varint(content.len() as u64, &mut field);
    field.extend(content);
    field
}

/// A count of `t` with NOT over NOT over ... over a literal. Written by hand: a client of this depth would need a large stack.
fn nested(depth: usize) -> Vec<u8> {
    let boolean = Literal { value: Some(literal::Value::Boolean(true)) };
    let mut expression = Expression { kind: Some(expression::Kind::Literal(boolean)) }.encode_to_vec();
    for _ in 1..depth {
        let mut call = Call { operator: Operator::Not.into(), arguments: Vec::new() }.encode_to_vec();
        call.extend(field(2, &expression));
        expression = field(3, &call);
    }
    let mut request = count(named(&["t"])).encode_to_vec();
    request.extend(field(3, &field(1, &expression)));
    request
}

fn count(table: Option<Table>) -> CountRowsRequest {
    CountRowsRequest { table, ..Default::default() }
}

#[tokio::test]
async fn whatever_is_wrong_with_a_message_is_refused_with_a_reason_and_the_process_stays_up() {
    let gateway = Gateway::start(&[("LANCE_GATEWAY_WRITE_MAX_MESSAGE_BYTES", "1MiB")]).await;
    let channel = gateway.channel().await;
    let mut tables = TableServiceClient::new(channel.clone());
    let mut writes = WriteServiceClient::new(channel.clone());
    for parts in [&["..", "etc"][..], &["a/b"], &[".hidden"], &[""], &["\u{e4}"], &[&"x".repeat(129)], &[]] {
        let refused = tables.count_rows(count(named(parts))).await.unwrap_err();
        assert_eq!(reason(&refused), "INVALID_ARGUMENT", "{parts:?}");
    }
    let refused = tables.count_rows(count(None)).await.unwrap_err();
    assert_eq!(refused.message(), "table is missing");
    // What the decoder lets through and the gateway does not, and what the decoder refuses.
    for depth in [49, 200, 10_000] {
        let refused = raw(&channel, COUNT, nested(depth)).await;
        assert_eq!(reason(&refused), "INVALID_ARGUMENT", "depth {depth}");
        assert!(refused.message().contains("nested"), "depth {depth}: {refused}");
    }
    let missing = raw(&channel, COUNT, nested(48)).await;
    assert_eq!(reason(&missing), "TABLE_NOT_FOUND", "48 levels are read");

    let large = writes.commit(CommitRequest { committable: vec![0; 2 << 20].into() }).await.unwrap_err();
    assert_eq!((large.code(), reason(&large).as_str()), (Code::ResourceExhausted, "MESSAGE_TOO_LARGE"));
    assert!(large.message().contains("1048576"), "{large}");
    let broken = writes.commit(CommitRequest { committable: Bytes::from_static(b"no committable") }).await.unwrap_err();
    assert_eq!(reason(&broken), "CORRUPT_DATA");

    let garbage = raw(&channel, LIST, vec![0xff; 32]).await;
    assert_eq!((garbage.code(), reason(&garbage).as_str()), (Code::InvalidArgument, "INVALID_ARGUMENT"));
    for path in ["/lancegateway.v1.TableService/Nothing", "/nothing.Service/Nothing"] {
        let unknown = raw(&channel, path, Vec::new()).await;
        assert_eq!((unknown.code(), reason(&unknown).as_str()), (Code::Unimplemented, "UNSUPPORTED"), "{path}");
    }
    list(&channel).await.unwrap();
    assert_eq!(gateway.terminate().await.0, Some(0));
}

/// A unary call with these bytes as its message.
async fn raw(channel: &Channel, path: &'static str, message: Vec<u8>) -> Status {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static(path);
    client.unary(Request::new(message), path, RawCodec).await.map(|_: Response<()>| ()).unwrap_err()
}

/// Sends bytes as they are.
#[derive(Clone)]
struct RawCodec;

impl tonic::codec::Codec for RawCodec {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = tonic_prost::ProstDecoder<()>;

    fn encoder(&mut self) -> Self {
        self.clone()
    }

    fn decoder(&mut self) -> Self::Decoder {
        tonic_prost::ProstCodec::<(), ()>::default().decoder()
    }
}

impl tonic::codec::Encoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut tonic::codec::EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put_slice(out, &item);
        Ok(())
    }
}

#[tokio::test]
async fn a_repeat_of_a_mutating_call_answers_the_same_as_the_first_time() {
    let gateway = Gateway::start(&[]).await;
    let mut tables = TableServiceClient::new(gateway.channel().await);
    let namespace = vec!["ns".to_owned()];
    let id = |n: u32| uuid::Uuid::from_u128(u128::from(n)).to_string();
    let create = CreateNamespaceRequest { request_id: id(1), namespace: namespace.clone(), if_not_exists: false };
    for _ in 0..2 {
        assert!(tables.create_namespace(create.clone()).await.unwrap().into_inner().created);
    }
    let again = CreateNamespaceRequest { request_id: id(2), ..create.clone() };
    assert_eq!(reason(&tables.create_namespace(again).await.unwrap_err()), "NAMESPACE_ALREADY_EXISTS");
    let drop = DropNamespaceRequest { request_id: id(3), namespace: namespace.clone(), if_exists: false };
    for _ in 0..2 {
        assert!(tables.drop_namespace(drop.clone()).await.unwrap().into_inner().dropped);
    }
    let other = DropNamespaceRequest { namespace: vec!["other".into()], ..drop.clone() };
    assert_eq!(reason(&tables.drop_namespace(other).await.unwrap_err()), "INVALID_ARGUMENT");
    let unnamed = DropNamespaceRequest { request_id: "no uuid".into(), ..drop };
    assert_eq!(reason(&tables.drop_namespace(unnamed).await.unwrap_err()), "INVALID_ARGUMENT");
}

#[tokio::test]
async fn reflection_names_the_services_in_both_of_its_versions() {
    use tonic_reflection::pb::{v1, v1alpha};
    let gateway = Gateway::start(&[]).await;
    let channel = gateway.channel().await;
    let ask = v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1::server_reflection_request::MessageRequest::ListServices(String::new())),
    };
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel.clone());
    let mut answers = client.server_reflection_info(stream::iter([ask])).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    let v1::server_reflection_response::MessageResponse::ListServicesResponse(services) = answer else {
        panic!("{answer:?}")
    };
    let names: Vec<String> = services.service.into_iter().map(|s| s.name).collect();
    for service in ["lancegateway.v1.TableService", "lancegateway.v1.WriteService", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|name| name == service), "{service} is not in {names:?}");
    }
    let mut health = HealthClient::new(channel.clone());
    for service in names.into_iter().filter(|name| name.starts_with("lancegateway.")) {
        let health = health.check(HealthCheckRequest { service: service.clone() }).await;
        assert_eq!(health.map(|health| health.into_inner().status()).ok(), Some(ServingStatus::Serving), "{service}");
    }
    let ask = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1alpha::server_reflection_request::MessageRequest::ListServices(String::new())),
    };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    let mut answers = client.server_reflection_info(stream::iter([ask])).await.unwrap().into_inner();
    assert!(answers.message().await.unwrap().unwrap().message_response.is_some());
}

#[tokio::test]
async fn an_idle_gateway_takes_no_time_to_stop() {
    let gateway = Gateway::start(&[]).await;
    // An open connection with an endless stream must not hold it.
    let mut health = HealthClient::new(gateway.channel().await);
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    watch.message().await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), gateway.terminate()).await;
    assert_eq!(ended.expect("well below drain.timeout").0, Some(0));
}
