//! The unary services, one file each: convert, call the lake, convert.

mod answers;
mod index_service;
mod job_service;
mod search_service;
mod status_service;
mod table_service;
mod write_service;

use lance_gateway_proto::v1::index_service_server::IndexServiceServer;
use lance_gateway_proto::v1::job_service_server::JobServiceServer;
use lance_gateway_proto::v1::search_service_server::SearchServiceServer;
use lance_gateway_proto::v1::status_service_server::StatusServiceServer;
use lance_gateway_proto::v1::table_service_server::TableServiceServer;
use lance_gateway_proto::v1::write_service_server::WriteServiceServer;
use tonic::{Response, Status};

use crate::middleware::context;
use crate::state::Gateway;
use crate::status;

use index_service::IndexApi;
use job_service::JobApi;
use search_service::SearchApi;
use status_service::StatusApi;
use table_service::TableApi;
use write_service::WriteApi;

type Answer<T> = Result<Response<T>, Status>;

/// `TableService`.
pub fn tables(gateway: &Gateway) -> TableServiceServer<TableApi> {
    TableServiceServer::new(TableApi::new(gateway.clone())).max_decoding_message_size(max_message(gateway))
}

/// `WriteService`.
pub fn writes(gateway: &Gateway) -> WriteServiceServer<WriteApi> {
    WriteServiceServer::new(WriteApi::new(gateway.clone())).max_decoding_message_size(max_message(gateway))
}

/// `SearchService`.
pub fn searches(gateway: &Gateway) -> SearchServiceServer<SearchApi> {
    SearchServiceServer::new(SearchApi::new(gateway.clone())).max_decoding_message_size(max_message(gateway))
}

/// `JobService`.
pub fn jobs(gateway: &Gateway) -> JobServiceServer<JobApi> {
    JobServiceServer::new(JobApi::new(gateway.clone())).max_decoding_message_size(max_message(gateway))
}

/// `IndexService`.
pub fn indexes(gateway: &Gateway) -> IndexServiceServer<IndexApi> {
    IndexServiceServer::new(IndexApi::new(gateway.clone())).max_decoding_message_size(max_message(gateway))
}

/// `StatusService`.
pub fn statuses(gateway: &Gateway) -> StatusServiceServer<StatusApi> {
    StatusServiceServer::new(StatusApi::new(gateway.clone()))
}

fn max_message(gateway: &Gateway) -> usize {
    gateway.config.write.max_message_bytes.as_usize()
}

/// Runs what must not be cut in the middle when its caller goes away. A drain waits for it.
pub(crate) async fn to_its_end<T, F>(gateway: &Gateway, work: F) -> Result<T, Status>
where
    F: Future<Output = Result<T, Status>> + Send + 'static,
    T: Send + 'static,
{
    let held = gateway.lifecycle.continue_work();
    let task = context::spawn(async move {
        let _held = held;
        work.await
    });
    task.await.unwrap_or_else(|lost| Err(context::lost_task(lost)))
}

/// A failure of the lake, as a status.
fn answer<T>(result: lance_gateway_lake::Result<T>) -> Result<T, Status> {
    result.map_err(status::from_lake)
}
