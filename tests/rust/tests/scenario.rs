//! The scenario that Java and Python run, too, from the Rust client against a real gateway.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::{TryStreamExt, stream};
use lance_gateway_client::{
    BeginOptions, Client, ClientOptions, CommitId, CommitState, CreateOptions, PutOptions, Reason, Scan,
    VersionSelector, col, lit,
};
use tempfile::TempDir;

/// A gateway that ends with the test.
struct Gateway {
    child: Child,
    uri: String,
    _warehouse: TempDir,
}

impl Gateway {
    fn start() -> Self {
        let warehouse = TempDir::new().unwrap();
        let mut child = Command::new(binary())
            .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--warehouse"])
            .arg(warehouse.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.by_ref().map(Result::unwrap).find(|l| l.contains(" ready: ")).expect("the ready line");
        // The pipe must stay open: a gateway that prints into a closed one would fail.
        std::thread::spawn(move || lines.for_each(drop));
        let address = ready.split("grpc ").nth(1).and_then(|rest| rest.split(',').next()).unwrap().trim();
        Self { child, uri: format!("grpc://{address}"), _warehouse: warehouse }
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
