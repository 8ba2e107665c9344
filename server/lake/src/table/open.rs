//! Open tables: handles that are kept, refreshed cheaply, and never mistaken for an earlier table at the same place.

use std::sync::Arc;

use lance::Dataset;
use lance::Error as LanceError;
use moka::future::Cache;

use super::{Handle, Location, known_incarnation};
use crate::Lake;
use crate::cache::kept_or_made;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::types::VersionSelector;

/// Attempts to open a table that is replaced while we look at it.
const OPEN_ATTEMPTS: usize = 5;

/// Handles by place.
pub(crate) struct OpenTables {
    handles: Cache<String, Handle>,
}

impl OpenTables {
    pub(crate) fn new(capacity: u64) -> Self {
        Self { handles: Cache::new(capacity) }
    }
}

impl Lake {
    /// A handle of the latest version.
    pub(crate) async fn open_latest(&self, location: &Location) -> Result<Handle> {
        for _ in 0..OPEN_ATTEMPTS {
            let kept = self.handle(location).await?;
            let mut latest = kept.as_ref().clone();
            match latest.checkout_latest().await {
                Ok(()) => {}
                Err(LanceError::DatasetNotFound { .. } | LanceError::NotFound { .. }) => {
                    self.forget(location).await;
                    return Err(table_not_found(location));
                }
                Err(e) => return Err(from_lance(e, opening(location), Missing::Table)),
            }
            if known_incarnation(&latest) != known_incarnation(&kept) {
                self.forget(location).await;
                continue;
            }
            if same_manifest(&latest, &kept) {
                return Ok(kept);
            }
            let latest = Arc::new(latest);
            self.inner.open_tables.handles.insert(location.marked_uri(""), latest.clone()).await;
            return Ok(latest);
        }
        Err(Error::new(
            ErrorKind::ConcurrentModification,
            format!("{}: it is dropped and created again and again", opening(location)),
        ))
    }

    /// A handle of the version that is asked for.
    pub(crate) async fn open_version(&self, location: &Location, version: &VersionSelector) -> Result<Handle> {
        match version {
            VersionSelector::Latest => self.open_latest(location).await,
            VersionSelector::Version(version) => self.open_number(location, *version).await,
            VersionSelector::Tag(tag) => {
                let latest = self.open_latest(location).await?;
                let version = latest.tags().get_version(tag).await.map_err(|e| {
                    let error =
                        from_lance(e, format!("cannot find the tag of table {}", location.shown), Missing::Version);
                    match error.kind() {
                        ErrorKind::TableVersionNotFound | ErrorKind::InvalidArgument => Error::new(
                            ErrorKind::TableVersionNotFound,
                            format!("table {} has no tag '{}'", location.shown, super::excerpt(tag)),
                        )
                        .with_source(error),
                        _ => error,
                    }
                })?;
                self.open_number(location, version).await
            }
            VersionSelector::AsOf(time) => {
                let latest = self.open_latest(location).await?;
                let version = crate::version::version_as_of(&latest, &location.shown, *time).await?;
                self.open_number(location, version).await
            }
        }
    }

    async fn open_number(&self, location: &Location, version: u64) -> Result<Handle> {
        let mut refreshed = false;
        loop {
            let kept = if refreshed { self.open_latest(location).await? } else { self.handle(location).await? };
            // This asks the store for the manifest of just this version, so a table that was dropped meanwhile is noticed.
            let found = kept.checkout_version(version).await;
            match found {
                Ok(found) if known_incarnation(&found) == known_incarnation(&kept) => return Ok(Arc::new(found)),
                // A table made by another tool gets its incarnation with a later version.
                Ok(found) if refreshed && known_incarnation(&found).is_none() => return Ok(Arc::new(found)),
                Ok(_) if !refreshed => {}
                Err(_) if !refreshed => {}
                Ok(_) => return Err(version_not_found(location, version)),
                Err(e) => {
                    let error = from_lance(e, opening(location), Missing::Version);
                    return Err(match error.kind() {
                        ErrorKind::TableVersionNotFound => version_not_found(location, version).with_source(error),
                        _ => error,
                    });
                }
            }
            refreshed = true;
        }
    }

