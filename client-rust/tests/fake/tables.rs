use std::sync::Arc;

use arrow_array::RecordBatch;
use lance_gateway_client::Reason;
use lance_gateway_proto::flight::{ipc_to_schema, schema_to_ipc};
use lance_gateway_proto::v1::status_service_server::StatusService;
use lance_gateway_proto::v1::table_service_server::TableService;
use lance_gateway_proto::v1::*;
use tonic::{Request, Response, Status, async_trait};

use super::{Service, Table, lost, name, refusal};

#[async_trait]
impl StatusService for Service {
    async fn get_status(&self, request: Request<GetStatusRequest>) -> Result<Response<GetStatusResponse>, Status> {
        let lose = self.begin("GetStatus", &request, "").await?;
        let limits = Limits { max_message_bytes: 64 << 20, max_row_bytes: 32 << 20, ..Limits::default() };
        lost(
            lose,
            GetStatusResponse {
                state: GatewayState::Serving.into(),
                version: "0.1.0".into(),
                lance_version: "14.0.2".into(),
                uptime_seconds: 61,
                limits: Some(limits),
            },
        )
    }
}

#[async_trait]
impl TableService for Service {
    async fn create_table(
        &self,
        request: Request<CreateTableRequest>,
    ) -> Result<Response<CreateTableResponse>, Status> {
        let lose = self.begin("CreateTable", &request, request.get_ref().request_id.clone()).await?;
        let request = request.into_inner();
        let table = name(request.table);
        let mut state = self.state();
        if let Some(found) = state.tables.get(&table) {
            let version = found.versions.len() as u64;
            return match request.if_not_exists {
                true => lost(lose, CreateTableResponse { version, created: false }),
                false => Err(refusal(Reason::TableAlreadyExists, &format!("table {table} exists already"))),
            };
        }
        let schema = Arc::new(ipc_to_schema(&request.schema).unwrap());
        let mut created = Table::new(schema);
        created.primary_key = request.options.unwrap_or_default().primary_key;
        state.tables.insert(table, created);
        lost(lose, CreateTableResponse { version: 1, created: true })
    }

