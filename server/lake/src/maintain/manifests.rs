//! Reading every manifest that there is: versions, tagged or not, detached ones, and those of branches.

use std::collections::HashSet;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use lance::Error as LanceError;
use lance_io::object_store::ObjectStore;
use lance_table::feature_flags::can_write_dataset;
use lance_table::format::{IndexMetadata, Manifest};
use lance_table::io::commit::{ManifestLocation, ManifestNamingScheme};
use lance_table::io::manifest::{read_manifest, read_manifest_indexes};
use object_store::ObjectMeta;
use object_store::path::Path;

use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::table::Location;

/// Manifests that are read at once.
const CONCURRENT_READS: usize = 8;
/// Walks that are begun, while versions disappear under them.
const ATTEMPTS: usize = 5;
/// Folder of manifests, below the table and below each branch.
const VERSIONS: &str = "_versions";
/// Folder of the branches of a table.
const BRANCHES: &str = "tree";

const DOING: &str = "cannot read the versions of the table";

/// Why a walk ended early.
enum Stop {
    /// A version was cleaned up by another process while we read.
    Gone,
    Failed(Error),
}

impl Lake {
    /// Calls `visit` for every manifest; for some of them more than once.
    ///
    /// A file that a version names when this returns was shown to `visit`, if it was there before the call and is too old to be
    /// committed any more:
    ///
    /// - Each version that was there at the last listing and still is was read. One that was listed and is gone begins the
    ///   walk anew, since what it alone had shown may have passed to a version that was made after the listing.
    /// - A version that is made later takes over files of the latest before it, which was read at the end; or of a version that is
    ///   restored, which was there and was read; or it brings files of its own, which are younger.
    pub(super) async fn each_manifest(
        &self,
        location: &Location,
        mut visit: impl FnMut(&Manifest, &[IndexMetadata]) + Send,
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            match self.walk(location, &mut visit).await {
                Ok(()) => return Ok(()),
                Err(Stop::Gone) => {}
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
        Err(Error::new(
            ErrorKind::ConcurrentModification,
            format!(
                "versions of table {} are cleaned up by another process meanwhile; try again later",
                location.shown
            ),
        ))
    }

    async fn walk(
        &self,
        location: &Location,
        visit: &mut (impl FnMut(&Manifest, &[IndexMetadata]) + Send),
    ) -> Result<(), Stop> {
        let (store, base) = self.inner.stores.store(&location.uri).await.map_err(Stop::Failed)?;
        let mut seen = HashSet::new();
        // Twice: what was committed during the first, which may take long, is read in the second.
        for _ in 0..2 {
            let mut listed = list_manifests(&store, &base).await.map_err(failed)?;
            listed.retain(|file| seen.insert(file.location.clone()));
            let mut read = stream::iter(listed)
                .map(|file| {
                    let store = store.clone();
                    async move { read(&store, file).await }
                })
                .buffer_unordered(CONCURRENT_READS);
            while let Some((manifest, indexes)) = read.try_next().await.map_err(stop)? {
                check_readable(&manifest).map_err(Stop::Failed)?;
                visit(&manifest, &indexes);
            }
        }
        let latest = self.open_latest(location).await.map_err(Stop::Failed)?;
        let indexes =
            read_manifest_indexes(&store, latest.manifest_location(), latest.manifest()).await.map_err(stop)?;
        visit(latest.manifest(), &indexes);
        Ok(())
    }
}

/// Everything below a folder; a missing one is empty.
pub(super) fn list(
    store: &ObjectStore,
    folder: Path,
) -> impl futures::Stream<Item = lance::Result<ObjectMeta>> + Send + Unpin + use<> {
    store.list(Some(folder)).filter(|found| {
        let missing = found.as_ref().is_err_and(LanceError::is_not_found);
        std::future::ready(!missing)
    })
}

async fn list_manifests(store: &ObjectStore, base: &Path) -> lance::Result<Vec<ObjectMeta>> {
    let versions = list(store, base.clone().join(VERSIONS));
    let branches = list(store, base.clone().join(BRANCHES));
    versions.chain(branches).try_filter(|file| std::future::ready(is_manifest(&file.location))).try_collect().await
}

fn is_manifest(path: &Path) -> bool {
    let mut parts: Vec<_> = path.parts().collect();
    let (file, folder) = (parts.pop(), parts.pop());
    folder.is_some_and(|folder| folder.as_ref() == VERSIONS)
        && file.is_some_and(|file| file.as_ref().ends_with(".manifest") && !file.as_ref().starts_with('.'))
}

async fn read(store: &Arc<ObjectStore>, file: ObjectMeta) -> lance::Result<(Manifest, Vec<IndexMetadata>)> {
    let manifest = read_manifest(store, &file.location, Some(file.size)).await?;
    let location = ManifestLocation {
        version: manifest.version,
        path: file.location,
        size: Some(file.size),
        naming_scheme: ManifestNamingScheme::V2,
        e_tag: file.e_tag,
        identity: None,
    };
    let indexes = read_manifest_indexes(store, &location, &manifest).await?;
    Ok((manifest, indexes))
}

/// A manifest of a later format may name files in a way that we do not know.
fn check_readable(manifest: &Manifest) -> Result<()> {
    if can_write_dataset(manifest.writer_feature_flags) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        format!("version {} of the table was written by a later Lance; nothing is removed", manifest.version),
    ))
}

fn stop(error: LanceError) -> Stop {
    if error.is_not_found() { Stop::Gone } else { failed(error) }
}

fn failed(error: LanceError) -> Stop {
    Stop::Failed(from_lance(error, DOING, Missing::Version))
}
