//! What stands in the envelopes. Field numbers are never reused: clients keep these bytes over upgrades of the gateway.

use std::collections::BTreeMap;

use bytes::Bytes;

/// A begun write.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WriteHandle {
    /// The table by name; empty if by URI.
    #[prost(string, repeated, tag = "1")]
    pub(crate) table_name: Vec<String>,
    /// The table by URI, as the client gave it; empty if by name.
    #[prost(string, tag = "2")]
    pub(crate) table_uri: String,
    /// The incarnation of the table that the write began with.
    #[prost(string, tag = "3")]
    pub(crate) incarnation: String,
    #[prost(enumeration = "Mode", tag = "4")]
    pub(crate) mode: i32,
    /// Names the run, for overwrite.
    #[prost(string, tag = "5")]
    pub(crate) run_id: String,
    /// Arrow schema of staged batches, an IPC schema message.
    #[prost(bytes = "bytes", tag = "6")]
    pub(crate) schema_ipc: Bytes,
    /// Version of the table as seen.
    #[prost(uint64, tag = "7")]
    pub(crate) read_version: u64,
    /// Fingerprint of the Lance schema that staged files are written with.
    #[prost(uint64, tag = "8")]
    pub(crate) schema_fingerprint: u64,
    /// File format of staged files.
    #[prost(string, tag = "9")]
    pub(crate) data_storage_version: String,
    #[prost(int64, tag = "10")]
    pub(crate) created_at_ms: i64,
    /// The Lance schema that staged files are written with: `lance.file.Field`s with the ids that the files name.
    #[prost(bytes = "bytes", repeated, tag = "11")]
    pub(crate) fields: Vec<Bytes>,
    /// Its metadata.
    #[prost(btree_map = "string, string", tag = "12")]
    pub(crate) schema_metadata: BTreeMap<String, String>,
    /// For a merge: field ids of the key, in order, or [`ROW_ID`](crate::merge::ROW_ID) alone.
    #[prost(int32, repeated, tag = "13")]
    pub(crate) key: Vec<i32>,
    /// For a merge of some columns: their field ids, those of the key among them.
    #[prost(int32, repeated, tag = "14")]
    pub(crate) columns: Vec<i32>,
    /// For a merge: the version in which the rows were chosen, if it matters.
    #[prost(uint64, optional, tag = "15")]
    pub(crate) chosen_in: Option<u64>,
}

/// A finished stage.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StagedWrite {
    /// The incarnation of the table that the rows were written for.
    #[prost(string, tag = "1")]
    pub(crate) incarnation: String,
    #[prost(enumeration = "Mode", tag = "2")]
    pub(crate) mode: i32,
    #[prost(string, tag = "3")]
    pub(crate) run_id: String,
    /// `lance.table.DataFragment`s.
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub(crate) fragments: Vec<Bytes>,
    #[prost(uint64, tag = "5")]
    pub(crate) num_rows: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) num_bytes: u64,
    #[prost(int64, tag = "7")]
    pub(crate) created_at_ms: i64,
    /// From the handle.
    #[prost(uint64, tag = "8")]
    pub(crate) schema_fingerprint: u64,
    /// From the handle.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub(crate) fields: Vec<Bytes>,
    /// Of a merge.
    #[prost(message, optional, tag = "10")]
    pub(crate) changes: Option<ChangeFile>,
    /// From the handle.
    #[prost(int32, repeated, tag = "11")]
    pub(crate) key: Vec<i32>,
    /// From the handle.
    #[prost(int32, repeated, tag = "12")]
    pub(crate) columns: Vec<i32>,
    /// From the handle.
    #[prost(uint64, optional, tag = "13")]
    pub(crate) chosen_in: Option<u64>,
}

/// The changes of one stage, in the order in which they came: a stream of Arrow batches in a file of its own. Its columns are
/// named by field ids, the last one is the kind.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ChangeFile {
    /// Its name in the folder of changes.
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(uint64, tag = "2")]
    pub(crate) num_bytes: u64,
    /// Rows in it.
    #[prost(uint64, tag = "3")]
    pub(crate) num_changes: u64,
    /// Of these, the rows that say how they are from then on. If all columns are given, these are, in the same order, the rows of
    /// the fragments of the stage.
    #[prost(uint64, tag = "4")]
    pub(crate) num_upserts: u64,
}

/// All staged writes of one checkpoint.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Committable {
    /// The table by name; empty if by URI.
    #[prost(string, repeated, tag = "1")]
    pub(crate) table_name: Vec<String>,
    /// The table by URI; empty if by name.
    #[prost(string, tag = "2")]
    pub(crate) table_uri: String,
    #[prost(string, tag = "3")]
    pub(crate) incarnation: String,
    #[prost(enumeration = "Mode", tag = "4")]
    pub(crate) mode: i32,
    /// The run that decides about replacing, for overwrite.
    #[prost(string, tag = "5")]
    pub(crate) run_id: String,
    #[prost(string, tag = "6")]
    pub(crate) epoch: String,
    #[prost(uint64, tag = "7")]
    pub(crate) seq: u64,
    /// `lance.table.DataFragment`s.
    #[prost(bytes = "bytes", repeated, tag = "8")]
    pub(crate) fragments: Vec<Bytes>,
    /// `lance.file.Field`s of all files; for overwrite, the schema of the table from then on.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub(crate) fields: Vec<Bytes>,
    #[prost(btree_map = "string, string", tag = "10")]
    pub(crate) schema_metadata: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "11")]
    pub(crate) properties: BTreeMap<String, String>,
    /// Time of the oldest staged write in it.
    #[prost(int64, tag = "12")]
    pub(crate) created_at_ms: i64,
    #[prost(uint64, tag = "13")]
    pub(crate) num_rows: u64,
    #[prost(uint64, tag = "14")]
    pub(crate) num_bytes: u64,
    /// Of a merge, in the order of its fragments.
    #[prost(message, repeated, tag = "15")]
    pub(crate) changes: Vec<ChangeFile>,
    /// Of a merge, as in the handle.
    #[prost(int32, repeated, tag = "16")]
    pub(crate) key: Vec<i32>,
    /// Of a merge, as in the handle.
    #[prost(int32, repeated, tag = "17")]
    pub(crate) columns: Vec<i32>,
    /// Of a merge, as in the handle.
    #[prost(uint64, optional, tag = "18")]
    pub(crate) chosen_in: Option<u64>,
}

/// See [`crate::WriteMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Mode {
    Append = 0,
    Overwrite = 1,
    Merge = 2,
}

impl From<crate::types::WriteMode> for Mode {
    fn from(mode: crate::types::WriteMode) -> Self {
        match mode {
            crate::types::WriteMode::Append => Self::Append,
            crate::types::WriteMode::Overwrite => Self::Overwrite,
            crate::types::WriteMode::Merge => Self::Merge,
        }
    }
}

impl From<Mode> for crate::types::WriteMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Append => Self::Append,
            Mode::Overwrite => Self::Overwrite,
            Mode::Merge => Self::Merge,
        }
    }
}
