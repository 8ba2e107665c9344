//! Writing once: begin, stage, prepare, commit; and the same in one call.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{Stream, StreamExt, pin_mut};
use lance_gateway_proto::{Reason, v1};
use prost::Message;
use uuid::Uuid;

use crate::client::{Call, send};
use crate::error::Effect;
use crate::flight::PutStream;
use crate::ids::time_from_wire;
use crate::retry::repeat;
use crate::{Client, CommitId, CreateOptions, Error, Result, TableId, schema};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a write does to the rows that are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// They stay.
    #[default]
    Append,
    /// The first commit replaces all rows and the schema, the later ones append.
    Overwrite,
    /// Rows are changes by key: see [`Write::schema`].
    Merge,
}

impl WriteMode {
    fn to_wire(self) -> i32 {
        match self {
            Self::Append => v1::WriteMode::Append.into(),
            Self::Overwrite => v1::WriteMode::Overwrite.into(),
            Self::Merge => v1::WriteMode::Merge.into(),
        }
    }
}

/// How a staged write begins.
#[derive(Debug, Clone, Default)]
pub struct BeginOptions {
    /// Schema of the rows. None: the table's. For [`WriteMode::Merge`] it may have some of the columns only: the others of a row
    /// that is there stay as they are.
    pub schema: Option<SchemaRef>,
    /// How to create the table if it is not there. None: it must be there.
    pub create: Option<CreateOptions>,
    /// What becomes of the rows that are there.
    pub mode: WriteMode,
    /// For [`WriteMode::Merge`]: the columns that tell rows apart. Empty: the primary key of the table.
    pub key: Vec<String>,
    /// For [`WriteMode::Merge`]: the version in which the rows were chosen. The commit is refused if another one has changed rows
    /// since.
    pub read_version: Option<u64>,
    /// For [`WriteMode::Merge`]: rows are told apart by their `_rowid` in [`read_version`](Self::read_version).
    pub by_row_id: bool,
    /// Names a run of a job, for overwriting once: drawn at random at the first start, and kept over restarts. None: drawn
    /// now.
    pub run_id: Option<String>,
}

/// A begun write. Rows are staged with [`stage`](Self::stage), by any number of writers in any number of processes: send
/// them the handle and let them [`attach`](Client::attach_write).
#[derive(Debug, Clone)]
pub struct Write {
    client: Client,
    table: TableId,
    handle: Bytes,
    schema: SchemaRef,
    created: bool,
}

/// Rows that lie in data files and that nobody sees yet. Opaque, a few KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// What [`Write::prepare`] takes; empty if no row was staged.
    pub bytes: Bytes,
    /// Rows.
    pub num_rows: u64,
    /// Bytes of the data files.
    pub num_bytes: u64,
}

/// A prepared commit. Keep it durably before it is committed: it can be committed by anybody, any number of times, with one
/// effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committable {
    /// The table.
    pub table: TableId,
    /// Its identity.
    pub id: CommitId,
    /// Opaque and checksummed.
    pub bytes: Bytes,
}

/// A commit that is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The version that made the rows visible; 0 if that is so long ago that the table does not know.
    pub version: u64,
    /// Whether an earlier call had done it.
    pub already_committed: bool,
    /// What became of the keys of a merge, as far as the table remembers it.
    pub merged: Option<MergeCounts>,
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

impl MergeCounts {
    fn from_wire(counts: v1::MergeCounts) -> Self {
        let v1::MergeCounts { num_inserted, num_updated, num_deleted, num_unchanged } = counts;
        Self { num_inserted, num_updated, num_deleted, num_unchanged }
    }
}

/// What a table knows of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitState {
    /// Nothing: it is not committed, so far.
    NotCommitted,
    /// It is visible since this version; 0: not remembered.
    Committed(u64),
    /// It was aborted and can never be committed.
    Aborted,
}

/// What became of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitRecord {
    /// Its id.
    pub id: CommitId,
    /// [`CommitState::NotCommitted`]: it is prepared, so far no more.
    pub state: CommitState,
    /// Rows that it adds; 0 if it was aborted.
    pub num_rows: u64,
    /// Bytes that it adds; 0 if it was aborted.
    pub num_bytes: u64,
    /// When it was prepared, committed or aborted.
    pub at: Option<DateTime<Utc>>,
}

/// How a write in one call is done.
#[derive(Debug, Clone, Default)]
pub struct PutOptions {
    /// Append or overwrite.
    pub mode: WriteMode,
    /// How to create the table if it is not there. None: it must be there.
    pub create: Option<CreateOptions>,
    /// A data file is closed after this many rows. None: as the gateway is configured.
    pub max_rows_per_file: Option<u64>,
    /// A UUID, the same in each repeat. None: drawn now.
    pub request_id: Option<String>,
}

