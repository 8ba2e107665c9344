#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::{InsertBuilder, WriteMode as LanceWriteMode, WriteParams};
use tempfile::TempDir;

use crate::testing::*;
use crate::*;

/// Another tool that appends, `rows_per_file` rows a fragment.
async fn foreign(folder: &TempDir, name: &str, batch: RecordBatch, rows_per_file: usize) -> Dataset {
    let uri = folder.path().join(format!("warehouse/{name}.lance"));
    let params = WriteParams {
        mode: LanceWriteMode::Append,
        max_rows_per_file: rows_per_file,
        enable_stable_row_ids: true,
        ..Default::default()
    };
    InsertBuilder::new(uri.to_str().unwrap()).with_params(&params).execute(vec![batch]).await.unwrap()
}

fn ids(range: std::ops::Range<i64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(range));
    RecordBatch::try_from_iter_with_nullable([("id", column, true)]).unwrap()
}

fn values(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

fn sql(text: &str) -> Option<Filter> {
    Some(Filter::Sql(text.to_owned()))
}

fn column(name: &str) -> Expression {
    Expression::Column(vec![name.to_owned()])
}

fn call(operator: Operator, arguments: Vec<Expression>) -> Expression {
    Expression::Call(operator, arguments)
}

fn literal(literal: Literal) -> Expression {
    Expression::Literal(literal)
}

fn text(value: &str) -> Expression {
    literal(Literal::String(value.to_owned()))
}

fn expression(expression: Expression) -> Option<Filter> {
    Some(Filter::Expression(expression))
}

async fn read_ids(lake: &Lake, spec: &ScanSpec) -> Vec<i64> {
    values(&read(lake, spec).await.unwrap())
}

async fn read_ticket(lake: &Lake, ticket: &SplitSpec) -> Vec<i64> {
    let batches: Vec<RecordBatch> = lake.scan(ticket).await.unwrap().try_collect().await.unwrap();
    batches.iter().flat_map(values).collect()
}

#[tokio::test]
async fn a_plan_reads_its_version_whatever_is_committed_meanwhile() {
    let (folder, lake) = local_lake().await;
    for step in 0..5 {
        foreign(&folder, "t", ids(step * 20..step * 20 + 20), 8).await;
    }
    let spec = ScanSpec { split_bytes: Some(1), ..spec("t") };
    let plan = lake.plan_scan(&spec).await.unwrap();
    assert_eq!((plan.version, plan.num_rows), (5, 100));
    assert!(plan.splits.len() > 5);
    let mut dataset = foreign(&folder, "t", ids(100..150), 8).await;
    dataset.delete("id >= 10 AND id < 20").await.unwrap();
    let mut found = Vec::new();
    for split in &plan.splits {
        found.extend(read_ticket(&lake, &ticket(&spec, &plan, split)).await);
    }
    assert_eq!(found, (0..100).collect::<Vec<_>>());
    assert_eq!(read_ids(&lake, &spec).await.len(), 140);
}

#[tokio::test]
async fn splits_of_a_table_with_deletions_hold_each_live_row_once() {
    let (folder, lake) = local_lake().await;
    let mut dataset = foreign(&folder, "t", ids(0..1000), 300).await;
    dataset.delete("id % 3 = 0 OR (id >= 400 AND id < 450)").await.unwrap();
    let live: Vec<i64> = (0..1000).filter(|id| id % 3 != 0 && !(400..450).contains(id)).collect();
    for (split_bytes, max_splits) in [(1, 7), (1, 1000), (300, 1000), (1 << 30, 1000)] {
        let spec = ScanSpec { split_bytes: Some(split_bytes), max_splits: Some(max_splits), ..spec("t") };
        let plan = lake.plan_scan(&spec).await.unwrap();
        assert!(plan.splits.len() <= max_splits);
        assert_eq!(plan.num_rows, live.len() as u64);
        assert_eq!(plan.splits.iter().map(|s| s.num_rows).sum::<u64>(), live.len() as u64);
        assert_eq!(read_ids(&lake, &spec).await, live, "{split_bytes} {max_splits}");
        let even = ScanSpec { filter: sql("id % 2 = 0"), ..spec };
        let wanted: Vec<i64> = live.iter().copied().filter(|id| id % 2 == 0).collect();
        assert_eq!(read_ids(&lake, &even).await, wanted, "a filter sees the rows of its range only");
    }
}

#[tokio::test]
async fn a_split_can_be_resumed_at_any_row() {
    let (folder, lake) = local_lake().await;
    let mut dataset = foreign(&folder, "t", ids(0..100), 40).await;
    dataset.delete("id % 7 = 0").await.unwrap();
    for filter in [None, sql("id % 2 = 1")] {
        for limit in [None, Some(20)] {
            let spec = ScanSpec { filter: filter.clone(), limit, ..spec("t") };
            let plan = lake.plan_scan(&spec).await.unwrap();
            assert_eq!(plan.splits.len(), 1);
            let whole = SplitSpec { batch_rows: Some(7), ..ticket(&spec, &plan, &plan.splits[0]) };
            let all = read_ticket(&lake, &whole).await;
            for row_offset in [0, 1, 6, 7, 8, 19, 20, 35, 1000] {
                let found = read_ticket(&lake, &SplitSpec { row_offset, ..whole.clone() }).await;
                assert_eq!(found, all[all.len().min(row_offset as usize)..], "{row_offset} {limit:?} {filter:?}");
            }
        }
    }
}

#[tokio::test]
async fn limits_hold_over_all_splits_together() {
    let (folder, lake) = local_lake().await;
    foreign(&folder, "t", ids(0..90), 30).await;
    for limit in [1, 29, 30, 31, 60, 89, 90, 91] {
        let spec = ScanSpec { limit: Some(limit), split_bytes: Some(1), ..spec("t") };
        let plan = lake.plan_scan(&spec).await.unwrap();
        assert_eq!(plan.num_rows, limit.min(90));
        assert_eq!(plan.splits.iter().map(|s| s.limit.unwrap()).sum::<u64>(), limit.min(90));
        assert_eq!(read_ids(&lake, &spec).await, (0..limit.min(90) as i64).collect::<Vec<_>>());
        let filtered = ScanSpec { filter: sql("id >= 50"), ..spec };
        assert_eq!(lake.plan_scan(&filtered).await.unwrap().splits.len(), 1);
        assert_eq!(read_ids(&lake, &filtered).await, (50..90.min(50 + limit as i64)).collect::<Vec<_>>());
    }
    let none = lake.plan_scan(&ScanSpec { limit: Some(0), ..spec("t") }).await.unwrap();
    assert!(none.splits.is_empty() && none.num_rows == 0 && none.schema.fields().len() == 1);
    let none = lake.plan_scan(&ScanSpec { limit: Some(0), filter: sql("id > 1"), ..spec("t") }).await.unwrap();
    assert!(none.splits.is_empty());
}

#[tokio::test]
async fn a_limit_on_a_filter_finds_rows_in_the_last_fragment() {
    let (folder, lake) = local_lake().await;
    let topic: ArrayRef = Arc::new(StringArray::from_iter_values((0..90).map(|_| "A")));
    let flag: ArrayRef = Arc::new(BooleanArray::from_iter((0..90).map(|row| Some(row >= 60))));
    foreign(&folder, "t", RecordBatch::try_from_iter([("topic", topic), ("flag", flag)]).unwrap(), 30).await;
    let typed = call(
        Operator::And,
        vec![call(Operator::Equal, vec![column("topic"), text("A")]), call(Operator::IsTrue, vec![column("flag")])],
    );
    for filter in [sql("topic = 'A' AND flag"), expression(typed)] {
        let found = read(&lake, &ScanSpec { filter, limit: Some(10), ..spec("t") }).await.unwrap();
        assert_eq!(found.num_rows(), 10);
    }
}

#[tokio::test]
async fn an_or_of_ands_keeps_its_meaning() {
    let (folder, lake) = local_lake().await;
    let status: ArrayRef = Arc::new(StringArray::from(vec!["active", "active", "archived"]));
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    foreign(&folder, "t", RecordBatch::try_from_iter([("id", id), ("status", status)]).unwrap(), 10).await;
    let is = |value| call(Operator::Equal, vec![column("status"), text(value)]);
    let one = call(Operator::Equal, vec![column("id"), literal(Literal::Integer(1))]);
    let typed = call(Operator::Or, vec![call(Operator::And, vec![is("active"), one]), is("archived")]);
    for filter in [expression(typed), sql("(status='active' AND id=1) OR status='archived'")] {
        assert_eq!(read_ids(&lake, &ScanSpec { filter: filter.clone(), ..spec("t") }).await, [1, 3]);
        let (count, _) = lake.count_rows(&table("t"), &VersionSelector::Latest, filter.as_ref()).await.unwrap();
        assert_eq!(count, 2);
    }
}

#[tokio::test]
async fn instants_are_compared_as_instants() {
    let (folder, lake) = local_lake().await;
    // 2023-12-31T23:59:59Z, 2024-01-01T00:00:00Z, 1969-12-31T23:59:59.500Z
    let millis = vec![1_704_067_199_000, 1_704_067_200_000, -500];
    let instants: ArrayRef = Arc::new(TimestampMillisecondArray::from(millis.clone()).with_timezone("UTC"));
    let walls: ArrayRef = Arc::new(TimestampMillisecondArray::from(millis));
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    foreign(&folder, "t", RecordBatch::try_from_iter([("id", id), ("ts", instants), ("wall", walls)]).unwrap(), 10)
        .await;
    let at = |name, operator, seconds, nanos, zoned| {
        let filter = call(operator, vec![column(name), literal(Literal::Timestamp { seconds, nanos, zoned })]);
        ScanSpec { filter: expression(filter), ..spec("t") }
    };
    assert_eq!(read_ids(&lake, &at("ts", Operator::GreaterOrEqual, 1_704_067_200, 0, true)).await, [2]);
    assert_eq!(read_ids(&lake, &at("ts", Operator::Equal, -1, 500_000_000, true)).await, [3]);
    assert_eq!(read_ids(&lake, &at("wall", Operator::Equal, -1, 500_000_000, false)).await, [3]);
    for (name, zoned) in [("ts", false), ("wall", true)] {
        let error = read(&lake, &at(name, Operator::Equal, 0, 0, zoned)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

#[tokio::test]
async fn comparisons_of_floats_follow_ieee() {
    let (folder, lake) = local_lake().await;
    let values = [1.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0];
    let floats: ArrayRef = Arc::new(Float64Array::from_iter(values.iter().map(|v| Some(*v)).chain([None])));
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..8));
    foreign(
        &folder,
        "t",
        RecordBatch::try_from_iter_with_nullable([("id", id, false), ("f", floats, true)]).unwrap(),
        10,
    )
    .await;
    type Compare = fn(&f64, &f64) -> bool;
    let operators: [(Operator, Compare); 6] = [
        (Operator::Equal, f64::eq),
        (Operator::NotEqual, f64::ne),
        (Operator::Less, f64::lt),
        (Operator::LessOrEqual, f64::le),
        (Operator::Greater, f64::gt),
        (Operator::GreaterOrEqual, f64::ge),
    ];
    for bound in [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY] {
        for (operator, compare) in operators {
            let condition = call(operator, vec![column("f"), literal(Literal::Float64(bound))]);
            let wanted = |negated: bool| -> Vec<i64> {
                let kept = values.iter().enumerate().filter(|(_, v)| compare(v, &bound) != negated);
                kept.map(|(id, _)| id as i64).collect()
            };
            let spec = ScanSpec { filter: expression(condition.clone()), ..spec("t") };
            assert_eq!(read_ids(&lake, &spec).await, wanted(false), "{operator:?} {bound}");
            let negated = ScanSpec { filter: expression(call(Operator::Not, vec![condition])), ..spec };
            assert_eq!(read_ids(&lake, &negated).await, wanted(true), "NOT {operator:?} {bound}");
        }
        let equal: Vec<i64> = (0..7).filter(|id| values[*id as usize] == bound).collect();
        let list =
            call(Operator::In, vec![column("f"), literal(Literal::Float64(bound)), literal(Literal::Float64(77.0))]);
        assert_eq!(read_ids(&lake, &ScanSpec { filter: expression(list), ..spec("t") }).await, equal, "In {bound}");
        let between = call(
            Operator::Between,
            vec![column("f"), literal(Literal::Float64(bound)), literal(Literal::Float64(bound))],
        );
        assert_eq!(
            read_ids(&lake, &ScanSpec { filter: expression(between), ..spec("t") }).await,
            equal,
            "Between {bound}"
        );
    }
}

#[tokio::test]
async fn nulls_follow_three_valued_logic() {
    let (folder, lake) = local_lake().await;
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    foreign(&folder, "t", RecordBatch::try_from_iter_with_nullable([("id", id, false), ("x", x, true)]).unwrap(), 10)
        .await;
    let int = |value| literal(Literal::Integer(value));
    let null = || literal(Literal::Null);
    let cases = [
        (call(Operator::Equal, vec![column("x"), null()]), vec![]),
        (call(Operator::NotEqual, vec![column("x"), int(1)]), vec![3]),
        (call(Operator::IsNull, vec![column("x")]), vec![2]),
        (call(Operator::IsNotNull, vec![column("x")]), vec![1, 3]),
        (call(Operator::In, vec![column("x"), int(1), null()]), vec![1]),
        (call(Operator::Not, vec![call(Operator::In, vec![column("x"), int(1), null()])]), vec![]),
        (call(Operator::Not, vec![call(Operator::In, vec![column("x"), int(1)])]), vec![3]),
        (call(Operator::IsTrue, vec![call(Operator::Greater, vec![column("x"), int(1)])]), vec![3]),
        (call(Operator::IsFalse, vec![call(Operator::Greater, vec![column("x"), int(1)])]), vec![1]),
        (call(Operator::Between, vec![column("x"), int(1), int(2)]), vec![1]),
        (call(Operator::Between, vec![column("x"), int(1), null()]), vec![]),
        (call(Operator::Less, vec![int(1), column("x")]), vec![3]),
        (literal(Literal::Boolean(true)), vec![1, 2, 3]),
        (literal(Literal::Null), vec![]),
        (call(Operator::Equal, vec![int(1), int(1)]), vec![1, 2, 3]),
    ];
    for (condition, wanted) in cases {
        let label = format!("{condition:?}");
        assert_eq!(read_ids(&lake, &ScanSpec { filter: expression(condition), ..spec("t") }).await, wanted, "{label}");
    }
}

#[tokio::test]
async fn patterns_take_any_escape() {
    let (folder, lake) = local_lake().await;
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let s: ArrayRef = Arc::new(LargeStringArray::from(vec!["100%", "100x", r"a\b", "a_b"]));
    foreign(&folder, "t", RecordBatch::try_from_iter([("id", id), ("s", s)]).unwrap(), 10).await;
    let like = |pattern, escape: Option<&str>| {
        let arguments = [column("s"), text(pattern)].into_iter().chain(escape.map(text)).collect();
        ScanSpec { filter: expression(call(Operator::Like, arguments)), ..spec("t") }
    };
    for (pattern, escape, wanted) in [
        ("100%", None, vec![1, 2]),
        ("100!%", Some("!"), vec![1]),
        (r"a\b", None, vec![3]),
        (r"a\\b", Some(r"\"), vec![3]),
        ("a_b", None, vec![3, 4]),
        (r"a\_b", Some(r"\"), vec![4]),
        ("%x", None, vec![2]),
        ("", None, vec![]),
    ] {
        assert_eq!(read_ids(&lake, &like(pattern, escape)).await, wanted, "{pattern} {escape:?}");
    }
}

#[tokio::test]
async fn any_column_name_can_be_created_written_projected_and_filtered() {
    let (_folder, lake) = local_lake().await;
    let names = ["PartyAbbrev", "user-id", "a.b", "select", "x`y", "it's \"q\"", "partyabbrev", "é"];
    let inner: Fields =
        vec![Field::new("in.ner", DataType::Int64, true), Field::new("`", DataType::Int64, true)].into();
    let mut fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
    fields.push(Field::new("s.t", DataType::Struct(inner.clone()), true));
    let schema = Arc::new(Schema::new(fields));
    create(&lake, "t", schema.as_ref().clone(), "2.2").await.unwrap();
    let numbers = |base: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![base, base + 1, base + 2])) };
    let mut columns: Vec<ArrayRef> = (0..names.len() as i64).map(|i| numbers(i * 10)).collect();
    columns.push(Arc::new(StructArray::new(inner, vec![numbers(80), numbers(90)], None)));
    let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
    append(&lake, "t", vec![batch.clone()]).await.unwrap();
    assert_eq!(read(&lake, &spec("t")).await.unwrap(), batch);
    assert_eq!(lake.describe(&table("t"), &VersionSelector::Latest).await.unwrap().schema, schema);
    for (index, name) in names.iter().enumerate() {
        let wanted = index as i64 * 10 + 1;
        let equal = call(Operator::Equal, vec![column(name), literal(Literal::Integer(wanted))]);
        let quoted = format!("`{}` = {wanted}", name.replace('`', "``"));
        for filter in [expression(equal), sql(&quoted)] {
            let spec = ScanSpec { filter, projection: Some(vec![vec![(*name).to_owned()]]), ..spec("t") };
            let found = read(&lake, &spec).await.unwrap();
            assert_eq!(found.schema().fields()[0].name(), name);
            assert_eq!(values(&found), [wanted], "{name}");
        }
    }
    let nested = |name: &str| vec!["s.t".to_owned(), name.to_owned()];
    for (name, wanted) in [("in.ner", 81), ("`", 91)] {
        let equal = call(Operator::Equal, vec![Expression::Column(nested(name)), literal(Literal::Integer(wanted))]);
        let spec = ScanSpec { filter: expression(equal), projection: Some(vec![nested(name)]), ..spec("t") };
        let found = read(&lake, &spec).await.unwrap();
        assert_eq!(found.column(0).as_struct().column(0).as_primitive::<Int64Type>().values(), &[wanted], "{name}");
    }
}

#[tokio::test]
async fn an_unknown_column_is_an_error_and_no_empty_result() {
    let (folder, lake) = local_lake().await;
    foreign(&folder, "t", ids(0..3), 10).await;
    let unknown = vec![
        ScanSpec { projection: Some(vec![vec!["ID".into()]]), ..spec("t") },
        ScanSpec { projection: Some(vec![vec!["id".into(), "x".into()]]), ..spec("t") },
        ScanSpec { filter: sql("idx = 1"), ..spec("t") },
        ScanSpec { filter: expression(call(Operator::IsNull, vec![column("idx")])), ..spec("t") },
    ];
    for spec in unknown {
        let error = lake.plan_scan(&spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ColumnNotFound, "{error}");
        assert!(error.message().contains("id"), "{error}");
    }
    let twice = ScanSpec { projection: Some(vec![vec!["id".into()], vec!["id".into()]]), ..spec("t") };
    assert_eq!(lake.plan_scan(&twice).await.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let count = lake.count_rows(&table("t"), &VersionSelector::Latest, sql("idx = 1").as_ref()).await.unwrap_err();
    assert_eq!(count.kind(), ErrorKind::ColumnNotFound);
}

#[tokio::test]
async fn nested_columns_are_projected_and_filtered() {
    let (folder, lake) = local_lake().await;
    let inner: Fields = vec![Field::new("x", DataType::Int64, true), Field::new("y", DataType::Utf8, true)].into();
    let children: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![Some(1), None, None, Some(4)])),
        Arc::new(StringArray::from(vec![Some("a"), Some("b"), None, None])),
    ];
    let structs = StructArray::new(inner, children, Some(NullBuffer::from(vec![true, true, false, true])));
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let batch =
        RecordBatch::try_from_iter_with_nullable([("id", id, false), ("s", Arc::new(structs) as ArrayRef, true)]);
    foreign(&folder, "t", batch.unwrap(), 10).await;
    let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let projection = Some(vec![path(&["s", "y"]), path(&["id"])]);
    let found = read(&lake, &ScanSpec { projection, ..spec("t") }).await.unwrap();
    assert_eq!(found.schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), ["s", "id"]);
    let narrowed = found.column(0).as_struct();
    assert_eq!(narrowed.column_names(), ["y"]);
    assert!(narrowed.is_null(2) && !narrowed.is_null(1));
    let field = || Expression::Column(path(&["s", "x"]));
    let filtered = |condition| ScanSpec { filter: expression(condition), ..spec("t") };
    let greater = call(Operator::Greater, vec![field(), literal(Literal::Integer(1))]);
    assert_eq!(read_ids(&lake, &filtered(greater)).await, [4]);
    assert_eq!(read_ids(&lake, &filtered(call(Operator::IsNull, vec![field()]))).await, [2, 3]);
    assert_eq!(read_ids(&lake, &filtered(call(Operator::IsNull, vec![column("s")]))).await, [3]);
    assert_eq!(read_ids(&lake, &ScanSpec { filter: sql("s.x > 1 OR s.y = 'b'"), ..spec("t") }).await, [2, 4]);
}

