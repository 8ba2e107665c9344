//! The admin port: `/live`, `/ready` and `/metrics` over HTTP/1.

#[cfg(feature = "faults")]
mod faults;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::lifecycle::{Lifecycle, State};
use crate::telemetry::Metrics;

#[derive(Clone)]
struct Admin {
    lifecycle: Arc<Lifecycle>,
    metrics: Arc<Metrics>,
}

/// Serves until `stop`.
pub async fn serve(
    listener: TcpListener,
    lifecycle: Arc<Lifecycle>,
    metrics: Arc<Metrics>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let router = Router::new()
        .route("/live", get(live))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics_page))
        .with_state(Admin { lifecycle, metrics });
    #[cfg(feature = "faults")]
    let router = if lance_gateway_lake::faults::enabled() { router.merge(faults::router()) } else { router };
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

async fn live() -> &'static str {
    "live\n"
}

/// 200 only while new work is taken. A store that is away does not change it: restarting the gateway would not help.
async fn ready(Shared(admin): Shared<Admin>) -> (StatusCode, String) {
    let state = admin.lifecycle.state();
    let code = if state == State::Serving { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, format!("{state}\n"))
}

async fn metrics_page(Shared(admin): Shared<Admin>) -> Response {
    match admin.metrics.page() {
        Ok(page) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
