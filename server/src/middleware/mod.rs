//! What happens around every call: observed, kept from panicking, admitted, timed.

pub mod context;
mod deadline;
mod gate;
mod method;
mod observe;
mod panics;
mod trailers;

use std::convert::Infallible;
use std::pin::Pin;

use tonic::body::Body;
use tower::layer::util::{Identity, Stack};
use tower::{Service, ServiceBuilder};

pub use method::{Class, Method};

use crate::state::Gateway;

type Request = http::Request<Body>;
type Response = http::Response<Body>;
type Answer = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// What a layer wraps.
pub trait Inner: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static> {}

impl<S> Inner for S where S: Service<Request, Response = Response, Error = Infallible, Future: Send + 'static> {}

/// All layers, the outermost first.
#[allow(clippy::type_complexity)]
pub fn layers(
    gateway: &Gateway,
) -> ServiceBuilder<
    Stack<
        deadline::DeadlineLayer,
        Stack<gate::GateLayer, Stack<panics::PanicLayer, Stack<observe::ObserveLayer, Identity>>>,
    >,
> {
    ServiceBuilder::new()
        .layer(observe::ObserveLayer::new(gateway.metrics.clone()))
        .layer(panics::PanicLayer)
        .layer(gate::GateLayer::new(gateway.lifecycle.clone(), gateway.admission.clone()))
        .layer(deadline::DeadlineLayer::new(gateway.config.request.timeout.get()))
}

/// A failure before the handler, or instead of it.
fn refuse(status: &tonic::Status) -> Response {
    status.clone().into_http()
}

/// Implements `Layer` and the readiness of a `Service` for a pair of types, so that a layer is only its `call`.
macro_rules! layer {
    ($Layer:ident => $Service:ident { $($field:ident),* }) => {
        impl<S> Layer<S> for $Layer {
            type Service = $Service<S>;

            fn layer(&self, inner: S) -> Self::Service {
                $Service { inner, $($field: self.$field.clone()),* }
            }
        }

        impl<S: Inner> Service<Request> for $Service<S> {
            type Response = Response;
            type Error = Infallible;
            type Future = Answer;

            fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
                self.inner.poll_ready(cx)
            }

            fn call(&mut self, request: Request) -> Answer {
                self.answer(request)
            }
        }
    };
}
use layer;
