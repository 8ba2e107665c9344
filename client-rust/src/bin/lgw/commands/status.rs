//! `lgw status`

use std::time::Duration;

use lance_gateway_client::{Client, GatewayState};
use serde::Serialize;

use crate::args::Global;
use crate::console::{Console, human_bytes};
use crate::failure::Result;

#[derive(Serialize)]
struct Shown<'a> {
    uri: &'a str,
    state: &'static str,
    version: &'a str,
    lance_version: &'a str,
    uptime_seconds: u64,
    limits: Limits,
}

#[derive(Serialize)]
struct Limits {
    max_message_bytes: u64,
    max_row_bytes: u64,
    max_scan_streams: u32,
    max_put_streams: u32,
    max_filter_depth: u32,
}

pub async fn status(client: &Client, global: &Global, console: &Console) -> Result<()> {
    let status = client.status().await?;
    let limits = &status.limits;
    let shown = Shown {
        uri: &global.uri,
        state: name(status.state),
        version: &status.version,
        lance_version: &status.lance_version,
        uptime_seconds: status.uptime.as_secs(),
        limits: Limits {
            max_message_bytes: limits.max_message_bytes,
            max_row_bytes: limits.max_row_bytes,
            max_scan_streams: limits.max_scan_streams,
            max_put_streams: limits.max_put_streams,
            max_filter_depth: limits.max_filter_depth,
        },
    };
    let uptime = humantime::format_duration(Duration::from_secs(shown.uptime_seconds)).to_string();
    console.record(
        &shown,
        &[
            ("uri", shown.uri.to_owned()),
            ("state", shown.state.to_owned()),
            ("version", shown.version.to_owned()),
            ("lance version", shown.lance_version.to_owned()),
            ("uptime", uptime),
            ("largest message", human_bytes(limits.max_message_bytes)),
            ("largest row", human_bytes(limits.max_row_bytes)),
            ("scan streams", limits.max_scan_streams.to_string()),
            ("put streams", limits.max_put_streams.to_string()),
            ("filter depth", limits.max_filter_depth.to_string()),
        ],
    )
}

fn name(state: GatewayState) -> &'static str {
    match state {
        GatewayState::Unspecified => "unknown",
        GatewayState::Starting => "starting",
        GatewayState::Serving => "serving",
        GatewayState::Quiescing => "quiescing",
        GatewayState::Draining => "draining",
        GatewayState::Stopped => "stopped",
    }
}
