//! What every service of the process holds.

use std::sync::Arc;
use std::time::Instant;

use http::HeaderName;
use lance_gateway_lake::{self as lake, Committed, Lake, TableId};
use lance_gateway_proto::{Reason, STORAGE_OPTIONS_HEADER, v1};
use prost::Message as _;
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::admission::Admission;
use crate::config::Config;
use crate::jobs::Jobs;
use crate::lifecycle::Lifecycle;
use crate::middleware::context;
use crate::status::{from_lake, status};
use crate::telemetry::Metrics;

/// The process, as its services see it. A cheap clone.
#[derive(Clone)]
pub struct Gateway {
    /// Everything about Lance, with the storage options of the operator. Calls of clients take [`Gateway::lake`].
    pub lake: Lake,
    /// As loaded at start.
    pub config: Arc<Config>,
    /// The state, and what a drain waits for.
    pub lifecycle: Arc<Lifecycle>,
    /// How much runs at once.
    pub admission: Arc<Admission>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Work in the background.
    pub jobs: Jobs,
    /// When the process began.
    pub started: Instant,
}

impl Gateway {
    /// A commit has ended: it is counted, and the policy hears of its version.
    pub fn commit_ended(&self, result: &lake::Result<Committed>) {
        self.metrics.commit_ended(result);
        if let Ok(Committed { table: TableId::Name(name), version, already_committed: false, .. }) = result {
            self.jobs.landed(name, *version);
        }
        if let Ok(Committed { table, merged: Some(counts), already_committed: false, .. }) = result {
            self.jobs.merged(table.clone(), *counts);
        }
    }

    /// The lake as the caller wants it to be reached: with the storage options of its call, if it has some.
    pub fn lake(&self) -> Result<Lake, Status> {
        let Some(given) = context::current().and_then(|call| call.storage_options()) else {
            return Ok(self.lake.clone());
        };
        // The texts of these errors hold no byte of the options.
        let malformed =
            || status(Reason::InvalidArgument, "the storage options of the call are no StorageOptions message");
        let header =
            MetadataMap::from_headers([(HeaderName::from_static(STORAGE_OPTIONS_HEADER), given)].into_iter().collect());
        let value = header.get_bin(STORAGE_OPTIONS_HEADER).ok_or_else(malformed)?;
        let bytes = value.to_bytes().map_err(|_| malformed())?;
        let options = v1::StorageOptions::decode(bytes).map_err(|_| malformed())?.options;
        self.lake.with_client_options(&options.into_iter().collect()).map_err(from_lake)
    }
}
