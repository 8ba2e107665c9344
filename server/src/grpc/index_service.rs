//! Indexes.

use lance_gateway_proto::v1::index_service_server::IndexService;
use lance_gateway_proto::v1::{
    CreateIndexRequest, CreateIndexResponse, DescribeIndexRequest, DescribeIndexResponse, DropIndexRequest,
    DropIndexResponse, Job, ListIndexesRequest, ListIndexesResponse, OptimizeIndexRequest, OptimizeIndexResponse,
    Table, job,
};
use tonic::{Request, Response, Status};

use super::answers::Answers;
use super::{Answer, answer, to_its_end};
use crate::convert;
use crate::state::Gateway;

pub struct IndexApi {
    gateway: Gateway,
    answers: Answers,
}

impl IndexApi {
    pub fn new(gateway: Gateway) -> Self {
        let answers = Answers::new(&gateway.config.request);
        Self { gateway, answers }
    }

    fn start(&self, request_id: &str, table: Option<Table>, kind: job::Kind) -> Result<Job, Status> {
        let id = convert::job_id(request_id)?;
        let named = convert::table_id(table.clone())?;
        let job = Job { id, table, kind: Some(kind), ..Job::default() };
        self.gateway.jobs.start(job, named, self.gateway.lake()?)
    }
}

#[tonic::async_trait]
impl IndexService for IndexApi {
    async fn create_index(&self, request: Request<CreateIndexRequest>) -> Answer<CreateIndexResponse> {
        let r = request.into_inner();
        let build = convert::required(r.build, "build")?;
        convert::index_spec(&build)?;
        let job = self.start(&r.request_id, r.table, job::Kind::IndexBuild(build))?;
        Ok(Response::new(CreateIndexResponse { job: Some(job) }))
    }

    async fn optimize_index(&self, request: Request<OptimizeIndexRequest>) -> Answer<OptimizeIndexResponse> {
        let r = request.into_inner();
        let kind = job::Kind::IndexOptimization(r.optimization.unwrap_or_default());
        let job = self.start(&r.request_id, r.table, kind)?;
        Ok(Response::new(OptimizeIndexResponse { job: Some(job) }))
    }

    async fn drop_index(&self, request: Request<DropIndexRequest>) -> Answer<DropIndexResponse> {
        let r = request.into_inner();
        let id = convert::job_id(&r.request_id)?;
        let table = convert::table_id(r.table.clone())?;
        let (lake, answers) = (self.gateway.lake()?, self.answers.clone());
        let drop = async move {
            let drop = async { Ok(DropIndexResponse { version: answer(lake.drop_index(&table, &r.name).await)? }) };
            answers.once(id, &r, drop).await
        };
        to_its_end(&self.gateway, drop).await.map(Response::new)
    }

    async fn list_indexes(&self, request: Request<ListIndexesRequest>) -> Answer<ListIndexesResponse> {
        let table = convert::table_id(request.into_inner().table)?;
        let (version, indexes) = answer(self.gateway.lake()?.indexes(&table).await)?;
        let indexes = indexes.into_iter().map(|index| convert::index_statistics(index, version)).collect();
        Ok(Response::new(ListIndexesResponse { indexes }))
    }

    async fn describe_index(&self, request: Request<DescribeIndexRequest>) -> Answer<DescribeIndexResponse> {
        let r = request.into_inner();
        let table = convert::table_id(r.table)?;
        let (version, index) = answer(self.gateway.lake()?.index(&table, &r.name).await)?;
        Ok(Response::new(DescribeIndexResponse { index: Some(convert::index_statistics(index, version)) }))
    }
}
