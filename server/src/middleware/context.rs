//! What belongs to one call: its id, and what came of it. Reachable from everywhere below the handler without being passed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use http::HeaderValue;
use lance_gateway_proto::Reason;
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument as _;

use crate::status;

tokio::task_local! {
    static CALL: Arc<Call>;
}

/// A `StorageOptions` message, as it stands in its header. A sensitive value: its debug output tells nothing.
pub(crate) type StorageOptions = HeaderValue;

/// One call.
#[derive(Debug)]
pub struct Call {
    request_id: String,
    storage_options: Option<StorageOptions>,
    /// Index in `Reason::ALL` plus one; 0: none.
    reason: AtomicU8,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Call {
    pub(crate) fn new(request_id: String, storage_options: Option<StorageOptions>) -> Arc<Self> {
        Arc::new(Self {
            request_id,
            storage_options,
            reason: AtomicU8::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
        })
    }

    /// The id that client and gateway log.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// How the caller wants the stores of its tables to be reached. Keys are in it.
    pub(crate) fn storage_options(&self) -> Option<StorageOptions> {
        self.storage_options.clone()
    }

    /// Why it failed, if it did.
    pub fn reason(&self) -> Option<Reason> {
        let index = usize::from(self.reason.load(Ordering::Relaxed)).checked_sub(1)?;
        Reason::ALL.get(index).copied()
    }

    pub(crate) fn failed(&self, reason: Reason) {
        let index = Reason::ALL.iter().position(|r| *r == reason).and_then(|i| u8::try_from(i + 1).ok()).unwrap_or(0);
        self.reason.store(index, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.bytes_in.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, bytes: u64) {
        self.bytes_out.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.bytes_in.load(Ordering::Relaxed), self.bytes_out.load(Ordering::Relaxed))
    }
}

/// The call that this task works for.
pub fn current() -> Option<Arc<Call>> {
    CALL.try_with(Arc::clone).ok()
}

/// Runs `future` as a part of `call`.
pub(crate) fn scope<F: Future>(call: Arc<Call>, future: F) -> impl Future<Output = F::Output> {
    CALL.scope(call, future)
}

/// Runs `f` as a part of `call`.
pub(crate) fn sync_scope<R>(call: &Arc<Call>, f: impl FnOnce() -> R) -> R {
    CALL.sync_scope(Arc::clone(call), f)
}

/// Spawns a task that keeps the call and the span of its parent.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let future = future.instrument(tracing::Span::current());
    match current() {
        Some(call) => tokio::spawn(CALL.scope(call, future)),
        None => tokio::spawn(future),
    }
}

/// A task of ours that did not come to its end.
pub fn lost_task(error: JoinError) -> tonic::Status {
    status::internal("a task of the gateway ended early", &error)
}
