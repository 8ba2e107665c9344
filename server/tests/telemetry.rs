//! Traces and metrics leave over OTLP when there is an endpoint.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use lance_gateway_proto::v1::ListTablesRequest;
use lance_gateway_proto::v1::table_service_client::TableServiceClient;
use support::{Gateway, soon};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::Request;

/// A collector that takes everything and understands nothing: path and bytes of each export.
async fn collector() -> (SocketAddr, mpsc::UnboundedReceiver<(String, Bytes)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let sender = sender.clone();
            let answer = service_fn(move |request: http::Request<Incoming>| {
                let sender = sender.clone();
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    sender.send((path, body)).unwrap();
                    let end = http::HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
                    let frames =
                        [Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[0; 5]))), Ok(Frame::trailers(end))];
                    let response = http::Response::builder().header("content-type", "application/grpc");
                    Ok::<_, Infallible>(response.body(StreamBody::new(futures::stream::iter(frames))).unwrap())
                }
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(stream), answer));
        }
    });
    (address, receiver)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn spans_continue_the_trace_of_the_caller_and_are_sent_with_the_metrics_before_the_end() {
    let (address, mut exports) = collector().await;
    let endpoint = format!("http://{address}");
    // Traces do not hang on what is logged.
    let environment =
        [("LANCE_GATEWAY_TELEMETRY_OTLP_ENDPOINT", endpoint.as_str()), ("LANCE_GATEWAY_LOG_LEVEL", "error")];
    let gateway = Gateway::start(&environment).await;
    let mut request = Request::new(ListTablesRequest::default());
    let trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    request.metadata_mut().insert("traceparent", trace.parse().unwrap());
    TableServiceClient::new(gateway.channel().await).list_tables(request).await.unwrap();
    let (code, _, stderr) = gateway.terminate().await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));

    let (mut spans, mut metrics) = (Vec::new(), Vec::new());
    while spans.is_empty() || metrics.is_empty() {
        let (path, body) = soon("an export", exports.recv()).await.unwrap();
        match path.as_str() {
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => spans.push(body),
            "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => metrics.push(body),
            other => panic!("{other}"),
        }
    }
    let trace_id = u128::from_str_radix("0123456789abcdef0123456789abcdef", 16).unwrap().to_be_bytes();
    let ours = spans.iter().find(|body| contains(body, &trace_id)).expect("the trace of the caller goes on");
    for attribute in ["lancegateway.v1.TableService/ListTables", "rpc.grpc.status_code", "request_id"] {
        assert!(contains(ours, attribute.as_bytes()), "{attribute}");
    }
    assert!(metrics.iter().any(|body| contains(body, b"rpc.server.call.duration")));
}

#[tokio::test]
async fn a_collector_that_is_away_does_not_keep_the_gateway_from_work_nor_from_its_end() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let endpoint = format!("http://{gone}");
    let gateway = Gateway::start(&[("LANCE_GATEWAY_TELEMETRY_OTLP_ENDPOINT", &endpoint)]).await;
    TableServiceClient::new(gateway.channel().await).list_tables(ListTablesRequest::default()).await.unwrap();
    assert_eq!(gateway.terminate().await.0, Some(0));
}
