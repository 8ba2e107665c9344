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
}

/// See [`crate::WriteMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Mode {
    Append = 0,
    Overwrite = 1,
}
