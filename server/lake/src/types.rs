//! The words that this crate and its callers share.

use std::collections::{BTreeMap, HashMap};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use chrono::{DateTime, Utc};

/// A table as a client names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TableId {
    /// Namespaces from the outside in, then the table.
    Name(Vec<String>),
    /// URI or absolute path.
    Uri(String),
}

/// Which version is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum VersionSelector {
    /// The newest.
    #[default]
    Latest,
    /// This one.
    Version(u64),
    /// The one this tag names.
    Tag(String),
    /// The newest not younger than this.
    AsOf(DateTime<Utc>),
}

/// A column or nested field: names from the top down, exact.
pub type ColumnPath = Vec<String>;

/// Rows to keep.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// From programs.
    Expression(Expression),
    /// From people.
    Sql(String),
}

/// A typed expression over one row.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// The value of a column.
    Column(ColumnPath),
    /// A constant.
    Literal(Literal),
    /// An operator over its arguments.
    Call(Operator, Vec<Expression>),
}

/// See `lancegateway.v1.Operator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
    Not,
    IsNull,
    IsNotNull,
    In,
    Like,
    Between,
    IsTrue,
    IsFalse,
}

/// A constant with its type; it is cast to the type of the column beside it if that loses nothing.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Literal {
    Null,
    Boolean(bool),
    Integer(i64),
    Unsigned(u64),
    Float32(f32),
    Float64(f64),
    String(String),
    Binary(Vec<u8>),
    /// unscaled * 10^-scale
    Decimal {
        unscaled: i128,
        scale: i8,
    },
    /// Days since 1970-01-01.
    Date(i32),
    /// Nanoseconds since midnight.
    Time(i64),
    /// Whole seconds (rounded down) and nanoseconds since the epoch; `zoned`: an instant, else wall clock.
    Timestamp {
        seconds: i64,
        nanos: i32,
        zoned: bool,
    },
}

/// What a scan reads, before it is cut into splits.
#[derive(Debug, Clone)]
pub struct ScanSpec {
    /// The table.
    pub table: TableId,
    /// Its version.
    pub version: VersionSelector,
    /// None: all columns. Empty: none.
    pub projection: Option<Vec<ColumnPath>>,
    /// Rows to keep.
    pub filter: Option<Filter>,
    /// Rows over all splits together.
    pub limit: Option<u64>,
    /// Columns that Lance keeps.
    pub metadata: RowMetadata,
    /// Wished bytes of a split.
    pub split_bytes: Option<u64>,
    /// Most splits.
    pub max_splits: Option<usize>,
}

/// Columns that Lance keeps for each row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RowMetadata {
    pub row_id: bool,
    pub row_address: bool,
    pub row_versions: bool,
}

/// A plan: everything pinned.
#[derive(Debug, Clone)]
pub struct ScanPlan {
    /// Schema of the batches.
    pub schema: SchemaRef,
    /// The pinned version.
    pub version: u64,
    /// Rows before the filter, bounded by the limit.
    pub num_rows: u64,
    /// Bytes of the data files that are read, scaled to the rows.
    pub num_bytes: u64,
    /// At least one, unless there is nothing to read.
    pub splits: Vec<PlannedSplit>,
}

/// One split of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedSplit {
    /// In reading order.
    pub fragments: Vec<FragmentRange>,
    /// Limit of this split alone. Splits of a limited scan without a filter carry their exact share; a limited scan with a
    /// filter is one split.
    pub limit: Option<u64>,
    /// Rows before the filter.
    pub num_rows: u64,
    /// As in the plan.
    pub num_bytes: u64,
}

/// A fragment, or a range of its live rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentRange {
    /// Lance's id.
    pub fragment_id: u64,
    /// First row, not counting deleted ones.
    pub first_row: u64,
    /// None: to the end.
    pub num_rows: Option<u64>,
}

/// One split to read.
#[derive(Debug, Clone)]
pub struct SplitSpec {
    /// The table.
    pub table: TableId,
    /// The pinned version.
    pub version: u64,
    /// None: all columns. Empty: none.
    pub projection: Option<Vec<ColumnPath>>,
    /// Rows to keep.
    pub filter: Option<Filter>,
    /// Most rows of this split, counted from its first row (not from `row_offset`).
    pub limit: Option<u64>,
    /// Columns that Lance keeps.
    pub metadata: RowMetadata,
    /// Rows of one batch.
    pub batch_rows: Option<usize>,
    /// Bytes of one batch.
    pub batch_bytes: Option<usize>,
    /// What is read.
    pub fragments: Vec<FragmentRange>,
    /// Result rows that are skipped.
    pub row_offset: u64,
}

