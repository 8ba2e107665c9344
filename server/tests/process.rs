//! The binary as a process: what it prints, how it ends.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::os::unix::fs::PermissionsExt as _;

use lance_gateway_proto::v1::status_service_client::StatusServiceClient;
use lance_gateway_proto::v1::table_service_client::TableServiceClient;
use lance_gateway_proto::v1::{CreateNamespaceRequest, GatewayState, GetStatusRequest, ListNamespacesRequest};
use support::{Gateway, run, run_in, soon, unix_channel};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn with_nothing_configured_it_prints_one_line_once_it_serves_and_ends_with_0() {
    let gateway = Gateway::start(&[]).await;
    let line = gateway.ready_line.clone();
    let version = env!("CARGO_PKG_VERSION");
    let (grpc, admin) = (gateway.grpc, gateway.admin);
    assert_eq!(
        line,
        format!("lance-gateway {version} ready: grpc {grpc}, admin {admin}, warehouse ./lance-warehouse\n")
    );
    assert_ne!(grpc.port(), 0);
    assert_ne!(admin.port(), 0);
    let status =
        StatusServiceClient::new(gateway.channel().await).get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.state(), GatewayState::Serving);
    assert_eq!(status.version, version);
    assert!(status.lance_version.starts_with("14."), "{status:?}");
    assert_eq!(status.limits.unwrap().max_scan_streams, 64);
    assert!(gateway.path("lance-warehouse").is_dir());
    let (code, rest, _) = gateway.terminate().await;
    assert_eq!((code, rest.as_str()), (Some(0), ""));
}

#[tokio::test]
async fn an_interrupt_ends_it_as_a_termination_does() {
    let gateway = Gateway::start(&[]).await;
    gateway.signal("INT").await;
    let (status, _, _) = gateway.end().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn version_help_and_a_config_check_leave_with_0() {
    let version = run(&["--version"], &[]).await;
    assert_eq!(version.code, Some(0));
    assert!(
        version.stdout.starts_with(concat!("lance-gateway ", env!("CARGO_PKG_VERSION"), " (lance 14.")),
        "{}",
        version.stdout
    );
    let help = run(&["--help"], &[]).await;
    assert_eq!(help.code, Some(0));
    for flag in ["--config", "--listen", "--admin-listen", "--warehouse", "--check-config"] {
        assert!(help.stdout.contains(flag), "{flag}");
    }
    let folder = tempfile::tempdir().unwrap();
    let check = run_in(folder.path(), &["--check-config"], &[("LANCE_GATEWAY_STORAGE_OPTIONS", "key=hunter2")]).await;
    assert_eq!(check.code, Some(0));
    assert_eq!(check.stdout, "the configuration is valid\nstorage.options from LANCE_GATEWAY_STORAGE_OPTIONS\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a check leaves nothing behind");
}

#[tokio::test]
async fn all_problems_of_the_configuration_are_told_with_exit_code_2_before_any_port_is_bound() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("gateway.yaml"),
        "scan:\n  batch-row: 1\n  max-splits: 0\ncommit.timeout: soon\n",
    )
    .unwrap();
    // If the port were bound first, its being taken would be the failure.
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let environment = [
        ("LANCE_GATEWAY_SCAN_BATCHROWS", "1"),
        ("LANCE_GATEWAY_STORAGE_OPTIONS", "hunter2"),
        ("LANCE_GATEWAY_LOG_FORMAT", "xml"),
    ];
    let arguments =
        ["--config", "gateway.yaml", "--listen", &address, "--listen", "0.0.0.0:1", "--admin-listen", "1.2.3.4:5"];
    let outcome = run_in(folder.path(), &arguments, &environment).await;
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "");
    for told in [
        "did you mean LANCE_GATEWAY_SCAN_BATCH_ROWS?",
        "did you mean scan.batch-rows?",
        "gateway.yaml: scan.max-splits: must be 1 to 1000000, not \"0\"",
        "gateway.yaml: commit.timeout: must be a duration",
        "LANCE_GATEWAY_STORAGE_OPTIONS: must be",
        "LANCE_GATEWAY_LOG_FORMAT: must be text or json, not \"xml\"",
        "--listen: must be a loopback address: the gateway refuses to listen beyond this host without TLS and authentication",
        "--admin-listen: must be a loopback address",
    ] {
        assert!(outcome.stderr.contains(told), "{told} is not in\n{}", outcome.stderr);
    }
    assert_eq!(outcome.stderr.lines().count(), 8, "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("hunter2"));
    assert_eq!(run(&["--no-such-flag"], &[]).await.code, Some(2));
}

