//! The command line as a process: what it prints where, and its exit codes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{ArrayRef, FixedSizeListArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use fake::{FakeGateway, Fault, overloaded, refusal};
use lance_gateway_client::Reason;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {} {}", self.stdout, self.stderr))
    }

    fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{} {}", self.stdout, self.stderr);
        self
    }
}

async fn lgw(gateway: &FakeGateway, args: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_lgw"))
        .env("LANCE_GATEWAY_URI", &gateway.uri)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Ids from `first`, names, vectors of two and doubles, one of them no number and one null.
fn batch(first: i64) -> RecordBatch {
    let vectors = (0..3).map(|n| (n != 1).then(|| vec![Some(n as f32), Some(0.5)]));
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from_iter_values(first..first + 3)) as ArrayRef, false),
        ("name", Arc::new(StringArray::from(vec![Some("ada"), None, Some("bob, \"b\"")])), true),
        ("v", Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2)), true),
        ("x", Arc::new(Float64Array::from(vec![Some(f64::NAN), None, Some(1.5)])), true),
    ])
    .unwrap()
}

fn schema() -> SchemaRef {
    batch(0).schema()
}

async fn gateway() -> FakeGateway {
    let gateway = FakeGateway::start().await;
    gateway.add_table("words", &schema(), vec![vec![batch(0)], vec![batch(3)]]);
    gateway
}

fn parquet(dir: &TempDir, name: &str, batches: &[RecordBatch]) -> String {
    let path = dir.path().join(name);
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batches[0].schema(), None).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
    path.display().to_string()
}

fn text(dir: &TempDir, name: &str, content: &str) -> String {
    let path = dir.path().join(name);
    fs::write(&path, content).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn status_tells_state_version_and_limits() {
    let gateway = gateway().await;
    let run = lgw(&gateway, &["status"]).await.ok();
    for part in ["serving", "0.1.0", "14.0.2", "1m 1s", "64.00 MiB"] {
        assert!(run.stdout.contains(part), "{part} in {}", run.stdout);
    }
    let status = lgw(&gateway, &["status", "--output", "json"]).await.ok().json();
    assert_eq!((&status["state"], &status["limits"]["max_row_bytes"]), (&json!("serving"), &json!(32 << 20)));
}

#[tokio::test]
async fn a_table_is_created_from_sql_types_and_described_in_them() {
    let gateway = gateway().await;
    let columns =
        "id BIGINT NOT NULL, `user-id` STRING, embedding FLOAT[50], at TIMESTAMP_LTZ(3), m MAP<STRING, ROW<a INT>>";
    let run = lgw(&gateway, &["create", "n.t", "--schema", columns, "--primary-key", "id"]).await.ok();
    assert!(run.stdout.contains("n.t"), "{}", run.stdout);

    let described = lgw(&gateway, &["describe", "n.t", "--output", "json"]).await.ok().json();
    assert_eq!(described["columns"][0], json!({"name": "id", "data_type": "BIGINT", "nullable": false}));
    let types: Vec<_> = described["columns"].as_array().unwrap().iter().map(|column| &column["data_type"]).collect();
    assert_eq!(types, ["BIGINT", "STRING", "FLOAT[50]", "TIMESTAMP_LTZ(3)", "MAP<STRING, ROW<a INT>>"]);
    assert_eq!(
        (&described["primary_key"], &described["committed_at"]),
        (&json!(["id"]), &json!("2023-11-14T22:13:20Z"))
    );

    let described = lgw(&gateway, &["describe", "n.t"]).await.ok().stdout;
    for part in ["id BIGINT NOT NULL", "embedding FLOAT[50]", "id_idx on id (BTREE)", "owner = tests"] {
        assert!(described.contains(part), "{part} in {described}");
    }
}

#[tokio::test]
async fn a_table_is_created_like_a_file() {
    let (gateway, dir) = (gateway().await, tempfile::tempdir().unwrap());
    let file = parquet(&dir, "like.parquet", &[batch(0)]);
    lgw(&gateway, &["create", "t", "--like", &file]).await.ok();
    assert_eq!(gateway.state.lock().unwrap().tables["t"].schema, schema());
    let file = text(&dir, "like.csv", "id,score,word\n1,0.5,a\n");
    lgw(&gateway, &["create", "u", "--like", &file]).await.ok();
    let described = lgw(&gateway, &["describe", "u", "--output", "json"]).await.ok().json();
    let types: Vec<_> = described["columns"].as_array().unwrap().iter().map(|column| &column["data_type"]).collect();
    assert_eq!(types, ["BIGINT", "DOUBLE", "STRING"]);
}

#[tokio::test]
async fn tables_and_namespaces_are_listed() {
    let gateway = gateway().await;
    gateway.state.lock().unwrap().namespaces.push("n".to_owned());
    for table in ["a", "b", "n.inner"] {
        lgw(&gateway, &["create", table, "--schema", "id INT"]).await.ok();
    }
    let listed = lgw(&gateway, &["tables", "--output", "csv"]).await.ok().stdout;
    assert_eq!(listed, "name,kind\na,table\nb,table\nwords,table\nn,namespace\n");
    let listed = lgw(&gateway, &["tables", "n", "--output", "json"]).await.ok().json();
    assert_eq!(listed, json!([{"name": "n.inner", "kind": "table"}]));
}

#[tokio::test]
async fn a_drop_without_a_terminal_must_say_yes() {
    let gateway = gateway().await;
    let run = lgw(&gateway, &["drop", "words"]).await;
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("--yes") && gateway.calls("DropTable").is_empty(), "{}", run.stderr);
    lgw(&gateway, &["drop", "words", "--yes"]).await.ok();
    assert!(gateway.state.lock().unwrap().tables.is_empty());
}

