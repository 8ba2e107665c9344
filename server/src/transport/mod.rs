//! The wire: listeners, HTTP/2 and the services behind it.

mod connection;
mod health;
mod listener;

use futures::Stream;
use tokio::sync::watch;
use tonic::service::Routes;
use tonic::transport::Server;

pub use connection::{Connection, connections};
pub use listener::{Bound, ListenError, Listener};

use crate::lifecycle::State;
use crate::state::Gateway;
use crate::{grpc, middleware};

/// Why the server did not start or ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Descriptors of our own.
    #[error("cannot describe the services for reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The listeners.
    #[error("the server ended")]
    Server(#[from] tonic::transport::Error),
}

/// All services of the port, and the state that their health shows.
pub fn routes(gateway: &Gateway) -> Result<(Routes, watch::Receiver<State>), ServeError> {
    let describe = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(lance_gateway_proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let health = health::service();
    let shown = health::follow(health.0, gateway.lifecycle.subscribe());
    let routes = Routes::new(health.1)
        .add_service(describe().build_v1()?)
        .add_service(describe().build_v1alpha()?)
        .add_service(grpc::statuses(gateway))
        .add_service(grpc::tables(gateway))
        .add_service(grpc::writes(gateway))
        .add_service(grpc::searches(gateway))
        .add_service(grpc::jobs(gateway))
        .add_service(grpc::indexes(gateway))
        .add_service(crate::flight::service(gateway))
        .prepare();
    Ok((routes, shown))
}

/// Serves until `stop`, then until all connections are closed.
pub async fn serve(
    gateway: &Gateway,
    routes: Routes,
    incoming: impl Stream<Item = std::io::Result<Connection>>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let http2 = &gateway.config.http2;
    let max_header_bytes = gateway.config.request.max_header_bytes;
    Server::builder()
        .initial_stream_window_size(http2.stream_window.as_u32())
        .initial_connection_window_size(http2.connection_window.as_u32())
        .max_frame_size(http2.max_frame.as_u32())
        .max_concurrent_streams(http2.max_concurrent_streams)
        .http2_keepalive_interval(Some(http2.keepalive_interval.get()))
        .http2_keepalive_timeout(Some(http2.keepalive_timeout.get()))
        .http2_max_header_list_size(max_header_bytes.as_u32())
        .layer(middleware::layers(gateway))
        .add_routes(routes)
        .serve_with_incoming_shutdown(incoming, stop)
        .await?;
    Ok(())
}
