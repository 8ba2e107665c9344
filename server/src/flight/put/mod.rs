//! DoPut: rows to staged files, and for an ad-hoc put on to a version.

mod acks;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::StreamExt as _;
use lance_gateway_lake::{
    self as lake, CommitId, CommitState, ErrorKind, Lake, MergeCounts, StageProgress, Staged, WhenNotMatchedBySource,
    WriteMode,
};
use lance_gateway_proto::flight::encode_json;
use lance_gateway_proto::v1::put_command::Kind;
use lance_gateway_proto::{Reason, v1};
use prost::Message as _;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;

use super::descriptor::{is_json, put_command};
use super::queue::queue;
use super::source::{Source, Taken};
use crate::admission::Permit;
use crate::convert;
use crate::grpc::to_its_end;
use crate::middleware::context;
use crate::state::Gateway;
use crate::status::{from_flight, from_lake, status};
use acks::Acks;

/// Answers a DoPut. Dropping the answer ends the put, unless it commits already.
pub(super) fn put(gateway: Gateway, body: Body) -> Result<Acks, Status> {
    let permit = gateway.admission.put()?;
    let source = Source::new(body, &gateway.config.write);
    let (progress, acked) = watch::channel(StageProgress::default());
    let put = Put { gateway, source, _permit: permit };
    let task = AbortOnDropHandle::new(context::spawn(put.run(progress)));
    Ok(Acks::new(task, acked))
}

struct Put {
    gateway: Gateway,
    source: Source,
    _permit: Permit,
}

impl Put {
    /// The `app_metadata` of the last answer.
    async fn run(mut self, progress: watch::Sender<StageProgress>) -> Result<Bytes, Status> {
        let (descriptor, schema) = self.source.open().await?;
        match put_command(&descriptor)? {
            Kind::Stage(request) => self.stage(request, progress).await.map(|ack| ack.encode_to_vec().into()),
            Kind::Put(request) => {
                // The only answer of an ad-hoc put is its version.
                drop(progress);
                self.put(request, schema).await.map(|ack| ack.encode_to_vec().into())
            }
            Kind::Merge(request) => {
                drop(progress);
                let ack = self.merge(request, schema).await?;
                match is_json(&descriptor.cmd) {
                    true => encode_json("PutAck", &ack).map_err(from_flight),
                    false => Ok(ack.encode_to_vec().into()),
                }
            }
        }
    }

    async fn stage(
        &mut self,
        request: v1::StageRequest,
        progress: watch::Sender<StageProgress>,
    ) -> Result<v1::StageAck, Status> {
        let last = progress.subscribe();
        let (staged, _) = self.rows(&request.write, request.max_rows_per_file, progress).await?;
        let num_bytes = last.borrow().num_bytes;
        let num_rows = staged.num_rows;
        Ok(v1::StageAck { num_rows, num_bytes, num_durable_rows: num_rows, staged: staged.staged, done: true })
    }

    async fn put(&mut self, request: v1::PutRequest, schema: SchemaRef) -> Result<v1::PutAck, Status> {
        let table = convert::table_id(request.table)?;
        let mode = convert::write_mode(request.mode)?;
        if mode == WriteMode::Merge {
            return Err(convert::invalid("a put adds or replaces rows; to merge them send `merge` instead of `put`"));
        }
        let create = request.create.map(convert::create_options).transpose()?;
        let id = convert::call_id(&request.request_id)?;
        if let Some(ack) = self.repeated(&request.request_id, &table, &id).await? {
            return Ok(ack);
        }

        let (lake, request_id) = (self.gateway.lake()?, id.epoch.clone());
        let begin = async move {
            // One put is one run: it replaces the rows once.
            lake.begin_write(&table, Some(schema), create.as_ref(), mode, &request_id, &request_id)
                .await
                .map_err(from_lake)
        };
        let begun = to_its_end(&self.gateway, begin).await?;
        let unwatched = watch::Sender::new(StageProgress::default());
        let (staged, taken) = self.rows(&begun.write, request.max_rows_per_file, unwatched).await?;
        let version = if staged.staged.is_empty() && mode == WriteMode::Append {
            begun.version
        } else {
            commit(&self.gateway, id, begun.write, staged).await?
        };
        Ok(acked(version, taken, None))
    }

