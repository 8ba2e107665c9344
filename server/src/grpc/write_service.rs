//! Writing once.

use lance_gateway_lake as lake;
use lance_gateway_proto::v1::abort_request::Kind;
use lance_gateway_proto::v1::write_service_server::WriteService;
use lance_gateway_proto::v1::{
    AbortRequest, AbortResponse, BeginWriteRequest, BeginWriteResponse, CommitRequest, CommitResponse, CommitState,
    DeleteRowsRequest, DeleteRowsResponse, GetCommitRequest, GetCommitResponse, ListCommitsRequest,
    ListCommitsResponse, PrepareCommitRequest, PrepareCommitResponse, UpdateRowsRequest, UpdateRowsResponse,
};
use tonic::{Request, Response};

use super::{Answer, answer, to_its_end};
use crate::convert;
use crate::state::Gateway;

pub struct WriteApi {
    gateway: Gateway,
}

impl WriteApi {
    pub fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }
}

#[tonic::async_trait]
impl WriteService for WriteApi {
    async fn begin_write(&self, request: Request<BeginWriteRequest>) -> Answer<BeginWriteResponse> {
        let r = request.into_inner();
        let id = convert::request_id(&r.request_id)?;
        let table = convert::table_id(r.table)?;
        let schema = convert::schema(&r.schema)?;
        let create = r.create.map(convert::create_options).transpose()?;
        let mode = convert::write_mode(r.mode)?;
        let is_merge = mode == lake::WriteMode::Merge;
        if !is_merge && (!r.key.is_empty() || r.read_version.is_some() || r.by_row_id) {
            return Err(convert::invalid("key, read_version and by_row_id are for mode MERGE"));
        }
        let lake = self.gateway.lake()?;
        let begin = async move {
            answer(match mode {
                lake::WriteMode::Merge => {
                    let rows = lake::ChangedRows { key: &r.key, by_id: r.by_row_id, chosen_in: r.read_version };
                    lake.begin_merge(&table, schema, create.as_ref(), rows, &id).await
                }
                _ => lake.begin_write(&table, schema, create.as_ref(), mode, &r.run_id, &id).await,
            })
        };
        let begun = to_its_end(&self.gateway, begin).await?;
        Ok(Response::new(BeginWriteResponse {
            write: begun.write,
            schema: convert::schema_message(&begun.schema),
            version: begun.version,
            created: begun.created,
        }))
    }

    async fn prepare_commit(&self, request: Request<PrepareCommitRequest>) -> Answer<PrepareCommitResponse> {
        let r = request.into_inner();
        let id = convert::commit_id(r.id)?;
        let prepared = answer(self.gateway.lake()?.prepare(id.clone(), &r.write, &r.staged, r.properties).await)?;
        self.gateway.metrics.commit_prepared(&id);
        Ok(Response::new(PrepareCommitResponse {
            committable: prepared.committable,
            num_rows: prepared.num_rows,
            num_bytes: prepared.num_bytes,
        }))
    }

    async fn commit(&self, request: Request<CommitRequest>) -> Answer<CommitResponse> {
        let committable = request.into_inner().committable;
        let (lake, gateway) = (self.gateway.lake()?, self.gateway.clone());
        let commit = async move {
            let result = lake.commit(&committable).await;
            gateway.commit_ended(&result);
            answer(result)
        };
        let committed = to_its_end(&self.gateway, commit).await?;
        Ok(Response::new(CommitResponse {
            version: committed.version,
            already_committed: committed.already_committed,
            merged: committed.merged.map(convert::merge_counts),
        }))
    }

    async fn abort(&self, request: Request<AbortRequest>) -> Answer<AbortResponse> {
        let lake = self.gateway.lake()?;
        let (id, num_files) = match convert::required(request.into_inner().kind, "committable or commit")? {
            Kind::Committable(committable) => {
                to_its_end(&self.gateway, async move { answer(lake.abort(&committable).await) }).await?
            }
            Kind::Commit(commit) => {
                let (table, id) = (convert::table_id(commit.table)?, convert::commit_id(commit.id)?);
                let fenced = id.clone();
                to_its_end(&self.gateway, async move { answer(lake.abort_id(&table, id).await) }).await?;
                (fenced, 0)
            }
        };
        self.gateway.metrics.commit_aborted(&id);
        Ok(Response::new(AbortResponse { num_files }))
    }

    async fn get_commit(&self, request: Request<GetCommitRequest>) -> Answer<GetCommitResponse> {
        let r = request.into_inner();
        let (table, id) = (convert::table_id(r.table)?, convert::commit_id(r.id)?);
        let (state, merged) = answer(self.gateway.lake()?.find_commit(&table, &id).await)?;
        let (state, version) = match state {
            lake::CommitState::NotCommitted => (CommitState::Unspecified, 0),
            lake::CommitState::Committed(version) => (CommitState::Committed, version),
            lake::CommitState::Aborted => (CommitState::Aborted, 0),
        };
        let merged = merged.map(convert::merge_counts);
        Ok(Response::new(GetCommitResponse { state: state.into(), version, merged }))
    }

    async fn list_commits(&self, request: Request<ListCommitsRequest>) -> Answer<ListCommitsResponse> {
        let table = convert::table_id(request.into_inner().table)?;
        let commits = answer(self.gateway.lake()?.commits(&table).await)?;
        Ok(Response::new(ListCommitsResponse {
            epochs: commits.epochs.into_iter().map(convert::commit_epoch).collect(),
            commits: commits.records.into_iter().map(convert::commit_record).collect(),
        }))
    }

    async fn delete_rows(&self, request: Request<DeleteRowsRequest>) -> Answer<DeleteRowsResponse> {
        let r = request.into_inner();
        let (id, table) = (convert::call_id(&r.request_id)?, convert::table_id(r.table)?);
        let filter = convert::filter(r.filter, convert::saturating(self.gateway.config.scan.max_filter_depth))?;
        let (lake, gateway) = (self.gateway.lake()?, self.gateway.clone());
        let delete = async move {
            let result = lake.delete_rows(&table, filter.as_ref(), r.version, id).await;
            gateway.commit_ended(&result);
            answer(result)
        };
        let done = to_its_end(&self.gateway, delete).await?;
        Ok(Response::new(DeleteRowsResponse {
            version: done.version,
            num_rows: done.merged.unwrap_or_default().num_deleted,
            already_committed: done.already_committed,
        }))
    }

    async fn update_rows(&self, request: Request<UpdateRowsRequest>) -> Answer<UpdateRowsResponse> {
        let r = request.into_inner();
        let (id, table) = (convert::call_id(&r.request_id)?, convert::table_id(r.table)?);
        let filter = convert::filter(r.filter, convert::saturating(self.gateway.config.scan.max_filter_depth))?;
        let assignments = r.assignments.into_iter().map(convert::assignment).collect::<Result<Vec<_>, _>>()?;
        let (lake, gateway) = (self.gateway.lake()?, self.gateway.clone());
        let update = async move {
            let result = lake.update_rows(&table, filter.as_ref(), r.version, &assignments, id).await;
            gateway.commit_ended(&result);
            answer(result)
        };
        let done = to_its_end(&self.gateway, update).await?;
        Ok(Response::new(UpdateRowsResponse {
            version: done.version,
            num_rows: done.merged.unwrap_or_default().num_updated,
            already_committed: done.already_committed,
        }))
    }
}