/// What changes are read, before they are cut into parts.
#[derive(Debug, Clone)]
pub struct ChangesSpec {
    /// The table.
    pub table: TableId,
    /// None: all columns of the last version.
    pub projection: Option<Vec<ColumnPath>>,
    /// Where they begin.
    pub after: ChangesStart,
    /// Whether the rows of that version come first.
    pub initial: bool,
    /// The last version.
    pub to: VersionSelector,
    /// Readers among which they are spread.
    pub parts: usize,
}

/// The version after which changes begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesStart {
    /// This one; 0: before the first.
    After(VersionSelector),
    /// The oldest that there is.
    Oldest,
}

/// A plan: both ends pinned.
#[derive(Debug, Clone)]
pub struct ChangesPlan {
    /// Schema of the batches.
    pub schema: SchemaRef,
    /// At least one.
    pub splits: Vec<ChangesSplit>,
}

/// One part of the changes. See `lancegateway.v1.ChangesSplit`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ChangesSplit {
    pub after: u64,
    pub initial: bool,
    pub to: u64,
    pub part: u32,
    pub parts: u32,
    pub rows_at_once: u64,
    pub incarnation: String,
}

/// One part to read.
#[derive(Debug, Clone)]
pub struct ChangesRead {
    /// The table.
    pub table: TableId,
    /// None: all columns of the last version.
    pub projection: Option<Vec<ColumnPath>>,
    /// Rows of one batch.
    pub batch_rows: Option<usize>,
    /// Bytes of one batch.
    pub batch_bytes: Option<usize>,
    /// What is read.
    pub split: ChangesSplit,
    /// Result rows that are skipped.
    pub row_offset: u64,
}

/// How a table is created.
#[derive(Debug, Clone, Default)]
pub struct CreateOptions {
    /// `2.0`, `2.1`, `2.2`; None: the configured one.
    pub data_storage_version: Option<String>,
    /// Columns of the key, in order.
    pub primary_key: Vec<String>,
    /// Kept in the configuration of the table.
    pub properties: HashMap<String, String>,
}

/// What commits do to present rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// Rows are added.
    #[default]
    Append,
    /// The first commit of a run replaces everything, the later ones add.
    Overwrite,
    /// Rows are changes by key.
    Merge,
}

/// Which rows a merge is about.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangedRows<'a> {
    /// The columns that tell them apart; those of the primary key if there is none.
    pub key: &'a [String],
    /// They are told apart by their ids instead, as they were chosen: they are changed, and none is added.
    pub by_id: bool,
    /// The version in which they were chosen, if it matters.
    pub chosen_in: Option<u64>,
}

impl<'a> ChangedRows<'a> {
    /// Those of the keys that come.
    pub fn of(key: &'a [String]) -> Self {
        Self { key, ..Self::default() }
    }
}

/// A begun write.
#[derive(Debug, Clone)]
pub struct BegunWrite {
    /// Opaque handle for `stage` and `prepare`.
    pub write: Bytes,
    /// Schema that staged batches must have.
    pub schema: SchemaRef,
    /// Version of the table as seen.
    pub version: u64,
    /// Whether this call created it.
    pub created: bool,
}

/// How far a stage has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageProgress {
    /// Rows taken.
    pub num_rows: u64,
    /// Bytes taken (Arrow memory).
    pub num_bytes: u64,
    /// Rows in closed data files.
    pub num_durable_rows: u64,
}

/// A finished stage.
#[derive(Debug, Clone)]
pub struct Staged {
    /// Opaque, checksummed. Empty if no row came.
    pub staged: Bytes,
    /// Rows.
    pub num_rows: u64,
    /// Bytes of the data files.
    pub num_bytes: u64,
}

/// Identity of a commit, drawn by the client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CommitId {
    /// UUID of the client's incarnation.
    pub epoch: String,
    /// 1, 2, 3, ...
    pub seq: u64,
}

/// A sealed checkpoint.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Opaque, checksummed.
    pub committable: Bytes,
    /// Rows.
    pub num_rows: u64,
    /// Bytes of the data files.
    pub num_bytes: u64,
}

/// A commit that is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// What was committed.
    pub id: CommitId,
    /// Into which table.
    pub table: TableId,
    /// 0: so long ago that the table does not know.
    pub version: u64,
    /// Whether an earlier call did it.
    pub already_committed: bool,
    /// Of a merge, as far as the table remembers it.
    pub merged: Option<MergeCounts>,
}