#[tokio::test]
async fn rows_are_lines_of_json_with_all_that_is_in_them() {
    let gateway = gateway().await;
    let run = lgw(&gateway, &["scan", "words", "--output", "json"]).await.ok();
    let rows: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[0], json!({"id": 0, "name": "ada", "v": [0.0, 0.5], "x": "NaN"}));
    assert_eq!(rows[1], json!({"id": 1, "name": null, "v": null, "x": null}));
    assert!(run.stderr.contains("version 3: 6 rows"), "{}", run.stderr);
}

#[tokio::test]
async fn rows_are_a_table_for_people_and_csv_for_programs() {
    let gateway = gateway().await;
    let run = lgw(&gateway, &["scan", "words", "--quiet"]).await.ok();
    let head: Vec<_> = run.stdout.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["id", "name", "v", "x"]);
    assert!(run.stdout.contains("NULL") && run.stdout.contains("NaN") && run.stdout.contains("[2.0, 0.5]"));
    assert_eq!(run.stderr, "");

    let run = lgw(&gateway, &["scan", "words", "--output", "csv", "--limit", "3"]).await.ok();
    assert_eq!(run.stdout, "id,name,v,x\n0,ada,\"[0.0,0.5]\",NaN\n1,,,\n2,\"bob, \"\"b\"\"\",\"[2.0,0.5]\",1.5\n");
}

