//! The gateway about itself.

use lance_gateway_proto::v1::status_service_server::StatusService;
use lance_gateway_proto::v1::{GatewayState, GetStatusRequest, GetStatusResponse, Limits};
use tonic::{Request, Response};

use super::Answer;
use crate::lifecycle::State;
use crate::state::Gateway;

pub struct StatusApi {
    gateway: Gateway,
}

impl StatusApi {
    pub fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }
}

#[tonic::async_trait]
impl StatusService for StatusApi {
    async fn get_status(&self, _: Request<GetStatusRequest>) -> Answer<GetStatusResponse> {
        let config = &self.gateway.config;
        let state = match self.gateway.lifecycle.state() {
            State::Starting => GatewayState::Starting,
            State::Serving => GatewayState::Serving,
            State::Quiescing => GatewayState::Quiescing,
            State::Draining => GatewayState::Draining,
            State::Stopped => GatewayState::Stopped,
        };
        Ok(Response::new(GetStatusResponse {
            state: state.into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            lance_version: crate::LANCE_VERSION.to_owned(),
            uptime_seconds: self.gateway.started.elapsed().as_secs(),
            limits: Some(Limits {
                max_message_bytes: config.write.max_message_bytes.bytes(),
                max_row_bytes: config.scan.max_row_bytes.bytes(),
                max_scan_streams: config.scan.max_streams,
                max_put_streams: config.write.max_streams,
                max_filter_depth: config.scan.max_filter_depth,
            }),
        }))
    }
}
