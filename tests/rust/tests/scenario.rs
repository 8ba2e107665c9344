//! The scenario that Java and Python run, too, from the Rust client against a real gateway.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::{TryStreamExt, stream};
use lance_gateway_client::{
    BeginOptions, Client, ClientOptions, CommitId, CommitState, CreateOptions, FullTextQuery, HybridQuery, LookedUp,
    Metric, PutOptions, Reason, RowMetadata, Scan, TextQuery, Vector, VectorQuery, VersionSelector, col, lit,
};
use tempfile::TempDir;

/// A gateway that ends with the test.
struct Gateway {
    child: Child,
    uri: String,
    admin: String,
    _warehouse: TempDir,
}

impl Gateway {
    fn start() -> Self {
        Self::start_with(&[])
    }

    /// With these names in its environment.
    fn start_with(environment: &[(&str, &str)]) -> Self {
        let warehouse = TempDir::new().unwrap();
        let mut child = Command::new(binary())
            .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--warehouse"])
            .arg(warehouse.path())
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.by_ref().map(Result::unwrap).find(|l| l.contains(" ready: ")).expect("the ready line");
        // The pipe must stay open: a gateway that prints into a closed one would fail.
        std::thread::spawn(move || lines.for_each(drop));
        let place = |name: &str| {
            let address = ready.split(name).nth(1).and_then(|rest| rest.split([',', ' ']).next());
            address.unwrap().trim().to_owned()
        };
        Self { child, uri: format!("grpc://{}", place("grpc ")), admin: place("admin "), _warehouse: warehouse }
    }

    /// Streams that read.
    fn streams(&self) -> u64 {
        let mut admin = TcpStream::connect(&self.admin).unwrap();
        admin.write_all(b"GET /metrics HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        admin.read_to_string(&mut page).unwrap();
        let mut lines = page.lines().filter(|l| l.starts_with("lance_gateway_permits_used") && l.contains("\"scans\""));
        lines.next().and_then(|line| line.split(' ').next_back()).unwrap().parse().unwrap()
    }

    async fn client(&self) -> Client {
        Client::connect(&self.uri, ClientOptions::default()).await.unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Cargo builds it into the folder above that of the tests.
fn binary() -> PathBuf {
    let path = std::env::current_exe().unwrap().parent().and_then(|p| p.parent()).unwrap().join("lance-gateway");
    assert!(path.exists(), "{} is missing: cargo build --workspace --bins", path.display());
    path
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("user-id", DataType::Utf8, true),
        Field::new("a.b", DataType::Int64, true),
    ]))
}

fn rows(ids: std::ops::Range<i64>) -> RecordBatch {
    let words: Vec<String> = ids.clone().map(|i| format!("w{i}")).collect();
    let columns: Vec<arrow_array::ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(ids.clone())),
        Arc::new(StringArray::from(words)),
        Arc::new(Int64Array::from_iter_values(ids.map(|i| i % 2))),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn batches(ids: std::ops::Range<i64>) -> impl futures::Stream<Item = Result<RecordBatch, std::io::Error>> {
    stream::iter([Ok(rows(ids))])
}

async fn ids(scan: Scan) -> Vec<i64> {
    let found: Vec<RecordBatch> = scan.plan().await.unwrap().stream().try_collect().await.unwrap();
    let mut ids: Vec<i64> = found
        .iter()
        .flat_map(|b| b.column_by_name("id").unwrap().as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec())
        .collect();
    ids.sort_unstable();
    ids
}

fn points(ids: std::ops::Range<i64>) -> RecordBatch {
    let vectors = ids.clone().map(|id| Some([Some(id as f32), Some(1.0)]));
    let vectors: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("number w{id}"))));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    RecordBatch::try_from_iter([("id", ids), ("v", vectors), ("t", words)]).unwrap()
}

fn found_ids(rows: &RecordBatch) -> Vec<i64> {
    rows.column_by_name("id").unwrap().as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec()
}