    /// Drops the kept handle of a table that is no more.
    pub(crate) async fn forget(&self, location: &Location) {
        self.inner.open_tables.handles.invalidate(&location.marked_uri("")).await;
    }

    /// The kept handle, at whatever version it is.
    async fn handle(&self, location: &Location) -> Result<Handle> {
        let handles = &self.inner.open_tables.handles;
        kept_or_made(handles, location.marked_uri(""), || self.load(location)).await
    }

    /// Opens a table. Lance's caches are keyed by the text of the URI and, in part, by bare version numbers, which a table that was
    /// dropped and created again counts from 1 once more. So the incarnation becomes part of the text.
    async fn load(&self, location: &Location) -> Result<Handle> {
        for _ in 0..OPEN_ATTEMPTS {
            let found = self.load_uri(&location.marked_uri(""), location).await?;
            let Some(incarnation) = known_incarnation(&found).map(str::to_owned) else {
                return Ok(Arc::new(found));
            };
            let named = self.load_uri(&location.marked_uri(&incarnation), location).await?;
            if known_incarnation(&named) == Some(incarnation.as_str()) {
                return Ok(Arc::new(named));
            }
        }
        Err(Error::new(
            ErrorKind::ConcurrentModification,
            format!("{}: it is dropped and created again and again", opening(location)),
        ))
    }

    async fn load_uri(&self, uri: &str, location: &Location) -> Result<Dataset> {
        self.inner.stores.dataset(uri, &location.access).load().await.map_err(|e| match e {
            LanceError::DatasetNotFound { .. } | LanceError::NotFound { .. } => {
                table_not_found(location).with_source(e)
            }
            other => from_lance(other, opening(location), Missing::Table),
        })
    }
}

fn opening(location: &Location) -> String {
    format!("cannot open table {}", location.shown)
}

fn table_not_found(location: &Location) -> Error {
    Error::new(ErrorKind::TableNotFound, format!("there is no table {}", location.shown))
}

fn version_not_found(location: &Location, version: u64) -> Error {
    Error::new(
        ErrorKind::TableVersionNotFound,
        format!("table {} has no version {version}, or no longer", location.shown),
    )
}

fn same_manifest(left: &Dataset, right: &Dataset) -> bool {
    let (left, right) = (left.manifest_location(), right.manifest_location());
    left.version == right.version && left.e_tag == right.e_tag
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use futures::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;
    use crate::testing::*;

    #[tokio::test]
    async fn a_table_made_after_another_call_began_to_look_for_it_is_found() {
        let (_folder, lake) = local_lake().await;
        let location = lake.locate(&table("t")).unwrap();
        let (began, begins) = oneshot::channel();
        let (finish, finished) = oneshot::channel();
        let early = tokio::spawn({
            let (lake, location) = (lake.clone(), location.clone());
            async move {
                let looks = async {
                    began.send(()).unwrap();
                    finished.await.unwrap();
                    Err::<Handle, _>(table_not_found(&location))
                };
                lake.inner.open_tables.handles.try_get_with(location.marked_uri(""), looks).await.map(drop)
            }
        });
        begins.await.unwrap();
        let other = Lake::open(lake.inner.options.clone()).await.unwrap();
        let schema = Schema::new(vec![Field::new("id", DataType::Int64, true)]);
        create(&other, "t", schema, "2.2").await.unwrap();
        let mut opened = Box::pin(lake.open_latest(&location));
        assert!((&mut opened).now_or_never().is_none(), "it waits for the call that looks");
        finish.send(()).unwrap();
        assert!(early.await.unwrap().is_err());
        assert_eq!(opened.await.unwrap().manifest().version, 1);
    }
}
