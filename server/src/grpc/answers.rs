//! Answers of mutating calls that the lake cannot recognise as repeats: a table that is dropped keeps no memory of who dropped it.

use bytes::Bytes;
use lance_gateway_proto::Reason;
use moka::future::Cache;
use prost::Message;
use tonic::Status;

use crate::config::RequestConfig;
use crate::status::status;

/// Answers by request id. Within this process: a repeat that another one gets is done again, and finds the work done.
#[derive(Clone)]
pub struct Answers {
    cache: Cache<String, Remembered>,
}

#[derive(Clone)]
struct Remembered {
    /// The request, so that an id that is used for two of them comes to light.
    request: Bytes,
    response: Bytes,
}

impl Answers {
    pub fn new(config: &RequestConfig) -> Self {
        let cache = Cache::builder()
            .max_capacity(u64::from(config.remembered_answers))
            .time_to_live(config.remembered_for.get())
            .build();
        Self { cache }
    }

    /// Runs `work` once for each request id, whoever races; only what succeeded is remembered. An empty id is never remembered.
    pub async fn once<Q, R, F>(&self, id: String, request: &Q, work: F) -> Result<R, Status>
    where
        Q: Message,
        R: Message + Default,
        F: Future<Output = Result<R, Status>>,
    {
        if id.is_empty() {
            return work.await;
        }
        let request = Bytes::from(request.encode_to_vec());
        let make = async {
            let response = Bytes::from(work.await?.encode_to_vec());
            Ok::<_, Status>(Remembered { request: request.clone(), response })
        };
        let remembered = self.cache.try_get_with(id, make).await.map_err(|shared| Status::clone(&shared))?;
        if remembered.request != request {
            return Err(status(Reason::InvalidArgument, "request_id was used for another request; draw a new one"));
        }
        R::decode(remembered.response).map_err(|error| crate::status::internal("a remembered answer is broken", &error))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::config::Config;
    use lance_gateway_proto::v1::{DropTableRequest, DropTableResponse};
    use std::sync::atomic::{AtomicU32, Ordering};

    fn request(if_exists: bool) -> DropTableRequest {
        DropTableRequest { request_id: "1".into(), table: None, if_exists }
    }

    #[tokio::test]
    async fn a_repeat_answers_the_same_and_another_request_with_the_id_is_refused() {
        let answers = Answers::new(&Config::default().request);
        let runs = AtomicU32::new(0);
        let drop_it = || async { Ok(DropTableResponse { dropped: runs.fetch_add(1, Ordering::Relaxed) == 0 }) };
        for _ in 0..3 {
            let response = answers.once("1".into(), &request(true), drop_it()).await.unwrap();
            assert!(response.dropped);
        }
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        assert!(answers.once("1".into(), &request(false), drop_it()).await.is_err());
        assert!(!answers.once(String::new(), &request(true), drop_it()).await.unwrap().dropped);
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered() {
        let answers = Answers::new(&Config::default().request);
        let fails = async { Err::<DropTableResponse, _>(status(Reason::StoreUnavailable, "away")) };
        assert!(answers.once("1".into(), &request(true), fails).await.is_err());
        let works = async { Ok(DropTableResponse { dropped: true }) };
        assert!(answers.once("1".into(), &request(true), works).await.unwrap().dropped);
    }
}
