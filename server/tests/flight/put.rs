use super::*;

use arrow_array::{BinaryArray, Float64Array};
use lance_gateway_proto::flight::{EncodeOptions, Encoder, schema_to_ipc};
use lance_gateway_proto::v1::write_service_client::WriteServiceClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

async fn count(gateway: &Gateway, table: &str) -> usize {
    rows(gateway, path(&[table])).await.unwrap().num_rows()
}

fn put_command(request_id: &str, more: &str) -> FlightDescriptor {
    json(format!(r#"{{"put":{{"table":{{"name":{{"parts":["t"]}}}},"requestId":"{request_id}"{more}}}}}"#))
}

#[tokio::test]
async fn a_put_by_path_creates_the_table_and_the_next_one_appends() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    let first = put(&gateway, path(&["t"]), &[batch(0, 10, 5), batch(10, 5, 5)]).await;
    assert_eq!(first.num_rows, 15);
    let second = put(&gateway, path(&["t"]), &[batch(15, 5, 5)]).await;
    assert_eq!(second.version, first.version + 1);
    let read = rows(&gateway, path(&["t"])).await.unwrap();
    assert_eq!(read, concat_batches(&read.schema(), [&batch(0, 10, 5), &batch(10, 5, 5), &batch(15, 5, 5)]).unwrap());
}

#[tokio::test]
async fn a_repeated_put_answers_the_same_and_writes_nothing() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    let command = put_command(&uuid(), r#","create":{}"#);
    let first = put(&gateway, command.clone(), &[batch(0, 10, 5)]).await;
    put(&gateway, path(&["t"]), &[batch(10, 1, 5)]).await;
    let again = put(&gateway, command, &[batch(0, 10, 5)]).await;
    assert_eq!(again, first);
    assert_eq!(count(&gateway, "t").await, 11);
}

#[tokio::test]
async fn an_overwriting_put_replaces_the_rows_once_also_when_repeated() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    put(&gateway, path(&["t"]), &[batch(0, 10, 5)]).await;
    let command = put_command(&uuid(), r#","mode":"WRITE_MODE_OVERWRITE""#);
    let first = put(&gateway, command.clone(), &[batch(0, 3, 5)]).await;
    assert_eq!(count(&gateway, "t").await, 3);
    assert_eq!(put(&gateway, command, &[batch(0, 3, 5)]).await, first);
    assert_eq!(count(&gateway, "t").await, 3);
}

#[tokio::test]
async fn a_put_of_a_schema_alone_makes_an_empty_table_and_of_no_rows_no_version() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    let made = put(&gateway, path(&["t"]), &[batch(0, 0, 5)]).await;
    assert_eq!((made.num_rows, count(&gateway, "t").await), (0, 0));
    assert_eq!(put(&gateway, path(&["t"]), &[batch(0, 0, 5)]).await.version, made.version);
}

#[tokio::test]
async fn a_put_without_create_needs_the_table() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    let refused = try_put(&gateway, put_command(&uuid(), ""), &[batch(0, 1, 5)]).await.unwrap_err();
    assert_eq!(reason(refused), "TABLE_NOT_FOUND");
}

#[tokio::test]
async fn rows_that_do_not_fit_the_table_are_refused_by_field_and_nothing_is_staged() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    put(&gateway, path(&["t"]), &[batch(0, 10, 5)]).await;
    let ids: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let wrong = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
    let refused = status(try_put(&gateway, path(&["t"]), &[wrong]).await.unwrap_err());
    assert_eq!(support::reason(&refused), "SCHEMA_MISMATCH");
    assert!(refused.message().contains("id"), "{}", refused.message());
    assert_eq!(count(&gateway, "t").await, 10);
}

