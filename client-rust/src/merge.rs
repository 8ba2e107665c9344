//! Changes of rows that are there: merges, deletes and updates, each as one version and once.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::Stream;
use lance_gateway_proto::v1;
use prost::Message;

use crate::client::{Call, send};
use crate::write::BoxError;
use crate::{Client, CreateOptions, Expr, Filter, PutSummary, Result, TableId};

/// What a merge does with rows that come and rows that are there. By default it is an upsert: a row replaces the one with its key.
#[derive(Debug, Clone, Default)]
pub struct MergeOptions {
    /// The columns that tell rows apart. Empty: the primary key of the table.
    pub on: Vec<String>,
    /// A row comes whose key is there.
    pub when_matched: WhenMatched,
    /// A row comes whose key is not there.
    pub when_not_matched: WhenNotMatched,
    /// A row is there whose key does not come.
    pub when_not_matched_by_source: WhenNotMatchedBySource,
    /// Whether the last row of a key that comes more than once wins. By default that is an error.
    pub last_wins: bool,
    /// How to create the table if it is not there. None: it must be there.
    pub create: Option<CreateOptions>,
    /// A data file is closed after this many rows. None: as the gateway is configured.
    pub max_rows_per_file: Option<u64>,
    /// A UUID, the same in each repeat. None: drawn now.
    pub request_id: Option<String>,
}

/// A row comes whose key is there.
#[derive(Debug, Clone, Default)]
pub enum WhenMatched {
    /// It replaces the other.
    #[default]
    UpdateAll,
    /// It replaces the other if this holds of `source.COLUMN`, the row that comes, and `target.COLUMN`, the row that is there.
    UpdateIf(Filter),
    /// The other stays.
    DoNothing,
    /// It is an error that names the key, and nothing is changed.
    Fail,
    /// The other is deleted.
    Delete,
}

/// A row comes whose key is not there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// It is added.
    #[default]
    InsertAll,
    /// It is left out.
    DoNothing,
}

/// A row is there whose key does not come.
#[derive(Debug, Clone, Default)]
pub enum WhenNotMatchedBySource {
    /// It stays.
    #[default]
    Keep,
    /// It is deleted.
    Delete,
    /// It is deleted if this holds of it.
    DeleteIf(Filter),
}

/// Which rows are deleted or updated, and how.
#[derive(Debug, Clone, Default)]
pub struct ChangeOptions {
    /// None: all rows.
    pub filter: Option<Filter>,
    /// The version in which the rows were chosen: if the table has another one by now, nothing is changed.
    pub version: Option<u64>,
    /// A UUID, the same in each repeat. None: drawn now.
    pub request_id: Option<String>,
}

/// What a column is set to.
#[derive(Debug, Clone)]
pub enum Assigned {
    /// The same in all rows.
    Literal(Expr),
    /// SQL over the columns of the row as it was.
    Sql(String),
}

/// Rows that were deleted or updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// The version without them as they were.
    pub version: u64,
    /// How many.
    pub num_rows: u64,
    /// Whether an earlier call had done it.
    pub already_committed: bool,
}

impl Client {
    /// Merges all batches as one version; for answers that are lost see [`Client::put`].
    pub async fn merge<E: Into<BoxError>>(
        &self,
        table: impl Into<TableId>,
        schema: &SchemaRef,
        batches: impl Stream<Item = Result<RecordBatch, E>>,
        options: &MergeOptions,
    ) -> Result<PutSummary> {
        let table = table.into();
        let (command, call) = merge_command(&table, options);
        self.put_once(&table, &call, command, schema, batches).await
    }

    /// As [`merge`](Self::merge), with rows that can be had again: it is repeated until it is done once, a bounded number of times.
    pub async fn merge_repeatable<S, E>(
        &self,
        table: impl Into<TableId>,
        schema: &SchemaRef,
        batches: impl FnMut() -> S,
        options: &MergeOptions,
    ) -> Result<PutSummary>
    where
        S: Stream<Item = Result<RecordBatch, E>>,
        E: Into<BoxError>,
    {
        let table = table.into();
        let (command, call) = merge_command(&table, options);
        self.put_repeated(&table, &call, command, schema, batches).await
    }