/// What a write in one call has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutSummary {
    /// The version that made the rows visible.
    pub version: u64,
    /// Rows.
    pub num_rows: u64,
    /// Bytes of the data files.
    pub num_bytes: u64,
    /// What a repeat must carry.
    pub request_id: String,
    /// What became of the keys of a merge, as far as the table remembers it.
    pub merged: Option<MergeCounts>,
}

impl Client {
    /// Opens a table for a staged write, and creates it when asked: once, whoever races.
    pub async fn begin_write(&self, table: impl Into<TableId>, options: &BeginOptions) -> Result<Write> {
        let table = table.into();
        let call = Call::changes("begin write");
        let run_id = match (options.mode, &options.run_id) {
            (_, Some(run)) => run.clone(),
            (WriteMode::Overwrite, None) => Uuid::new_v4().to_string(),
            (WriteMode::Append | WriteMode::Merge, None) => String::new(),
        };
        let message = v1::BeginWriteRequest {
            request_id: call.request_id.clone(),
            table: table.to_wire(),
            schema: options.schema.as_deref().map(schema::to_wire).unwrap_or_default(),
            create: options.create.as_ref().map(CreateOptions::to_wire),
            mode: options.mode.to_wire(),
            run_id,
            key: options.key.clone(),
            read_version: options.read_version,
            by_row_id: options.by_row_id,
        };
        let answer = send!(self.writes().begin_write, call, message)?;
        let schema = schema::from_wire(&answer.schema)?;
        Ok(Write { client: self.clone(), table, handle: answer.write, schema, created: answer.created })
    }

    /// Takes part in a write that another process began.
    pub fn attach_write(&self, table: impl Into<TableId>, handle: impl Into<Bytes>, schema: SchemaRef) -> Write {
        Write { client: self.clone(), table: table.into(), handle: handle.into(), schema, created: false }
    }

    /// Makes a committable visible, once, however often it is called and whoever calls. An answer that is lost is asked for
    /// again; if the outcome stays unknown, so says the error, and the same call may be made later.
    pub async fn commit(&self, committable: &Committable) -> Result<Committed> {
        let call = Call::changes("commit");
        let message = v1::CommitRequest { committable: committable.bytes.clone() };
        let error = match send!(self.writes().commit, call, message) {
            Ok(answer) => {
                return Ok(Committed {
                    version: answer.version,
                    already_committed: answer.already_committed,
                    merged: answer.merged.map(MergeCounts::from_wire),
                });
            }
            Err(error) if error.is_outcome_unknown() => error,
            Err(error) => return Err(error),
        };
        match self.known(&committable.table, &committable.id).await {
            Ok((CommitState::Committed(version), merged)) => Ok(Committed { version, already_committed: true, merged }),
            Ok((CommitState::Aborted, _)) => {
                Err(Error::refused(Reason::CommitAborted, format!("commit {} was aborted", committable.id)))
            }
            // An attempt may still be under way, so "not committed" is not the last word.
            Ok((CommitState::NotCommitted, _)) | Err(_) => Err(error),
        }
    }

    /// Fences a commit, so that a late [`commit`](Self::commit) is refused, and deletes what was staged. Returns how many
    /// files were deleted.
    pub async fn abort(&self, committable: &Committable) -> Result<u64> {
        self.abort_kind(v1::abort_request::Kind::Committable(committable.bytes.clone())).await
    }

    /// Fences a commit by its id alone; the staged files go with the gateway's next sweep.
    pub async fn abort_id(&self, table: impl Into<TableId>, id: &CommitId) -> Result<()> {
        let commit = v1::TableCommit { table: table.into().to_wire(), id: id.to_wire() };
        self.abort_kind(v1::abort_request::Kind::Commit(commit)).await.map(|_| ())
    }

    async fn abort_kind(&self, kind: v1::abort_request::Kind) -> Result<u64> {
        let message = v1::AbortRequest { kind: Some(kind) };
        Ok(send!(self.writes().abort, Call::changes("abort"), message)?.num_files)
    }

    /// What the table knows of a commit.
    pub async fn get_commit(&self, table: impl Into<TableId>, id: &CommitId) -> Result<CommitState> {
        Ok(self.known(&table.into(), id).await?.0)
    }

    async fn known(&self, table: &TableId, id: &CommitId) -> Result<(CommitState, Option<MergeCounts>)> {
        let message = v1::GetCommitRequest { table: table.to_wire(), id: id.to_wire() };
        let answer = send!(self.writes().get_commit, Call::reads("get commit"), message)?;
        let merged = answer.merged.map(MergeCounts::from_wire);
        Ok((CommitState::from_wire(answer.state(), answer.version), merged))
    }