#[tokio::test]
async fn metadata_columns_come_last_and_no_column_gives_row_counts() {
    let (folder, lake) = local_lake().await;
    let mut dataset = foreign(&folder, "t", ids(0..10), 4).await;
    dataset.delete("id = 5").await.unwrap();
    let all = RowMetadata { row_id: true, row_address: true, row_versions: true };
    let found = read(&lake, &ScanSpec { metadata: all, ..spec("t") }).await.unwrap();
    let names: Vec<String> = found.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["id", "_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]);
    let addresses = found.column(2).as_primitive::<UInt64Type>();
    assert_eq!((addresses.value(0), addresses.value(5)), (0, (1 << 32) + 2));
    assert!(found.column(3).as_primitive::<UInt64Type>().values().iter().all(|version| *version == 1));
    let only = RowMetadata { row_address: true, ..Default::default() };
    let found = read(&lake, &ScanSpec { projection: Some(vec![]), metadata: only, ..spec("t") }).await.unwrap();
    assert_eq!((found.num_columns(), found.num_rows()), (1, 9));
    for (filter, wanted) in [(None, 9), (sql("id >= 4"), 5)] {
        let spec = ScanSpec { projection: Some(vec![]), filter, ..spec("t") };
        let plan = lake.plan_scan(&spec).await.unwrap();
        let mut rows = 0;
        for split in &plan.splits {
            let stream = lake.scan(&ticket(&spec, &plan, split)).await.unwrap();
            let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
            rows += batches.iter().map(RecordBatch::num_rows).sum::<usize>();
            assert!(batches.iter().all(|batch| batch.num_columns() == 0));
        }
        assert_eq!(rows, wanted);
    }
}

#[tokio::test]
async fn an_empty_table_has_a_schema_and_no_split() {
    let (_folder, lake) = local_lake().await;
    create(&lake, "t", ids(0..0).schema().as_ref().clone(), "2.1").await.unwrap();
    let plan = lake.plan_scan(&spec("t")).await.unwrap();
    assert_eq!((plan.num_rows, plan.num_bytes, plan.splits.len(), plan.schema.fields().len()), (0, 0, 0, 1));
    let filter = sql("id > 1");
    assert_eq!(lake.count_rows(&table("t"), &VersionSelector::Latest, filter.as_ref()).await.unwrap(), (0, 1));
}

#[tokio::test]
async fn tickets_that_do_not_fit_the_version_are_refused() {
    let (folder, lake) = local_lake().await;
    foreign(&folder, "t", ids(0..10), 10).await;
    let spec = spec("t");
    let plan = lake.plan_scan(&spec).await.unwrap();
    let good = ticket(&spec, &plan, &plan.splits[0]);
    let range = |fragment_id, first_row, num_rows| FragmentRange { fragment_id, first_row, num_rows };
    for fragments in [
        vec![range(1, 0, None)],
        vec![range(0, 11, None)],
        vec![range(0, 5, Some(6))],
        vec![range(0, u64::MAX, Some(u64::MAX))],
        vec![range(0, 0, Some(1)), range(0, 1, Some(1))],
        vec![range(u64::MAX, 0, None)],
    ] {
        let error = lake.scan(&SplitSpec { fragments: fragments.clone(), ..good.clone() }).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{fragments:?}");
    }
    let error = lake.scan(&SplitSpec { version: 2, ..good.clone() }).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::TableVersionNotFound);
    let error = lake.scan(&SplitSpec { table: table("u"), ..good.clone() }).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::TableNotFound);
    assert!(read_ticket(&lake, &SplitSpec { fragments: vec![], ..good }).await.is_empty());
}