    async fn merge(&mut self, mut request: v1::MergeRequest, schema: SchemaRef) -> Result<v1::PutAck, Status> {
        let max_depth = convert::saturating(self.gateway.config.scan.max_filter_depth);
        let rule = convert::merge_rule(&mut request, max_depth)?;
        let table = convert::table_id(request.table)?;
        let create = request.create.map(convert::create_options).transpose()?;
        let id = convert::call_id(&request.request_id)?;
        if let Some(ack) = self.repeated(&request.request_id, &table, &id).await? {
            return Ok(ack);
        }
        let (lake, epoch, key, begun_with) = (self.gateway.lake()?, id.epoch.clone(), request.on, rule.clone());
        let begin = async move {
            lake.begin_merge_rows(&table, &schema, create.as_ref(), &key, &epoch, &begun_with).await.map_err(from_lake)
        };
        let begun = to_its_end(&self.gateway, begin).await?;
        let unwatched = watch::Sender::new(StageProgress::default());
        let (staged, taken) = self.rows(&begun.write, request.max_rows_per_file, unwatched).await?;
        if staged.staged.is_empty() && rule.when_not_matched_by_source == WhenNotMatchedBySource::Keep {
            return Ok(acked(begun.version, taken, Some(MergeCounts::default())));
        }
        let (lake, ended) = (self.gateway.lake()?, self.gateway.clone());
        let merge = async move {
            let staged = if staged.staged.is_empty() { Vec::new() } else { vec![staged.staged] };
            let result = lake.merge_rows(id, &begun.write, &staged, &rule).await;
            ended.commit_ended(&result);
            result.map_err(from_lake)
        };
        let merged = to_its_end(&self.gateway, merge).await?;
        Ok(acked(merged.version, taken, merged.merged))
    }

    /// The answer to a call that an earlier one with the same request id has done.
    async fn repeated(
        &mut self,
        request_id: &str,
        table: &lake::TableId,
        id: &CommitId,
    ) -> Result<Option<v1::PutAck>, Status> {
        if request_id.is_empty() {
            return Ok(None);
        }
        let Some((version, merged)) = finished(&self.gateway.lake()?, table, id).await? else { return Ok(None) };
        // The rows are there. They are read once more for the same answer, and written nowhere.
        let taken = self.source.count().await?;
        Ok(Some(acked(version, taken, merged)))
    }

    /// Stages the rows that come. Nothing is left behind if the client or the lake fails.
    async fn rows(
        &mut self,
        write: &[u8],
        max_rows_per_file: u64,
        progress: watch::Sender<StageProgress>,
    ) -> Result<(Staged, Taken), Status> {
        let (sender, receiver) = queue(self.gateway.config.write.queue_bytes.as_usize());
        // A sender that disappeared is no end of the rows.
        let batches =
            receiver.map(|batch| batch.map_err(|_| lake::Error::internal("the put ended before its rows did")));
        let max_rows = (max_rows_per_file > 0).then(|| convert::saturating(max_rows_per_file));
        let lake = self.gateway.lake()?;
        let staging = async { lake.stage(write, max_rows, batches.boxed(), progress).await.map_err(from_lake) };
        let (taken, staged) = futures::future::try_join(self.source.feed(sender), staging).await?;
        self.gateway.metrics.rows_staged(staged.num_rows);
        Ok((staged, taken))
    }
}

fn acked(version: u64, taken: Taken, merged: Option<MergeCounts>) -> v1::PutAck {
    v1::PutAck { version, num_rows: taken.rows, num_bytes: taken.bytes, merged: merged.map(convert::merge_counts) }
}

/// The version of a put that an earlier call has finished, and what it merged.
async fn finished(
    lake: &Lake,
    table: &lake::TableId,
    id: &CommitId,
) -> Result<Option<(u64, Option<MergeCounts>)>, Status> {
    match lake.find_commit(table, id).await {
        Ok((CommitState::Committed(version), merged)) => Ok(Some((version, merged))),
        Ok((CommitState::NotCommitted, _)) => Ok(None),
        Ok((CommitState::Aborted, _)) => Err(status(Reason::CommitAborted, "the put with this request_id was aborted")),
        Err(error) if error.kind() == ErrorKind::TableNotFound => Ok(None),
        Err(error) => Err(from_lake(error)),
    }
}

async fn commit(gateway: &Gateway, id: CommitId, write: Bytes, staged: Staged) -> Result<u64, Status> {
    let (lake, ended) = (gateway.lake()?, gateway.clone());
    let commit = async move {
        let result = prepare_and_commit(&lake, id, &write, staged).await;
        ended.commit_ended(&result);
        result.map_err(from_lake)
    };
    to_its_end(gateway, commit).await.map(|committed| committed.version)
}

async fn prepare_and_commit(lake: &Lake, id: CommitId, write: &[u8], staged: Staged) -> lake::Result<lake::Committed> {
    let staged = if staged.staged.is_empty() { Vec::new() } else { vec![staged.staged] };
    let prepared = lake.prepare(id, write, &staged, Default::default()).await?;
    lake.commit(&prepared.committable).await
}
