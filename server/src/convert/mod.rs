//! From messages to the words of the lake and back. Everything that a message can get wrong by itself is refused here.

pub mod changes;
mod index;
pub mod lookup;
mod merge;
pub mod search;

use std::collections::HashMap;
use std::time::Duration;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use lance_gateway_lake as lake;
use lance_gateway_proto::flight::{ipc_to_schema, schema_to_ipc};
use lance_gateway_proto::{Reason, v1};
use tonic::Status;

use crate::jobs::check_properties;
use crate::status::{from_flight, from_lake, status};

pub use index::{index_result, index_spec, index_statistics, optimize_spec};
pub use merge::{assignment, merge_counts, merge_rule};

/// Parts of a table or namespace name; deeper catalogs are not heard of.
const MAX_NAME_PARTS: usize = 16;
/// Bytes of one part.
const MAX_PART_BYTES: usize = 128;
/// Bytes of a table URI.
const MAX_URI_BYTES: usize = 2048;
/// Digits that Arrow's widest decimal holds.
const MAX_DECIMAL_DIGITS: usize = 38;
const NANOS_PER_DAY: i64 = 86_400_000_000_000;

type Result<T> = std::result::Result<T, Status>;

/// A request that is wrong by itself.
pub fn invalid(message: impl Into<String>) -> Status {
    status(Reason::InvalidArgument, message)
}

/// A required field.
pub fn required<T>(field: Option<T>, name: &str) -> Result<T> {
    field.ok_or_else(|| invalid(format!("{name} is missing")))
}

/// 0 says that nothing is said.
fn given(number: u32) -> Option<u32> {
    (number > 0).then_some(number)
}

/// A table, as a client names it.
pub fn table_id(table: Option<v1::Table>) -> Result<lake::TableId> {
    match required(table, "table")?.kind {
        Some(v1::table::Kind::Name(name)) => table_name(name.parts),
        Some(v1::table::Kind::Uri(uri)) => {
            if uri.is_empty() || uri.len() > MAX_URI_BYTES || uri.chars().any(char::is_control) {
                return Err(invalid(format!(
                    "table.uri must have 1 to {MAX_URI_BYTES} bytes and no control characters"
                )));
            }
            Ok(lake::TableId::Uri(uri))
        }
        None => Err(invalid("table needs a name or a uri")),
    }
}

/// A table by the parts of its name, also those of the PATH of a Flight descriptor.
pub fn table_name(parts: Vec<String>) -> Result<lake::TableId> {
    if parts.is_empty() {
        return Err(invalid("the table name is empty"));
    }
    check_name("table name", &parts)?;
    Ok(lake::TableId::Name(parts))
}

/// A namespace; empty is the root.
pub fn namespace(parts: Vec<String>) -> Result<Vec<String>> {
    check_name("namespace", &parts)?;
    Ok(parts)
}

fn check_name(what: &str, parts: &[String]) -> Result<()> {
    if parts.len() > MAX_NAME_PARTS {
        return Err(invalid(format!("the {what} has {} parts, at most {MAX_NAME_PARTS} are allowed", parts.len())));
    }
    match parts.iter().find(|part| !is_name_part(part)) {
        None => Ok(()),
        Some(part) => Err(invalid(format!(
            "{:?} is no part of a {what}: it must have 1 to {MAX_PART_BYTES} of the characters A-Z a-z 0-9 _ - . and not start with a dot",
            part.chars().take(MAX_PART_BYTES).collect::<String>(),
        ))),
    }
}

