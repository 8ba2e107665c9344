//! `grpc.health.v1`, true to the state of the process.

use tokio::sync::watch;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::HealthReporter;

use crate::lifecycle::State;
use crate::middleware::Method;

/// What can be asked for as a whole.
const ALL: &str = "";

pub(super) fn service() -> (HealthReporter, HealthServer<impl Health>) {
    tonic_health::server::health_reporter()
}

/// Keeps the health at the state, from a task of its own. Answers the state that it shows.
pub(super) fn follow(reporter: HealthReporter, mut state: watch::Receiver<State>) -> watch::Receiver<State> {
    let (shown, shows) = watch::channel(*state.borrow());
    tokio::spawn(async move {
        loop {
            let now = *state.borrow_and_update();
            let status = match now {
                State::Serving => ServingStatus::Serving,
                State::Starting | State::Quiescing | State::Draining | State::Stopped => ServingStatus::NotServing,
            };
            for service in Method::services().chain([ALL]) {
                reporter.set_service_status(service, status).await;
            }
            shown.send_replace(now);
            // The sender goes with the process.
            if state.changed().await.is_err() {
                return;
            }
        }
    });
    shows
}