/// Strings that files hold in almost no bytes, so that nothing but their rows tells how wide they are.
fn wide_strings(rows: usize, bytes: usize) -> RecordBatch {
    let wide = "x".repeat(bytes);
    let strings: ArrayRef = Arc::new(LargeStringArray::from_iter_values((0..rows).map(|_| wide.as_str())));
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    RecordBatch::try_from_iter([("id", id), ("s", strings)]).unwrap()
}

#[tokio::test]
async fn wide_rows_come_in_batches_of_few_rows() {
    let (folder, lake) = local_lake().await;
    for (version, name) in [("2.0", "t"), ("2.1", "u"), ("2.2", "v")] {
        let uri = folder.path().join(format!("warehouse/{name}.lance"));
        let params = WriteParams { data_storage_version: Some(version.parse().unwrap()), ..Default::default() };
        let rows = wide_strings(96, 1 << 20);
        InsertBuilder::new(uri.to_str().unwrap()).with_params(&params).execute(vec![rows]).await.unwrap();
        for filter in [None, sql("id >= 10"), sql("s LIKE 'x%' AND id >= 10")] {
            let spec = ScanSpec { filter: filter.clone(), ..spec(name) };
            let plan = lake.plan_scan(&spec).await.unwrap();
            let mut rows = 0;
            for split in &plan.splits {
                let mut stream = lake.scan(&ticket(&spec, &plan, split)).await.unwrap();
                while let Some(batch) = stream.try_next().await.unwrap() {
                    // What a batch holds on to, not only what it shows.
                    let held = batch.column(1).to_data().buffers()[1].len();
                    assert!(held <= 4 << 20, "{held} bytes in {version} {filter:?}");
                    rows += batch.num_rows();
                }
            }
            assert_eq!(rows, if filter.is_none() { 96 } else { 86 });
        }
    }
}