fn is_name_part(part: &str) -> bool {
    (1..=MAX_PART_BYTES).contains(&part.len())
        && !part.starts_with('.')
        && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

/// Which version is read.
pub fn version(selector: Option<v1::VersionSelector>) -> Result<lake::VersionSelector> {
    Ok(match selector.and_then(|s| s.kind) {
        None => lake::VersionSelector::Latest,
        Some(v1::version_selector::Kind::Version(version)) => lake::VersionSelector::Version(version),
        Some(v1::version_selector::Kind::Tag(tag)) if tag.is_empty() => return Err(invalid("version.tag is empty")),
        Some(v1::version_selector::Kind::Tag(tag)) => lake::VersionSelector::Tag(tag),
        Some(v1::version_selector::Kind::AsOf(time)) => lake::VersionSelector::AsOf(from_timestamp(&time)?),
    })
}

fn from_timestamp(time: &prost_types::Timestamp) -> Result<DateTime<Utc>> {
    u32::try_from(time.nanos)
        .ok()
        .and_then(|nanos| DateTime::from_timestamp(time.seconds, nanos))
        .ok_or_else(|| invalid("version.as_of is out of range"))
}

/// A time on the wire.
pub fn to_timestamp(time: DateTime<Utc>) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: time.timestamp(),
        // Within a leap second chrono counts on above a billion.
        nanos: i32::try_from(time.timestamp_subsec_nanos().min(999_999_999)).unwrap_or(0),
    }
}

/// Rows to keep; absent: all.
pub fn filter(filter: Option<v1::Filter>, max_depth: usize) -> Result<Option<lake::Filter>> {
    let Some(filter) = filter else { return Ok(None) };
    match filter.kind {
        Some(v1::filter::Kind::Expression(e)) => {
            expression(e, max_depth, max_depth).map(lake::Filter::Expression).map(Some)
        }
        Some(v1::filter::Kind::Sql(sql)) if sql.trim().is_empty() => Err(invalid("filter.sql is empty")),
        Some(v1::filter::Kind::Sql(sql)) => Ok(Some(lake::Filter::Sql(sql))),
        None => Err(invalid("filter needs an expression or sql")),
    }
}

fn expression(e: v1::Expression, left: usize, max_depth: usize) -> Result<lake::Expression> {
    let Some(left) = left.checked_sub(1) else {
        return Err(invalid(format!(
            "the filter is nested deeper than {max_depth}; AND and OR take any number of arguments"
        )));
    };
    match e.kind {
        Some(v1::expression::Kind::Column(column)) => column_path(column).map(lake::Expression::Column),
        Some(v1::expression::Kind::Literal(l)) => literal(l).map(lake::Expression::Literal),
        Some(v1::expression::Kind::Call(call)) => {
            let operator = operator(call.operator())?;
            check_arity(operator, call.arguments.len())?;
            let arguments =
                call.arguments.into_iter().map(|a| expression(a, left, max_depth)).collect::<Result<Vec<_>>>()?;
            Ok(lake::Expression::Call(operator, arguments))
        }
        None => Err(invalid("the filter has an expression that is no column, literal or call")),
    }
}

fn operator(operator: v1::Operator) -> Result<lake::Operator> {
    Ok(match operator {
        v1::Operator::Unspecified => return Err(invalid("the filter has a call whose operator is missing or unknown")),
        v1::Operator::Equal => lake::Operator::Equal,
        v1::Operator::NotEqual => lake::Operator::NotEqual,
        v1::Operator::Less => lake::Operator::Less,
        v1::Operator::LessOrEqual => lake::Operator::LessOrEqual,
        v1::Operator::Greater => lake::Operator::Greater,
        v1::Operator::GreaterOrEqual => lake::Operator::GreaterOrEqual,
        v1::Operator::And => lake::Operator::And,
        v1::Operator::Or => lake::Operator::Or,
        v1::Operator::Not => lake::Operator::Not,
        v1::Operator::IsNull => lake::Operator::IsNull,
        v1::Operator::IsNotNull => lake::Operator::IsNotNull,
        v1::Operator::In => lake::Operator::In,
        v1::Operator::Like => lake::Operator::Like,
        v1::Operator::Between => lake::Operator::Between,
        v1::Operator::IsTrue => lake::Operator::IsTrue,
        v1::Operator::IsFalse => lake::Operator::IsFalse,
    })
}

