use super::*;

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

/// A condition over one value, and what it is for each.
type Leaf = (&'static str, fn(i64) -> bool);

/// A condition over a value that may be NULL, and what it is for each.
type Condition<'a> = (String, &'a dyn Fn(Option<i64>) -> Option<bool>);

/// Three-valued: NULL for NULL, whatever the condition.
fn both(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

#[tokio::test]
async fn null_stays_null_however_lists_of_one_column_are_combined() {
    let (folder, lake) = local_lake().await;
    let values = [Some(1), Some(2), Some(3), None];
    let x: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..4));
    let rows = RecordBatch::try_from_iter_with_nullable([("id", id, false), ("x", x, true)]).unwrap();
    foreign(&folder, "t", rows, 10).await;
    let leaves: [Leaf; 6] = [
        ("x IN (1)", |x| x == 1),
        ("x IN (2)", |x| x == 2),
        ("x = 1", |x| x == 1),
        ("x NOT IN (1)", |x| x != 1),
        ("x NOT IN (2)", |x| x != 2),
        ("(x = 1 OR x = 3)", |x| x == 1 || x == 3),
    ];
    let not = |value: Option<bool>| value.map(|value| !value);
    for (left, is_left) in leaves {
        for (right, is_right) in leaves {
            let joined: [(String, &dyn Fn(i64) -> bool); 2] = [
                (format!("{left} AND {right}"), &|x| is_left(x) && is_right(x)),
                (format!("{left} OR {right}"), &|x| is_left(x) || is_right(x)),
            ];
            for (text, is) in joined {
                let of = |x: Option<i64>| x.map(is);
                let wholes: [Condition; 4] = [
                    (text.clone(), &of),
                    (format!("NOT ({text})"), &|x| not(of(x))),
                    (format!("({text}) IS FALSE"), &|x| Some(of(x) == Some(false))),
                    (format!("NOT (({text}) AND x NOT IN (3))"), &|x| not(both(of(x), x.map(|x| x != 3)))),
                ];
                for (text, is) in wholes {
                    let kept = values.iter().enumerate().filter(|(_, x)| is(**x) == Some(true));
                    let wanted: Vec<i64> = kept.map(|(id, _)| id as i64).collect();
                    assert_eq!(read_ids(&lake, &ScanSpec { filter: sql(&text), ..spec("t") }).await, wanted, "{text}");
                }
            }
        }
    }
}
