//! Marks of deletion: on rows that are replaced, and on staged rows that were overtaken.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use lance::dataset::fragment::FileFragment;
use lance_table::format::Fragment;
use lance_table::io::deletion::deletion_file_path;
use lance_table::transaction::Operation;
use object_store::path::Path;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::Marks;
use crate::error::{Error, Result};
use crate::lance_error::{Missing, from_lance};
use crate::table::Handle;

/// Fragments that are marked at once.
const PARALLEL: usize = 16;

/// The operation that replaces rows by others; None: it would change nothing. `files`: what was written for it.
pub(super) async fn update(
    dataset: &Handle,
    table: &Path,
    fragments: &[Fragment],
    marks: &Marks,
    files: &mut Vec<Path>,
) -> Result<Option<Operation>> {
    let mut updated_fragments = Vec::new();
    let mut removed_fragment_ids = Vec::new();
    let mut old = Vec::new();
    for (id, rows) in marks.replaced.bitmaps() {
        let found = dataset.get_fragment(id as usize);
        old.push(mark(found.ok_or_else(|| Error::internal("a row lies in no fragment"))?, rows.clone()));
    }
    let mut marked = stream::iter(old).buffered(PARALLEL);
    while let Some(fragment) = marked.try_next().await? {
        match fragment {
            Marked::Partly(fragment) => {
                files.extend(file_of_marks(table, &fragment));
                updated_fragments.push(fragment);
            }
            Marked::Whole(id) => removed_fragment_ids.push(id),
        }
    }
    drop(marked);
    let mut new_fragments = Vec::new();
    // The id names the file with the marks. It holds, since the commit is refused if another version comes in between.
    let mut next_id = dataset.manifest().max_fragment_id().map_or(0, |id| id + 1);
    let mut first = 0;
    for fragment in fragments {
        let rows = fragment.physical_rows.unwrap_or_default() as u64;
        let mut fragment = Fragment { id: next_id, ..fragment.clone() };
        let gone = offsets(&marks.overtaken, first, rows);
        first += rows;
        if !gone.is_empty() {
            match mark(FileFragment::new(dataset.clone(), fragment.clone()), gone).await? {
                Marked::Partly(marked) => fragment = marked,
                Marked::Whole(_) => continue,
            }
            files.extend(file_of_marks(table, &fragment));
        }
        next_id += 1;
        new_fragments.push(fragment);
    }
    if new_fragments.is_empty() && updated_fragments.is_empty() && removed_fragment_ids.is_empty() {
        return Ok(None);
    }
    Ok(Some(Operation::Update {
        removed_fragment_ids,
        updated_fragments,
        new_fragments,
        fields_modified: Vec::new(),
        compacted_sstables: Vec::new(),
        // All fields: no index describes the new rows. With a mode, or without these, Lance would count the new fragments to
        // what its indexes cover.
        fields_for_preserving_frag_bitmap: dataset
            .schema()
            .fields_pre_order()
            .filter_map(|field| u32::try_from(field.id).ok())
            .collect(),
        update_mode: None,
        inserted_rows_filter: None,
        updated_fragment_offsets: None,
    }))
}

enum Marked {
    Partly(Fragment),
    Whole(u64),
}

async fn mark(fragment: FileFragment, rows: RoaringBitmap) -> Result<Marked> {
    let id = fragment.id() as u64;
    let marked = fragment.extend_deletions(rows).await;
    let marked = marked.map_err(|e| from_lance(e, "cannot mark rows as deleted", Missing::Version))?;
    Ok(marked.map_or(Marked::Whole(id), |fragment| Marked::Partly(fragment.metadata().clone())))
}

fn file_of_marks(table: &Path, fragment: &Fragment) -> Option<Path> {
    fragment.deletion_file.as_ref().map(|file| deletion_file_path(table, fragment.id, file))
}

/// Those of the rows that lie in a fragment, whose first row is `first`.
fn offsets(rows: &RoaringTreemap, first: u64, len: u64) -> RoaringBitmap {
    let mut found = RoaringBitmap::new();
    let mut iter = rows.iter();
    iter.advance_to(first);
    found.extend(iter.take_while(|row| *row < first + len).map(|row| (row - first) as u32));
    found
}
