//! Small calls: what they carry, how they are repeated, and how connections are made.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;

use std::time::{Duration, Instant};

use arrow_schema::{DataType, Field, Schema};
use fake::{FakeGateway, Fault, overloaded, quick, refusal};
use lance_gateway_client::{
    Client, ClientOptions, CreateOptions, ErrorKind, GatewayState, Reason, TableId, TlsOptions, VersionSelector, col,
    lit,
};
use tokio::net::TcpListener;
use tonic::transport::Identity;
use tonic::{Code, Status};

fn schema() -> Schema {
    Schema::new(vec![Field::new("id", DataType::Int64, false)])
}

#[tokio::test]
async fn a_table_is_created_described_listed_and_dropped() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;

    let options = CreateOptions { primary_key: vec!["id".into()], ..CreateOptions::default() };
    let created = client.create_table("a.t", &schema(), &options).await.unwrap();
    assert!(created.created && created.version == 1);
    let again = client.create_table_if_not_exists("a.t", &schema(), &options).await.unwrap();
    assert!(!again.created);

    let found = client.describe_table("a.t", VersionSelector::Latest).await.unwrap();
    assert_eq!(found.schema.as_ref(), &schema());
    assert_eq!((found.version, found.num_rows, found.primary_key), (1, 0, vec!["id".to_owned()]));
    assert_eq!(found.indexes[0].index_type, "BTREE");
    assert_eq!(found.committed_at.unwrap().timestamp(), 1_700_000_000);

    assert_eq!(client.list_tables(&["a".into()]).await.unwrap(), [TableId::name(["a", "t"])]);
    client.drop_table("a.t").await.unwrap();
    let error = client.drop_table("a.t").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TableNotFound));
    assert!(!client.drop_table_if_exists("a.t").await.unwrap());
}

#[tokio::test]
async fn all_pages_of_a_long_list_are_read() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    for table in ["a", "b", "c", "d", "e"] {
        client.create_table(table, &schema(), &CreateOptions::default()).await.unwrap();
    }
    let tables = client.list_tables(&[]).await.unwrap();
    assert_eq!(tables.iter().map(TableId::to_string).collect::<Vec<_>>(), ["a", "b", "c", "d", "e"]);
    assert_eq!(gateway.calls("ListTables").len(), 3);
}

#[tokio::test]
async fn namespaces_are_created_listed_and_dropped() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    client.create_namespace(&["n".into()]).await.unwrap();
    assert!(!client.create_namespace_if_not_exists(&["n".into()]).await.unwrap());
    assert_eq!(client.list_namespaces(&[]).await.unwrap(), ["n"]);
    client.drop_namespace(&["n".into()]).await.unwrap();
    assert!(!client.drop_namespace_if_exists(&["n".into()]).await.unwrap());
    assert_eq!(client.drop_namespace(&["n".into()]).await.unwrap_err().reason(), Some(Reason::NamespaceNotFound));
}

#[tokio::test]
async fn a_version_is_held_moved_and_released_though_replies_are_lost() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    gateway.fail_next("HoldVersion", Fault::LoseReply);
    let expires = client.hold_version("t", "reader", 3).await.unwrap();
    assert_eq!(expires.timestamp(), 1_700_086_400);
    client.hold_version("t", "reader", 5).await.unwrap();
    let held: Vec<_> = gateway.calls("HoldVersion").into_iter().map(|call| call.detail).collect();
    assert_eq!(held, ["reader 3", "reader 3", "reader 5"]);
    gateway.fail_next("ReleaseVersion", Fault::LoseReply);
    client.release_version("t", "reader").await.unwrap();
    assert_eq!(gateway.calls("ReleaseVersion").len(), 2);
    assert!(!client.release_version("t", "reader").await.unwrap());
}

#[tokio::test]
async fn a_count_carries_its_filter_and_version() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    client.create_table("t", &schema(), &CreateOptions::default()).await.unwrap();
    let count = client.count_rows("t", 1, Some(col("id").gt(lit(3)).into())).await.unwrap();
    assert_eq!((count.num_rows, count.version), (0, 1));
    assert!(gateway.calls("CountRows")[0].detail.contains("Integer(3)"));
    let error = client.count_rows("t", 9, None).await.unwrap_err();
    assert_eq!((error.reason(), error.is_retriable()), (Some(Reason::TableVersionNotFound), false));
}

#[tokio::test]
async fn the_gateway_tells_its_state_and_limits() {
    let gateway = FakeGateway::start().await;
    let status = gateway.client().await.status().await.unwrap();
    assert_eq!((status.state, status.uptime), (GatewayState::Serving, Duration::from_secs(61)));
    assert_eq!(status.limits.max_message_bytes, 64 << 20);
}

