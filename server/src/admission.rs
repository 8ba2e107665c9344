//! How much runs at once. Over a bound the answer is OVERLOADED with a retry hint; nothing waits in a queue.

use std::sync::Arc;

use lance_gateway_proto::Reason;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::config::Config;
use crate::status::{internal, status};

/// The permits of the process.
#[derive(Debug)]
pub struct Admission {
    calls: Pool,
    scans: Pool,
    searches: Pool,
    puts: Pool,
    watches: Pool,
}

/// Room for one call or stream, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Pool {
    permits: Arc<Semaphore>,
    size: usize,
    what: &'static str,
    option: &'static str,
}

impl Pool {
    fn new(size: u32, what: &'static str, option: &'static str) -> Self {
        let size = usize::try_from(size).unwrap_or(Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(size)), size, what, option }
    }

    fn take(&self) -> Result<Permit, Status> {
        match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => Ok(Permit { _permit: permit }),
            Err(_) => Err(status(
                Reason::Overloaded,
                format!("the gateway runs {} {} at once ({}); call again later", self.size, self.what, self.option),
            )),
        }
    }

    /// In turn, when there is room.
    async fn wait(&self) -> Result<Permit, Status> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        // Nobody closes it.
        permit
            .map(|permit| Permit { _permit: permit })
            .map_err(|closed| internal("a pool of permits is closed", &closed))
    }

    fn in_use(&self) -> usize {
        self.size - self.permits.available_permits()
    }
}

impl Admission {
    /// All permits, as configured.
    pub fn new(config: &Config) -> Self {
        Self {
            calls: Pool::new(config.request.max_in_flight, "calls", "request.max-in-flight"),
            scans: Pool::new(config.scan.max_streams, "scan streams", "scan.max-streams"),
            searches: Pool::new(config.search.max_in_flight, "searches", "search.max-in-flight"),
            puts: Pool::new(config.write.max_streams, "put streams", "write.max-streams"),
            watches: Pool::new(config.maintenance.max_watches, "watched jobs", "maintenance.max-watches"),
        }
    }

    /// Room for a unary call.
    pub fn call(&self) -> Result<Permit, Status> {
        self.calls.take()
    }

    /// Room for a stream that reads.
    pub fn scan(&self) -> Result<Permit, Status> {
        self.scans.take()
    }

    /// Room for one search.
    pub fn search(&self) -> Result<Permit, Status> {
        self.searches.take()
    }

    /// Room for one search of many, once it is its turn.
    pub async fn search_in_turn(&self) -> Result<Permit, Status> {
        self.searches.wait().await
    }

    /// Room for a stream that writes.
    pub fn put(&self) -> Result<Permit, Status> {
        self.puts.take()
    }

    /// Room for a stream that follows a job.
    pub fn watch(&self) -> Result<Permit, Status> {
        self.watches.take()
    }

    /// Name, permits in use and size of each pool, for the metrics.
    pub(crate) fn usage(&self) -> [(&'static str, usize, usize); 5] {
        [
            ("calls", self.calls.in_use(), self.calls.size),
            ("scans", self.scans.in_use(), self.scans.size),
            ("searches", self.searches.in_use(), self.searches.size),
            ("puts", self.puts.in_use(), self.puts.size),
            ("watches", self.watches.in_use(), self.watches.size),
        ]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use tonic_types::StatusExt as _;

    #[test]
    fn a_full_pool_answers_overloaded_with_a_retry_hint_and_a_returned_permit_is_used_again() {
        let mut config = Config::default();
        config.write.max_streams = 1;
        let admission = Admission::new(&config);
        let permit = admission.put().unwrap();
        let refused = admission.put().unwrap_err();
        let details = refused.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "OVERLOADED");
        assert!(details.retry_info().is_some());
        assert!(refused.message().contains("write.max-streams"), "{refused}");
        assert!(admission.scan().is_ok(), "pools are apart");
        drop(permit);
        assert!(admission.put().is_ok());
    }
}
