//! A termination in the middle of a put, a scan and commits: nothing is lost, nothing is there twice.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::{FlightClient, FlightDescriptor, PutResult};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use lance_gateway_proto::flight::schema_to_ipc;
use lance_gateway_proto::v1::table_service_client::TableServiceClient;
use lance_gateway_proto::v1::write_service_client::WriteServiceClient;
use lance_gateway_proto::v1::{
    BeginWriteRequest, CommitId, CommitRequest, CountRowsRequest, CreateOptions, PrepareCommitRequest, PutCommand,
    StageAck, StageRequest, Table, TableName, put_command, table,
};
use prost::Message as _;
use support::{Gateway, reason, soon};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

const LISTEN: &[&str] = &["--listen", "127.0.0.1:0"];

fn batch(first: i64, rows: i64, width: usize) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + rows));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|_| "x".repeat(width))));
    RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap()
}

fn table() -> Option<Table> {
    Some(Table { kind: Some(table::Kind::Name(TableName { parts: vec!["t".into()] })) })
}

fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

async fn begin(channel: &Channel) -> Bytes {
    let request = BeginWriteRequest {
        request_id: uuid(),
        table: table(),
        schema: schema_to_ipc(&batch(0, 0, 0).schema()),
        create: Some(CreateOptions::default()),
        ..Default::default()
    };
    WriteServiceClient::new(channel.clone()).begin_write(request).await.unwrap().into_inner().write
}

type Acks = BoxStream<'static, Result<PutResult, FlightError>>;

async fn put(channel: &Channel, write: Bytes, batches: BoxStream<'static, Result<RecordBatch, FlightError>>) -> Acks {
    let command = PutCommand { kind: Some(put_command::Kind::Stage(StageRequest { write, max_rows_per_file: 0 })) };
    let messages = FlightDataEncoderBuilder::new()
        .with_schema(batch(0, 0, 0).schema())
        .with_flight_descriptor(Some(FlightDescriptor::new_cmd(command.encode_to_vec())))
        .build(batches);
    FlightClient::new(channel.clone()).do_put(messages).await.unwrap().boxed()
}

async fn staged(acks: Acks) -> Bytes {
    let results: Vec<PutResult> = soon("the end of the put", acks.try_collect()).await.unwrap();
    let last = StageAck::decode(results.last().unwrap().app_metadata.clone()).unwrap();
    assert!(last.done);
    last.staged
}

async fn prepare(channel: &Channel, epoch: &str, seq: u64, write: Bytes, staged: Bytes) -> Bytes {
    let request = PrepareCommitRequest {
        id: Some(CommitId { epoch: epoch.into(), seq }),
        write,
        staged: vec![staged],
        ..Default::default()
    };
    WriteServiceClient::new(channel.clone()).prepare_commit(request).await.unwrap().into_inner().committable
}

async fn commit(channel: &Channel, committable: Bytes) -> Result<bool, tonic::Status> {
    let response = WriteServiceClient::new(channel.clone()).commit(CommitRequest { committable }).await?;
    Ok(response.into_inner().already_committed)
}

async fn count(channel: &Channel) -> u64 {
    let request = CountRowsRequest { table: table(), ..Default::default() };
    TableServiceClient::new(channel.clone()).count_rows(request).await.unwrap().into_inner().num_rows
}

/// The folder of a gateway that has ended, for its successor.
fn keep(gateway: &mut Gateway) -> TempDir {
    std::mem::replace(&mut gateway.folder, tempfile::tempdir().unwrap())
}

#[tokio::test]
async fn a_put_that_runs_at_a_termination_ends_and_the_next_gateway_commits_it() {
    let mut gateway = Gateway::start_with(LISTEN, &[]).await;
    let channel = gateway.channel().await;
    let write = begin(&channel).await;
    let (sender, receiver) = mpsc::channel(1);
    let acks = put(&channel, write.clone(), ReceiverStream::new(receiver).boxed()).await;
    sender.send(Ok(batch(0, 100, 8))).await.unwrap();
    gateway.wait_for("/metrics", |_, page| page.contains("lance_gateway_permits_used{pool=\"puts\"} 1")).await;

    gateway.signal("TERM").await;
    gateway.wait_for("/ready", |code, _| code == 503).await;
    sender.send(Ok(batch(100, 50, 8))).await.unwrap();
    drop(sender);
    let staged = staged(acks).await;
    let folder = keep(&mut gateway);
    assert_eq!(gateway.end().await.0.code(), Some(0));

    let next = Gateway::start_in(folder, LISTEN, &[]).await;
    let channel = next.channel().await;
    assert_eq!(count(&channel).await, 0, "a stage shows nothing");
    let committable = prepare(&channel, &uuid(), 1, write, staged).await;
    assert!(!commit(&channel, committable).await.unwrap());
    assert_eq!(count(&channel).await, 150);
}

