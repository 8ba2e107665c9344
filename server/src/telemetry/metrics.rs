//! What is counted. Names follow the RPC conventions of OpenTelemetry where there are some. No table names: a label must not
//! grow with use.

use std::sync::Arc;
use std::time::Duration;

use lance_gateway_lake::{self as lake, CommitId, Committed};
use lance_gateway_proto::Reason;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider as _, UpDownCounter};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Encoder as _, Registry, TextEncoder};
use tonic::Code;

use super::pending::Pending;
use crate::admission::Admission;
use crate::lifecycle::{Lifecycle, State};
use crate::middleware::Method;
use crate::status::reason_of;

/// Seconds; from a lookup in memory to a long scan.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// All instruments of the process.
pub struct Metrics {
    registry: Registry,
    meter: Meter,
    duration: Histogram<f64>,
    calls: Counter<u64>,
    in_flight: UpDownCounter<i64>,
    received: Counter<u64>,
    sent: Counter<u64>,
    rows_scanned: Counter<u64>,
    rows_found: Counter<u64>,
    rows_staged: Counter<u64>,
    commits: Counter<u64>,
    pending: Arc<Pending>,
    jobs: Counter<u64>,
    jobs_running: UpDownCounter<i64>,
    connections: UpDownCounter<i64>,
    connections_refused: Counter<u64>,
}

impl Metrics {
    pub(super) fn new(provider: &SdkMeterProvider, registry: Registry) -> Self {
        let meter = provider.meter("lance-gateway");
        let counter = |name: &'static str, what: &'static str| meter.u64_counter(name).with_description(what).build();
        let level =
            |name: &'static str, what: &'static str| meter.i64_up_down_counter(name).with_description(what).build();
        Self {
            duration: meter
                .f64_histogram("rpc.server.call.duration")
                .with_description("time from the request to the end of the response")
                .with_unit("s")
                .with_boundaries(SECONDS.to_vec())
                .build(),
            calls: counter("lance_gateway.calls", "calls that ended, with the reason of failed ones"),
            in_flight: level("lance_gateway.calls.in_flight", "calls that run"),
            received: counter("lance_gateway.received_bytes", "bytes of requests"),
            sent: counter("lance_gateway.sent_bytes", "bytes of responses"),
            rows_scanned: counter("lance_gateway.rows.scanned", "rows sent by scans"),
            rows_found: counter("lance_gateway.rows.found", "rows sent by searches and lookups"),
            rows_staged: counter("lance_gateway.rows.staged", "rows staged by puts"),
            commits: counter("lance_gateway.commits", "commits by outcome"),
            pending: Arc::default(),
            jobs: counter("lance_gateway.jobs", "jobs that ended, by kind and state"),
            jobs_running: level("lance_gateway.jobs.running", "jobs that wait or run"),
            connections: level("lance_gateway.connections", "open connections"),
            connections_refused: counter("lance_gateway.connections.refused", "connections above connection.max"),
            registry,
            meter,
        }
    }

    /// Follows the state, the permits, and prepared commits until `max_committable_age`.
    pub fn follow(&self, lifecycle: &Arc<Lifecycle>, admission: &Arc<Admission>, max_committable_age: Duration) {
        let gauge =
            |name: &'static str, what: &'static str| self.meter.u64_observable_gauge(name).with_description(what);
        gauge("lance_gateway.build_info", "1, with the versions as labels")
            .with_callback(|observer| {
                let versions = [
                    KeyValue::new("version", env!("CARGO_PKG_VERSION")),
                    KeyValue::new("lance_version", crate::LANCE_VERSION),
                ];
                observer.observe(1, &versions);
            })
            .build();
        let state = Arc::clone(lifecycle);
        gauge("lance_gateway.state", "1 for the state the process is in")
            .with_callback(move |observer| {
                let now = state.state();
                for state in State::ALL {
                    observer.observe(u64::from(now == state), &[KeyValue::new("state", state.to_string())]);
                }
            })
            .build();
        let pending = Arc::clone(&self.pending);
        gauge("lance_gateway.commits.pending", "commits that were prepared here and are not finished")
            .with_callback(move |observer| observer.observe(pending.count(max_committable_age), &[]))
            .build();
        let pending = Arc::clone(&self.pending);
        gauge("lance_gateway.commits.pending_age", "how long the oldest of them has waited")
            .with_unit("s")
            .with_callback(move |observer| observer.observe(pending.oldest().as_secs(), &[]))
            .build();
        let pending = Arc::clone(&self.pending);
        gauge("lance_gateway.commits.since_last", "time since the last commit; absent before the first")
            .with_unit("s")
            .with_callback(move |observer| {
                if let Some(since) = pending.since_last() {
                    observer.observe(since.as_secs(), &[]);
                }
            })
            .build();
        for (name, what, used) in [
            ("lance_gateway.permits.used", "permits in use", true),
            ("lance_gateway.permits.limit", "permits there are", false),
        ] {
            let admission = Arc::clone(admission);
            gauge(name, what)
                .with_callback(move |observer| {
                    for (pool, in_use, size) in admission.usage() {
                        let value = if used { in_use } else { size };
                        observer.observe(value as u64, &[KeyValue::new("pool", pool)]);
                    }
                })
                .build();
        }
    }

