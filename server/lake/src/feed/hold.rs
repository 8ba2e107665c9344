//! Versions that readers hold: tags of Lance, which cleanups heed until they are too old.
//!
//! A tag alone keeps one version; a reader of changes needs all versions from there on, which the cleanups of a gateway keep.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use lance::Dataset;
use lance::Error as LanceError;

use super::lance_failed;
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::table::{Location, excerpt};
use crate::types::{TableId, VersionSelector};

/// What the names of such tags begin with.
const PREFIX: &str = "lance-gateway.hold.";
const MAX_HOLDER: usize = 128;
/// Attempts against others that make and remove the tag meanwhile.
const ATTEMPTS: usize = 5;

impl Lake {
    /// Keeps a version and all newer ones from cleanups until the time that it answers.
    pub fn hold_version<'a>(
        &'a self,
        table: &'a TableId,
        holder: &'a str,
        version: u64,
    ) -> BoxFuture<'a, Result<DateTime<Utc>>> {
        Box::pin(async move {
            let tag = tag_of(holder)?;
            let location = self.locate(table)?;
            // No cleanup of this gateway removes versions between the look and the tag.
            let lock = self.commit_lock(&location).await;
            let _no_cleanup = lock.lock().await;
            self.open_kept(&location, &VersionSelector::Version(version)).await?;
            let dataset = self.open_latest(&location).await?;
            put(&dataset, &location, &tag, version).await?;
            Ok(Utc::now() + self.inner.options.changes.hold_age)
        })
    }

    /// Lets go of it. False: the holder held none.
    pub fn release_version<'a>(&'a self, table: &'a TableId, holder: &'a str) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let tag = tag_of(holder)?;
            let location = self.locate(table)?;
            release(&*self.open_latest(&location).await?, &tag).await
        })
    }
}

async fn put(dataset: &Dataset, location: &Location, tag: &str, version: u64) -> Result<()> {
    let tags = dataset.tags();
    for _ in 0..ATTEMPTS {
        match tags.update(tag, version).await {
            Err(LanceError::RefNotFound { .. }) => {}
            updated => return updated.map_err(lance_failed),
        }
        match tags.create(tag, version).await {
            Err(LanceError::RefConflict { .. }) => {}
            created => return created.map_err(lance_failed),
        }
    }
    Err(Error::new(
        ErrorKind::ConcurrentModification,
        format!("the tag '{tag}' of table {} comes and goes all the time; try again later", location.shown),
    ))
}

async fn release(dataset: &Dataset, tag: &str) -> Result<bool> {
    match dataset.tags().delete(tag).await {
        Ok(()) => Ok(true),
        Err(LanceError::RefNotFound { .. }) => Ok(false),
        Err(error) => Err(lance_failed(error)),
    }
}

/// The oldest version that somebody holds. What is older than `age` holds nothing any more; `remove`: it is removed.
pub(crate) async fn oldest_held(dataset: &Dataset, age: Duration, remove: bool) -> Result<Option<u64>> {
    let mut oldest: Option<u64> = None;
    for (name, tag) in dataset.tags().list().await.map_err(lance_failed)? {
        if !is_hold(&name) {
            continue;
        }
        // Only a foreign hand makes one without a time.
        let is_young = tag.updated_at.is_some_and(|at| at + age > Utc::now());
        if is_young {
            oldest = Some(oldest.map_or(tag.version, |oldest| oldest.min(tag.version)));
        } else if remove {
            release(dataset, &name).await?;
        }
    }
    Ok(oldest)
}

/// Whether a tag holds a version for a reader.
pub(crate) fn is_hold(tag: &str) -> bool {
    tag.starts_with(PREFIX)
}

fn tag_of(holder: &str) -> Result<String> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if holder.is_empty() || holder.len() > MAX_HOLDER || !holder.chars().all(is_valid) {
        return Err(Error::invalid(format!(
            "'{}' cannot hold a version: a holder is named by 1 to {MAX_HOLDER} of the characters A-Z a-z 0-9 _ -",
            excerpt(holder)
        )));
    }
    Ok(format!("{PREFIX}{holder}"))
}