fn check_arity(operator: lake::Operator, found: usize) -> Result<()> {
    use lake::Operator as O;
    let (least, most) = match operator {
        O::Equal | O::NotEqual | O::Less | O::LessOrEqual | O::Greater | O::GreaterOrEqual => (2, 2),
        O::And | O::Or | O::In => (2, usize::MAX),
        O::Not | O::IsNull | O::IsNotNull | O::IsTrue | O::IsFalse => (1, 1),
        O::Like => (2, 3),
        O::Between => (3, 3),
    };
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let wanted = if least == most { least.to_string() } else { format!("at least {least}") };
    Err(invalid(format!("the filter calls {operator:?} with {found} arguments, it takes {wanted}")))
}

fn literal(literal: v1::Literal) -> Result<lake::Literal> {
    use v1::literal::Value;
    Ok(match literal.value {
        Some(Value::Null(_)) => lake::Literal::Null,
        Some(Value::Boolean(v)) => lake::Literal::Boolean(v),
        Some(Value::Integer(v)) => lake::Literal::Integer(v),
        Some(Value::Unsigned(v)) => lake::Literal::Unsigned(v),
        Some(Value::Float32(v)) => lake::Literal::Float32(v),
        Some(Value::Float64(v)) => lake::Literal::Float64(v),
        Some(Value::String(v)) => lake::Literal::String(v),
        Some(Value::Binary(v)) => lake::Literal::Binary(v.into()),
        Some(Value::Decimal(v)) => decimal(&v)?,
        Some(Value::Date(v)) => lake::Literal::Date(v),
        Some(Value::Time(v)) if !(0..NANOS_PER_DAY).contains(&v) => {
            return Err(invalid("the filter has a time literal outside of a day"));
        }
        Some(Value::Time(v)) => lake::Literal::Time(v),
        Some(Value::Timestamp(v)) if !(0..1_000_000_000).contains(&v.nanos) => {
            return Err(invalid("the filter has a timestamp literal whose nanos are not 0 to 999999999"));
        }
        Some(Value::Timestamp(v)) => lake::Literal::Timestamp { seconds: v.seconds, nanos: v.nanos, zoned: v.zoned },
        None => return Err(invalid("the filter has a literal without a value")),
    })
}

fn decimal(decimal: &v1::Decimal) -> Result<lake::Literal> {
    let digits = decimal.unscaled.strip_prefix('-').unwrap_or(&decimal.unscaled);
    let unscaled = match digits.len() {
        1..=MAX_DECIMAL_DIGITS if digits.bytes().all(|b| b.is_ascii_digit()) => decimal.unscaled.parse().ok(),
        _ => None,
    };
    match (unscaled, i8::try_from(decimal.scale)) {
        (Some(unscaled), Ok(scale)) => Ok(lake::Literal::Decimal { unscaled, scale }),
        _ => Err(invalid(format!(
            "the filter has a decimal literal that is not 1 to {MAX_DECIMAL_DIGITS} digits with a scale of -128 to 127"
        ))),
    }
}

fn column_path(column: v1::Column) -> Result<lake::ColumnPath> {
    if column.path.is_empty() || column.path.iter().any(String::is_empty) {
        return Err(invalid("a column has an empty path or an empty name in it"));
    }
    Ok(column.path)
}

/// The columns of a scan; absent: all.
pub fn projection(projection: Option<v1::Projection>) -> Result<Option<Vec<lake::ColumnPath>>> {
    projection.map(|p| p.columns.into_iter().map(column_path).collect()).transpose()
}

/// What Lance keeps for each row.
pub fn row_metadata(metadata: Option<v1::RowMetadata>) -> lake::RowMetadata {
    let m = metadata.unwrap_or_default();
    lake::RowMetadata { row_id: m.row_id, row_address: m.row_address, row_versions: m.row_versions }
}