#[tokio::test]
async fn a_port_that_is_taken_is_a_failure_with_exit_code_1_that_names_it() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let outcome = run(&["--listen", &address, "--admin-listen", "127.0.0.1:0"], &[]).await;
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains(&format!("cannot listen on {address}")), "{}", outcome.stderr);
    let outcome = run(&["--listen", "127.0.0.1:0", "--admin-listen", &address], &[]).await;
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("admin-listen"), "{}", outcome.stderr);
}

#[tokio::test]
async fn tcp_and_a_unix_socket_serve_the_same_tables_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("gateway.sock");
    let unix = format!("unix:{}", socket.display());
    let gateway = Gateway::start_in(folder, &["--listen", "127.0.0.1:0", "--listen", &unix], &[]).await;
    assert!(gateway.ready_line.contains(&format!(", unix {}, admin ", socket.display())), "{}", gateway.ready_line);
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let request = CreateNamespaceRequest { namespace: vec!["over-unix".into()], ..Default::default() };
    TableServiceClient::new(unix_channel(&socket).await).create_namespace(request).await.unwrap();
    let mut over_tcp = TableServiceClient::new(gateway.channel().await);
    let names = over_tcp.list_namespaces(ListNamespacesRequest::default()).await.unwrap().into_inner().names;
    assert_eq!(names, ["over-unix"]);
    let (code, _, _) = gateway.terminate().await;
    assert_eq!(code, Some(0));
    assert!(!socket.exists(), "the socket file goes with the process");
}

#[tokio::test]
async fn the_socket_of_a_killed_process_is_replaced_and_that_of_a_live_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("gateway.sock");
    let unix = format!("unix:{}", socket.display());
    let arguments = ["--listen", "127.0.0.1:0", "--listen", unix.as_str()];
    let killed = Gateway::start_with(&arguments, &[]).await;
    killed.signal("KILL").await;
    killed.end().await;
    assert!(socket.exists());
    let live = Gateway::start_with(&arguments, &[]).await;
    let outcome = run(&["--admin-listen", "127.0.0.1:0", "--listen", &unix], &[]).await;
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("another process listens there"), "{}", outcome.stderr);
    StatusServiceClient::new(unix_channel(&socket).await).get_status(GetStatusRequest {}).await.unwrap();
    live.terminate().await;
}

#[tokio::test]
async fn the_admin_port_tells_life_readiness_and_metrics() {
    let gateway = Gateway::start(&[]).await;
    let channel = gateway.channel().await;
    StatusServiceClient::new(channel.clone()).get_status(GetStatusRequest {}).await.unwrap();
    assert_eq!(gateway.get("/live").await.0, 200);
    assert_eq!(gateway.get("/ready").await, (200, "serving\n".to_owned()));
    assert_eq!(gateway.get("/nothing").await.0, 404);
    // The call is counted when its response has ended, which the client may see first.
    gateway
        .wait_for("/metrics", |code, page| {
            code == 200
                && [
                    "lance_gateway_build_info{lance_version=\"14.",
                    "lance_gateway_state{state=\"serving\"} 1",
                    "lance_gateway_permits_limit{pool=\"scans\"} 64",
                    "lance_gateway_permits_used{pool=\"puts\"} 0",
                    "lance_gateway_connections 1",
                    "rpc_method=\"GetStatus\"",
                    "rpc_server_call_duration_seconds_bucket",
                    "lance_gateway_calls_total{",
                ]
                .iter()
                .all(|line| page.contains(line))
        })
        .await;
}

