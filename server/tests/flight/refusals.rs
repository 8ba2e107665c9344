//! What strangers send: each is refused with a reason, nothing is half done, and the process stays up.

use super::*;

use bytes::Bytes;

async fn refused_info(gateway: &Gateway, descriptor: FlightDescriptor) -> String {
    reason(info(gateway, descriptor).await.unwrap_err())
}

async fn refused_put(gateway: &Gateway, data: Vec<FlightData>) -> String {
    let answer: Result<Vec<PutResult>, FlightError> = soon("the put", async {
        stock(gateway).await.do_put(stream::iter(data.into_iter().map(Ok))).await?.try_collect().await
    })
    .await;
    reason(answer.unwrap_err())
}

#[tokio::test]
async fn descriptors_and_tickets_of_strangers_are_refused_with_a_reason() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    put(&gateway, path(&["t"]), &[batch(0, 1, 5)]).await;
    for (descriptor, expected) in [
        (path(&[]), "INVALID_ARGUMENT"),
        (path(&["..", "etc"]), "INVALID_ARGUMENT"),
        (path(&["a/../../b"]), "INVALID_ARGUMENT"),
        (path(&[""]), "INVALID_ARGUMENT"),
        (FlightDescriptor::default(), "INVALID_ARGUMENT"),
        (json("{"), "INVALID_ARGUMENT"),
        (json("{}"), "INVALID_ARGUMENT"),
        (json("select 1"), "INVALID_ARGUMENT"),
        (json(r#"{"table":{"uri":"/etc"}}"#), "PERMISSION_DENIED"),
        (json(r#"{"table":{"uri":"s3://elsewhere/x"}}"#), "PERMISSION_DENIED"),
        (json(r#"{"table":{"uri":"ftp://elsewhere/x"}}"#), "PERMISSION_DENIED"),
        (
            json(r#"{"table":{"name":{"parts":["t"]}},"projection":{"columns":[{"path":["nope"]}]}}"#),
            "COLUMN_NOT_FOUND",
        ),
        (json(r#"{"table":{"name":{"parts":["t"]}},"version":{"version":"99"}}"#), "TABLE_VERSION_NOT_FOUND"),
    ] {
        let told = refused_info(&gateway, descriptor.clone()).await;
        assert_eq!(told, expected, "{descriptor}");
    }
    for ticket in [&b""[..], b"junk", b"{}", b"\xff\xff\xff"] {
        let refused = get(&gateway, Ticket::new(ticket.to_vec())).await.unwrap_err();
        assert_eq!(reason(refused), "INVALID_ARGUMENT", "{ticket:?}");
    }
    assert_eq!(rows(&gateway, path(&["t"])).await.unwrap().num_rows(), 1);
}

#[tokio::test]
async fn a_filter_that_is_nested_10_000_deep_is_refused_in_json_and_protobuf() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    put(&gateway, path(&["t"]), &[batch(0, 1, 5)]).await;
    let open = r#"{"call":{"operator":"OPERATOR_NOT","arguments":["#.repeat(10_000);
    let close = "]}}".repeat(10_000);
    let deep = format!(r#"{{"table":{{"name":{{"parts":["t"]}}}},"filter":{{"expression":{open}{{}}{close}}}}}"#);
    assert_eq!(refused_info(&gateway, json(deep)).await, "INVALID_ARGUMENT");

    // Encoding the real thing would recurse, so the nested messages are wrapped from the inside out.
    let wrap = |tag: u8, inner: &[u8]| {
        let mut out = vec![tag];
        prost::encoding::encode_varint(inner.len() as u64, &mut out);
        out.extend_from_slice(inner);
        out
    };
    let mut expression = Vec::new();
    for _ in 0..10_000 {
        expression = wrap(0x1a, &wrap(0x12, &expression));
    }
    let mut command = br"".to_vec();
    command.extend(wrap(0x22, &wrap(0x0a, &expression)));
    assert_eq!(refused_info(&gateway, FlightDescriptor::new_cmd(command)).await, "INVALID_ARGUMENT");
    let sql = format!(
        r#"{{"table":{{"name":{{"parts":["t"]}}}},"filter":{{"sql":"{}id{}"}}}}"#,
        "(".repeat(10_000),
        ")".repeat(10_000)
    );
    assert_eq!(refused_info(&gateway, json(sql)).await, "INVALID_ARGUMENT");
    assert_eq!(rows(&gateway, path(&["t"])).await.unwrap().num_rows(), 1);
}

#[tokio::test]
async fn puts_of_strangers_are_refused_with_a_reason_and_nothing_is_staged() {
    let gateway = Gateway::start_with(LISTEN, &[]).await;
    put(&gateway, path(&["t"]), &[batch(0, 1, 5)]).await;
    let good: Vec<FlightData> =
        messages(path(&["t"]), &batch(0, 0, 5).schema(), stream::iter([Ok(batch(1, 5, 5))]).boxed())
            .try_collect()
            .await
            .unwrap();
    let junk = Bytes::from_static(b"this is no arrow message");
    let described = |descriptor| FlightData { flight_descriptor: Some(descriptor), ..good[0].clone() };
    for (what, data, expected) in [
        ("no message", vec![], "INVALID_ARGUMENT"),
        ("no descriptor", vec![FlightData { flight_descriptor: None, ..good[0].clone() }], "INVALID_ARGUMENT"),
        (
            "rows first",
            vec![FlightData { flight_descriptor: Some(path(&["t"])), ..good[1].clone() }],
            "INVALID_ARGUMENT",
        ),
        ("a schema of junk", vec![FlightData { data_header: junk.clone(), ..good[0].clone() }], "CORRUPT_DATA"),
        (
            "a header of junk",
            vec![good[0].clone(), FlightData { data_header: junk.clone(), ..good[1].clone() }],
            "CORRUPT_DATA",
        ),
        (
            "a body that is cut",
            vec![good[0].clone(), FlightData { data_body: Bytes::new(), ..good[1].clone() }],
            "CORRUPT_DATA",
        ),
        (
            "half of the rows",
            vec![good[0].clone(), good[1].clone(), FlightData { data_header: junk, ..good[1].clone() }],
            "CORRUPT_DATA",
        ),
        ("traversal", vec![described(path(&["..", "x"]))], "INVALID_ARGUMENT"),
        ("an empty command", vec![described(json("{}"))], "INVALID_ARGUMENT"),
        ("a handle of junk", vec![described(json(r#"{"stage":{"write":"AAAA"}}"#)), good[1].clone()], "CORRUPT_DATA"),
        (
            "no uuid",
            vec![described(json(r#"{"put":{"table":{"name":{"parts":["t"]}},"requestId":"1"}}"#))],
            "INVALID_ARGUMENT",
        ),
    ] {
        assert_eq!(refused_put(&gateway, data).await, expected, "{what}");
    }
    permits(&gateway, "puts", 0).await;
    assert_eq!(rows(&gateway, path(&["t"])).await.unwrap().num_rows(), 1);
    let mut client = stock(&gateway).await;
    let action = arrow_flight::Action::new("CreateIndex", "");
    let refused = client.do_action(action).await.map(drop).unwrap_err();
    assert_eq!(reason(refused), "UNSUPPORTED");
    let mut answers = client.do_exchange(stream::iter(good.into_iter().map(Ok))).await.unwrap();
    let refused = answers.next().await.unwrap().map(drop).unwrap_err();
    assert_eq!(reason(refused), "INVALID_ARGUMENT", "rows to put are no queries");
}
