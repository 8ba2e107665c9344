//! Scans: plans, streams, and what happens when a stream breaks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use fake::{FakeGateway, Fault, overloaded, quick, refusal};
use futures::{StreamExt, TryStreamExt};
use lance_gateway_client::{Client, ErrorKind, Reason, Split, col, lit};

/// Batches of ten rows: 0 to 9, 10 to 19, ...
fn batches(n: i64) -> Vec<RecordBatch> {
    (0..n)
        .map(|batch| {
            let id = Int64Array::from_iter_values(batch * 10..(batch + 1) * 10);
            let word = StringArray::from_iter_values((batch * 10..(batch + 1) * 10).map(|id| format!("word {id}")));
            RecordBatch::try_from_iter([("id", Arc::new(id) as ArrayRef), ("word", Arc::new(word))]).unwrap()
        })
        .collect()
}

async fn gateway(n: i64) -> (FakeGateway, Client) {
    let gateway = FakeGateway::start().await;
    let batches = batches(n);
    gateway.add_table("t", &batches[0].schema(), vec![batches]);
    let client = gateway.client().await;
    (gateway, client)
}

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[tokio::test]
async fn all_rows_of_all_splits_come_in_order() {
    let (gateway, client) = gateway(7).await;
    let plan = client.scan("t").plan().await.unwrap();
    assert_eq!((plan.version(), plan.num_rows(), plan.splits().len()), (2, 70, 4));
    assert_eq!((plan.splits()[0].num_rows(), plan.splits()[3].num_rows()), (20, 10));
    let rows = plan.stream();
    assert_eq!(rows.schema().fields().len(), 2);
    let rows: Vec<_> = rows.try_collect().await.unwrap();
    assert_eq!(ids(&rows), (0..70).collect::<Vec<_>>());
    assert_eq!(rows[6].column(1).as_string::<i32>().value(9), "word 69");
    assert_eq!(gateway.calls("DoGet").len(), 4);
}

#[tokio::test]
async fn a_scan_carries_columns_filter_limit_and_version() {
    let (gateway, client) = gateway(2).await;
    let filter = col("id").gt_eq(lit(0)).and(col(["s", "x"]).is_null());
    let plan = client.scan("t").columns(["word"]).filter(filter).limit(3).version(2).plan().await.unwrap();
    assert_eq!(plan.schema().field(0).name(), "word");
    let rows: Vec<_> = plan.stream().try_collect().await.unwrap();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    let asked = &gateway.calls("GetFlightInfo")[0].detail;
    for part in ["limit: Some(3)", r#"path: ["s", "x"]"#, r#"path: ["word"]"#, "Version(2)"] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
}

#[tokio::test]
async fn a_limit_of_zero_is_the_schema_and_no_row() {
    let (_gateway, client) = gateway(2).await;
    let plan = client.scan("t").limit(0).plan().await.unwrap();
    assert_eq!(plan.schema().fields().len(), 2);
    assert!(plan.stream().next().await.is_none());
}

#[tokio::test]
async fn rows_without_columns_are_counted() {
    let (_gateway, client) = gateway(3).await;
    let rows: Vec<_> =
        client.scan("t").columns([] as [&str; 0]).plan().await.unwrap().stream().try_collect().await.unwrap();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 30);
    assert_eq!(rows[0].num_columns(), 0);
}

#[tokio::test]
async fn an_unknown_column_is_an_error_and_not_no_rows() {
    let (_gateway, client) = gateway(1).await;
    let error = client.scan("t").columns(["nope"]).plan().await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Refused, Some(Reason::ColumnNotFound)));
}

#[tokio::test]
async fn a_stream_that_breaks_goes_on_behind_the_last_row_that_came() {
    let (gateway, client) = gateway(4).await;
    gateway.fail_next("DoGet", Fault::BreakAfter(1));
    gateway.fail_next("DoGet", Fault::BreakAfter(0));
    let plan = client.scan("t").plan().await.unwrap();
    let rows: Vec<_> = client.read(&plan.splits()[0]).stream().try_collect().await.unwrap();
    assert_eq!(ids(&rows), (0..20).collect::<Vec<_>>());
    let asked: Vec<_> = gateway.calls("DoGet").into_iter().map(|call| call.detail).collect();
    assert_eq!(asked, ["fragments 2 offset 0", "fragments 2 offset 10", "fragments 2 offset 10"]);
}

