//! Writes: staged with one commit, and in one call; lost replies and repeats.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use fake::{FakeGateway, Fault, overloaded, quick, refusal};
use futures::stream;
use lance_gateway_client::{
    Assigned, BeginOptions, ChangeOptions, Client, ClientOptions, CommitId, CommitState, Committable, CreateOptions,
    ErrorKind, MergeOptions, PutOptions, Reason, StorageOptions, Write, lit,
};
use tonic::Status;
use uuid::Uuid;

fn numbers(range: std::ops::Range<i64>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("n", Arc::new(Int64Array::from_iter_values(range)) as ArrayRef, true)])
        .unwrap()
}

fn schema() -> SchemaRef {
    numbers(0..0).schema()
}

fn rows(batches: Vec<RecordBatch>) -> impl futures::Stream<Item = Result<RecordBatch, Infallible>> {
    stream::iter(batches.into_iter().map(Ok))
}

async fn begin(gateway: &FakeGateway, client: &Client) -> Write {
    let options =
        BeginOptions { schema: Some(schema()), create: Some(CreateOptions::default()), ..BeginOptions::default() };
    let write = client.begin_write("t", &options).await.unwrap();
    assert_eq!(gateway.num_rows("t"), 0);
    write
}

async fn prepare(write: &Write, batches: &[RecordBatch]) -> Committable {
    let mut stage = write.stage();
    for batch in batches {
        stage.write(batch).await.unwrap();
    }
    let staged = stage.finish().await.unwrap();
    write.prepare(CommitId::first_of_new_epoch(), [staged], &HashMap::new()).await.unwrap()
}

fn create() -> PutOptions {
    PutOptions { create: Some(CreateOptions::default()), ..PutOptions::default() }
}

#[tokio::test]
async fn storage_options_go_with_every_call_and_into_no_message() {
    let gateway = FakeGateway::start().await;
    let storage = StorageOptions::from_iter([("s3-secret-key", "hunter2")]);
    let client = Client::connect(&gateway.uri, ClientOptions { storage, ..quick() }).await.unwrap();
    let write = begin(&gateway, &client).await;
    let committable = prepare(&write, &[numbers(0..3)]).await;
    client.commit(&committable).await.unwrap();
    assert!(!format!("{committable:?} {client:?}").contains("hunter2"));
    let plan = client.scan("t").plan().await.unwrap();
    let read: Vec<_> = futures::TryStreamExt::try_collect(plan.stream()).await.unwrap();
    assert_eq!(read.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);

    let calls = gateway.state.lock().unwrap().calls.clone();
    assert!(calls.len() >= 6, "{calls:?}");
    for call in calls {
        assert_eq!(call.storage.get("s3-secret-key").map(String::as_str), Some("hunter2"), "{}", call.rpc);
    }
}

#[tokio::test]
async fn a_merge_a_delete_and_an_update_whose_replies_are_lost_happen_once() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    begin(&gateway, &client).await;
    for rpc in ["DoPut", "DeleteRows", "UpdateRows"] {
        gateway.fail_next(rpc, Fault::LoseReply);
    }
    let again = || rows(vec![numbers(0..5)]);
    let merged = client.merge_repeatable("t", &schema(), again, &MergeOptions::default()).await.unwrap();
    assert_eq!((merged.num_rows, gateway.num_rows("t")), (5, 5));

    let which = ChangeOptions { filter: Some("n > 1".into()), version: Some(2), ..ChangeOptions::default() };
    let deleted = client.delete_rows("t", &which).await.unwrap();
    assert_eq!((deleted.num_rows, deleted.already_committed), (7, true));
    let assigned = [("n".to_owned(), Assigned::Literal(lit(7))), ("m".to_owned(), Assigned::Sql("n + 1".to_owned()))];
    let updated = client.update_rows("t", &assigned.into(), &ChangeOptions::default()).await.unwrap();
    assert_eq!((updated.num_rows, updated.already_committed), (2, true));
    assert_eq!(updated.version, deleted.version + 1);
    for rpc in ["DeleteRows", "UpdateRows"] {
        let calls = gateway.calls(rpc);
        assert_eq!(calls.len(), 2, "{rpc}");
        assert_eq!(calls[0].detail, calls[1].detail, "a repeat carries the same request id");
    }
}