    /// Deletes the rows of a filter as one version, once for a request id.
    pub async fn delete_rows(&self, table: impl Into<TableId>, options: &ChangeOptions) -> Result<Changed> {
        let call = call("delete rows", &options.request_id);
        let message = v1::DeleteRowsRequest {
            request_id: call.request_id.clone(),
            table: table.into().to_wire(),
            filter: options.filter.clone().map(Filter::into_wire),
            version: options.version,
        };
        let answer = send!(self.writes().delete_rows, call, message)?;
        let v1::DeleteRowsResponse { version, num_rows, already_committed } = answer;
        Ok(Changed { version, num_rows, already_committed })
    }

    /// Sets columns in the rows of a filter as one version, once for a request id.
    pub async fn update_rows(
        &self,
        table: impl Into<TableId>,
        assignments: &BTreeMap<String, Assigned>,
        options: &ChangeOptions,
    ) -> Result<Changed> {
        let call = call("update rows", &options.request_id);
        let message = v1::UpdateRowsRequest {
            request_id: call.request_id.clone(),
            table: table.into().to_wire(),
            filter: options.filter.clone().map(Filter::into_wire),
            version: options.version,
            assignments: assignments.iter().map(|(column, value)| value.to_wire(column)).collect::<Result<_>>()?,
        };
        let answer = send!(self.writes().update_rows, call, message)?;
        let v1::UpdateRowsResponse { version, num_rows, already_committed } = answer;
        Ok(Changed { version, num_rows, already_committed })
    }
}

impl Assigned {
    fn to_wire(&self, column: &str) -> Result<v1::Assignment> {
        let value = match self {
            Self::Literal(value) => v1::assignment::Value::Literal(value.clone().into_literal()?),
            Self::Sql(text) => v1::assignment::Value::Sql(text.clone()),
        };
        Ok(v1::Assignment { column: column.to_owned(), value: Some(value) })
    }
}

fn call(what: &'static str, request_id: &Option<String>) -> Call {
    let mut call = Call::changes(what);
    if let Some(id) = request_id {
        call.request_id.clone_from(id);
    }
    call
}

fn merge_command(table: &TableId, options: &MergeOptions) -> (Bytes, Call) {
    let call = call("merge", &options.request_id);
    let (when_matched, update_if) = match &options.when_matched {
        WhenMatched::UpdateAll => (v1::WhenMatched::UpdateAll, None),
        WhenMatched::UpdateIf(filter) => (v1::WhenMatched::UpdateIf, Some(filter)),
        WhenMatched::DoNothing => (v1::WhenMatched::DoNothing, None),
        WhenMatched::Fail => (v1::WhenMatched::Fail, None),
        WhenMatched::Delete => (v1::WhenMatched::Delete, None),
    };
    let when_not_matched = match options.when_not_matched {
        WhenNotMatched::InsertAll => v1::WhenNotMatched::InsertAll,
        WhenNotMatched::DoNothing => v1::WhenNotMatched::DoNothing,
    };
    let (by_source, delete_if) = match &options.when_not_matched_by_source {
        WhenNotMatchedBySource::Keep => (v1::WhenNotMatchedBySource::Keep, None),
        WhenNotMatchedBySource::Delete => (v1::WhenNotMatchedBySource::Delete, None),
        WhenNotMatchedBySource::DeleteIf(filter) => (v1::WhenNotMatchedBySource::DeleteIf, Some(filter)),
    };
    let duplicates = if options.last_wins { v1::SourceDuplicates::LastWins } else { v1::SourceDuplicates::Fail };
    let merge = v1::MergeRequest {
        table: table.to_wire(),
        request_id: call.request_id.clone(),
        on: options.on.clone(),
        when_matched: when_matched.into(),
        update_if: update_if.cloned().map(Filter::into_wire),
        when_not_matched: when_not_matched.into(),
        when_not_matched_by_source: by_source.into(),
        delete_if: delete_if.cloned().map(Filter::into_wire),
        source_duplicates: duplicates.into(),
        create: options.create.as_ref().map(CreateOptions::to_wire),
        max_rows_per_file: options.max_rows_per_file.unwrap_or_default(),
    };
    let command = v1::PutCommand { kind: Some(v1::put_command::Kind::Merge(merge)) };
    (command.encode_to_vec().into(), call)
}
