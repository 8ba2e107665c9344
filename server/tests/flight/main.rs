//! The Flight service of the built binary, through the stock client of arrow-flight and through bytes that no client would send.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod put;
mod refusals;
mod scan;
mod slow;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{FlightClient, FlightData, FlightDescriptor, FlightInfo, PutResult, Ticket};
use arrow_schema::Schema;
use arrow_select::concat::concat_batches;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use lance_gateway_proto::v1;
use prost::Message as _;
use support::{Gateway, soon};
use tonic::Status;

const LISTEN: &[&str] = &["--listen", "127.0.0.1:0"];

fn path(parts: &[&str]) -> FlightDescriptor {
    FlightDescriptor::new_path(parts.iter().map(|part| (*part).to_owned()).collect())
}

fn json(command: impl Into<String>) -> FlightDescriptor {
    FlightDescriptor::new_cmd(command.into().into_bytes())
}

/// Rows `first..first + rows`, each of about `width` bytes.
fn batch(first: i64, rows: i64, width: usize) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + rows));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..rows).map(|i| format!("{i}{}", "0".repeat(width)))));
    RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap()
}

/// The status below an error of the stock client.
fn status(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => panic!("{other:?}"),
    }
}

/// The reason of a refusal.
fn reason(error: FlightError) -> String {
    support::reason(&status(error))
}

async fn stock(gateway: &Gateway) -> FlightClient {
    let inner = FlightServiceClient::new(gateway.channel().await).max_decoding_message_size(70 << 20);
    FlightClient::new_from_inner(inner)
}

fn messages(
    descriptor: FlightDescriptor,
    schema: &Schema,
    batches: BoxStream<'static, Result<RecordBatch, FlightError>>,
) -> BoxStream<'static, Result<FlightData, FlightError>> {
    FlightDataEncoderBuilder::new()
        .with_schema(Arc::new(schema.clone()))
        .with_flight_descriptor(Some(descriptor))
        .build(batches)
        .boxed()
}

/// Puts these batches with the stock client; the answers, or why not.
async fn try_put(
    gateway: &Gateway,
    descriptor: FlightDescriptor,
    batches: &[RecordBatch],
) -> Result<Vec<PutResult>, FlightError> {
    let rows = stream::iter(batches.iter().cloned().map(Ok).collect::<Vec<_>>()).boxed();
    let messages = messages(descriptor, &batches[0].schema(), rows);
    soon("the put", async { stock(gateway).await.do_put(messages).await?.try_collect().await }).await
}

/// Puts these batches ad hoc.
async fn put(gateway: &Gateway, descriptor: FlightDescriptor, batches: &[RecordBatch]) -> v1::PutAck {
    let results = try_put(gateway, descriptor, batches).await.unwrap();
    assert_eq!(results.len(), 1, "an ad-hoc put has one answer");
    v1::PutAck::decode(results[0].app_metadata.clone()).unwrap()
}

async fn info(gateway: &Gateway, descriptor: FlightDescriptor) -> Result<FlightInfo, FlightError> {
    stock(gateway).await.get_flight_info(descriptor).await
}

async fn get(gateway: &Gateway, ticket: Ticket) -> Result<RecordBatch, FlightError> {
    let mut stream = stock(gateway).await.do_get(ticket).await?;
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        batches.push(batch?);
    }
    let schema = stream.schema().expect("a stream begins with its schema").clone();
    Ok(concat_batches(&schema, &batches).unwrap())
}

/// All rows of a descriptor: plan, then all endpoints in order.
async fn rows(gateway: &Gateway, descriptor: FlightDescriptor) -> Result<RecordBatch, FlightError> {
    soon("the scan", async {
        let info = info(gateway, descriptor).await?;
        let schema = Arc::new(info.clone().try_decode_schema()?);
        let mut batches = Vec::new();
        for endpoint in info.endpoint {
            batches.push(get(gateway, endpoint.ticket.unwrap()).await?);
        }
        Ok(concat_batches(&schema, &batches).unwrap())
    })
    .await
}

/// Waits until this many permits of a pool are in use.
async fn permits(gateway: &Gateway, pool: &str, used: usize) {
    let line = format!("lance_gateway_permits_used{{pool=\"{pool}\"}} {used}\n");
    gateway.wait_for("/metrics", |_, page| page.contains(&line)).await;
}

fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}