#[tokio::test]
async fn a_scan_takes_columns_filter_limit_and_version() {
    let gateway = gateway().await;
    let args = ["scan", "words", "--columns", "x,id", "--filter", "id > 0", "--limit", "2", "--version", "2"];
    let run = lgw(&gateway, &[&args[..], &["--output", "csv"]].concat()).await.ok();
    assert_eq!(run.stdout, "x,id\nNaN,0\n,1\n");
    let asked = &gateway.calls("GetFlightInfo")[0].detail;
    assert!(asked.contains(r#"Sql("id > 0")"#) && asked.contains("Version(2)"), "{asked}");

    let run = lgw(&gateway, &["scan", "words", "--as-of", "2026-01-31", "--columns", "`a.b`,s.t"]).await;
    let asked = &gateway.calls("GetFlightInfo")[1].detail;
    assert!(asked.contains("seconds: 1769817600"), "{asked}");
    assert!(asked.contains(r#"path: ["a.b"]"#) && asked.contains(r#"path: ["s", "t"]"#), "{asked}");
    assert_eq!(run.code, 1, "the table has no such columns");
}

#[tokio::test]
async fn a_scan_writes_files_of_every_format() {
    let (gateway, dir) = (gateway().await, tempfile::tempdir().unwrap());
    for ending in ["parquet", "csv", "jsonl", "arrow", "arrows"] {
        let file = dir.path().join(format!("rows.{ending}"));
        let name = file.display().to_string();
        let run = lgw(&gateway, &["scan", "words", "--to", &name]).await.ok();
        assert_eq!(run.stdout, "");
        // What was written can be put again: the same rows, the same types.
        let table = format!("copy_{ending}");
        gateway.add_table(&table, &schema(), vec![]);
        lgw(&gateway, &["put", &table, &name]).await.ok();
        let copied = lgw(&gateway, &["scan", &table, "--output", "json"]).await.ok();
        assert_eq!(copied.stdout, lgw(&gateway, &["scan", "words", "--output", "json"]).await.stdout, "{ending}");
    }
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(dir.path().join("rows.parquet")).unwrap()).unwrap();
    assert_eq!(reader.schema(), &schema());
}

#[tokio::test]
async fn a_scan_that_fails_leaves_no_file() {
    let (gateway, dir) = (gateway().await, tempfile::tempdir().unwrap());
    gateway.fail_next("DoGet", Fault::Refuse(refusal(Reason::CorruptData, "a file is broken")));
    let file = dir.path().join("rows.parquet");
    let run = lgw(&gateway, &["scan", "words", "--to", &file.display().to_string()]).await;
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("a file is broken (CORRUPT_DATA)"), "{}", run.stderr);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);

    let run = lgw(&gateway, &["scan", "words", "--to", "rows.xyz"]).await;
    assert_eq!(run.code, 2);
}

#[tokio::test]
async fn several_files_of_several_formats_are_one_version() {
    let (gateway, dir) = (gateway().await, tempfile::tempdir().unwrap());
    let files = [
        parquet(&dir, "a.parquet", &[batch(10), batch(20)]),
        text(&dir, "b.csv", "x,id,v\n0.25,40,\"[7.0,8.0]\"\n,41,\n"),
        text(&dir, "c.jsonl", "{\"id\": 50, \"name\": \"eve\", \"v\": [1, 2]}\n"),
    ];
    let args = ["put", "words", "--output", "json"].into_iter().chain(files.iter().map(String::as_str));
    let written = lgw(&gateway, &args.collect::<Vec<_>>()).await.ok();
    assert_eq!(written.json()["version"], 4);
    assert_eq!(written.json()["num_rows"], 9);
    assert!(written.stderr.contains("9 rows"), "{}", written.stderr);
    assert_eq!(gateway.num_rows("words"), 15);

    let state = gateway.state.lock().unwrap();
    let csv = state.tables["words"].newest().iter().find(|batch| batch.num_rows() == 2).unwrap().clone();
    assert_eq!(csv.schema(), schema());
    assert_eq!(csv.column(0).as_primitive::<Int64Type>().values(), &[40, 41]);
    assert_eq!(csv.column(1).null_count(), 2);
}

#[tokio::test]
async fn a_put_creates_the_table_only_if_asked() {
    let (gateway, dir) = (gateway().await, tempfile::tempdir().unwrap());
    let file = parquet(&dir, "rows.parquet", &[batch(0)]);
    let run = lgw(&gateway, &["put", "new", &file]).await;
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("TABLE_NOT_FOUND"), "{}", run.stderr);
    lgw(&gateway, &["put", "new", &file, "--create"]).await.ok();
    assert_eq!(gateway.num_rows("new"), 3);
}

#[tokio::test]
async fn an_overwrite_replaces_the_rows() {
    let (gateway, dir) = (gateway().await, tempfile::tempdir().unwrap());
    let file = parquet(&dir, "rows.parquet", &[batch(0)]);
    lgw(&gateway, &["put", "words", &file, "--mode", "overwrite"]).await.ok();
    assert_eq!(gateway.num_rows("words"), 3);
}

