//! Jobs.

use futures::stream::{BoxStream, StreamExt};
use lance_gateway_proto::v1::job_service_server::JobService;
use lance_gateway_proto::v1::start_job_request::Kind;
use lance_gateway_proto::v1::{
    CancelJobRequest, CancelJobResponse, GetJobRequest, GetJobResponse, Job, ListJobsRequest, ListJobsResponse,
    StartJobRequest, StartJobResponse, WatchJobRequest, WatchJobResponse, job,
};
use tonic::{Request, Response, Status};

use super::Answer;
use crate::convert;
use crate::state::Gateway;

pub struct JobApi {
    gateway: Gateway,
}

impl JobApi {
    pub fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }
}

#[tonic::async_trait]
impl JobService for JobApi {
    async fn start_job(&self, request: Request<StartJobRequest>) -> Answer<StartJobResponse> {
        let r = request.into_inner();
        let id = convert::job_id(&r.request_id)?;
        let table = convert::table_id(r.table.clone())?;
        let kind = match convert::required(r.kind, "kind")? {
            Kind::Compaction(compaction) => job::Kind::Compaction(compaction),
            Kind::Cleanup(cleanup) => {
                convert::check_cleanup(&cleanup)?;
                job::Kind::Cleanup(cleanup)
            }
            Kind::Sweep(sweep) => job::Kind::Sweep(sweep),
        };
        let job = Job { id, table: r.table, kind: Some(kind), ..Job::default() };
        Ok(Response::new(StartJobResponse { job: Some(self.gateway.jobs.start(job, table, self.gateway.lake()?)?) }))
    }

    async fn get_job(&self, request: Request<GetJobRequest>) -> Answer<GetJobResponse> {
        let id = convert::job_id(&request.into_inner().id)?;
        Ok(Response::new(GetJobResponse { job: Some(self.gateway.jobs.get(&id)?) }))
    }

    type WatchJobStream = BoxStream<'static, Result<WatchJobResponse, Status>>;

    async fn watch_job(&self, request: Request<WatchJobRequest>) -> Answer<Self::WatchJobStream> {
        let id = convert::job_id(&request.into_inner().id)?;
        let permit = self.gateway.admission.watch()?;
        let jobs = self.gateway.jobs.watch(&id)?.map(move |job| {
            let _permit = &permit;
            Ok(WatchJobResponse { job: Some(job) })
        });
        Ok(Response::new(jobs.boxed()))
    }

    async fn list_jobs(&self, request: Request<ListJobsRequest>) -> Answer<ListJobsResponse> {
        let table = request.into_inner().table;
        if table.is_some() {
            convert::table_id(table.clone())?;
        }
        let jobs = self.gateway.jobs.list(|job| table.is_none() || job.table == table);
        Ok(Response::new(ListJobsResponse { jobs }))
    }

    async fn cancel_job(&self, request: Request<CancelJobRequest>) -> Answer<CancelJobResponse> {
        let id = convert::job_id(&request.into_inner().id)?;
        Ok(Response::new(CancelJobResponse { job: Some(self.gateway.jobs.cancel(&id).await?) }))
    }
}
