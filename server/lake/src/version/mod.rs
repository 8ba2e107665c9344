//! The versions of a table.

mod rows;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use lance::Dataset;

use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::types::{TableId, VersionInfo};
pub(crate) use rows::{OnRows, check_exists, check_rows_of, effect};

/// Manifests that are read at once.
const CONCURRENT_READS: usize = 8;

impl Lake {
    /// The newest `limit` versions that can be read, newest first.
    pub fn versions<'a>(&'a self, table: &'a TableId, limit: usize) -> BoxFuture<'a, Result<Vec<VersionInfo>>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            let latest = self.open_latest(&location).await?;
            let doing = format!("cannot list the versions of table {}", location.shown);
            let limit = limit.min(self.inner.options.max_list);
            let mut numbers = numbers(&latest, &doing).await?;
            numbers.reverse();
            numbers.truncate(limit);
            let found: Vec<Option<VersionInfo>> = stream::iter(numbers)
                .map(|version| describe(&latest, version, &doing))
                .buffered(CONCURRENT_READS)
                .try_collect()
                .await?;
            // A version may be cleaned up between the listing and the reading.
            Ok(found.into_iter().flatten().collect())
        })
    }
}

/// The newest version that is not younger than the time. Times of versions are taken to grow with their numbers.
pub(crate) async fn version_as_of(latest: &Dataset, shown: &str, time: DateTime<Utc>) -> Result<u64> {
    let doing = format!("cannot find the version of table {shown} at that time");
    let numbers = numbers(latest, &doing).await?;
    let (mut low, mut high) = (0, numbers.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let read = latest.read_version_transaction(numbers[middle]).await;
        if read.map_err(|e| from_lance(e, &doing, Missing::Version))?.timestamp <= time {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    match low.checked_sub(1) {
        Some(index) => Ok(numbers[index]),
        None => Err(Error::new(
            ErrorKind::TableVersionNotFound,
            format!("table {shown} has no version as old as {}, or no longer", time.to_rfc3339()),
        )),
    }
}

/// All version numbers that there are, in order.
pub(crate) async fn numbers(latest: &Dataset, doing: &str) -> Result<Vec<u64>> {
    let refs = latest.version_refs().await.map_err(|e| from_lance(e, doing, Missing::Table))?;
    let mut numbers: Vec<u64> = refs.into_iter().map(|version| version.version).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

async fn describe(latest: &Dataset, version: u64, doing: &str) -> Result<Option<VersionInfo>> {
    let gone = |e| {
        let error = from_lance(e, doing, Missing::Version);
        if error.kind() == ErrorKind::TableVersionNotFound { Ok(None) } else { Err(error) }
    };
    let at = match latest.checkout_version(version).await {
        Ok(at) => at,
        Err(e) => return gone(e),
    };
    let read = match at.read_version_transaction(version).await {
        Ok(read) => read,
        Err(e) => return gone(e),
    };
    let (operation, properties) = match read.transaction {
        Some(transaction) => (
            transaction.operation.name().to_owned(),
            transaction
                .transaction_properties
                .iter()
                .flat_map(|p| p.iter())
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
        ),
        None => ("Unknown".to_owned(), BTreeMap::new()),
    };
    let summary = at.manifest().summary();
    Ok(Some(VersionInfo {
        version,
        committed_at: read.timestamp,
        operation,
        properties,
        num_rows: summary.total_rows,
        num_fragments: summary.total_fragments,
    }))
}
