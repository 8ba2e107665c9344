use super::*;

use arrow_array::BinaryArray;
use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;

fn ids(batch: &RecordBatch) -> Vec<i64> {
    batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec()
}

#[tokio::test]
async fn the_stock_client_reads_back_what_it_put_by_path() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    let batch = batch(0, 20_000, 300);
    put(&gateway, path(&["words"]), std::slice::from_ref(&batch)).await;
    let plan = info(&gateway, path(&["words"])).await.unwrap();
    assert_eq!(plan.total_records, 20_000);
    assert!(
        plan.endpoint.iter().all(|endpoint| endpoint.location.is_empty()),
        "an endpoint is read where it was planned"
    );
    let told = v1::ScanPlan::decode(plan.app_metadata).unwrap();
    assert_eq!(told.num_rows, 20_000);
    assert_eq!(rows(&gateway, path(&["words"])).await.unwrap(), batch);
}

#[tokio::test]
async fn all_tickets_of_a_plan_read_its_version_whatever_is_committed_meanwhile() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    put(&gateway, path(&["t"]), &[batch(0, 100, 5)]).await;
    let plan = info(&gateway, path(&["t"])).await.unwrap();
    put(&gateway, path(&["t"]), &[batch(100, 50, 5)]).await;
    let mut read = Vec::new();
    for endpoint in plan.endpoint {
        read.extend(ids(&get(&gateway, endpoint.ticket.unwrap()).await.unwrap()));
    }
    assert_eq!(read, (0..100).collect::<Vec<_>>());
    assert_eq!(rows(&gateway, path(&["t"])).await.unwrap().num_rows(), 150);
}

#[tokio::test]
async fn a_json_command_projects_filters_and_limits() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    put(&gateway, path(&["t"]), &[batch(0, 1000, 5)]).await;
    let table = r#""table":{"name":{"parts":["t"]}}"#;
    let projected =
        format!(r#"{{{table},"projection":{{"columns":[{{"path":["id"]}}]}},"filter":{{"sql":"id >= 990"}}}}"#);
    let read = rows(&gateway, json(projected)).await.unwrap();
    assert_eq!(read.num_columns(), 1);
    assert_eq!(ids(&read), (990..1000).collect::<Vec<_>>());
    let limited = rows(&gateway, json(format!(r#"{{{table},"limit":"7"}}"#))).await.unwrap();
    assert_eq!(limited.num_rows(), 7);
    let plan = info(&gateway, json(format!(r#"{{{table},"filter":{{"sql":"id > 1"}}}}"#))).await.unwrap();
    assert_eq!(plan.total_records, -1, "how many rows a filter keeps is not known before");
}

#[tokio::test]
async fn a_limit_of_0_gives_the_schema_and_no_row() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    put(&gateway, path(&["t"]), &[batch(0, 10, 5)]).await;
    let read = rows(&gateway, json(r#"{"table":{"name":{"parts":["t"]}},"limit":0}"#)).await.unwrap();
    assert_eq!((read.num_rows(), read.num_columns()), (0, 2));
}

#[tokio::test]
async fn a_ticket_with_an_offset_goes_on_where_a_reader_stopped() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    put(&gateway, path(&["t"]), &[batch(0, 1000, 5)]).await;
    let plan = info(&gateway, path(&["t"])).await.unwrap();
    let ticket = plan.endpoint[0].ticket.clone().unwrap();
    let mut resumed = v1::ScanTicket::decode(ticket.ticket).unwrap();
    resumed.row_offset = 900;
    let read = get(&gateway, Ticket::new(resumed.encode_to_vec())).await.unwrap();
    assert_eq!(ids(&read), (900..1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_schema_is_told_without_a_scan_and_tables_are_listed() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    let batch = batch(0, 3, 5);
    for name in ["b", "a"] {
        put(&gateway, path(&[name]), std::slice::from_ref(&batch)).await;
    }
    let mut client = stock(&gateway).await;
    assert_eq!(&client.get_schema(path(&["a"])).await.unwrap(), batch.schema().as_ref());
    let listed: Vec<FlightInfo> = client.list_flights("").await.unwrap().try_collect().await.unwrap();
    let names: Vec<_> = listed.iter().map(|info| info.flight_descriptor.clone().unwrap().path).collect();
    assert_eq!(names, [["a"], ["b"]]);
    assert!(listed.iter().all(|info| info.total_records == 3));
    let missing = client.list_flights("nowhere").await.unwrap().try_collect::<Vec<_>>().await.unwrap_err();
    assert_eq!(reason(missing), "NAMESPACE_NOT_FOUND");
    assert!(client.list_actions().await.unwrap().try_collect::<Vec<_>>().await.unwrap().is_empty());
}

#[tokio::test]
async fn rows_of_8_mib_are_read() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    let values: Vec<Vec<u8>> = (0..3_u8).map(|i| vec![i; 8 << 20]).collect();
    let wide =
        RecordBatch::try_from_iter([("wide", Arc::new(BinaryArray::from_iter_values(&values)) as ArrayRef)]).unwrap();
    for row in 0..3 {
        put(&gateway, path(&["wide"]), &[wide.slice(row, 1)]).await;
    }
    assert!(rows(&gateway, path(&["wide"])).await.unwrap() == wide);
}

#[tokio::test]
async fn a_row_above_the_limit_is_an_error_that_names_its_size() {
    let gateway = Gateway::start_with(
        LISTEN,
        &[("LANCE_GATEWAY_SCAN_MAX_ROW_BYTES", "1MiB"), ("LANCE_GATEWAY_SCAN_BATCH_BYTES", "64KiB")],
    )
    .await;
    put(&gateway, path(&["wide"]), &[batch(0, 1, 2 << 20)]).await;
    let refused = status(rows(&gateway, path(&["wide"])).await.unwrap_err());
    assert_eq!(support::reason(&refused), "ROW_TOO_LARGE");
    assert!(refused.message().contains("1048576") && refused.message().contains("2097"), "{}", refused.message());
}

#[tokio::test]
async fn a_table_that_is_missing_is_told_by_plan_and_scan() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    assert_eq!(reason(info(&gateway, path(&["nothing"])).await.unwrap_err()), "TABLE_NOT_FOUND");
    let name = v1::TableName { parts: vec!["nothing".into()] };
    let ticket = v1::ScanTicket {
        table: Some(v1::Table { kind: Some(v1::table::Kind::Name(name)) }),
        version: 1,
        fragments: vec![v1::FragmentRange::default()],
        ..Default::default()
    };
    let refused = get(&gateway, Ticket::new(ticket.encode_to_vec())).await.unwrap_err();
    assert_eq!(reason(refused), "TABLE_NOT_FOUND");
}