    async fn describe_table(
        &self,
        request: Request<DescribeTableRequest>,
    ) -> Result<Response<DescribeTableResponse>, Status> {
        let lose = self.begin("DescribeTable", &request, "").await?;
        let request = request.into_inner();
        let state = self.state();
        let table = state.table(&name(request.table))?;
        let (number, version) = table.at(request.version)?;
        lost(
            lose,
            DescribeTableResponse {
                schema: schema_to_ipc(&table.schema),
                version: number,
                num_rows: version.batches.iter().map(|batch| batch.num_rows() as u64).sum(),
                num_fragments: version.batches.len() as u64,
                num_bytes: 4096,
                primary_key: table.primary_key.clone(),
                properties: [("owner".to_owned(), "tests".to_owned())].into(),
                data_storage_version: "2.1".into(),
                stable_row_ids: true,
                indexes: vec![IndexDescription {
                    name: "id_idx".into(),
                    columns: vec!["id".into()],
                    r#type: "BTREE".into(),
                }],
                committed_at: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 }),
            },
        )
    }

    async fn list_tables(&self, request: Request<ListTablesRequest>) -> Result<Response<ListTablesResponse>, Status> {
        let lose = self.begin("ListTables", &request, request.get_ref().namespace.join(".")).await?;
        let request = request.into_inner();
        let state = self.state();
        let prefix: String = request.namespace.iter().map(|part| format!("{part}.")).collect();
        let names =
            state.tables.keys().filter_map(|name| name.strip_prefix(&prefix)).filter(|rest| !rest.contains('.'));
        // Pages of two, so that a client that ignores the token is seen.
        let mut names = names.skip_while(|name| *name <= request.page_token.as_str()).peekable();
        let page: Vec<&str> = names.by_ref().take(2).collect();
        let next_page_token = if names.peek().is_some() { page[1].to_owned() } else { String::new() };
        let parts = |last: &str| request.namespace.iter().cloned().chain([last.to_owned()]).collect();
        let tables = page.iter().map(|last| TableName { parts: parts(last) }).collect();
        lost(lose, ListTablesResponse { tables, next_page_token })
    }

    async fn drop_table(&self, request: Request<DropTableRequest>) -> Result<Response<DropTableResponse>, Status> {
        let lose = self.begin("DropTable", &request, request.get_ref().request_id.clone()).await?;
        let request = request.into_inner();
        let table = name(request.table);
        let dropped = self.state().tables.remove(&table).is_some();
        if !dropped && !request.if_exists {
            return Err(refusal(Reason::TableNotFound, &format!("there is no table {table}")));
        }
        lost(lose, DropTableResponse { dropped })
    }

    async fn count_rows(&self, request: Request<CountRowsRequest>) -> Result<Response<CountRowsResponse>, Status> {
        let lose = self.begin("CountRows", &request, format!("{:?}", request.get_ref().filter)).await?;
        let request = request.into_inner();
        let state = self.state();
        let (version, found) = state.table(&name(request.table))?.at(request.version)?;
        let num_rows = found.batches.iter().map(|batch: &RecordBatch| batch.num_rows() as u64).sum();
        lost(lose, CountRowsResponse { num_rows, version })
    }

    async fn list_versions(
        &self,
        request: Request<ListVersionsRequest>,
    ) -> Result<Response<ListVersionsResponse>, Status> {
        let lose = self.begin("ListVersions", &request, "").await?;
        let state = self.state();
        let table = state.table(&name(request.into_inner().table))?;
        let versions = table.versions.iter().enumerate().rev().map(|(n, version)| TableVersion {
            version: n as u64 + 1,
            committed_at: Some(prost_types::Timestamp { seconds: 1_700_000_000 + n as i64, nanos: 0 }),
            operation: version.operation.to_owned(),
            properties: [("flink.job-id".to_owned(), format!("job-{n}"))].into(),
            num_rows: version.batches.iter().map(|batch| batch.num_rows() as u64).sum(),
            num_fragments: version.batches.len() as u64,
        });
        lost(lose, ListVersionsResponse { versions: versions.collect() })
    }

    async fn hold_version(
        &self,
        request: Request<HoldVersionRequest>,
    ) -> Result<Response<HoldVersionResponse>, Status> {
        let held = format!("{} {}", request.get_ref().holder, request.get_ref().version);
        let lose = self.begin("HoldVersion", &request, held).await?;
        let request = request.into_inner();
        self.state().held.insert(request.holder, request.version);
        lost(
            lose,
            HoldVersionResponse { expires_at: Some(prost_types::Timestamp { seconds: 1_700_086_400, nanos: 0 }) },
        )
    }

    async fn release_version(
        &self,
        request: Request<ReleaseVersionRequest>,
    ) -> Result<Response<ReleaseVersionResponse>, Status> {
        let lose = self.begin("ReleaseVersion", &request, "").await?;
        let released = self.state().held.remove(&request.into_inner().holder).is_some();
        lost(lose, ReleaseVersionResponse { released })
    }

    async fn create_namespace(
        &self,
        request: Request<CreateNamespaceRequest>,
    ) -> Result<Response<CreateNamespaceResponse>, Status> {
        let lose = self.begin("CreateNamespace", &request, request.get_ref().request_id.clone()).await?;
        let name = request.get_ref().namespace.join(".");
        let mut state = self.state();
        let created = !state.namespaces.contains(&name);
        if !created && !request.get_ref().if_not_exists {
            return Err(refusal(Reason::NamespaceAlreadyExists, "it exists already"));
        }
        state.namespaces.retain(|found| *found != name);
        state.namespaces.push(name);
        lost(lose, CreateNamespaceResponse { created })
    }

    async fn list_namespaces(
        &self,
        request: Request<ListNamespacesRequest>,
    ) -> Result<Response<ListNamespacesResponse>, Status> {
        let lose = self.begin("ListNamespaces", &request, "").await?;
        let names = match request.get_ref().parent.is_empty() {
            true => self.state().namespaces.clone(),
            false => Vec::new(),
        };
        lost(lose, ListNamespacesResponse { names })
    }

    async fn drop_namespace(
        &self,
        request: Request<DropNamespaceRequest>,
    ) -> Result<Response<DropNamespaceResponse>, Status> {
        let lose = self.begin("DropNamespace", &request, request.get_ref().request_id.clone()).await?;
        let name = request.get_ref().namespace.join(".");
        let mut state = self.state();
        let dropped = state.namespaces.contains(&name);
        state.namespaces.retain(|found| *found != name);
        if !dropped && !request.get_ref().if_exists {
            return Err(refusal(Reason::NamespaceNotFound, "there is none"));
        }
        lost(lose, DropNamespaceResponse { dropped })
    }
}
