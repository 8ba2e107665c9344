//! Fault points over HTTP, for tests: `PUT /faults/POINT?times=1` with `hold`, `fail` or `pass`; `GET /faults/POINT?times=1` answers
//! when the point was reached that often.

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, Uri};
use axum::routing::put;
use lance_gateway_lake::faults::{self, Action};

pub(super) fn router() -> Router {
    Router::new().route("/faults/{point}", put(set).get(reached))
}

async fn set(Path(point): Path<String>, uri: Uri, action: String) -> Result<(), (StatusCode, String)> {
    let action: Action = action.parse().map_err(|problem| (StatusCode::BAD_REQUEST, problem))?;
    faults::set(&point, action, times(&uri)?);
    Ok(())
}

async fn reached(Path(point): Path<String>, uri: Uri) -> Result<(), (StatusCode, String)> {
    faults::reached(&point, times(&uri)?).await;
    Ok(())
}

/// Once, if it is not said.
fn times(uri: &Uri) -> Result<u64, (StatusCode, String)> {
    let Some(query) = uri.query() else { return Ok(1) };
    let times = query.strip_prefix("times=").and_then(|times| times.parse().ok());
    times.ok_or_else(|| (StatusCode::BAD_REQUEST, format!("'{query}' is not times=NUMBER")))
}
