//! Cleanup: old versions, and the files that only they name.
//!
//! Lance says which versions and files go; what it says is narrowed and done here. Left out is every file that no version names:
//! Lance takes such a file for dead after seven days, but it may be in a committable that may still be committed. Those are for the
//! sweep, which knows how old one may become. The ledger is in the latest version, which always stays.

use std::collections::HashSet;

use chrono::Utc;
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use lance::Dataset;
use lance::dataset::cleanup::{CleanupCandidateFile, CleanupFileKind, CleanupPolicy, CleanupPolicyBuilder};
use lance_io::object_store::ObjectStore;
use object_store::path::Path;

use super::names;
use super::sweep::below;
use super::{CONCURRENT_DELETES, Cleaned, CleanupSpec, Progress, ProgressSender, delete};
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::feed::{is_hold, oldest_held};
use crate::lance_error::{Missing, from_lance};
use crate::table::Location;
use crate::types::TableId;

/// Files of one pass; if there are more, another pass follows.
const FILES_AT_ONCE: usize = 200_000;
/// Manifests that are deleted while commits wait.
const VERSIONS_AT_ONCE: usize = 64;
/// Passes that are begun anew because tags or branches changed.
const ATTEMPTS: usize = 5;

/// What one pass deletes.
#[derive(Debug, Default)]
struct Pass {
    /// As they were when this was planned.
    refs: Refs,
    /// Versions from this one on stay.
    before: u64,
    versions: Vec<CleanupCandidateFile>,
    files: Vec<CleanupCandidateFile>,
    more: bool,
}

impl Lake {
    /// Removes versions and what only they need. Stopped at any point it leaves whole versions, and files that the sweep takes.
    pub fn cleanup<'a>(
        &'a self,
        table: &'a TableId,
        spec: &'a CleanupSpec,
        progress: &'a ProgressSender,
    ) -> BoxFuture<'a, Result<Cleaned>> {
        Box::pin(async move {
            if spec.older_than.is_none() && spec.keep_versions.is_none() {
                return Err(Error::invalid("a cleanup needs an age or a number of versions to keep"));
            }
            let location = self.locate(table)?;
            let (store, base) = self.inner.stores.store(&location.uri, &location.access).await?;
            let mut cleaned = Cleaned::default();
            let mut planned_anew = 0;
            loop {
                let before = cleaned;
                let pass = self.plan_pass(&location, &base, spec, progress).await?;
                if spec.dry_run {
                    for file in pass.versions.iter().chain(&pass.files) {
                        cleaned.count(file);
                    }
                    return Ok(cleaned);
                }
                let more = pass.more;
                if !self.do_pass(&location, &store, pass, &mut cleaned, progress).await? {
                    planned_anew += 1;
                    if planned_anew == ATTEMPTS {
                        return Err(busy(&format!("cannot clean up table {}", location.shown)));
                    }
                } else if !more || cleaned == before {
                    return Ok(cleaned);
                }
            }
        })
    }

    async fn plan_pass(
        &self,
        location: &Location,
        base: &Path,
        spec: &CleanupSpec,
        progress: &ProgressSender,
    ) -> Result<Pass> {
        let doing = format!("cannot clean up table {}", location.shown);
        let lance = |e| from_lance(e, &doing, Missing::Version);
        for _ in 0..ATTEMPTS {
            progress.send_replace(Progress { stage: "reading versions", ..Progress::default() });
            let dataset = self.open_latest(location).await?;
            let held = oldest_held(&dataset, self.inner.options.changes.hold_age, !spec.dry_run).await?;
            let refs = refs(&dataset).await.map_err(lance)?;
            let policy = policy(&dataset, spec, held).await.map_err(lance)?;
            let before = policy.before_version.unwrap_or(dataset.manifest().version);
            let plan =
                dataset.cleanup(policy).with_max_candidate_files(FILES_AT_ONCE).explain().await.map_err(lance)?;
            let named = self.named(location, base, &plan.candidate_files).await?;
            // A version that got a tag since Lance looked must not go.
            let latest = self.open_latest(location).await?;
            if self::refs(&latest).await.map_err(lance)? != refs {
                continue;
            }
            let goes = |file: &CleanupCandidateFile| {
                !file.unverified || named_by(&file.path, base).is_some_and(|name| named.contains(&name))
            };
            let (versions, files) = plan
                .candidate_files
                .into_iter()
                .filter(goes)
                .partition(|file| matches!(file.kind, CleanupFileKind::Manifest));
            return Ok(Pass { refs, before, versions, files, more: plan.candidate_files_truncated });
        }
        Err(busy(&doing))
    }

    /// Of the candidates that Lance has by their age alone, those that a version names after all.
    async fn named(&self, location: &Location, base: &Path, files: &[CleanupCandidateFile]) -> Result<HashSet<String>> {
        let mut asked: HashSet<String> =
            files.iter().filter(|file| file.unverified).filter_map(|file| named_by(&file.path, base)).collect();
        let mut named = HashSet::new();
        if !asked.is_empty() {
            self.each_manifest(location, |manifest, indexes| {
                named.extend(names::names(manifest, indexes).filter_map(|name| asked.take(&name)));
            })
            .await?;
        }
        Ok(named)
    }

    /// False: tags or branches changed, and it stopped.
    async fn do_pass(
        &self,
        location: &Location,
        store: &ObjectStore,
        pass: Pass,
        cleaned: &mut Cleaned,
        progress: &ProgressSender,
    ) -> Result<bool> {
        let total = (pass.versions.len() + pass.files.len()) as u64;
        let mut done = 0;
        // The versions first: none is ever listed that misses a file. And no commit of this process runs meanwhile: one that
        // found its next version number free must not find it free again, because the versions from there on came and went.
        for versions in pass.versions.chunks(VERSIONS_AT_ONCE) {
            let lock = self.commit_lock(location).await;
            let _no_commit = lock.lock().await;
            // What got a tag since, or is held by a reader of changes, must not go.
            let latest = self.open_latest(location).await?;
            let now =
                refs(&latest).await.map_err(|e| from_lance(e, "cannot list tags and branches", Missing::Version))?;
            let held = oldest_held(&latest, self.inner.options.changes.hold_age, false).await?;
            if now != pass.refs || held.is_some_and(|held| held < pass.before) {
                return Ok(false);
            }
            delete_all(store, versions.to_vec(), cleaned, &mut |n| {
                progress.send_replace(Progress { stage: "deleting versions", done: done + n, total });
            })
            .await;
            done += versions.len() as u64;
        }
        delete_all(store, pass.files, cleaned, &mut |n| {
            progress.send_replace(Progress { stage: "deleting files", done: done + n, total });
        })
        .await;
        Ok(true)
    }
}