#[tokio::test]
async fn a_change_is_repeated_with_one_request_id_until_it_is_answered() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    gateway.fail_next("CreateTable", Fault::Refuse(overloaded(Duration::from_millis(1))));
    gateway.fail_next("CreateTable", Fault::Refuse(refusal(Reason::StoreUnavailable, "no answer from the store")));
    client.create_table("t", &schema(), &CreateOptions::default()).await.unwrap();

    let calls = gateway.calls("CreateTable");
    assert_eq!(calls.len(), 3);
    assert!(!calls[0].request_id.is_empty());
    for call in &calls {
        assert_eq!((&call.request_id, &call.detail), (&calls[0].request_id, &calls[0].request_id));
    }
}

#[tokio::test]
async fn the_pause_that_an_overloaded_gateway_asks_for_is_kept() {
    let gateway = FakeGateway::start().await;
    let mut options = quick();
    options.retry.max_backoff = Duration::from_secs(5);
    let client = Client::connect(&gateway.uri, options).await.unwrap();
    gateway.fail_next("GetStatus", Fault::Refuse(overloaded(Duration::from_millis(300))));
    let started = Instant::now();
    client.status().await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_gateway_that_stays_overloaded_is_asked_a_bounded_number_of_times() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    for _ in 0..10 {
        gateway.fail_next("GetStatus", Fault::Refuse(overloaded(Duration::from_millis(1))));
    }
    let error = client.status().await.unwrap_err();
    assert_eq!((error.reason(), error.is_retriable()), (Some(Reason::Overloaded), true));
    assert_eq!(error.to_string(), "too many streams (OVERLOADED)");
    assert_eq!(gateway.calls("GetStatus").len(), 4);
    assert_eq!(error.request_id(), Some(gateway.calls("GetStatus")[0].request_id.as_str()));
}

#[tokio::test]
async fn a_drop_whose_reply_is_lost_is_done_and_no_error() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    client.create_table("t", &schema(), &CreateOptions::default()).await.unwrap();
    gateway.fail_next("DropTable", Fault::LoseReply);
    client.drop_table("t").await.unwrap();
    assert_eq!(gateway.calls("DropTable").len(), 2);
}

#[tokio::test]
async fn a_change_that_is_never_answered_has_an_unknown_outcome() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    for _ in 0..4 {
        gateway.fail_next("DropTable", Fault::Refuse(Status::new(Code::Unavailable, "bad gateway")));
    }
    let error = client.drop_table("t").await.unwrap_err();
    assert_eq!((error.kind(), error.reason(), error.is_retriable()), (ErrorKind::OutcomeUnknown, None, false));
    assert_eq!(error.request_id(), Some(gateway.calls("DropTable")[0].request_id.as_str()));
}

#[tokio::test]
async fn a_call_that_hangs_ends_at_its_timeout() {
    let gateway = FakeGateway::start().await;
    let mut options = quick();
    options.request_timeout = Duration::from_millis(50);
    options.retry.max_attempts = 2;
    let client = Client::connect(&gateway.uri, options).await.unwrap();
    for _ in 0..2 {
        gateway.fail_next("GetStatus", Fault::Hang);
    }
    let error = client.status().await.unwrap_err();
    assert_eq!((error.kind(), error.is_retriable()), (ErrorKind::Unavailable, true));
    assert_eq!(gateway.calls("GetStatus").len(), 2);
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_an_error_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("grpc://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = Client::connect(&uri, ClientOptions::default()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retriable()), (ErrorKind::Unavailable, true));
    assert!(error.message().contains(&uri) && error.message().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_unix_socket_serves_calls_too() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = FakeGateway::start_on_socket(&dir.path().join("gateway.sock")).await;
    assert_eq!(gateway.client().await.status().await.unwrap().version, "0.1.0");
}

#[tokio::test]
async fn tls_trusts_the_given_authority_and_no_other() {
    let pem = |name| std::fs::read(format!("{}/tests/tls/{name}.pem", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let gateway = FakeGateway::start_with_tls(Identity::from_pem(pem("server"), pem("server-key"))).await;
    let trusting = |ca_pem| ClientOptions { tls: TlsOptions { ca_pem, ..TlsOptions::default() }, ..quick() };

    let client = Client::connect(&gateway.uri, trusting(Some(pem("ca")))).await.unwrap();
    assert_eq!(client.status().await.unwrap().version, "0.1.0");

    let error = Client::connect(&gateway.uri, trusting(Some(pem("other-ca")))).await.unwrap_err();
    assert!(error.message().contains("certificate"), "{error}");
}