#[tokio::test]
async fn what_two_writers_stage_becomes_visible_with_one_commit() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let write = begin(&gateway, &client).await;
    assert!(write.created());

    // The second writer is another process: it has the handle and the schema, no more.
    let elsewhere = gateway.client().await.attach_write("t", write.handle().clone(), write.schema().clone());
    let (mut a, mut b) = (write.stage(), elsewhere.stage());
    for n in 0..5 {
        a.write(&numbers(n * 10..(n + 1) * 10)).await.unwrap();
        b.write(&numbers(n * 10..(n + 1) * 10)).await.unwrap();
    }
    let (a, b) = (a.finish().await.unwrap(), b.finish().await.unwrap());
    assert_eq!((a.num_rows, b.num_rows), (50, 50));
    assert_eq!(gateway.num_rows("t"), 0);

    let id = CommitId::first_of_new_epoch();
    let committable = write.prepare(id.clone(), [a, b], &HashMap::new()).await.unwrap();
    assert_eq!(client.get_commit("t", &id).await.unwrap(), CommitState::NotCommitted);
    let committed = client.commit(&committable).await.unwrap();
    assert_eq!((committed.version, committed.already_committed), (2, false));
    assert_eq!(gateway.num_rows("t"), 100);
    assert_eq!(client.get_commit("t", &id).await.unwrap(), CommitState::Committed(2));

    let again = client.commit(&committable).await.unwrap();
    assert_eq!((again.version, again.already_committed), (2, true));
    let listed = client.list_commits("t").await.unwrap();
    assert_eq!((&listed[0].id, listed[0].state, listed[0].num_rows), (&id, CommitState::Committed(2), 10));
}

#[tokio::test]
async fn a_commit_whose_reply_is_lost_lands_once_and_says_so() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let write = begin(&gateway, &client).await;
    let committable = prepare(&write, &[numbers(0..10)]).await;
    gateway.fail_next("Commit", Fault::LoseReply);
    let committed = client.commit(&committable).await.unwrap();
    assert_eq!((committed.version, committed.already_committed), (2, true));
    assert_eq!((gateway.num_rows("t"), gateway.num_versions("t")), (10, 2));
}

#[tokio::test]
async fn a_commit_that_never_gets_an_answer_is_resolved_by_the_ledger() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let write = begin(&gateway, &client).await;
    let committable = prepare(&write, &[numbers(0..10)]).await;
    gateway.fail_next("Commit", Fault::LoseReply);
    for _ in 0..3 {
        gateway.fail_next("Commit", Fault::Refuse(refusal(Reason::CommitStateUnknown, "the store did not say")));
    }
    let committed = client.commit(&committable).await.unwrap();
    assert_eq!((committed.version, committed.already_committed), (2, true));
    assert_eq!((gateway.calls("Commit").len(), gateway.calls("GetCommit").len()), (4, 1));
}

#[tokio::test]
async fn a_commit_that_the_ledger_does_not_know_stays_unknown_and_may_be_repeated() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let write = begin(&gateway, &client).await;
    let committable = prepare(&write, &[numbers(0..10)]).await;
    for _ in 0..4 {
        gateway.fail_next("Commit", Fault::Refuse(Status::unavailable("a proxy is in the way")));
    }
    let error = client.commit(&committable).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(client.commit(&committable).await.unwrap().version, 2);
    assert_eq!(gateway.num_rows("t"), 10);
}

#[tokio::test]
async fn an_aborted_commit_is_refused() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let write = begin(&gateway, &client).await;
    let committable = prepare(&write, &[numbers(0..10)]).await;
    assert_eq!(client.abort(&committable).await.unwrap(), 2);
    assert_eq!(client.commit(&committable).await.unwrap_err().reason(), Some(Reason::CommitAborted));
    let committable = prepare(&write, &[numbers(0..10)]).await;
    client.abort_id("t", &committable.id).await.unwrap();
    assert_eq!(client.get_commit("t", &committable.id).await.unwrap(), CommitState::Aborted);
    assert_eq!(gateway.num_rows("t"), 0);
}

#[tokio::test]
async fn a_stage_of_no_rows_is_left_out_of_the_commit() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let write = begin(&gateway, &client).await;
    let empty = write.stage().finish().await.unwrap();
    assert!(empty.bytes.is_empty());
    let mut stage = write.stage();
    stage.write(&numbers(0..3)).await.unwrap();
    let staged = stage.finish().await.unwrap();
    let id = CommitId::first_of_new_epoch();
    let committable = write.prepare(id, [empty, staged], &HashMap::new()).await.unwrap();
    client.commit(&committable).await.unwrap();
    assert_eq!(gateway.num_rows("t"), 3);
}

#[tokio::test]
async fn a_stage_that_is_refused_says_why_at_the_next_write() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let write = begin(&gateway, &client).await;
    gateway.fail_next("DoPut", Fault::Refuse(overloaded(Duration::from_secs(1))));
    let mut stage = write.stage();
    let error = loop {
        if let Err(error) = stage.write(&numbers(0..1000)).await {
            break error;
        }
    };
    assert_eq!((error.reason(), error.is_retriable()), (Some(Reason::Overloaded), true));
    assert!(stage.finish().await.is_err());
}

#[tokio::test]
async fn a_batch_of_another_schema_is_refused_before_it_is_sent() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let write = begin(&gateway, &client).await;
    let mut stage = write.stage();
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![1.0]));
    for (name, part) in [("n", "Float32"), ("m", "\"m\"")] {
        let error = stage.write(&RecordBatch::try_from_iter([(name, floats.clone())]).unwrap()).await.unwrap_err();
        assert_eq!((error.kind(), error.reason()), (ErrorKind::InvalidRequest, Some(Reason::SchemaMismatch)));
        assert!(error.message().contains(part), "{error}");
    }
    stage.write(&numbers(0..3)).await.unwrap();
    assert_eq!(stage.finish().await.unwrap().num_rows, 3, "the stream goes on");
}

