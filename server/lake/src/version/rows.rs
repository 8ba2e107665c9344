//! What versions do to the rows of their table.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use lance::Dataset;
use lance_table::transaction::Operation;

use super::CONCURRENT_READS;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};

/// What a version does to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRows {
    /// They are what they were, where they were.
    Nothing,
    /// They are what they were, elsewhere: their addresses are others.
    Moves,
    /// Some are others.
    Changes,
}

/// What the version of this transaction does to rows.
pub(crate) fn effect(operation: &Operation) -> OnRows {
    match operation {
        Operation::CreateIndex { .. }
        | Operation::ReserveFragments { .. }
        | Operation::Project { .. }
        | Operation::UpdateConfig { .. }
        | Operation::UpdateMemWalState { .. }
        | Operation::UpdateBases { .. } => OnRows::Nothing,
        Operation::Rewrite { .. } => OnRows::Moves,
        Operation::Append { .. }
        | Operation::Delete { .. }
        | Operation::Overwrite { .. }
        | Operation::DataReplacement { .. }
        | Operation::DataOverlay { .. }
        | Operation::Merge { .. }
        | Operation::Restore { .. }
        | Operation::Update { .. }
        | Operation::Clone { .. }
        | Operation::Unknown { .. } => OnRows::Changes,
    }
}

/// Fails if the rows, or what tells them apart, are no longer those of the version in which they were chosen. `by_address`: what
/// moves them counts too, if the table has no stable row ids.
pub(crate) async fn check_rows_of(now: &Dataset, chosen_in: u64, by_address: bool) -> Result<()> {
    let latest = now.manifest().version;
    check_exists(now, chosen_in)?;
    let by_address = by_address && !now.manifest().uses_stable_row_ids();
    let doing = "cannot tell what has changed since the rows were chosen";
    let mut effects = stream::iter(chosen_in + 1..=latest)
        .map(|version| async move {
            match now.read_version_transaction(version).await.map_err(|e| from_lance(e, doing, Missing::Version)) {
                Ok(read) => Ok((version, read.transaction.map(|transaction| effect(&transaction.operation)))),
                Err(gone) if gone.kind() == ErrorKind::TableVersionNotFound => Ok((version, None)),
                Err(error) => Err(error),
            }
        })
        .buffered(CONCURRENT_READS);
    while let Some((version, effect)) = effects.try_next().await? {
        let why = match effect {
            Some(OnRows::Nothing) => continue,
            Some(OnRows::Moves) if !by_address => continue,
            Some(OnRows::Moves) => "moved rows, which have no stable ids in this table",
            Some(OnRows::Changes) => "changed rows",
            None => "can no longer be read, so that nobody knows what it changed",
        };
        return Err(Error::new(
            ErrorKind::CommitConflict,
            format!("the rows were chosen in version {chosen_in}, and version {version} {why}; choose them anew"),
        ));
    }
    Ok(())
}

/// Fails if there was no such version yet.
pub(crate) fn check_exists(now: &Dataset, version: u64) -> Result<()> {
    let latest = now.manifest().version;
    if (1..=latest).contains(&version) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::TableVersionNotFound,
        format!("the rows were chosen in version {version}, but the table is at version {latest}"),
    ))
}