#[tokio::test]
async fn a_put_that_does_not_end_within_the_drain_time_is_cut_and_leaves_nothing_visible() {
    let mut gateway = Gateway::start_with(LISTEN, &[("LANCE_GATEWAY_DRAIN_TIMEOUT", "0s")]).await;
    let channel = gateway.channel().await;
    let write = begin(&channel).await;
    let (sender, receiver) = mpsc::channel(1);
    let acks = put(&channel, write, ReceiverStream::new(receiver).boxed()).await;
    sender.send(Ok(batch(0, 100, 8))).await.unwrap();
    gateway.wait_for("/metrics", |_, page| page.contains("lance_gateway_permits_used{pool=\"puts\"} 1")).await;
    gateway.signal("TERM").await;
    let end = soon("the end of the put", acks.try_collect::<Vec<_>>()).await.unwrap_err();
    let FlightError::Tonic(status) = end else { panic!("{end}") };
    assert!(["DEADLINE_EXCEEDED", "DRAINING"].contains(&reason(&status).as_str()), "{status}");
    let folder = keep(&mut gateway);
    assert_eq!(gateway.end().await.0.code(), Some(0));
    let next = Gateway::start_in(folder, LISTEN, &[]).await;
    assert_eq!(count(&next.channel().await).await, 0);
}

#[tokio::test]
async fn a_scan_that_runs_at_a_termination_gives_all_its_rows() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    let channel = gateway.channel().await;
    let write = begin(&channel).await;
    // More than all buffers between the two processes hold.
    let batches = stream::iter((0..40).map(|i| Ok(batch(i * 1000, 1000, 1000)))).boxed();
    let staged = staged(put(&channel, write.clone(), batches).await).await;
    commit(&channel, prepare(&channel, &uuid(), 1, write, staged).await).await.unwrap();

    let mut client = FlightClient::new(channel);
    let info = client.get_flight_info(FlightDescriptor::new_path(vec!["t".into()])).await.unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    assert_eq!(info.endpoint.len(), 1);
    let mut rows = client.do_get(ticket).await.unwrap();
    let mut seen = rows.next().await.unwrap().unwrap().num_rows();
    gateway.signal("TERM").await;
    gateway.wait_for("/ready", |code, _| code == 503).await;
    while let Some(batch) = soon("a batch", rows.next()).await {
        seen += batch.unwrap().num_rows();
    }
    assert_eq!(seen, 40_000);
    assert_eq!(gateway.end().await.0.code(), Some(0));
}

#[tokio::test]
async fn commits_around_a_termination_are_there_once_when_they_are_repeated() {
    const COMMITS: u64 = 8;
    let mut gateway = Gateway::start_with(LISTEN, &[]).await;
    let channel = gateway.channel().await;
    let (epoch, mut committables) = (uuid(), Vec::new());
    for seq in 1..=COMMITS {
        let write = begin(&channel).await;
        let staged = staged(put(&channel, write.clone(), stream::iter([Ok(batch(0, 10, 8))]).boxed()).await).await;
        committables.push(prepare(&channel, &epoch, seq, write, staged).await);
    }
    let commits = committables.iter().cloned().map(|committable| {
        let channel = channel.clone();
        tokio::spawn(async move { commit(&channel, committable).await })
    });
    let commits: Vec<_> = commits.collect();
    gateway.signal("TERM").await;
    let mut done = 0;
    for commit in commits {
        match soon("a commit", commit).await.unwrap() {
            Ok(already) => {
                assert!(!already);
                done += 1;
            }
            // Refused, or the connection was closed before it was taken.
            Err(status) => assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}"),
        }
    }
    let folder = keep(&mut gateway);
    assert_eq!(gateway.end().await.0.code(), Some(0));

    let next = Gateway::start_in(folder, LISTEN, &[]).await;
    let channel = next.channel().await;
    assert!(count(&channel).await >= done * 10, "what was answered is there");
    for committable in committables {
        commit(&channel, committable).await.unwrap();
    }
    assert_eq!(count(&channel).await, COMMITS * 10);
}
