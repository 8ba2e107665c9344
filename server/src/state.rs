//! What every service of the process holds.

use std::sync::Arc;
use std::time::Instant;

use lance_gateway_lake::Lake;

use crate::admission::Admission;
use crate::config::Config;
use crate::jobs::Jobs;
use crate::lifecycle::Lifecycle;
use crate::telemetry::Metrics;

/// The process, as its services see it. A cheap clone.
#[derive(Clone)]
pub struct Gateway {
    /// Everything about Lance.
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