#[tokio::test]
async fn a_put_that_loses_its_reply_is_repeated_and_writes_once() {
    let (gateway, dir) = (gateway().await, tempfile::tempdir().unwrap());
    let file = parquet(&dir, "rows.parquet", &[batch(0)]);
    gateway.fail_next("DoPut", Fault::Refuse(overloaded(Duration::from_millis(1))));
    gateway.fail_next("DoPut", Fault::LoseReply);
    let written = lgw(&gateway, &["put", "words", &file, "--output", "json"]).await.ok().json();
    assert_eq!((&written["version"], gateway.num_rows("words")), (&json!(4), 9));
}

#[tokio::test]
async fn a_file_that_does_not_fit_names_file_and_column_and_writes_nothing() {
    let (gateway, dir) = (gateway().await, tempfile::tempdir().unwrap());
    for (name, content, part) in [
        ("wrong.csv", "id,nope\n1,2\n", "\"nope\""),
        ("wrong.csv", "id,x\n1,two\n", "two"),
        ("wrong.csv", "name\nada\n", "\"id\""),
        ("wrong.csv", "id,v\n1,[1]\n", "\"v\""),
        ("wrong.jsonl", "{\"id\": 1, \"nope\": 2}\n", "nope"),
        ("wrong.jsonl", "{\"id\": \n", ""),
        ("wrong.parquet", "no parquet at all", ""),
        ("wrong.arrow", "no arrow at all, and long enough", ""),
    ] {
        let file = text(&dir, name, content);
        let run = lgw(&gateway, &["put", "words", &file]).await;
        assert_eq!(run.code, 1, "{content}");
        assert!(run.stderr.contains(name) && run.stderr.contains(part), "{content}: {}", run.stderr);
    }
    assert_eq!(gateway.num_rows("words"), 6);
}

#[tokio::test]
async fn rows_are_counted_at_a_version() {
    let gateway = gateway().await;
    assert_eq!(
        lgw(&gateway, &["count", "words", "--output", "json"]).await.ok().json(),
        json!({"num_rows": 6, "version": 3})
    );
    assert_eq!(
        lgw(&gateway, &["count", "words", "--version", "2", "--output", "csv"]).await.ok().stdout,
        "rows,version\n3,2\n"
    );
    lgw(&gateway, &["count", "words", "--filter", "id = 1"]).await.ok();
    assert!(gateway.calls("CountRows")[2].detail.contains(r#"Sql("id = 1")"#));
}

#[tokio::test]
async fn versions_are_listed_newest_first() {
    let gateway = gateway().await;
    let versions = lgw(&gateway, &["versions", "words", "--output", "json"]).await.ok().json();
    let numbers: Vec<_> =
        versions.as_array().unwrap().iter().map(|version| version["version"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [3, 2, 1]);
    let shown = lgw(&gateway, &["versions", "words"]).await.ok().stdout;
    assert!(shown.contains("Append") && shown.contains("flink.job-id=job-2"), "{shown}");
}

#[tokio::test]
async fn commits_are_listed_shown_and_aborted() {
    let gateway = gateway().await;
    let id = "0b1c4b1e-0000-4000-8000-000000000001:1";
    let shown = lgw(&gateway, &["commits", "words", "show", id, "--output", "json"]).await.ok().json();
    assert_eq!(shown, json!({"id": id, "state": "not committed", "version": null}));
    lgw(&gateway, &["commits", "words", "abort", id]).await.ok();
    let shown = lgw(&gateway, &["commits", "words", "show", id, "--output", "json"]).await.ok().json();
    assert_eq!(shown["state"], "aborted");
    let listed = lgw(&gateway, &["commits", "words", "--output", "json"]).await.ok().json();
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&json!(id), &json!("aborted")));
    let listed = lgw(&gateway, &["commits", "words"]).await.ok().stdout;
    assert!(listed.contains("aborted") && listed.contains("2.00 KiB"), "{listed}");
    assert_eq!(lgw(&gateway, &["commits", "words", "show", "nonsense"]).await.code, 2);
}

#[tokio::test]
async fn a_refusal_is_told_with_its_reason_on_stderr_alone() {
    let gateway = gateway().await;
    let run = lgw(&gateway, &["count", "none"]).await;
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert_eq!(run.stderr, "lgw: there is no table none (TABLE_NOT_FOUND)\n");
    let run = lgw(&gateway, &["count", "none", "--output", "json"]).await;
    let error: Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!((&error["error"]["reason"], &error["error"]["retriable"]), (&json!("TABLE_NOT_FOUND"), &json!(false)));
    assert!(error["error"]["request_id"].is_string());
}

#[tokio::test]
async fn a_gateway_that_is_not_there_is_a_failure_and_a_wrong_uri_too() {
    let mut gateway = gateway().await;
    gateway.uri = "grpc://127.0.0.1:1".to_owned();
    let run = lgw(&gateway, &["status"]).await;
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("cannot connect to grpc://127.0.0.1:1"), "{}", run.stderr);
    gateway.uri = "http://127.0.0.1:1".to_owned();
    let run = lgw(&gateway, &["status"]).await;
    assert!(run.stderr.contains("grpc+unix:///PATH"), "{}", run.stderr);
}