/// A scan before it is planned.
pub fn scan_spec(request: v1::ScanRequest, max_filter_depth: usize) -> Result<lake::ScanSpec> {
    Ok(lake::ScanSpec {
        table: table_id(request.table)?,
        version: version(request.version)?,
        projection: projection(request.projection)?,
        filter: filter(request.filter, max_filter_depth)?,
        limit: request.limit,
        metadata: row_metadata(request.metadata),
        split_bytes: (request.split_bytes > 0).then_some(request.split_bytes),
        max_splits: (request.max_splits > 0).then(|| saturating(request.max_splits)),
    })
}

/// One split of a scan.
pub fn split_spec(ticket: v1::ScanTicket, max_filter_depth: usize) -> Result<lake::SplitSpec> {
    if ticket.fragments.is_empty() {
        return Err(invalid("the ticket has neither fragments nor a search"));
    }
    let batch = ticket.batch.unwrap_or_default();
    Ok(lake::SplitSpec {
        table: table_id(ticket.table)?,
        version: ticket.version,
        projection: projection(ticket.projection)?,
        filter: filter(ticket.filter, max_filter_depth)?,
        limit: ticket.limit,
        metadata: row_metadata(ticket.metadata),
        batch_rows: (batch.rows > 0).then(|| saturating(batch.rows)),
        batch_bytes: (batch.bytes > 0).then(|| saturating(batch.bytes)),
        fragments: ticket
            .fragments
            .into_iter()
            .map(|f| lake::FragmentRange { fragment_id: f.fragment_id, first_row: f.first_row, num_rows: f.num_rows })
            .collect(),
        row_offset: ticket.row_offset,
    })
}

/// The fragments of a planned split, for its ticket.
pub fn fragments(split: &lake::PlannedSplit) -> Vec<v1::FragmentRange> {
    split
        .fragments
        .iter()
        .map(|f| v1::FragmentRange { fragment_id: f.fragment_id, first_row: f.first_row, num_rows: f.num_rows })
        .collect()
}

/// A wished size: what does not fit is more than any bound.
pub fn saturating<T: TryInto<usize>>(size: T) -> usize {
    size.try_into().unwrap_or(usize::MAX)
}

/// How a table is created.
pub fn create_options(options: v1::CreateOptions) -> Result<lake::CreateOptions> {
    check_properties(&options.properties)?;
    for (key, value) in &options.properties {
        lake::check_metric_property(key, value).map_err(from_lake)?;
    }
    Ok(lake::CreateOptions {
        data_storage_version: Some(options.data_storage_version).filter(|v| !v.is_empty()),
        primary_key: options.primary_key,
        properties: options.properties,
    })
}

/// The id of a job.
pub fn job_id(id: &str) -> Result<String> {
    uuid("the id of a job", id)
}

/// Refuses a cleanup that would remove nothing or everything, and times that are none.
pub fn check_cleanup(cleanup: &v1::Cleanup) -> Result<()> {
    if cleanup.older_than.is_some_and(|age| Duration::try_from(age).is_err()) {
        return Err(invalid("cleanup.older_than must not be negative"));
    }
    if cleanup.older_than.is_none() && cleanup.keep_versions == 0 {
        return Err(invalid("a cleanup needs older_than, keep_versions or both"));
    }
    Ok(())
}

/// A cleanup that was checked.
pub fn cleanup_spec(cleanup: &v1::Cleanup) -> lake::CleanupSpec {
    lake::CleanupSpec {
        older_than: cleanup.older_than.and_then(|age| Duration::try_from(age).ok()),
        keep_versions: Some(cleanup.keep_versions).filter(|versions| *versions > 0),
        dry_run: cleanup.dry_run,
    }
}

/// A length of time on the wire.
pub fn to_duration(time: Duration) -> prost_types::Duration {
    // Beyond what the wire holds, which is 10,000 years, there is no age.
    prost_types::Duration::try_from(time).unwrap_or_default()
}

