//! Threads for jobs alone: scans and commits never wait for a worker that compacts.

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use crate::config::MaintenanceConfig;
use crate::convert;

/// Threads for local files, for each that works.
const BLOCKING: usize = 4;

pub(super) struct Threads {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Threads {
    pub(super) fn start(config: &MaintenanceConfig) -> std::io::Result<Self> {
        let threads: usize = convert::saturating(config.threads);
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .worker_threads(threads)
            .max_blocking_threads(threads.saturating_mul(BLOCKING))
            .thread_name("maintenance")
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    pub(super) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(future)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // A runtime that is dropped waits for its threads, which async code must not.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