#[tokio::test]
async fn rows_of_8_mib_are_read_and_one_above_the_bound_is_an_error_that_names_it() {
    let (folder, lake) = local_lake().await;
    foreign(&folder, "t", wide_strings(3, 8 << 20), 10).await;
    assert_eq!(read(&lake, &spec("t")).await.unwrap().num_rows(), 3);
    let warehouse = folder.path().join("warehouse").to_str().unwrap().to_owned();
    let scan = ScanOptions { max_row_bytes: 4 << 20, ..Default::default() };
    let strict = Lake::open(LakeOptions { warehouse, scan, ..Default::default() }).await.unwrap();
    let error = read(&strict, &spec("t")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RowTooLarge);
    assert!(error.message().contains("8388624") && error.message().contains("4194304"), "{error}");
    let narrow = ScanSpec { projection: Some(vec![vec!["id".into()]]), ..spec("t") };
    assert_eq!(read(&strict, &narrow).await.unwrap().num_rows(), 3);
}

#[tokio::test]
async fn batches_keep_the_bounds_that_the_client_sets() {
    let (folder, lake) = local_lake().await;
    foreign(&folder, "t", ids(0..10_000), 100_000).await;
    let spec = spec("t");
    let plan = lake.plan_scan(&spec).await.unwrap();
    for (batch_rows, batch_bytes, most) in
        [(Some(100), None, 100), (None, Some(800), 200), (Some(7), Some(1 << 20), 7), (None, Some(1), 1)]
    {
        let ticket = SplitSpec { batch_rows, batch_bytes, ..ticket(&spec, &plan, &plan.splits[0]) };
        let batches: Vec<RecordBatch> = lake.scan(&ticket).await.unwrap().try_collect().await.unwrap();
        assert!(batches.iter().all(|batch| batch.num_rows() <= most), "{batch_rows:?} {batch_bytes:?}");
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 10_000);
    }
}