/// What commits do to present rows. `raw` is the field of a message.
pub fn write_mode(raw: i32) -> Result<lake::WriteMode> {
    match v1::WriteMode::try_from(raw) {
        Ok(v1::WriteMode::Unspecified | v1::WriteMode::Append) => Ok(lake::WriteMode::Append),
        Ok(v1::WriteMode::Overwrite) => Ok(lake::WriteMode::Overwrite),
        Ok(v1::WriteMode::Merge) => Ok(lake::WriteMode::Merge),
        Err(_) => Err(invalid(format!("the gateway knows no write mode {raw}"))),
    }
}

/// Identity of a commit.
pub fn commit_id(id: Option<v1::CommitId>) -> Result<lake::CommitId> {
    let id = required(id, "id")?;
    let epoch = uuid("id.epoch", &id.epoch)?;
    if id.seq == 0 {
        return Err(invalid("id.seq must be 1 or more"));
    }
    Ok(lake::CommitId { epoch, seq: id.seq })
}

/// The request id of a mutating call; empty if the client does not repeat calls.
pub fn request_id(id: &str) -> Result<String> {
    if id.is_empty() { Ok(String::new()) } else { uuid("request_id", id) }
}

/// The id under which the ledger knows a call; drawn if none is given.
pub fn call_id(request_id: &str) -> Result<lake::CommitId> {
    let given = self::request_id(request_id)?;
    let epoch = if given.is_empty() { uuid::Uuid::new_v4().to_string() } else { given };
    Ok(lake::CommitId { epoch, seq: 1 })
}

/// A UUID in its one canonical form, so that two spellings are one id.
fn uuid(field: &str, text: &str) -> Result<String> {
    uuid::Uuid::try_parse(text)
        .map(|id| id.hyphenated().to_string())
        .map_err(|_| invalid(format!("{field} must be a UUID")))
}

/// An optional schema message; empty is none.
pub fn schema(message: &Bytes) -> Result<Option<SchemaRef>> {
    if message.is_empty() {
        return Ok(None);
    }
    ipc_to_schema(message).map(|schema| Some(SchemaRef::new(schema))).map_err(from_flight)
}