#[tokio::test]
async fn vectors_texts_and_both_are_found_alone_and_many_on_one_stream() {
    let gateway = Gateway::start();
    let client = gateway.client().await;
    let options = PutOptions { create: Some(CreateOptions::default()), ..PutOptions::default() };
    let batch = points(0..50);
    let rows = stream::iter([Ok::<_, std::io::Error>(batch.clone())]);
    client.put("points", &batch.schema(), rows, &options).await.unwrap();

    let near = VectorQuery::new("v", vec![7.2_f32, 1.0]).k(3).metric(Metric::L2);
    let found = client.search("points", near.clone()).filter(col("id").not_eq(lit(7_i64))).columns(["id"]).run().await;
    let found = found.unwrap();
    assert_eq!(found_ids(&found.rows), [8, 6, 9]);
    assert_eq!((found.info.metric, found.info.num_rows, found.rows.num_columns()), (Some(Metric::L2), 3, 2));
    assert_eq!(found.info.vector.unwrap().num_unindexed_rows, 50);
    let text = FullTextQuery::new(TextQuery::all("t", "number w9"));
    assert_eq!(found_ids(&client.search("points", text.clone()).run().await.unwrap().rows), [9]);
    let both = HybridQuery::new(near, text).weights(0.5, 1.0).k(2);
    assert_eq!(found_ids(&client.search("points", both).run().await.unwrap().rows), [9, 7]);
    let wrong = VectorQuery::new("v", Vector::from(vec![1.0_f64])).k(3);
    let refused = client.search("points", wrong).run().await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::InvalidArgument));

    let vectors = [vec![Some(3.0), Some(1.0)], vec![Some(1.0)], vec![Some(49.0), Some(1.0)]].map(Some);
    let vectors: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(vectors));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let queries = RecordBatch::try_from_iter([("id", names), ("vector", vectors)]).unwrap();
    let (schema, answers) = client
        .search("points", VectorQuery::of("v").k(1))
        .columns(["id"])
        .run_many(&queries.schema(), stream::iter([Ok::<_, std::io::Error>(queries.clone())]))
        .await
        .unwrap();
    assert_eq!(schema.fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), ["_query", "id", "_distance"]);
    let mut answers: Vec<_> = answers.try_collect().await.unwrap();
    answers.sort_by_key(|answer| answer.query);
    let [a, b, c] = <[_; 3]>::try_from(answers).unwrap();
    assert_eq!(found_ids(&a.found.unwrap().rows), [3]);
    assert_eq!(b.found.unwrap_err().reason(), Some(Reason::InvalidArgument));
    assert_eq!(found_ids(&c.found.unwrap().rows), [49]);

    let broken = stream::iter([Ok(queries.clone()), Err(std::io::Error::other("the disk is gone"))]);
    let search = client.search("points", VectorQuery::of("v").k(1));
    let failed = match search.run_many(&queries.schema(), broken).await {
        Ok((_, answers)) => answers.try_collect::<Vec<_>>().await.unwrap_err(),
        Err(failed) => failed,
    };
    assert!(failed.message().contains("the disk is gone"), "{failed}");
}

/// Pairs of a key and the id of a row that it found.
fn pairs(found: &LookedUp) -> Vec<(u64, i64)> {
    let queries = found.rows.column(0).as_any().downcast_ref::<UInt64Array>().unwrap().values();
    let mut pairs: Vec<_> = queries.iter().copied().zip(found_ids(&found.rows)).collect();
    pairs.sort_unstable();
    pairs
}

#[tokio::test]
async fn many_lookups_share_a_stream_which_is_opened_anew_when_it_breaks() {
    let gateway = Gateway::start_with(&[("LANCE_GATEWAY_WRITE_IDLE_TIMEOUT", "500ms")]);
    let client = gateway.client().await;
    let options = PutOptions { create: Some(CreateOptions::default()), ..PutOptions::default() };
    let batch = points(0..50);
    let rows = || stream::iter([Ok::<_, std::io::Error>(batch.clone())]);
    client.put("points", &batch.schema(), rows(), &options).await.unwrap();

    let keys = |ids: Vec<Option<i32>>| {
        RecordBatch::try_from_iter_with_nullable([("k", Arc::new(Int32Array::from(ids)) as ArrayRef, true)]).unwrap()
    };
    let schema = keys(vec![]).schema();
    let lookups = client.lookup("points", ["id"]).filter(col("id").not_eq(lit(7_i64))).columns(["id"]);
    let lookups = lookups.open(&schema).await.unwrap();
    let names: Vec<_> = lookups.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["_query", "id"]);
    let find = |ids: Vec<Option<i32>>| {
        let (lookups, keys) = (lookups.clone(), keys(ids));
        async move { lookups.find(&keys).await.map(|found| (pairs(&found), found.version)) }
    };
    let all = (0..30).map(|n| find(vec![Some(n), None, Some(50 + n), Some(n)]));
    for (n, found) in futures::future::join_all(all).await.into_iter().enumerate() {
        let wanted = if n == 7 { vec![] } else { vec![(0, n as i64), (3, n as i64)] };
        assert_eq!(found.unwrap(), (wanted, 2));
    }
    assert_eq!(find(vec![]).await.unwrap().0, []);

    client.put("points", &batch.schema(), rows(), &PutOptions::default()).await.unwrap();
    // The gateway ends a stream that sends nothing.
    while gateway.streams() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(find(vec![Some(8)]).await.unwrap(), (vec![(0, 8), (0, 8)], 3));

    let text = RecordBatch::try_from_iter([("k", Arc::new(StringArray::from(vec!["1"])) as ArrayRef)]).unwrap();
    let refused = lookups.find(&text).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::SchemaMismatch));
    let refused = client.lookup("points", ["id"]).open(&text.schema()).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::InvalidArgument));
    client.drop_table("points").await.unwrap();
    assert_eq!(find(vec![Some(8)]).await.unwrap_err().reason(), Some(Reason::TableNotFound));
}