#[tokio::test]
async fn a_scalar_index_changes_no_result() {
    use lance::index::{DatasetIndexExt, IndexParams};
    use lance_index::IndexType;
    use lance_index::scalar::ScalarIndexParams;
    let (folder, lake) = local_lake().await;
    let mut dataset = foreign(&folder, "t", ids(0..500), 100).await;
    let params: &dyn IndexParams = &ScalarIndexParams::default();
    dataset.create_index(&["id"], IndexType::BTree, None, params, false).await.unwrap();
    dataset.delete("id % 10 = 3").await.unwrap();
    foreign(&folder, "t", ids(500..600), 100).await;
    let between =
        call(Operator::Between, vec![column("id"), literal(Literal::Integer(95)), literal(Literal::Integer(520))]);
    let wanted: Vec<i64> = (95..=520).filter(|id| *id >= 500 || id % 10 != 3).collect();
    for filter in [sql("id BETWEEN 95 AND 520"), expression(between)] {
        for split_bytes in [1, 1 << 30] {
            let spec = ScanSpec { filter: filter.clone(), split_bytes: Some(split_bytes), ..spec("t") };
            assert_eq!(read_ids(&lake, &spec).await, wanted);
            let limited = ScanSpec { limit: Some(50), ..spec };
            assert_eq!(read_ids(&lake, &limited).await, wanted[..50]);
        }
        let (count, _) = lake.count_rows(&table("t"), &VersionSelector::Latest, filter.as_ref()).await.unwrap();
        assert_eq!(count, wanted.len() as u64);
    }
    let described = lake.describe(&table("t"), &VersionSelector::Latest).await.unwrap();
    assert_eq!(described.indexes[0].columns, ["id"]);
}