/// A table as the wire describes it.
pub fn description(d: lake::TableDescription) -> v1::DescribeTableResponse {
    v1::DescribeTableResponse {
        schema: schema_message(&d.schema),
        version: d.version,
        num_rows: d.num_rows,
        num_fragments: d.num_fragments,
        num_bytes: d.num_bytes,
        primary_key: d.primary_key,
        properties: d.properties.into_iter().collect(),
        data_storage_version: d.data_storage_version,
        stable_row_ids: d.stable_row_ids,
        indexes: d
            .indexes
            .into_iter()
            .map(|i| v1::IndexDescription { name: i.name, columns: i.columns, r#type: i.index_type })
            .collect(),
        committed_at: Some(to_timestamp(d.committed_at)),
    }
}

/// A schema as an encapsulated Arrow IPC message.
pub fn schema_message(schema: &SchemaRef) -> Bytes {
    schema_to_ipc(schema)
}

/// A version that can be read.
pub fn table_version(v: lake::VersionInfo) -> v1::TableVersion {
    v1::TableVersion {
        version: v.version,
        committed_at: Some(to_timestamp(v.committed_at)),
        operation: v.operation,
        properties: v.properties.into_iter().collect::<HashMap<_, _>>(),
        num_rows: v.num_rows,
        num_fragments: v.num_fragments,
    }
}

/// What became of one commit.
pub fn commit_record(record: lake::CommitRecord) -> v1::CommitRecord {
    let (state, version) = match record.state {
        lake::RecordState::Prepared => (v1::CommitState::Prepared, 0),
        lake::RecordState::Committed(version) => (v1::CommitState::Committed, version),
        lake::RecordState::Aborted => (v1::CommitState::Aborted, 0),
    };
    v1::CommitRecord {
        id: Some(v1::CommitId { epoch: record.id.epoch, seq: record.id.seq }),
        state: state.into(),
        version,
        num_rows: record.num_rows,
        num_bytes: record.num_bytes,
        at: Some(to_timestamp(record.at)),
    }
}

/// What the ledger holds of one epoch.
pub fn commit_epoch(e: lake::EpochInfo) -> v1::CommitEpoch {
    v1::CommitEpoch {
        epoch: e.epoch,
        contiguous_seq: e.contiguous_seq,
        above: e.above,
        aborted: e.aborted,
        last_commit: Some(to_timestamp(e.last_commit)),
        versions: e.versions.into_iter().map(|(seq, version)| v1::CommitVersion { seq, version }).collect(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use v1::literal::Value;

    fn value(value: Value) -> v1::Expression {
        v1::Expression { kind: Some(v1::expression::Kind::Literal(v1::Literal { value: Some(value) })) }
    }

    fn call(operator: v1::Operator, arguments: Vec<v1::Expression>) -> v1::Expression {
        let call = v1::Call { operator: operator.into(), arguments };
        v1::Expression { kind: Some(v1::expression::Kind::Call(call)) }
    }

    fn read(e: v1::Expression) -> Result<lake::Expression> {
        let filter = v1::Filter { kind: Some(v1::filter::Kind::Expression(e)) };
        match super::filter(Some(filter), 3)? {
            Some(lake::Filter::Expression(e)) => Ok(e),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_have_no_way_out_of_the_warehouse() {
        for part in ["vectors", "PartyAbbrev", "user-id", "a.b", "select", &"x".repeat(128)] {
            assert!(table_name(vec![part.into()]).is_ok(), "{part}");
        }
        for part in ["", ".", "..", ".hidden", "a/b", "a\\b", "a b", "\u{e9}", "a\0", &"x".repeat(129)] {
            assert!(table_name(vec!["ns".into(), part.into()]).is_err(), "{part}");
            assert!(namespace(vec![part.into()]).is_err(), "{part}");
        }
        assert!(table_name(Vec::new()).is_err());
        assert!(namespace(Vec::new()).is_ok(), "the root");
        assert!(table_name(vec!["n".into(); 17]).is_err());
        let uri = |uri: &str| table_id(Some(v1::Table { kind: Some(v1::table::Kind::Uri(uri.into())) }));
        assert!(uri("s3://bucket/path.lance").is_ok());
        assert!(uri("").is_err() && uri("a\nb").is_err() && uri(&"x".repeat(2049)).is_err());
        assert!(table_id(None).is_err() && table_id(Some(v1::Table { kind: None })).is_err());
    }

    #[test]
    fn every_operator_is_known_and_takes_its_number_of_arguments_only() {
        for raw in 1..=16 {
            let operator = v1::Operator::try_from(raw).unwrap();
            let taken: Vec<usize> =
                (0..5).filter(|n| read(call(operator, vec![value(Value::Boolean(true)); *n])).is_ok()).collect();
            let expected: &[usize] = match operator {
                v1::Operator::And | v1::Operator::Or | v1::Operator::In => &[2, 3, 4],
                v1::Operator::Not
                | v1::Operator::IsNull
                | v1::Operator::IsNotNull
                | v1::Operator::IsTrue
                | v1::Operator::IsFalse => &[1],
                v1::Operator::Like => &[2, 3],
                v1::Operator::Between => &[3],
                _ => &[2],
            };
            assert_eq!(taken, expected, "{operator:?}");
        }
        assert!(read(call(v1::Operator::Unspecified, Vec::new())).is_err());
        assert!(v1::Operator::try_from(17).is_err(), "a new operator needs a row here");
    }

    #[test]
    fn a_filter_deeper_than_the_bound_is_refused_with_the_bound() {
        let not = |e| call(v1::Operator::Not, vec![e]);
        assert!(read(not(not(value(Value::Boolean(true))))).is_ok());
        let refused = read(not(not(not(value(Value::Boolean(true)))))).unwrap_err();
        assert!(refused.message().contains("deeper than 3"), "{refused}");
    }

    #[test]
    fn literals_out_of_their_range_are_refused() {
        let decimal =
            |unscaled: &str, scale| read(value(Value::Decimal(v1::Decimal { unscaled: unscaled.into(), scale })));
        let expected = lake::Literal::Decimal { unscaled: -1234, scale: 2 };
        assert_eq!(decimal("-1234", 2).unwrap(), lake::Expression::Literal(expected));
        assert!(decimal(&"9".repeat(38), 38).is_ok());
        for (unscaled, scale) in [("", 0), ("-", 0), ("1.5", 0), ("+1", 0), (&*"9".repeat(39), 0), ("1", 128)] {
            assert!(decimal(unscaled, scale).is_err(), "{unscaled} {scale}");
        }
        let timestamp = |nanos| read(value(Value::Timestamp(v1::TimestampLiteral { seconds: -1, nanos, zoned: true })));
        assert!(timestamp(500_000_000).is_ok());
        assert!(timestamp(-1).is_err() && timestamp(1_000_000_000).is_err());
        assert!(read(value(Value::Time(NANOS_PER_DAY - 1))).is_ok());
        assert!(read(value(Value::Time(NANOS_PER_DAY))).is_err() && read(value(Value::Time(-1))).is_err());
        let nothing = v1::Expression { kind: Some(v1::expression::Kind::Literal(v1::Literal { value: None })) };
        assert!(read(nothing).is_err() && read(v1::Expression { kind: None }).is_err());
    }

    #[test]
    fn absent_and_zero_differ_where_the_wire_says_so() {
        let table = Some(v1::Table { kind: Some(v1::table::Kind::Name(v1::TableName { parts: vec!["t".into()] })) });
        let request = v1::ScanRequest { table: table.clone(), ..Default::default() };
        let spec = scan_spec(request.clone(), 3).unwrap();
        assert_eq!((spec.limit, spec.projection, spec.split_bytes, spec.max_splits), (None, None, None, None));
        let request = v1::ScanRequest { limit: Some(0), projection: Some(v1::Projection::default()), ..request };
        let spec = scan_spec(request, 3).unwrap();
        assert_eq!((spec.limit, spec.projection), (Some(0), Some(Vec::new())));
        assert!(split_spec(v1::ScanTicket { table, ..Default::default() }, 3).is_err(), "a ticket names its fragments");
    }

    #[test]
    fn ids_are_uuids_in_one_form() {
        let id = "0123ABCD-0000-4000-8000-00000000000A";
        assert_eq!(request_id(id).unwrap(), id.to_lowercase());
        assert_eq!(request_id("").unwrap(), "");
        assert!(request_id("1").is_err());
        let commit = |epoch: &str, seq| commit_id(Some(v1::CommitId { epoch: epoch.into(), seq }));
        assert_eq!(commit(id, 1).unwrap().epoch, id.to_lowercase());
        assert!(commit(id, 0).is_err() && commit("", 1).is_err() && commit_id(None).is_err());
        assert!(write_mode(4).is_err());
    }

    #[test]
    fn times_keep_their_nanoseconds_before_the_epoch_too() {
        let time = prost_types::Timestamp { seconds: -1, nanos: 500_000_000 };
        assert_eq!(to_timestamp(from_timestamp(&time).unwrap()), time);
        assert!(from_timestamp(&prost_types::Timestamp { seconds: 0, nanos: -1 }).is_err());
        assert!(from_timestamp(&prost_types::Timestamp { seconds: i64::MAX, nanos: 0 }).is_err());
    }

    #[test]
    fn bytes_that_are_no_schema_are_refused() {
        assert!(schema(&Bytes::from_static(b"no schema")).is_err());
        assert!(schema(&Bytes::new()).unwrap().is_none());
    }
}