#[tokio::test]
async fn secrets_are_in_no_output_and_in_no_metric() {
    let environment = [
        ("LANCE_GATEWAY_STORAGE_OPTIONS", "aws_secret_access_key=hunter2,aws_access_key_id=AKIAHUNTER"),
        ("LANCE_GATEWAY_LOG_LEVEL", "debug"),
        ("LANCE_SECRET_OF_LANCE", "hunter3"),
    ];
    let gateway = Gateway::start(&environment).await;
    let mut tables = TableServiceClient::new(gateway.channel().await);
    tables.list_namespaces(ListNamespacesRequest::default()).await.unwrap();
    let metrics = gateway.get("/metrics").await.1;
    let line = gateway.ready_line.clone();
    let (code, stdout, stderr) = gateway.terminate().await;
    assert_eq!(code, Some(0));
    assert!(stderr.contains("LANCE_SECRET_OF_LANCE"), "names that change Lance are told: {stderr}");
    assert!(stderr.contains("storage.options"), "what is configured is told: {stderr}");
    for output in [metrics, line, stdout, stderr] {
        for secret in ["hunter2", "AKIAHUNTER", "hunter3"] {
            assert!(!output.contains(secret), "{secret} is in {output}");
        }
    }
}

#[tokio::test]
async fn logs_are_one_json_object_a_line_when_asked_for() {
    let gateway = Gateway::start(&[("LANCE_GATEWAY_LOG_FORMAT", "json")]).await;
    let mut tables = TableServiceClient::new(gateway.channel().await);
    tables.list_namespaces(ListNamespacesRequest::default()).await.unwrap();
    let (_, _, stderr) = gateway.terminate().await;
    let lines: Vec<serde_json::Value> = stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let call = lines.iter().find(|line| line["method"] == "ListNamespaces").expect("an access log line");
    assert_eq!(call["code"], 0);
    assert!(call["request_id"].as_str().is_some_and(|id| !id.is_empty()));
    assert!(lines.iter().all(|line| !line["timestamp"].is_null()));
}

/// One literal header whose value claims to have 1 GiB, in CONTINUATION frames without end.
#[tokio::test]
async fn a_header_of_1_gib_is_refused_early_and_the_process_stays_up() {
    let gateway = Gateway::start(&[]).await;
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    };
    let mut stream = TcpStream::connect(gateway.grpc).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    stream.write_all(&frame(4, 0, 0, &[])).await.unwrap();
    // POST, http, then `x: ` with a length of 2^30 as an HPACK integer.
    let begin = [0x83, 0x86, 0x00, 0x01, b'x', 0x7f, 0x81, 0xff, 0xff, 0xff, 0x03];
    stream.write_all(&frame(1, 0, 1, &begin)).await.unwrap();
    let more = frame(9, 0, 1, &[b'a'; 16 * 1024]);
    let (mut reading, mut writing) = stream.into_split();
    let writer = tokio::spawn(async move {
        let mut written = 0_u64;
        while written < 1 << 30 && writing.write_all(&more).await.is_ok() {
            written += more.len() as u64;
        }
        written
    });
    let mut answer = Vec::new();
    // Reset or closed: both are an end.
    let _ = soon("the end of the connection", reading.read_to_end(&mut answer)).await;
    drop(reading);
    let written = soon("the end of the writer", writer).await.unwrap();
    assert!(written < 64 << 20, "{written} bytes of one header were taken");
    StatusServiceClient::new(gateway.channel().await).get_status(GetStatusRequest {}).await.unwrap();
    let (code, _, _) = gateway.terminate().await;
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn connections_above_the_bound_are_closed_and_room_is_used_again() {
    let gateway = Gateway::start(&[("LANCE_GATEWAY_CONNECTION_MAX", "1")]).await;
    let channel = gateway.channel().await;
    let mut first = StatusServiceClient::new(channel.clone());
    first.get_status(GetStatusRequest {}).await.unwrap();
    let mut second = TcpStream::connect(gateway.grpc).await.unwrap();
    let mut nothing = Vec::new();
    let _ = soon("the end of the second connection", second.read_to_end(&mut nothing)).await;
    assert!(nothing.is_empty(), "it was served");
    drop((first, channel));
    gateway.wait_for("/metrics", |_, page| page.contains("lance_gateway_connections 0")).await;
    StatusServiceClient::new(gateway.channel().await).get_status(GetStatusRequest {}).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_sends_nothing_is_closed() {
    let gateway = Gateway::start(&[("LANCE_GATEWAY_CONNECTION_HANDSHAKE_TIMEOUT", "100ms")]).await;
    let mut silent = TcpStream::connect(gateway.grpc).await.unwrap();
    let mut answer = Vec::new();
    let _ = soon("the end of the connection", silent.read_to_end(&mut answer)).await;
    gateway.wait_for("/metrics", |_, page| page.contains("lance_gateway_connections 0")).await;
}
