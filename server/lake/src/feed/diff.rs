//! Which rows went and which came between two versions that follow each other, by their addresses.

use std::collections::HashMap;

use lance_table::format::Fragment;
use lance_table::transaction::Operation;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::lance_failed;
use crate::error::{Error, Result};
use crate::table::Handle;
use crate::version::{OnRows, effect};

/// Rows by their addresses.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Diff {
    /// Live before, and not after.
    pub(super) gone: RoaringTreemap,
    /// Live after, and not before.
    pub(super) came: RoaringTreemap,
    /// Live in both, with other values in some column.
    pub(super) rewritten: RoaringTreemap,
}

/// What the operation did. `before`: None if the version is the first.
pub(super) async fn diff(before: Option<&Handle>, after: &Handle, operation: Option<&Operation>) -> Result<Diff> {
    let (mut gone, mut came, mut rewritten) = (Vec::new(), Vec::new(), Vec::new());
    if before.is_some() && operation.is_some_and(|operation| effect(operation) != OnRows::Changes) {
        return Ok(Diff::default());
    }
    let mut olds: HashMap<u64, &Fragment> = match before {
        Some(before) => before.fragments().iter().map(|fragment| (fragment.id, fragment)).collect(),
        None => HashMap::new(),
    };
    for new in after.fragments().iter() {
        // An overwrite counts its fragments from 0 again.
        let old = olds.get(&new.id).copied().filter(|old| same_rows(old, new));
        let (Some(old), Some(before)) = (old, before) else {
            came.push((number(new)?, live(after, new).await?));
            continue;
        };
        olds.remove(&new.id);
        let is_rewritten = is_rewritten(old, new);
        if old.deletion_file == new.deletion_file && !is_rewritten {
            continue;
        }
        let (was, is) = (live(before, old).await?, live(after, new).await?);
        gone.push((number(new)?, &was - &is));
        came.push((number(new)?, &is - &was));
        if is_rewritten {
            let mut both = was & is;
            if let Some(rows) = updated(operation, new.id) {
                both &= rows;
            }
            rewritten.push((number(new)?, both));
        }
    }
    if let Some(before) = before {
        for old in olds.into_values() {
            gone.push((number(old)?, live(before, old).await?));
        }
    }
    Ok(Diff { gone: together(gone), came: together(came), rewritten: together(rewritten) })
}

/// All rows of a version.
pub(super) async fn all(dataset: &Handle) -> Result<RoaringTreemap> {
    let mut rows = Vec::with_capacity(dataset.fragments().len());
    for fragment in dataset.fragments().iter() {
        rows.push((number(fragment)?, live(dataset, fragment).await?));
    }
    Ok(together(rows))
}

fn together(rows: Vec<(u32, RoaringBitmap)>) -> RoaringTreemap {
    RoaringTreemap::from_bitmaps(rows.into_iter().filter(|(_, rows)| !rows.is_empty()))
}

/// What addresses name a fragment by.
fn number(fragment: &Fragment) -> Result<u32> {
    u32::try_from(fragment.id).map_err(|_| Error::internal("a fragment id is larger than 32 bits"))
}

/// Whether it is the same fragment, perhaps with other columns.
fn same_rows(old: &Fragment, new: &Fragment) -> bool {
    old.files.is_empty() && new.files.is_empty()
        || old.files.iter().any(|file| new.files.iter().any(|other| file.path == other.path))
}

/// Whether some column lies in another file than before.
fn is_rewritten(old: &Fragment, new: &Fragment) -> bool {
    if old.overlays != new.overlays {
        return true;
    }
    if old.files == new.files {
        return false;
    }
    let by_field = |fragment: &Fragment| -> HashMap<i32, String> {
        let fields = fragment.files.iter().flat_map(|file| file.fields.iter().map(move |field| (field, &file.path)));
        // What is rewritten leaves a mark below zero.
        fields.filter(|(field, _)| **field >= 0).map(|(field, path)| (*field, path.clone())).collect()
    };
    by_field(old) != by_field(new)
}

/// The rows of a fragment that an update of columns is about, if it says so.
fn updated(operation: Option<&Operation>, fragment: u64) -> Option<&RoaringBitmap> {
    match operation {
        Some(Operation::Update { updated_fragment_offsets: Some(offsets), .. }) => offsets.0.get(&fragment),
        _ => None,
    }
}

/// The rows of a fragment that are not deleted.
async fn live(dataset: &Handle, fragment: &Fragment) -> Result<RoaringBitmap> {
    let found = dataset.get_fragment(fragment.id as usize);
    let found = found.ok_or_else(|| Error::internal("a fragment of the manifest is missing in it"))?;
    let rows = found.physical_rows().await.map_err(lance_failed)?;
    let mut live = RoaringBitmap::new();
    live.insert_range(0..u32::try_from(rows).map_err(|_| Error::internal("a fragment has more than 2^32 rows"))?);
    if let Some(deleted) = found.get_deletion_vector().await.map_err(lance_failed)? {
        live -= RoaringBitmap::from(deleted.as_ref());
    }
    Ok(live)
}