#[tokio::test]
async fn wrong_usage_has_its_own_exit_code() {
    let gateway = gateway().await;
    for args in [
        &["no-such-command"][..],
        &["create", "t"],
        &["create", "t", "--schema", "id NOSUCHTYPE"],
        &["create", "t", "--schema", "id INT", "--like", "f.csv"],
        &["scan", "words", "--version", "1", "--tag", "x"],
        &["scan", "words", "--as-of", "yesterday"],
        &["put", "words"],
        &["put", "words", "rows.csv", "--mode", "upsert"],
        &["status", "--timeout", "0"],
    ] {
        let run = lgw(&gateway, args).await;
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{args:?}: {}", run.stderr);
    }
    assert!(gateway.state.lock().unwrap().calls.is_empty());
}

#[tokio::test]
async fn a_reader_that_has_enough_is_no_error() {
    let gateway = FakeGateway::start().await;
    gateway.add_table("many", &schema(), vec![(0..2000).map(|n| batch(n * 3)).collect()]);
    for output in ["table", "json", "csv"] {
        let script = "\"$0\" scan many --output \"$1\" | head -n 2; echo \"${PIPESTATUS[0]}\"";
        let run = Command::new("bash")
            .args(["-c", script, env!("CARGO_BIN_EXE_lgw"), output])
            .env("LANCE_GATEWAY_URI", &gateway.uri)
            .output()
            .await
            .unwrap();
        let stdout = String::from_utf8(run.stdout).unwrap();
        assert_eq!(stdout.lines().count(), 3, "{stdout}");
        assert_eq!(stdout.lines().last(), Some("0"), "{output}: {}", String::from_utf8_lossy(&run.stderr));
    }
}

#[tokio::test]
async fn completions_name_the_commands_of_this_version_and_no_others() {
    let gateway = gateway().await;
    let run = lgw(&gateway, &["completions", "bash"]).await.ok();
    assert!(run.stdout.contains("versions") && !run.stdout.contains("alter"));
    let help = lgw(&gateway, &["--help"]).await.ok().stdout;
    for command in
        ["status", "tables", "create", "describe", "drop", "put", "scan", "count", "search", "versions", "commits"]
    {
        assert!(help.contains(&format!("\n  {command}")), "{command} in {help}");
    }
    assert!(!help.contains("\n  alter"), "alter in {help}");
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_given() {
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls");
    let identity = tonic::transport::Identity::from_pem(
        fs::read(tls.join("server.pem")).unwrap(),
        fs::read(tls.join("server-key.pem")).unwrap(),
    );
    let gateway = FakeGateway::start_with_tls(identity).await;
    let ca = tls.join("ca.pem").display().to_string();
    lgw(&gateway, &["status", "--ca", &ca]).await.ok();
    assert_eq!(lgw(&gateway, &["status"]).await.code, 1);
}