    /// The page of `/metrics`.
    pub fn page(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut page = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut page)?;
        Ok(page)
    }

    pub(crate) fn call_began(&self, method: Method) {
        self.in_flight.add(1, &labels(method));
    }

    pub(crate) fn call_ended(
        &self,
        method: Method,
        code: Code,
        reason: Option<Reason>,
        duration: Duration,
        bytes_in: u64,
        bytes_out: u64,
    ) {
        let base = labels(method);
        self.in_flight.add(-1, &base);
        self.received.add(bytes_in, &base);
        self.sent.add(bytes_out, &base);
        let [system, service, name] = base;
        let code = KeyValue::new("rpc.grpc.status_code", code as i64);
        let reason = KeyValue::new("reason", reason.map_or("", Reason::name));
        self.calls.add(1, &[service.clone(), name.clone(), code.clone(), reason]);
        self.duration.record(duration.as_secs_f64(), &[system, service, name, code]);
    }

    /// Rows that a scan has sent.
    pub fn rows_scanned(&self, rows: u64) {
        self.rows_scanned.add(rows, &[]);
    }

    /// Rows that a search or a lookup has found.
    pub fn rows_found(&self, rows: u64) {
        self.rows_found.add(rows, &[]);
    }

    /// Rows that a put has staged.
    pub fn rows_staged(&self, rows: u64) {
        self.rows_staged.add(rows, &[]);
    }

    /// A commit that ended: with a new version, with one that an earlier call had made, or with a reason.
    pub fn commit_ended(&self, result: &lake::Result<Committed>) {
        let outcome = match result {
            Ok(committed) if committed.already_committed => "repeated",
            Ok(_) => "committed",
            Err(error) => reason_of(error.kind()).name(),
        };
        self.commits.add(1, &[KeyValue::new("outcome", outcome)]);
        if let Ok(committed) = result {
            self.pending.finished(&committed.id, true);
        }
    }

    /// A commit that was prepared.
    pub fn commit_prepared(&self, id: &CommitId) {
        self.pending.prepared(id);
    }

    /// A commit that was aborted.
    pub fn commit_aborted(&self, id: &CommitId) {
        self.pending.finished(id, false);
    }

    pub(crate) fn job_began(&self, kind: &'static str) {
        self.jobs_running.add(1, &[KeyValue::new("kind", kind)]);
    }

    pub(crate) fn job_ended(&self, kind: &'static str, state: &'static str) {
        self.jobs_running.add(-1, &[KeyValue::new("kind", kind)]);
        self.jobs.add(1, &[KeyValue::new("kind", kind), KeyValue::new("state", state)]);
    }

    pub(crate) fn connection_opened(&self) {
        self.connections.add(1, &[]);
    }

    pub(crate) fn connection_closed(&self) {
        self.connections.add(-1, &[]);
    }

    pub(crate) fn connection_refused(&self) {
        self.connections_refused.add(1, &[]);
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self::new(&SdkMeterProvider::default(), Registry::new())
    }
}

fn labels(method: Method) -> [KeyValue; 3] {
    [
        KeyValue::new("rpc.system", "grpc"),
        KeyValue::new("rpc.service", method.service),
        KeyValue::new("rpc.method", method.name),
    ]
}