#[tokio::test]
async fn a_stage_is_acknowledged_as_it_goes_and_ends_with_what_was_staged() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    let begin = v1::BeginWriteRequest {
        request_id: uuid(),
        table: Some(v1::Table { kind: Some(v1::table::Kind::Name(v1::TableName { parts: vec!["t".into()] })) }),
        schema: schema_to_ipc(&batch(0, 0, 5).schema()),
        create: Some(v1::CreateOptions::default()),
        ..Default::default()
    };
    let mut writes = WriteServiceClient::new(gateway.channel().await);
    let write = writes.begin_write(begin).await.unwrap().into_inner().write;
    let stage = v1::StageRequest { write: write.clone(), max_rows_per_file: 0 };
    let command = v1::PutCommand { kind: Some(v1::put_command::Kind::Stage(stage)) };
    let (sender, receiver) = mpsc::channel(1);
    let descriptor = FlightDescriptor::new_cmd(command.encode_to_vec());
    let messages = messages(descriptor, &batch(0, 0, 5).schema(), ReceiverStream::new(receiver).boxed());
    let mut acks = stock(&gateway).await.do_put(messages).await.unwrap();
    let ack = |result: Option<Result<PutResult, FlightError>>| {
        v1::StageAck::decode(result.expect("an ack").unwrap().app_metadata).unwrap()
    };

    sender.send(Ok(batch(0, 10, 5))).await.unwrap();
    let first = ack(soon("an ack", acks.next()).await);
    assert_eq!((first.num_rows, first.done, first.staged.is_empty()), (10, false, true));
    sender.send(Ok(batch(10, 5, 5))).await.unwrap();
    drop(sender);
    let mut last = ack(soon("an ack", acks.next()).await);
    while !last.done {
        last = ack(soon("an ack", acks.next()).await);
    }
    assert_eq!((last.num_rows, last.num_durable_rows, last.staged.is_empty()), (15, 15, false));
    assert!(last.num_bytes > first.num_bytes);
    assert!(soon("the end", acks.next()).await.is_none());
    assert_eq!(count(&gateway, "t").await, 0, "a stage shows nothing");

    let id = Some(v1::CommitId { epoch: uuid(), seq: 1 });
    let prepare = v1::PrepareCommitRequest { id, write, staged: vec![last.staged], ..Default::default() };
    let committable = writes.prepare_commit(prepare).await.unwrap().into_inner().committable;
    writes.commit(v1::CommitRequest { committable }).await.unwrap();
    assert_eq!(count(&gateway, "t").await, 15);
}

#[tokio::test]
async fn a_put_that_is_given_up_half_way_leaves_no_row() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    put(&gateway, path(&["t"]), &[batch(0, 1, 5)]).await;
    let (sender, receiver) = mpsc::channel(1);
    let messages = messages(path(&["t"]), &batch(0, 0, 5).schema(), ReceiverStream::new(receiver).boxed());
    // A client of its own, that ends with all its connections.
    let client = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let address = format!("http://{}", gateway.grpc);
    client.spawn(async move {
        let channel = tonic::transport::Endpoint::from_shared(address).unwrap().connect().await.unwrap();
        let answers = FlightClient::new(channel).do_put(messages).await.unwrap();
        answers.collect::<Vec<_>>().await;
    });
    permits(&gateway, "puts", 1).await;
    for first in 0..5 {
        sender.send(Ok(batch(first * 1000, 1000, 50))).await.unwrap();
    }
    client.shutdown_background();
    permits(&gateway, "puts", 0).await;
    assert_eq!(count(&gateway, "t").await, 1);
}

#[tokio::test]
async fn a_batch_of_64_mib_in_one_message_is_taken_and_a_larger_one_is_refused() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    let whole = EncodeOptions { target_bytes: usize::MAX / 2, max_bytes: usize::MAX, max_row_bytes: usize::MAX };
    for (bytes, fits) in [(64 << 20, true), (80 << 20, false)] {
        let values = BinaryArray::from_iter_values((0..bytes >> 20).map(|_| vec![1_u8; 1 << 20]));
        let large = RecordBatch::try_from_iter([("b", Arc::new(values) as ArrayRef)]).unwrap();
        let mut encoder = Encoder::new(&large.schema(), whole);
        let mut first = encoder.schema_message(None, Default::default()).into_flight_data();
        first.flight_descriptor = Some(path(&["t"]));
        let rows = encoder.encode(&large, Default::default()).unwrap();
        assert_eq!(rows.len(), 1);
        let second = rows.into_iter().next().unwrap().into_flight_data();
        let messages = stream::iter([first, second].map(Ok));
        let answer: Result<Vec<_>, _> =
            soon("the put", async { stock(&gateway).await.do_put(messages).await?.try_collect().await }).await;
        if fits {
            assert_eq!(v1::PutAck::decode(answer.unwrap()[0].app_metadata.clone()).unwrap().num_rows, 64);
        } else {
            let refused = answer.unwrap_err();
            assert!(refused.to_string().contains("message of 83886"), "its size is named: {refused}");
            assert!(refused.to_string().contains("limit of 69206016 bytes"), "so is the limit: {refused}");
            assert_eq!(reason(refused), "MESSAGE_TOO_LARGE");
        }
        assert_eq!(count(&gateway, "t").await, 64);
    }
}