#[tokio::test]
async fn a_put_writes_all_batches_as_one_version() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let batches = (0..20).map(|n| numbers(n * 100..(n + 1) * 100)).collect();
    let put = client.put("t", &schema(), rows(batches), &create()).await.unwrap();
    assert_eq!((put.version, put.num_rows, gateway.num_rows("t")), (2, 2000, 2000));
    assert_eq!(gateway.calls("DoPut")[0].detail, put.request_id);
}

#[tokio::test]
async fn a_put_whose_reply_is_lost_is_found_in_the_ledger() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    gateway.fail_next("DoPut", Fault::LoseReply);
    let put = client.put("t", &schema(), rows(vec![numbers(0..10)]), &create()).await.unwrap();
    assert_eq!((put.version, put.num_rows, gateway.num_rows("t")), (2, 10, 10));
    assert_eq!(gateway.calls("DoPut").len(), 1);
}

#[tokio::test]
async fn a_put_that_the_ledger_cannot_tell_about_may_be_repeated_with_its_request_id() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let options = PutOptions { request_id: Some(Uuid::new_v4().to_string()), ..create() };
    gateway.fail_next("DoPut", Fault::LoseReply);
    gateway.fail_next("GetCommit", Fault::Refuse(refusal(Reason::PermissionDenied, "not for you")));
    let error = client.put("t", &schema(), rows(vec![numbers(0..10)]), &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(error.request_id(), options.request_id.as_deref());
    let put = client.put("t", &schema(), rows(vec![numbers(0..10)]), &options).await.unwrap();
    assert_eq!((put.version, put.num_rows, gateway.num_rows("t")), (2, 10, 10));
}

#[tokio::test]
async fn a_put_whose_rows_can_be_had_again_repeats_itself() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    gateway.fail_next("DoPut", Fault::Refuse(overloaded(Duration::from_millis(1))));
    gateway.fail_next("DoPut", Fault::LoseReply);
    gateway.fail_next("GetCommit", Fault::Refuse(refusal(Reason::PermissionDenied, "not for you")));
    let mut sources = 0;
    let batches = || {
        sources += 1;
        rows((0..50).map(|n| numbers(n * 1000..(n + 1) * 1000)).collect())
    };
    let put = client.put_repeatable("t", &schema(), batches, &create()).await.unwrap();
    assert_eq!((put.version, put.num_rows), (2, 50_000));
    assert_eq!((sources, gateway.num_rows("t"), gateway.num_versions("t")), (3, 50_000, 2));
    let calls = gateway.calls("DoPut");
    assert!(calls.iter().skip(1).all(|call| call.detail == put.request_id), "{calls:?}");
}

#[tokio::test]
async fn a_put_whose_rows_fail_writes_nothing() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let broken = stream::iter([Ok(numbers(0..10)), Err(io::Error::other("disk on fire"))]);
    let error = client.put("t", &schema(), broken, &create()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retriable()), (ErrorKind::Input, false));
    assert!(error.message().contains("disk on fire"));
    // The gateway answers the next put only after it has seen the end of the first.
    client.put("u", &schema(), rows(vec![numbers(0..1)]), &create()).await.unwrap();
    assert!(!gateway.state.lock().unwrap().tables.contains_key("t"));
}

#[tokio::test]
async fn a_put_to_a_table_that_is_not_there_is_refused() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let error = client.put("t", &schema(), rows(vec![numbers(0..10)]), &PutOptions::default()).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Refused, Some(Reason::TableNotFound)));
}

#[tokio::test]
async fn a_batch_of_64_mebibytes_is_sent_with_default_options() {
    let gateway = FakeGateway::start().await;
    let client = gateway.client().await;
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..64).map(|_| "x".repeat(1 << 20))));
    let batch = RecordBatch::try_from_iter([("s", text)]).unwrap();
    let put = client.put("t", &batch.schema(), rows(vec![batch.clone()]), &create()).await.unwrap();
    assert_eq!(put.num_rows, 64);
}

#[tokio::test]
async fn a_row_above_the_limit_is_an_error_that_names_both_sizes() {
    let gateway = FakeGateway::start().await;
    let mut options = quick();
    options.max_message_bytes = 1 << 20;
    let client = Client::connect(&gateway.uri, options).await.unwrap();
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(["x".repeat(2 << 20)]));
    let batch = RecordBatch::try_from_iter([("s", text)]).unwrap();
    let error = client.put("t", &batch.schema(), rows(vec![batch.clone()]), &create()).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::InvalidRequest, Some(Reason::RowTooLarge)));
    assert!(error.message().contains("1048576"), "{error}");
}