#[tokio::test]
async fn a_scan_over_many_splits_survives_a_break_in_each() {
    let (gateway, client) = gateway(8).await;
    for _ in 0..4 {
        gateway.fail_next("DoGet", Fault::BreakAfter(1));
    }
    let rows: Vec<_> = client.scan("t").plan().await.unwrap().stream().try_collect().await.unwrap();
    assert_eq!(ids(&rows), (0..80).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_limited_stream_that_breaks_keeps_its_limit() {
    let (gateway, client) = gateway(4).await;
    gateway.fail_next("DoGet", Fault::BreakAfter(1));
    let rows: Vec<_> = client.scan("t").limit(25).plan().await.unwrap().stream().try_collect().await.unwrap();
    assert_eq!(ids(&rows), (0..25).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_stream_that_makes_no_progress_is_given_up() {
    let (gateway, client) = gateway(2).await;
    for _ in 0..10 {
        gateway.fail_next("DoGet", Fault::BreakAfter(0));
    }
    let mut rows = client.scan("t").plan().await.unwrap().stream();
    let error = rows.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.is_retriable()), (ErrorKind::Unavailable, true));
    assert!(rows.next().await.is_none(), "nothing follows an error");
    assert_eq!(gateway.calls("DoGet").len(), 4);
}

#[tokio::test]
async fn a_refused_stream_is_opened_later_or_never_as_the_reason_says() {
    let (gateway, client) = gateway(1).await;
    gateway.fail_next("DoGet", Fault::Refuse(overloaded(Duration::from_millis(1))));
    let plan = client.scan("t").plan().await.unwrap();
    let rows: Vec<_> = plan.clone().stream().try_collect().await.unwrap();
    assert_eq!(ids(&rows).len(), 10);

    gateway.fail_next("DoGet", Fault::Refuse(refusal(Reason::TableVersionNotFound, "cleaned up")));
    let error = plan.stream().next().await.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TableVersionNotFound));
    assert_eq!(gateway.calls("DoGet").len(), 3);
}

#[tokio::test]
async fn a_ticket_is_read_elsewhere_and_from_any_row() {
    let (gateway, client) = gateway(2).await;
    let plan = client.scan("t").plan().await.unwrap();
    let ticket = plan.splits()[0].ticket().clone();
    let elsewhere = Client::connect(&gateway.uri, quick()).await.unwrap();
    let rows: Vec<_> = elsewhere.read(&Split::from_ticket(ticket)).row_offset(13).stream().try_collect().await.unwrap();
    assert_eq!(ids(&rows), (13..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_stream_that_stays_silent_ends_at_the_idle_limit() {
    let (gateway, patient) = gateway(1).await;
    let plan = patient.scan("t").plan().await.unwrap();
    let mut options = quick();
    options.request_timeout = Duration::from_millis(50);
    options.retry.max_attempts = 1;
    let client = Client::connect(&gateway.uri, options).await.unwrap();
    gateway.fail_next("DoGet", Fault::Hang);
    let error = client.read(&plan.splits()[0]).stream().next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_row_of_eight_mebibytes_comes_through() {
    let gateway = FakeGateway::start().await;
    let wide = StringArray::from_iter_values(["x".repeat(8 << 20)]);
    let batch = RecordBatch::try_from_iter([("s", Arc::new(wide) as ArrayRef)]).unwrap();
    gateway.add_table("wide", &batch.schema(), vec![vec![batch]]);
    let client = gateway.client().await;
    let rows: Vec<_> = client.scan("wide").plan().await.unwrap().stream().try_collect().await.unwrap();
    assert_eq!(rows[0].column(0).as_string::<i32>().value(0).len(), 8 << 20);
}

#[tokio::test]
async fn a_message_above_the_limit_is_an_error_that_names_both() {
    let (gateway, _) = gateway(1).await;
    let mut options = quick();
    options.max_message_bytes = 1024;
    let client = Client::connect(&gateway.uri, options).await.unwrap();
    let wide = StringArray::from_iter_values(["x".repeat(5000)]);
    let batch = RecordBatch::try_from_iter([("s", Arc::new(wide) as ArrayRef)]).unwrap();
    gateway.add_table("wide", &batch.schema(), vec![vec![batch]]);
    let error = client.scan("wide").plan().await.unwrap().stream().next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.is_retriable()), (ErrorKind::Protocol, false));
    assert!(error.message().contains("1024"), "{error}");
}
