//! Caches whose values are made once for all who ask at the same time.

use std::error::Error as StdError;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use moka::future::Cache;

use crate::error::{Error, Result};

/// The value that is kept for the key, else the one that `make` makes. Who comes while another makes it waits for that one; but an
/// error is for the maker alone: it may have begun before the world was as the other knows it, or with something of its own.
pub(crate) async fn kept_or_made<K, V, F>(cache: &Cache<K, V>, key: K, make: impl Fn() -> F) -> Result<V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    F: Future<Output = Result<V>>,
{
    let made_here = AtomicBool::new(false);
    let making = async {
        made_here.store(true, Ordering::Relaxed);
        make().await
    };
    match cache.try_get_with(key.clone(), making).await {
        Ok(value) => Ok(value),
        Err(shared) if made_here.load(Ordering::Relaxed) => Err(Arc::try_unwrap(shared).unwrap_or_else(|shared| {
            let error = Error::new(shared.kind(), shared.message());
            match shared.source() {
                Some(cause) => error.with_source(causes(cause)),
                None => error,
            }
        })),
        Err(_) => {
            let value = make().await?;
            cache.insert(key, value.clone()).await;
            Ok(value)
        }
    }
}

/// An error with its causes as text, for where it has more than one owner.
fn causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