#[tokio::test]
async fn rows_put_in_one_call_are_read_filtered_and_limited() {
    let gateway = Gateway::start();
    let client = gateway.client().await;
    let options = PutOptions { create: Some(CreateOptions::default()), ..PutOptions::default() };
    let put = client.put("words", &schema(), batches(0..100), &options).await.unwrap();
    assert_eq!(put.num_rows, 100);

    assert_eq!(ids(client.scan("words")).await, (0..100).collect::<Vec<_>>());
    let odd = client.scan("words").filter(col("a.b").eq(lit(1_i64)).and(col("id").lt(lit(6_i64))));
    assert_eq!(ids(odd).await, [1, 3, 5]);
    let named = client.scan("words").columns(["id"]).filter(col("user-id").eq(lit("w42")));
    assert_eq!(ids(named).await, [42]);
    assert_eq!(ids(client.scan("words").limit(10)).await.len(), 10);
    assert!(ids(client.scan("words").limit(0)).await.is_empty());
}

#[tokio::test]
async fn a_checkpoint_from_two_writers_becomes_visible_once() {
    let gateway = Gateway::start();
    let client = gateway.client().await;
    let begin =
        BeginOptions { schema: Some(schema()), create: Some(CreateOptions::default()), ..BeginOptions::default() };
    let write = client.begin_write("words", &begin).await.unwrap();
    let mut staged = Vec::new();
    for ids in [0..10, 10..20] {
        let mut stage = write.stage();
        stage.write(&rows(ids)).await.unwrap();
        staged.push(stage.finish().await.unwrap());
    }
    let id = CommitId::first_of_new_epoch();
    let committable = write.prepare(id.clone(), staged, &HashMap::new()).await.unwrap();
    assert_eq!(client.count_rows("words", VersionSelector::Latest, None).await.unwrap().num_rows, 0);
    assert_eq!(client.get_commit("words", &id).await.unwrap(), CommitState::NotCommitted);

    let first = client.commit(&committable).await.unwrap();
    let again = client.commit(&committable).await.unwrap();
    assert!(!first.already_committed && again.already_committed);
    assert_eq!(first.version, again.version);
    assert_eq!(client.get_commit("words", &id).await.unwrap(), CommitState::Committed(first.version));
    assert_eq!(ids(client.scan("words")).await, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_is_wrong_is_told_by_its_reason() {
    let gateway = Gateway::start();
    let client = gateway.client().await;
    let missing = client.scan("nothing").plan().await.unwrap_err();
    assert_eq!(missing.reason(), Some(Reason::TableNotFound));
    assert!(!missing.is_retriable());

    let options = PutOptions { create: Some(CreateOptions::default()), ..PutOptions::default() };
    client.put("words", &schema(), batches(0..1), &options).await.unwrap();
    let unknown = client.scan("words").columns(["nope"]).plan().await.unwrap_err();
    assert_eq!(unknown.reason(), Some(Reason::ColumnNotFound));
    assert!(unknown.to_string().contains("nope"), "{unknown}");
}

async fn put(client: &Client, table: &str, batch: &RecordBatch) {
    let options = PutOptions { create: Some(CreateOptions::default()), ..PutOptions::default() };
    let batches = stream::iter([Ok::<_, std::io::Error>(batch.clone())]);
    client.put(table, &batch.schema(), batches, &options).await.unwrap();
}

async fn read(scan: Scan) -> RecordBatch {
    let plan = scan.plan().await.unwrap();
    let schema = plan.schema().clone();
    let batches: Vec<RecordBatch> = plan.stream().try_collect().await.unwrap();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

#[tokio::test]
async fn every_type_comes_back_as_it_went_in() {
    let gateway = Gateway::start();
    let client = gateway.client().await;
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for entry in [Some(7), None, None] {
        if let Some(value) = entry {
            maps.keys().append_value("k");
            maps.values().append_value(value);
        }
        maps.append(entry.is_some()).unwrap();
    }
    let structs = StructArray::new(
        vec![Field::new("a", DataType::Int32, true)].into(),
        vec![Arc::new(Int32Array::from(vec![Some(1), None, None]))],
        Some(vec![true, false, true].into()),
    );
    let vectors = [Some([Some(1.0), Some(2.0)]), None, Some([Some(3.0), None])];
    let columns: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(i8::MAX)])),
        Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(i16::MAX)])),
        Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX)])),
        Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)])),
        Arc::new(Float32Array::from(vec![Some(f32::INFINITY), None, Some(-0.0)])),
        Arc::new(Float64Array::from(vec![Some(f64::MIN), None, Some(f64::EPSILON)])),
        Arc::new(
            Decimal128Array::from(vec![Some(-1), None, Some(10_i128.pow(37))]).with_precision_and_scale(38, 4).unwrap(),
        ),
        Arc::new(StringArray::from(vec![Some(""), None, Some("\u{e4}\u{1f600}")])),
        Arc::new(LargeStringArray::from(vec![Some(""), None, Some("x")])),
        Arc::new(BinaryArray::from(vec![Some(&b""[..]), None, Some(b"\x00\xff")])),
        Arc::new(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some([0, 1]), None, Some([2, 3])].into_iter(), 2)
                .unwrap(),
        ),
        Arc::new(Date32Array::from(vec![Some(-1), None, Some(19_723)])),
        Arc::new(Time32MillisecondArray::from(vec![Some(0), None, Some(86_399_999)])),
        Arc::new(Time64MicrosecondArray::from(vec![Some(0), None, Some(1)])),
        Arc::new(TimestampMicrosecondArray::from(vec![Some(-500_000), None, Some(1)])),
        Arc::new(TimestampNanosecondArray::from(vec![Some(-1), None, Some(1)]).with_timezone("UTC")),
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])])),
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2)),
        Arc::new(structs),
        Arc::new(maps.finish()),
    ];
    let named = columns.into_iter().enumerate().map(|(i, array)| (format!("c{i}"), array, true));
    let rows = RecordBatch::try_from_iter_with_nullable(named).unwrap();
    put(&client, "types", &rows).await;
    let came = read(client.scan("types")).await;
    for (i, (came, went)) in came.columns().iter().zip(rows.columns()).enumerate() {
        assert_eq!(came, went, "c{i}");
    }
    assert_eq!(came.num_columns(), rows.num_columns());
}