#[tokio::test]
async fn every_comparable_type_is_found_by_equality_range_and_list() {
    let (folder, lake) = local_lake().await;
    let decimal = |unscaled, scale| Literal::Decimal { unscaled, scale };
    let instant = |seconds| Literal::Timestamp { seconds, nanos: 0, zoned: true };
    let text = |value: &str| Literal::String(value.to_owned());
    let binary = |value: &[u8]| Literal::Binary(value.to_owned());
    let decimals = Decimal128Array::from(vec![100, 250]).with_precision_and_scale(10, 2).unwrap();
    let columns: Vec<(&str, ArrayRef, Literal, Literal)> = vec![
        ("i8", Arc::new(Int8Array::from(vec![1, 2])), Literal::Integer(1), Literal::Unsigned(2)),
        ("u64", Arc::new(UInt64Array::from(vec![1, u64::MAX])), Literal::Integer(1), Literal::Unsigned(u64::MAX)),
        ("f32", Arc::new(Float32Array::from(vec![0.1, 0.2])), Literal::Float32(0.1), Literal::Float32(0.2)),
        ("f64", Arc::new(Float64Array::from(vec![0.1, 2.0])), Literal::Float64(0.1), Literal::Integer(2)),
        ("dec", Arc::new(decimals), Literal::Integer(1), decimal(25, 1)),
        ("date", Arc::new(Date32Array::from(vec![-1, 19_723])), Literal::Date(-1), Literal::Date(19_723)),
        (
            "time",
            Arc::new(Time32MillisecondArray::from(vec![0, 1_500])),
            Literal::Time(0),
            Literal::Time(1_500_000_000),
        ),
        (
            "ts",
            Arc::new(TimestampNanosecondArray::from(vec![0, 1_000_000_000]).with_timezone("UTC")),
            instant(0),
            instant(1),
        ),
        ("s", Arc::new(StringArray::from(vec!["a", "ü"])), text("a"), text("ü")),
        (
            "dict",
            Arc::new(DictionaryArray::<arrow_array::types::Int32Type>::from_iter(["a", "b"])),
            text("a"),
            text("b"),
        ),
        ("bin", Arc::new(BinaryArray::from(vec![&b"\x00"[..], b"\xff"])), binary(b"\x00"), binary(b"\xff")),
        (
            "fsb",
            Arc::new(FixedSizeBinaryArray::try_from_iter([[0_u8; 2], [1; 2]].iter()).unwrap()),
            binary(&[0; 2]),
            binary(&[1; 2]),
        ),
        ("flag", Arc::new(BooleanArray::from(vec![false, true])), Literal::Boolean(false), Literal::Boolean(true)),
    ];
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let all = [("id", id)].into_iter().chain(columns.iter().map(|(name, array, ..)| (*name, array.clone())));
    foreign(&folder, "t", RecordBatch::try_from_iter(all).unwrap(), 10).await;
    for (name, _, low, high) in columns {
        let with = |operator, literals: &[&Literal]| {
            let arguments = literals.iter().map(|l| literal((*l).clone()));
            let filter = call(operator, [column(name)].into_iter().chain(arguments).collect());
            ScanSpec { filter: expression(filter), projection: Some(vec![vec!["id".into()]]), ..spec("t") }
        };
        assert_eq!(read_ids(&lake, &with(Operator::Equal, &[&low])).await, [1], "{name}");
        assert_eq!(read_ids(&lake, &with(Operator::Greater, &[&low])).await, [2], "{name}");
        assert_eq!(read_ids(&lake, &with(Operator::LessOrEqual, &[&low])).await, [1], "{name}");
        assert_eq!(read_ids(&lake, &with(Operator::In, &[&high, &Literal::Null])).await, [2], "{name}");
        assert_eq!(read_ids(&lake, &with(Operator::Between, &[&low, &high])).await, [1, 2], "{name}");
    }
}