    /// Commits that are prepared, and of each epoch the newest that are finished; newest first.
    pub async fn list_commits(&self, table: impl Into<TableId>) -> Result<Vec<CommitRecord>> {
        let message = v1::ListCommitsRequest { table: table.into().to_wire() };
        let answer = send!(self.writes().list_commits, Call::reads("list commits"), message)?;
        answer.commits.into_iter().map(CommitRecord::from_wire).collect()
    }

    /// Writes all batches as one version. A reply that is lost is looked up in the table's ledger. If the outcome stays
    /// unknown, [`Error::request_id`] is what a repeat must carry: of a put that is finished it answers the same and writes
    /// nothing.
    ///
    /// If the stream of batches fails, nothing is written.
    pub async fn put<E: Into<BoxError>>(
        &self,
        table: impl Into<TableId>,
        schema: &SchemaRef,
        batches: impl Stream<Item = Result<RecordBatch, E>>,
        options: &PutOptions,
    ) -> Result<PutSummary> {
        let table = table.into();
        let (command, call) = put_command(&table, options);
        self.put_once(&table, &call, command, schema, batches).await
    }

    /// As [`put`](Self::put), with rows that can be had again: the put is repeated until it is done once, a bounded number of
    /// times.
    pub async fn put_repeatable<S, E>(
        &self,
        table: impl Into<TableId>,
        schema: &SchemaRef,
        batches: impl FnMut() -> S,
        options: &PutOptions,
    ) -> Result<PutSummary>
    where
        S: Stream<Item = Result<RecordBatch, E>>,
        E: Into<BoxError>,
    {
        let table = table.into();
        let (command, call) = put_command(&table, options);
        self.put_repeated(&table, &call, command, schema, batches).await
    }

    pub(crate) async fn put_repeated<S, E>(
        &self,
        table: &TableId,
        call: &Call,
        command: Bytes,
        schema: &SchemaRef,
        mut batches: impl FnMut() -> S,
    ) -> Result<PutSummary>
    where
        S: Stream<Item = Result<RecordBatch, E>>,
        E: Into<BoxError>,
    {
        repeat(&self.options().retry, Effect::Changes, || {
            self.put_once(table, call, command.clone(), schema, batches())
        })
        .await
    }

