use std::sync::Arc;

use lance_gateway_client::Reason;
use lance_gateway_proto::flight::{ipc_to_schema, schema_to_ipc};
use lance_gateway_proto::v1::write_service_server::WriteService;
use lance_gateway_proto::v1::*;
use tonic::{Request, Response, Status, async_trait};

use super::{Prepared, Service, Table, lost, name, refusal};

fn key(id: Option<CommitId>) -> (String, u64) {
    let id = id.expect("a commit without an id");
    (id.epoch, id.seq)
}

#[async_trait]
impl WriteService for Service {
    async fn begin_write(&self, request: Request<BeginWriteRequest>) -> Result<Response<BeginWriteResponse>, Status> {
        let lose = self.begin("BeginWrite", &request, request.get_ref().request_id.clone()).await?;
        let request = request.into_inner();
        let table = name(request.table);
        let mut state = self.state();
        let created = request.create.is_some() && !state.tables.contains_key(&table);
        if created {
            let schema = Arc::new(ipc_to_schema(&request.schema).unwrap());
            state.tables.insert(table.clone(), Table::new(schema));
        }
        let found = state.table(&table)?;
        let (schema, version) = (schema_to_ipc(&found.schema), found.versions.len() as u64);
        lost(lose, BeginWriteResponse { write: table.into(), schema, version, created })
    }

    async fn prepare_commit(
        &self,
        request: Request<PrepareCommitRequest>,
    ) -> Result<Response<PrepareCommitResponse>, Status> {
        let lose = self.begin("PrepareCommit", &request, "").await?;
        let request = request.into_inner();
        let id = key(request.id);
        let mut state = self.state();
        let mut batches = Vec::new();
        for staged in &request.staged {
            let found = state.staged.get(std::str::from_utf8(staged).unwrap());
            batches.extend(found.ok_or_else(|| refusal(Reason::StagedFileMissing, "never staged"))?.clone());
        }
        let num_rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let committable = format!("{}:{}", id.0, id.1);
        let table = String::from_utf8(request.write.to_vec()).unwrap();
        state.prepared.insert(committable.clone(), Prepared { table, id, batches });
        lost(lose, PrepareCommitResponse { committable: committable.into(), num_rows, num_bytes: 1 })
    }

    async fn commit(&self, request: Request<CommitRequest>) -> Result<Response<CommitResponse>, Status> {
        let lose = self.begin("Commit", &request, "").await?;
        let mut state = self.state();
        let committable = String::from_utf8(request.into_inner().committable.to_vec()).unwrap();
        let prepared = state.prepared.get(&committable);
        let prepared = prepared.ok_or_else(|| refusal(Reason::CorruptData, "this is no committable"))?;
        let (table, id, batches) = (prepared.table.clone(), prepared.id.clone(), prepared.batches.clone());
        let table = state.table_mut(&table)?;
        match table.ledger.get(&id) {
            Some(CommitState::Committed) => {
                let version = table.ledger_versions[&id];
                return lost(lose, CommitResponse { version, already_committed: true, merged: None });
            }
            Some(_) => return Err(refusal(Reason::CommitAborted, "it was aborted")),
            None => {}
        }
        let version = table.append(batches);
        table.ledger.insert(id.clone(), CommitState::Committed);
        table.ledger_versions.insert(id, version);
        lost(lose, CommitResponse { version, already_committed: false, merged: None })
    }

    async fn abort(&self, request: Request<AbortRequest>) -> Result<Response<AbortResponse>, Status> {
        let lose = self.begin("Abort", &request, "").await?;
        let mut state = self.state();
        let (table, id) = match request.into_inner().kind {
            Some(abort_request::Kind::Committable(bytes)) => {
                let prepared = &state.prepared[std::str::from_utf8(&bytes).unwrap()];
                (prepared.table.clone(), prepared.id.clone())
            }
            Some(abort_request::Kind::Commit(commit)) => (name(commit.table), key(commit.id)),
            None => panic!("an abort of nothing"),
        };
        let table = state.table_mut(&table)?;
        if table.ledger.get(&id) == Some(&CommitState::Committed) {
            return Err(refusal(Reason::CommitConflict, "it is committed already"));
        }
        table.ledger.insert(id, CommitState::Aborted);
        lost(lose, AbortResponse { num_files: 2 })
    }

    async fn get_commit(&self, request: Request<GetCommitRequest>) -> Result<Response<GetCommitResponse>, Status> {
        let lose = self.begin("GetCommit", &request, "").await?;
        let request = request.into_inner();
        let id = key(request.id);
        let state = self.state();
        let table = state.table(&name(request.table))?;
        let found = table.ledger.get(&id).copied().unwrap_or_default();
        let version = table.ledger_versions.get(&id).copied().unwrap_or_default();
        lost(lose, GetCommitResponse { state: found.into(), version, merged: None })
    }

    async fn list_commits(
        &self,
        request: Request<ListCommitsRequest>,
    ) -> Result<Response<ListCommitsResponse>, Status> {
        let lose = self.begin("ListCommits", &request, "").await?;
        let state = self.state();
        let table = state.table(&name(request.into_inner().table))?;
        let commits = table.ledger.iter().map(|((epoch, seq), state)| CommitRecord {
            id: Some(CommitId { epoch: epoch.clone(), seq: *seq }),
            state: (*state).into(),
            version: table.ledger_versions.get(&(epoch.clone(), *seq)).copied().unwrap_or_default(),
            num_rows: 10,
            num_bytes: 2_048,
            at: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 }),
        });
        lost(lose, ListCommitsResponse { epochs: Vec::new(), commits: commits.collect() })
    }

    async fn delete_rows(&self, request: Request<DeleteRowsRequest>) -> Result<Response<DeleteRowsResponse>, Status> {
        let lose = self.begin("DeleteRows", &request, request.get_ref().request_id.clone()).await?;
        let request = request.into_inner();
        let (version, already_committed) = self.change(request.table, request.request_id)?;
        lost(lose, DeleteRowsResponse { version, num_rows: 7, already_committed })
    }

    async fn update_rows(&self, request: Request<UpdateRowsRequest>) -> Result<Response<UpdateRowsResponse>, Status> {
        let lose = self.begin("UpdateRows", &request, request.get_ref().request_id.clone()).await?;
        let request = request.into_inner();
        let (version, already_committed) = self.change(request.table, request.request_id)?;
        lost(lose, UpdateRowsResponse { version, num_rows: request.assignments.len() as u64, already_committed })
    }
}

impl Service {
    /// A version, once for an id.
    fn change(&self, table: Option<lance_gateway_proto::v1::Table>, request: String) -> Result<(u64, bool), Status> {
        let mut state = self.state();
        let table = state.table_mut(&name(table))?;
        let id = (request, 1);
        if let Some(version) = table.ledger_versions.get(&id) {
            return Ok((*version, true));
        }
        let version = table.append(Vec::new());
        table.ledger.insert(id.clone(), CommitState::Committed);
        table.ledger_versions.insert(id, version);
        Ok((version, false))
    }
}