#[tokio::test]
async fn odd_names_are_columns_like_others_and_lance_tells_the_id_and_version_of_rows() {
    let gateway = Gateway::start();
    let client = gateway.client().await;
    let column = |values: [i64; 3]| -> ArrayRef { Arc::new(Int64Array::from_iter_values(values)) };
    let names = ["PartyAbbrev", "user-id", "a.b", "select"];
    let columns = names.iter().zip(0..).map(|(name, i)| (*name, column([i, i + 10, i + 20])));
    put(&client, "odd", &RecordBatch::try_from_iter(columns).unwrap()).await;
    for (name, i) in names.into_iter().zip(0..) {
        let found = read(client.scan("odd").columns([name]).filter(col(name).eq(lit(i + 10)))).await;
        assert_eq!(found.schema().field(0).name(), name);
        assert_eq!(found.columns(), [Arc::new(Int64Array::from(vec![i + 10])) as ArrayRef], "{name}");
    }
    let metadata = RowMetadata { row_id: true, row_versions: true, ..RowMetadata::default() };
    let told = read(client.scan("odd").columns(["select"]).row_metadata(metadata)).await;
    let told_names: Vec<_> = told.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(told_names, ["select", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]);
    assert_eq!(told.column(1).as_ref(), &UInt64Array::from(vec![0, 1, 2]));
    assert_eq!(told.column(2).as_ref(), &UInt64Array::from(vec![2, 2, 2]));
}