    pub(crate) async fn put_once<E: Into<BoxError>>(
        &self,
        table: &TableId,
        call: &Call,
        command: Bytes,
        schema: &SchemaRef,
        batches: impl Stream<Item = Result<RecordBatch, E>>,
    ) -> Result<PutSummary> {
        let mut stream = PutStream::open(self, call.clone(), command, schema);
        let (mut num_rows, mut num_bytes) = (0, 0);
        pin_mut!(batches);
        let sent = async {
            while let Some(batch) = batches.next().await {
                let batch = batch.map_err(Error::input)?;
                num_rows += batch.num_rows() as u64;
                num_bytes += batch.get_array_memory_size() as u64;
                stream.write(&batch).await?;
            }
            stream.finish().await
        };
        let request_id = call.request_id.clone();
        match sent.await {
            Ok(ack) if ack.is_empty() => Err(Error::protocol("the gateway ended the put without a summary")),
            Ok(ack) => {
                let ack = v1::PutAck::decode(ack)
                    .map_err(|e| Error::protocol(format!("the gateway sent no summary of the put: {e}")))?;
                let v1::PutAck { version, num_rows, num_bytes, merged } = ack;
                let merged = merged.map(MergeCounts::from_wire);
                Ok(PutSummary { version, num_rows, num_bytes, request_id, merged })
            }
            Err(error) if error.is_outcome_unknown() => match self.known(table, &put_commit(&request_id)).await {
                Ok((CommitState::Committed(version), merged)) => {
                    Ok(PutSummary { version, num_rows, num_bytes, request_id, merged })
                }
                // It may still be under way, so "not committed" is not the last word.
                Ok((CommitState::NotCommitted | CommitState::Aborted, _)) | Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
        .map_err(|error| error.with_request_id(&call.request_id))
    }
}

/// How the ledger of a table knows a put.
fn put_commit(request_id: &str) -> CommitId {
    CommitId { epoch: request_id.to_owned(), seq: 1 }
}

fn put_command(table: &TableId, options: &PutOptions) -> (Bytes, Call) {
    let mut call = Call::changes("put");
    if let Some(id) = &options.request_id {
        call.request_id.clone_from(id);
    }
    let put = v1::PutRequest {
        table: table.to_wire(),
        request_id: call.request_id.clone(),
        mode: options.mode.to_wire(),
        create: options.create.as_ref().map(CreateOptions::to_wire),
        max_rows_per_file: options.max_rows_per_file.unwrap_or_default(),
    };
    let command = v1::PutCommand { kind: Some(v1::put_command::Kind::Put(put)) };
    (command.encode_to_vec().into(), call)
}

impl Write {
    /// The table.
    pub fn table(&self) -> &TableId {
        &self.table
    }

    /// Opaque; another process needs it to take part.
    pub fn handle(&self) -> &Bytes {
        &self.handle
    }

    /// The schema that staged batches must have.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether beginning this write created the table.
    pub fn created(&self) -> bool {
        self.created
    }

    /// Opens a stream of rows. What is staged is seen by nobody, so a stream that fails is simply staged again.
    pub fn stage(&self) -> Stage {
        let stage = v1::StageRequest { write: self.handle.clone(), max_rows_per_file: 0 };
        let command = v1::PutCommand { kind: Some(v1::put_command::Kind::Stage(stage)) };
        // Whatever becomes of the call, no reader of the table can tell.
        let call = Call::reads("stage");
        Stage { stream: PutStream::open(&self.client, call, command.encode_to_vec().into(), &self.schema) }
    }

    /// Seals what was staged as one commit. The same `id` gives the same committable.
    pub async fn prepare(
        &self,
        id: CommitId,
        staged: impl IntoIterator<Item = Staged>,
        properties: &HashMap<String, String>,
    ) -> Result<Committable> {
        let message = v1::PrepareCommitRequest {
            id: id.to_wire(),
            write: self.handle.clone(),
            staged: staged.into_iter().map(|staged| staged.bytes).filter(|bytes| !bytes.is_empty()).collect(),
            properties: properties.clone(),
        };
        let client = &self.client;
        let answer = send!(client.writes().prepare_commit, Call::changes("prepare commit"), message)?;
        Ok(Committable { table: self.table.clone(), id, bytes: answer.committable })
    }

    /// Makes a committable of this write visible; see [`Client::commit`].
    pub async fn commit(&self, committable: &Committable) -> Result<Committed> {
        self.client.commit(committable).await
    }
}

/// A stream of rows into data files. Dropping it before [`finish`](Self::finish) gives up what it staged.
pub struct Stage {
    stream: PutStream,
}

/// How far a stage has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageProgress {
    /// Rows that the gateway has taken.
    pub num_rows: u64,
    /// Bytes of them.
    pub num_bytes: u64,
    /// Of these rows, those that are in closed data files.
    pub num_durable_rows: u64,
}

impl Stage {
    /// The schema that batches must have.
    pub fn schema(&self) -> &SchemaRef {
        self.stream.schema()
    }

    /// Sends one batch. Waits while the connection or the gateway is slower than the caller.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.stream.write(batch).await
    }

    /// What the gateway has acknowledged so far.
    pub fn progress(&self) -> Result<StageProgress> {
        let ack = decode_stage_ack(self.stream.last_ack())?;
        Ok(StageProgress { num_rows: ack.num_rows, num_bytes: ack.num_bytes, num_durable_rows: ack.num_durable_rows })
    }

    /// Ends the stream and waits until all rows are durable.
    pub async fn finish(self) -> Result<Staged> {
        let ack = decode_stage_ack(self.stream.finish().await?)?;
        match ack.done {
            true => Ok(Staged { bytes: ack.staged, num_rows: ack.num_rows, num_bytes: ack.num_bytes }),
            // Never take a part for the whole.
            false => Err(Error::protocol("the gateway ended the stage before it was done")),
        }
    }
}

fn decode_stage_ack(bytes: Bytes) -> Result<v1::StageAck> {
    v1::StageAck::decode(bytes).map_err(|e| Error::protocol(format!("the gateway sent no acknowledgement: {e}")))
}

impl CommitState {
    fn from_wire(state: v1::CommitState, version: u64) -> Self {
        match state {
            v1::CommitState::Unspecified | v1::CommitState::Prepared => Self::NotCommitted,
            v1::CommitState::Committed => Self::Committed(version),
            v1::CommitState::Aborted => Self::Aborted,
        }
    }
}

impl CommitRecord {
    fn from_wire(record: v1::CommitRecord) -> Result<Self> {
        let state = CommitState::from_wire(record.state(), record.version);
        let v1::CommitId { epoch, seq } =
            record.id.ok_or_else(|| Error::protocol("the gateway lists a commit without its id"))?;
        let at = time_from_wire(record.at);
        Ok(Self { id: CommitId { epoch, seq }, state, num_rows: record.num_rows, num_bytes: record.num_bytes, at })
    }
}
