//! Clients that do nothing, too many of them, and ones that disappear.

use super::*;

use std::time::Duration;

use arrow_flight::decode::FlightRecordBatchStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

/// A client that takes no more than 64 KiB ahead.
async fn narrow(gateway: &Gateway) -> FlightClient {
    let endpoint = Endpoint::from_shared(format!("http://{}", gateway.grpc)).unwrap();
    let endpoint = endpoint.initial_stream_window_size(64 << 10).initial_connection_window_size(64 << 10);
    FlightClient::new(endpoint.connect().await.unwrap())
}

async fn filled(environment: &[(&str, &str)]) -> (Gateway, Ticket) {
    let gateway = Gateway::start_with(LISTEN, environment).await;
    put(&gateway, path(&["t"]), &[batch(0, 16_000, 1000)]).await;
    let plan = info(&gateway, path(&["t"])).await.unwrap();
    (gateway, plan.endpoint[0].ticket.clone().unwrap())
}

async fn drain(mut stream: FlightRecordBatchStream) -> Result<usize, FlightError> {
    let mut rows = 0;
    while let Some(batch) = soon("a batch", stream.next()).await {
        rows += batch?.num_rows();
    }
    Ok(rows)
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_ended_and_its_permit_returns() {
    let environment = [
        ("LANCE_GATEWAY_SCAN_WRITE_STALL_TIMEOUT", "200ms"),
        ("LANCE_GATEWAY_SCAN_SEND_BUFFER_BYTES", "1MiB"),
        ("LANCE_GATEWAY_SCAN_MAX_STREAMS", "1"),
    ];
    let (gateway, ticket) = filled(&environment).await;
    let mut client = narrow(&gateway).await;
    let stalled = client.do_get(ticket.clone()).await.unwrap();
    permits(&gateway, "scans", 0).await;
    assert_eq!(drain(stock(&gateway).await.do_get(ticket).await.unwrap()).await.unwrap(), 16_000);
    assert_eq!(reason(drain(stalled).await.unwrap_err()), "STREAM_IDLE");
}

#[tokio::test]
async fn a_slow_client_gets_all_its_rows() {
    let (gateway, ticket) = filled(&[("LANCE_GATEWAY_SCAN_SEND_BUFFER_BYTES", "64KiB")]).await;
    let stream = narrow(&gateway).await.do_get(ticket).await.unwrap();
    permits(&gateway, "scans", 1).await;
    assert_eq!(drain(stream).await.unwrap(), 16_000);
    permits(&gateway, "scans", 0).await;
}

#[tokio::test]
async fn streams_above_the_bound_are_refused_as_retriable_and_a_client_that_disappears_makes_room() {
    let environment = [("LANCE_GATEWAY_SCAN_MAX_STREAMS", "1"), ("LANCE_GATEWAY_SCAN_SEND_BUFFER_BYTES", "64KiB")];
    let (gateway, ticket) = filled(&environment).await;
    let mut client = narrow(&gateway).await;
    let unread = client.do_get(ticket.clone()).await.unwrap();
    permits(&gateway, "scans", 1).await;
    let refused = stock(&gateway).await.do_get(ticket.clone()).await.map(drop).unwrap_err();
    assert_eq!(reason(refused), "OVERLOADED");
    drop((unread, client));
    permits(&gateway, "scans", 0).await;
    assert_eq!(drain(stock(&gateway).await.do_get(ticket).await.unwrap()).await.unwrap(), 16_000);
}

#[tokio::test]
async fn twenty_puts_that_send_nothing_are_ended_and_the_next_one_works() {
    let environment = [("LANCE_GATEWAY_WRITE_IDLE_TIMEOUT", "500ms"), ("LANCE_GATEWAY_WRITE_MAX_STREAMS", "20")];
    let gateway = Gateway::start_with(LISTEN, &environment).await;
    let mut idle = Vec::new();
    for _ in 0..20 {
        // Half of them say nothing at all, half stop after their schema.
        let (sender, receiver) = mpsc::channel(1);
        let messages = if idle.len() % 2 == 0 {
            messages(path(&["t"]), &batch(0, 0, 5).schema(), ReceiverStream::new(receiver).boxed())
        } else {
            ReceiverStream::<Result<RecordBatch, FlightError>>::new(receiver).map_ok(|_| FlightData::default()).boxed()
        };
        idle.push((sender, stock(&gateway).await.do_put(messages).await.unwrap()));
    }
    for (sender, answers) in idle {
        let ended = soon("the end of an idle put", answers.try_collect::<Vec<_>>()).await.unwrap_err();
        assert_eq!(reason(ended), "STREAM_IDLE");
        drop(sender);
    }
    permits(&gateway, "puts", 0).await;
    assert_eq!(put(&gateway, path(&["t"]), &[batch(0, 3, 5)]).await.num_rows, 3);
}

#[tokio::test]
async fn puts_above_the_bound_are_refused_as_retriable() {
    let gateway = Gateway::start_with(LISTEN, &[("LANCE_GATEWAY_WRITE_MAX_STREAMS", "1")]).await;
    let (sender, receiver) = mpsc::channel(1);
    let messages = messages(path(&["t"]), &batch(0, 0, 5).schema(), ReceiverStream::new(receiver).boxed());
    let answers = stock(&gateway).await.do_put(messages).await.unwrap();
    permits(&gateway, "puts", 1).await;
    let refused = try_put(&gateway, path(&["t"]), &[batch(0, 1, 5)]).await.unwrap_err();
    assert_eq!(reason(refused), "OVERLOADED");
    sender.send(Ok(batch(0, 7, 5))).await.unwrap();
    drop(sender);
    let results: Vec<_> = soon("the put", answers.try_collect()).await.unwrap();
    assert_eq!(v1::PutAck::decode(results[0].app_metadata.clone()).unwrap().num_rows, 7);
}

#[tokio::test]
async fn a_large_message_on_a_slow_line_is_not_idle() {
    let gateway = Gateway::start_with(LISTEN, &[("LANCE_GATEWAY_WRITE_IDLE_TIMEOUT", "300ms")]).await;
    // Bytes of one batch, a few at a time, over three times the limit.
    let body = slow_body(&batch(0, 1000, 100), 10, Duration::from_millis(100));
    let request = http::Request::post("/arrow.flight.protocol.FlightService/DoPut")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(tonic::body::Body::new(body))
        .unwrap();
    let mut channel = gateway.channel().await;
    std::future::poll_fn(|cx| tower::Service::poll_ready(&mut channel, cx)).await.unwrap();
    let response = tower::Service::call(&mut channel, request).await.unwrap();
    let answers = lance_gateway_proto::flight::SmallMessages::<_, PutResult>::response(response, 1 << 20).unwrap();
    let results: Vec<PutResult> = soon("the put", answers.try_collect()).await.unwrap();
    assert_eq!(v1::PutAck::decode(results[0].app_metadata.clone()).unwrap().num_rows, 1000);
}

fn slow_body(
    batch: &RecordBatch,
    pieces: usize,
    pause: Duration,
) -> impl http_body::Body<Data = bytes::Bytes, Error = Status> + Send + 'static {
    use lance_gateway_proto::flight::{EncodeOptions, Encoder, Frames, GrpcBody};
    let mut encoder = Encoder::new(&batch.schema(), EncodeOptions::default());
    let mut all = vec![encoder.schema_message(Some(&path(&["t"])), Default::default())];
    all.extend(encoder.encode(batch, Default::default()).unwrap());
    let mut bytes = bytes::BytesMut::new();
    for message in all {
        let mut frames = Frames::from(message);
        while let Some(part) = frames.pop() {
            bytes.extend_from_slice(&part);
        }
    }
    let bytes = bytes.freeze();
    let step = bytes.len().div_ceil(pieces);
    let frames: Vec<_> = (0..bytes.len()).step_by(step).map(|at| bytes.slice(at..bytes.len().min(at + step))).collect();
    let slow = stream::iter(frames).then(move |piece| async move {
        tokio::time::sleep(pause).await;
        Ok(Frames::from(piece))
    });
    GrpcBody::request(slow.boxed())
}
