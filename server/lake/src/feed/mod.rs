//! The change feed: what each version of a table changed.
//!
//! A version is compared with the one before it by what their manifests say: fragments that went or came, and marks of deletion
//! ([`diff`]). What went and what came with one key is an update ([`pairs`]). Then the rows themselves are read, by their
//! addresses, in the columns of the last version ([`images`]). So a version costs what it changed, whatever the size of the
//! table, and versions that only move rows cost nothing.
//!
//! The order of the rows of a version depends on the versions and on what the split holds alone, so that a reader may come back with
//! the number of rows that it has.

mod diff;
mod hold;
mod images;
mod pairs;
mod stream;

use futures::future::BoxFuture;

pub(crate) use hold::{is_hold, oldest_held};
pub use stream::ChangesStream;

use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::scan::Projected;
use crate::table::{Handle, Location, known_incarnation};
use crate::types::{ChangesPlan, ChangesRead, ChangesSpec, ChangesSplit, ChangesStart, RowMetadata, VersionSelector};
use crate::version::numbers;
use images::Columns;
use pairs::{identity, key_of};

/// The version that made the change.
pub(crate) const COMMIT_VERSION: &str = "_commit_version";
/// When it was committed.
pub(crate) const COMMIT_TIMESTAMP: &str = "_commit_timestamp";

impl Lake {
    /// Pins both ends, checks the columns, and cuts the changes into parts.
    pub fn plan_changes<'a>(&'a self, spec: &'a ChangesSpec) -> BoxFuture<'a, Result<ChangesPlan>> {
        Box::pin(async move {
            let location = self.locate(&spec.table)?;
            let after = match &spec.after {
                ChangesStart::Oldest => oldest(&*self.open_latest(&location).await?, &location).await?,
                ChangesStart::After(VersionSelector::Version(version)) => *version,
                ChangesStart::After(version) => self.open_version(&location, version).await?.manifest().version,
            };
            let first = self.state(&location, after).await?;
            let last = self.open_kept(&location, &spec.to).await?;
            let to = last.manifest().version;
            if to < after {
                return Err(Error::invalid(format!(
                    "the changes after version {after} cannot end with version {to}, which comes before it"
                )));
            }
            let parts = spec.parts.clamp(1, self.inner.options.scan.max_splits.max(1));
            if parts > 1 && identity(&last, &last)?.is_none() {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "a table without a primary key and without stable row ids is read in one part",
                ));
            }
            let columns = self.columns(first.as_ref(), &last, spec.projection.as_deref())?;
            let split = |part| ChangesSplit {
                after,
                initial: spec.initial,
                to,
                part,
                parts: parts as u32,
                rows_at_once: self.inner.options.changes.rows_at_once as u64,
                incarnation: known_incarnation(&last).unwrap_or_default().to_owned(),
            };
            Ok(ChangesPlan { schema: columns.schema(), splits: (0..parts as u32).map(split).collect() })
        })
    }

    /// Reads one part.
    pub fn changes<'a>(&'a self, read: &'a ChangesRead) -> BoxFuture<'a, Result<ChangesStream>> {
        Box::pin(async move {
            let split = &read.split;
            if split.parts == 0 || split.part >= split.parts || split.rows_at_once == 0 || split.to < split.after {
                return Err(Error::invalid("the ticket names no part of any changes"));
            }
            let most = self.inner.options.changes.rows_at_once as u64;
            if split.rows_at_once > most {
                return Err(Error::invalid(format!(
                    "the ticket compares {} rows at once, above {most}, the bound changes.rows-at-once; raise it, or plan anew",
                    split.rows_at_once
                )));
            }
            let location = self.locate(&read.table)?;
            let last = self.open_kept(&location, &VersionSelector::Version(split.to)).await?;
            if !split.incarnation.is_empty() && known_incarnation(&last) != Some(&split.incarnation) {
                return Err(Error::new(
                    ErrorKind::TableReplaced,
                    format!("table {} is another one than the one whose changes were read so far", location.shown),
                ));
            }
            let first = self.state(&location, split.after).await?;
            let columns = self.columns(first.as_ref(), &last, read.projection.as_deref())?;
            let bounds = self.bounds(read.batch_rows, read.batch_bytes);
            Ok(ChangesStream::new(self.clone(), location, split.clone(), columns, first, bounds, read.row_offset))
        })
    }

    fn columns(
        &self,
        first: Option<&Handle>,
        last: &Handle,
        projection: Option<&[crate::types::ColumnPath]>,
    ) -> Result<Columns> {
        let projected = Projected::new(last, projection, RowMetadata::default())?;
        Columns::new(projected.read, key_of(last), first.map(|first| first.schema()))
    }

    /// The table as of a version; None: before its first one.
    async fn state(&self, location: &Location, version: u64) -> Result<Option<Handle>> {
        match version {
            0 => Ok(None),
            version => Ok(Some(self.open_kept(location, &VersionSelector::Version(version)).await?)),
        }
    }

    /// A version that must not have been removed.
    async fn open_kept(&self, location: &Location, version: &VersionSelector) -> Result<Handle> {
        let missing = match self.open_version(location, version).await {
            Err(error) if error.kind() == ErrorKind::TableVersionNotFound => error,
            opened => return opened,
        };
        let VersionSelector::Version(wanted) = version else { return Err(missing) };
        let oldest = oldest(&*self.open_latest(location).await?, location).await?;
        if oldest < *wanted {
            return Err(missing);
        }
        let why = format!(
            "version {wanted} of table {} was removed by a cleanup, and with it what changed after it; the oldest version \
             that there is now is {oldest}: begin anew from there, or with the rows of the latest",
            location.shown
        );
        Err(Error::new(ErrorKind::TableVersionNotFound, why).with_source(missing))
    }
}

async fn oldest(latest: &lance::Dataset, location: &Location) -> Result<u64> {
    let doing = format!("cannot list the versions of table {}", location.shown);
    Ok(numbers(latest, &doing).await?.first().copied().unwrap_or(latest.manifest().version))
}

fn lance_failed(error: lance::Error) -> Error {
    from_lance(error, "cannot read what changed", Missing::Version)
}