impl Cleaned {
    fn count(&mut self, file: &CleanupCandidateFile) {
        match file.kind {
            CleanupFileKind::Manifest => self.num_versions += 1,
            _ => self.num_files += 1,
        }
        self.num_bytes += file.size_bytes;
    }
}

async fn delete_all(
    store: &ObjectStore,
    files: Vec<CleanupCandidateFile>,
    cleaned: &mut Cleaned,
    progress: &mut (impl FnMut(u64) + Send),
) {
    let mut deleted = stream::iter(files)
        .map(|file| async move {
            match Path::parse(&file.path) {
                Ok(path) => (file, delete(store, &path).await.is_ok()),
                Err(_) => (file, false),
            }
        })
        .buffered(CONCURRENT_DELETES);
    let mut n = 0;
    while let Some((file, gone)) = deleted.next().await {
        n += 1;
        if gone {
            cleaned.count(&file);
        } else {
            cleaned.num_failed += 1;
        }
        progress(n);
    }
}

/// `held`: this version and all newer ones are kept.
async fn policy(dataset: &Dataset, spec: &CleanupSpec, held: Option<u64>) -> lance::Result<CleanupPolicy> {
    let mut policy = CleanupPolicyBuilder::default().error_if_tagged_old_versions(false);
    if let Some(age) = spec.older_than {
        policy = policy.before_timestamp(Utc::now() - age);
    }
    if let Some(versions) = spec.keep_versions {
        policy = policy.retain_n_versions(dataset, usize::try_from(versions).unwrap_or(usize::MAX)).await?;
    }
    let mut policy = policy.build();
    policy.before_version = match (policy.before_version, held) {
        (Some(version), Some(held)) => Some(version.min(held)),
        (version, held) => version.or(held),
    };
    Ok(policy)
}

fn busy(doing: &str) -> Error {
    let why = format!("{doing}: its tags and branches change all the time; try again later");
    Error::new(ErrorKind::ConcurrentModification, why)
}

/// Tags and branches with the versions they hold. What readers of changes hold moves all the time, and is looked at apart.
type Refs = Vec<(String, Option<String>, u64)>;

async fn refs(dataset: &Dataset) -> lance::Result<Refs> {
    let tags = dataset.tags().list().await?;
    let branches = dataset.branches().list().await?;
    let mut refs: Vec<_> = tags
        .into_iter()
        .filter(|(name, _)| !is_hold(name))
        .map(|(name, tag)| (format!("tag {name}"), tag.branch, tag.version))
        .chain(
            branches
                .into_iter()
                .map(|(name, branch)| (format!("branch {name}"), branch.parent_branch, branch.parent_version)),
        )
        .collect();
    refs.sort_unstable();
    Ok(refs)
}

fn named_by(path: &str, base: &Path) -> Option<String> {
    names::name_of(&below(&Path::parse(path).ok()?, base)?)
}
