//! Tables and namespaces.

use lance_gateway_proto::v1::table_service_server::TableService;
use lance_gateway_proto::v1::{
    CountRowsRequest, CountRowsResponse, CreateNamespaceRequest, CreateNamespaceResponse, CreateTableRequest,
    CreateTableResponse, DescribeTableRequest, DescribeTableResponse, DropNamespaceRequest, DropNamespaceResponse,
    DropTableRequest, DropTableResponse, HoldVersionRequest, HoldVersionResponse, ListNamespacesRequest,
    ListNamespacesResponse, ListTablesRequest, ListTablesResponse, ListVersionsRequest, ListVersionsResponse,
    ReleaseVersionRequest, ReleaseVersionResponse, TableName,
};
use tonic::{Request, Response};

use super::answers::Answers;
use super::{Answer, answer, to_its_end};
use crate::convert;
use crate::state::Gateway;

pub struct TableApi {
    gateway: Gateway,
    answers: Answers,
}

impl TableApi {
    pub fn new(gateway: Gateway) -> Self {
        let answers = Answers::new(&gateway.config.request);
        Self { gateway, answers }
    }

    /// What the client asks for, below what the operator allows. 0: all that is allowed.
    fn page_size(&self, wished: u32) -> usize {
        let most = self.gateway.config.table.max_list;
        convert::saturating(if wished == 0 { most } else { wished.min(most) })
    }
}

#[tonic::async_trait]
impl TableService for TableApi {
    async fn create_table(&self, request: Request<CreateTableRequest>) -> Answer<CreateTableResponse> {
        let r = request.into_inner();
        let id = convert::request_id(&r.request_id)?;
        let table = convert::table_id(r.table)?;
        let schema = convert::required(convert::schema(&r.schema)?, "schema")?;
        let options = convert::create_options(r.options.unwrap_or_default())?;
        let lake = self.gateway.lake()?;
        let create = async move { answer(lake.create_table(&table, schema, &options, &id, r.if_not_exists).await) };
        let (version, created) = to_its_end(&self.gateway, create).await?;
        Ok(Response::new(CreateTableResponse { version, created }))
    }

    async fn describe_table(&self, request: Request<DescribeTableRequest>) -> Answer<DescribeTableResponse> {
        let r = request.into_inner();
        let (table, version) = (convert::table_id(r.table)?, convert::version(r.version)?);
        let description = answer(self.gateway.lake()?.describe(&table, &version).await)?;
        Ok(Response::new(convert::description(description)))
    }

    async fn list_tables(&self, request: Request<ListTablesRequest>) -> Answer<ListTablesResponse> {
        let r = request.into_inner();
        let namespace = convert::namespace(r.namespace)?;
        let token = Some(r.page_token.as_str()).filter(|token| !token.is_empty());
        let page = self.gateway.lake()?.list_tables(&namespace, token, self.page_size(r.page_size)).await;
        let (tables, next) = answer(page)?;
        Ok(Response::new(ListTablesResponse {
            tables: tables.into_iter().map(|parts| TableName { parts }).collect(),
            next_page_token: next.unwrap_or_default(),
        }))
    }

    async fn drop_table(&self, request: Request<DropTableRequest>) -> Answer<DropTableResponse> {
        let r = request.into_inner();
        let id = convert::request_id(&r.request_id)?;
        let table = convert::table_id(r.table.clone())?;
        let (lake, answers) = (self.gateway.lake()?, self.answers.clone());
        let drop = async move {
            let drop = async { Ok(DropTableResponse { dropped: answer(lake.drop_table(&table, r.if_exists).await)? }) };
            answers.once(id, &r, drop).await
        };
        to_its_end(&self.gateway, drop).await.map(Response::new)
    }

    async fn count_rows(&self, request: Request<CountRowsRequest>) -> Answer<CountRowsResponse> {
        let r = request.into_inner();
        let (table, version) = (convert::table_id(r.table)?, convert::version(r.version)?);
        let filter = convert::filter(r.filter, convert::saturating(self.gateway.config.scan.max_filter_depth))?;
        // It reads like a scan, and is bounded with them.
        let _permit = self.gateway.admission.scan()?;
        let (num_rows, version) = answer(self.gateway.lake()?.count_rows(&table, &version, filter.as_ref()).await)?;
        Ok(Response::new(CountRowsResponse { num_rows, version }))
    }

    async fn list_versions(&self, request: Request<ListVersionsRequest>) -> Answer<ListVersionsResponse> {
        let r = request.into_inner();
        let table = convert::table_id(r.table)?;
        let versions = answer(self.gateway.lake()?.versions(&table, self.page_size(r.limit)).await)?;
        Ok(Response::new(ListVersionsResponse { versions: versions.into_iter().map(convert::table_version).collect() }))
    }

    async fn hold_version(&self, request: Request<HoldVersionRequest>) -> Answer<HoldVersionResponse> {
        let r = request.into_inner();
        let table = convert::table_id(r.table)?;
        let lake = self.gateway.lake()?;
        let hold = async move { answer(lake.hold_version(&table, &r.holder, r.version).await) };
        let expires_at = Some(convert::to_timestamp(to_its_end(&self.gateway, hold).await?));
        Ok(Response::new(HoldVersionResponse { expires_at }))
    }

    async fn release_version(&self, request: Request<ReleaseVersionRequest>) -> Answer<ReleaseVersionResponse> {
        let r = request.into_inner();
        let table = convert::table_id(r.table)?;
        let lake = self.gateway.lake()?;
        let release = async move { answer(lake.release_version(&table, &r.holder).await) };
        let released = to_its_end(&self.gateway, release).await?;
        Ok(Response::new(ReleaseVersionResponse { released }))
    }

    async fn create_namespace(&self, request: Request<CreateNamespaceRequest>) -> Answer<CreateNamespaceResponse> {
        let r = request.into_inner();
        let id = convert::request_id(&r.request_id)?;
        let namespace = convert::namespace(r.namespace.clone())?;
        let (lake, answers) = (self.gateway.lake()?, self.answers.clone());
        let create = async move {
            let create = async {
                Ok(CreateNamespaceResponse {
                    created: answer(lake.create_namespace(&namespace, r.if_not_exists).await)?,
                })
            };
            answers.once(id, &r, create).await
        };
        to_its_end(&self.gateway, create).await.map(Response::new)
    }

    async fn list_namespaces(&self, request: Request<ListNamespacesRequest>) -> Answer<ListNamespacesResponse> {
        let parent = convert::namespace(request.into_inner().parent)?;
        let names = answer(self.gateway.lake()?.list_namespaces(&parent).await)?;
        Ok(Response::new(ListNamespacesResponse { names }))
    }

    async fn drop_namespace(&self, request: Request<DropNamespaceRequest>) -> Answer<DropNamespaceResponse> {
        let r = request.into_inner();
        let id = convert::request_id(&r.request_id)?;
        let namespace = convert::namespace(r.namespace.clone())?;
        let (lake, answers) = (self.gateway.lake()?, self.answers.clone());
        let drop = async move {
            let drop = async {
                Ok(DropNamespaceResponse { dropped: answer(lake.drop_namespace(&namespace, r.if_exists).await)? })
            };
            answers.once(id, &r, drop).await
        };
        to_its_end(&self.gateway, drop).await.map(Response::new)
    }
}
