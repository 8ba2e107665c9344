//! Logs, traces and metrics.

mod metrics;
mod pending;

use std::io;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{EnvFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

pub use metrics::Metrics;

use crate::config::{LogConfig, LogFormat, TelemetryConfig};

const NAME: &str = "lance-gateway";

/// Why telemetry did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another part of the process has taken the log.
    #[error("cannot take over the log")]
    Log(#[from] TryInitError),
    /// Bad configuration of the exporter.
    #[error("cannot export to telemetry.otlp-endpoint")]
    Exporter(#[from] ExporterBuildError),
    /// Bad configuration of the exporter.
    #[error("cannot start the exporter of metrics")]
    Reader(#[from] opentelemetry_sdk::error::OTelSdkError),
}

/// What must be flushed at the end.
#[derive(Debug)]
pub struct Telemetry {
    meters: SdkMeterProvider,
    tracers: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Starts logs, and traces if there is an endpoint. Once per process, inside of the runtime.
    pub fn start(log: &LogConfig, telemetry: &TelemetryConfig) -> Result<(Self, Metrics), Error> {
        let tracers = tracers(telemetry)?;
        let spans = tracers.as_ref().map(|tracers| {
            let layer = tracing_opentelemetry::layer().with_tracer(tracers.tracer(NAME));
            // Whatever the log shows: a trace without its root is of no use.
            layer.with_filter(Targets::new().with_target("lance_gateway", LevelFilter::INFO))
        });
        tracing_subscriber::registry().with(log_layer(log)).with(spans).try_init()?;
        log_panics();
        let (meters, metrics) = meters(telemetry)?;
        Ok((Self { meters, tracers }, metrics))
    }

    /// Sends what is left. Blocks, so that it needs a thread of its own.
    pub fn stop(self) {
        if let Some(Err(error)) = self.tracers.map(|tracers| tracers.shutdown()) {
            tracing::warn!(%error, "the last spans were not sent");
        }
        if let Err(error) = self.meters.shutdown() {
            tracing::warn!(%error, "the last metrics were not sent");
        }
    }
}

fn log_layer<S>(log: &LogConfig) -> Box<dyn tracing_subscriber::Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    // Checked when the configuration was loaded.
    let filter = EnvFilter::new(log.level.directives());
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    match log.format {
        LogFormat::Text => layer.compact().with_ansi(false).with_filter(filter).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_span_list(false).with_filter(filter).boxed(),
    }
}

/// Panics go to the log with their place, like everything else.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let message = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic: {}", message.unwrap_or("of an unknown kind"));
    }));
}

fn resource() -> Resource {
    Resource::builder()
        .with_service_name(NAME)
        .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

fn tracers(config: &TelemetryConfig) -> Result<Option<SdkTracerProvider>, ExporterBuildError> {
    let Some(endpoint) = &config.otlp_endpoint.0 else { return Ok(None) };
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint.as_str())
        .with_timeout(config.export_timeout.get())
        .build()?;
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(usize::try_from(config.queue_spans).unwrap_or(usize::MAX))
        .build();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.sample_ratio.0)));
    Ok(Some(
        SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
            .with_sampler(sampler)
            .with_resource(resource())
            .build(),
    ))
}

fn meters(config: &TelemetryConfig) -> Result<(SdkMeterProvider, Metrics), Error> {
    let registry = prometheus::Registry::new();
    let scrape =
        opentelemetry_prometheus::exporter().with_registry(registry.clone()).scope_info_enabled(false).build()?;
    let mut builder = SdkMeterProvider::builder().with_reader(scrape).with_resource(resource());
    if let Some(endpoint) = &config.otlp_endpoint.0 {
        let exporter = MetricExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint.as_str())
            .with_timeout(config.export_timeout.get())
            .build()?;
        builder =
            builder.with_reader(PeriodicReader::builder(exporter).with_interval(config.export_interval.get()).build());
    }
    let meters = builder.build();
    let metrics = Metrics::new(&meters, registry);
    Ok((meters, metrics))
}
