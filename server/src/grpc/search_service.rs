//! One search, one answer.

use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;
use lance_gateway_lake::{self as lake, Found};
use lance_gateway_proto::v1::search_service_server::SearchService;
use lance_gateway_proto::v1::{
    FullTextSearchRequest, FullTextSearchResponse, HybridSearchRequest, HybridSearchResponse, SearchInfo,
    VectorSearchRequest, VectorSearchResponse,
};
use tonic::{Request, Response, Status};

use super::{Answer, answer};
use crate::convert::{self, search};
use crate::state::Gateway;
use crate::status::internal;

pub struct SearchApi {
    gateway: Gateway,
}

impl SearchApi {
    pub fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }

    fn max_depth(&self) -> usize {
        convert::saturating(self.gateway.config.scan.max_filter_depth)
    }

    async fn search(
        &self,
        spec: lake::SearchSpec,
        wanted: lake::Search,
    ) -> Result<(Option<SearchInfo>, Bytes), Status> {
        let _permit = self.gateway.admission.search()?;
        let searcher = answer(self.gateway.lake()?.searcher(&spec).await)?;
        let found = answer(searcher.search(&wanted).await)?;
        self.gateway.metrics.rows_found(found.rows.num_rows() as u64);
        Ok((Some(search::found(&found)), rows(&found)?))
    }
}

/// As an Arrow IPC stream.
fn rows(found: &Found) -> Result<Bytes, Status> {
    let encode = || {
        let mut writer = StreamWriter::try_new(Vec::new(), &found.rows.schema())?;
        writer.write(&found.rows)?;
        writer.into_inner()
    };
    encode().map(Bytes::from).map_err(|error| internal("the rows of a search cannot be encoded", &error))
}

#[tonic::async_trait]
impl SearchService for SearchApi {
    async fn vector_search(&self, request: Request<VectorSearchRequest>) -> Answer<VectorSearchResponse> {
        let r = request.into_inner();
        let spec = search::spec(r.table, r.version, r.projection, r.filter, r.metadata, self.max_depth())?;
        let query = search::vector_query(convert::required(r.query, "query")?)?;
        let (info, rows) = self.search(spec, lake::Search::Vector(query)).await?;
        Ok(Response::new(VectorSearchResponse { info, rows }))
    }

    async fn full_text_search(&self, request: Request<FullTextSearchRequest>) -> Answer<FullTextSearchResponse> {
        let r = request.into_inner();
        let spec = search::spec(r.table, r.version, r.projection, r.filter, r.metadata, self.max_depth())?;
        let query = search::text_search(convert::required(r.query, "query")?)?;
        let (info, rows) = self.search(spec, lake::Search::Text(query)).await?;
        Ok(Response::new(FullTextSearchResponse { info, rows }))
    }

    async fn hybrid_search(&self, request: Request<HybridSearchRequest>) -> Answer<HybridSearchResponse> {
        let r = request.into_inner();
        let spec = search::spec(r.table, r.version, r.projection, r.filter, r.metadata, self.max_depth())?;
        let query = search::hybrid_query(convert::required(r.query, "query")?)?;
        let (info, rows) = self.search(spec, lake::Search::Hybrid(Box::new(query))).await?;
        Ok(Response::new(HybridSearchResponse { info, rows }))
    }
}