/// What a column is set to.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// A column of the table.
    pub column: String,
    /// Its value.
    pub value: Assigned,
}

/// See [`Assignment`].
#[derive(Debug, Clone, PartialEq)]
pub enum Assigned {
    /// The same in all rows.
    Literal(Literal),
    /// An expression over the columns of the row as it was.
    Sql(String),
}

/// What a merge does with rows that are there and rows that come. By default it is an upsert.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MergeRule {
    /// A key that comes and is there.
    pub when_matched: WhenMatched,
    /// A key that comes and is not there.
    pub when_not_matched: WhenNotMatched,
    /// A row that is there, and whose key does not come.
    pub when_not_matched_by_source: WhenNotMatchedBySource,
    /// Whether a key that comes twice is an error; else the last row of it wins.
    pub refuse_duplicates: bool,
}

/// See [`MergeRule`].
#[derive(Debug, Clone, Default, PartialEq)]
pub enum WhenMatched {
    /// The row is replaced.
    #[default]
    UpdateAll,
    /// The row is replaced if this holds of `source.COLUMN`, the row that comes, and `target.COLUMN`, the row that is there.
    UpdateIf(Filter),
    /// The row stays.
    DoNothing,
    /// It is an error.
    Fail,
    /// The row is deleted.
    Delete,
}

/// See [`MergeRule`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// The row is added.
    #[default]
    InsertAll,
    /// The row is left out.
    DoNothing,
}

/// See [`MergeRule`].
#[derive(Debug, Clone, Default, PartialEq)]
pub enum WhenNotMatchedBySource {
    /// The row stays.
    #[default]
    Keep,
    /// The row is deleted.
    Delete,
    /// The row is deleted if this holds of it.
    DeleteIf(Filter),
}

/// What became of the distinct keys of a merge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// Were not there.
    pub num_inserted: u64,
    /// Were there.
    pub num_updated: u64,
    /// Were there, and are no more.
    pub num_deleted: u64,
    /// Changed nothing: deleted ones that were not there, and those that the call leaves alone.
    pub num_unchanged: u64,
}

/// What the table knows of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitState {
    /// Nothing.
    NotCommitted,
    /// Visible since this version (0: not remembered).
    Committed(u64),
    /// Fenced.
    Aborted,
}

/// What the ledger holds of one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochInfo {
    /// Its id.
    pub epoch: String,
    /// All of 1 to this are finished.
    pub contiguous_seq: u64,
    /// Finished ones above.
    pub above: Vec<u64>,
    /// Of the finished ones, the aborted.
    pub aborted: Vec<u64>,
    /// Last change.
    pub last_commit: DateTime<Utc>,
    /// Newest commits: seq to version.
    pub versions: BTreeMap<u64, u64>,
}

/// What became of a commit id, as far as the table remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRecord {
    /// Its id.
    pub id: CommitId,
    /// Where it stands.
    pub state: RecordState,
    /// Rows that it adds; 0 if it was aborted.
    pub num_rows: u64,
    /// Bytes of its data files; 0 if it was aborted.
    pub num_bytes: u64,
    /// When it was prepared, committed, aborted.
    pub at: DateTime<Utc>,
}

/// Where a commit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordState {
    /// Sealed, and neither committed nor aborted so far.
    Prepared,
    /// Visible since this version.
    Committed(u64),
    /// Fenced.
    Aborted,
}

/// What a table knows of commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commits {
    /// All epochs in the ledger, the one that changed last first.
    pub epochs: Vec<EpochInfo>,
    /// Those that are prepared, and of each epoch the newest that are finished; newest first.
    pub records: Vec<CommitRecord>,
}

/// A table as people want to see it.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct TableDescription {
    pub schema: SchemaRef,
    pub version: u64,
    pub num_rows: u64,
    pub num_fragments: u64,
    pub num_bytes: u64,
    pub primary_key: Vec<String>,
    pub properties: BTreeMap<String, String>,
    pub data_storage_version: String,
    pub stable_row_ids: bool,
    pub indexes: Vec<IndexInfo>,
    pub committed_at: DateTime<Utc>,
}

/// An index of a table.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct IndexInfo {
    pub name: String,
    pub columns: Vec<String>,
    pub index_type: String,
}

/// A version that can be read.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct VersionInfo {
    pub version: u64,
    pub committed_at: DateTime<Utc>,
    pub operation: String,
    pub properties: BTreeMap<String, String>,
    pub num_rows: u64,
    pub num_fragments: u64,
}
