//! Which files a manifest names, and which files of a table's folder must be named by one.

use lance_table::format::{IndexMetadata, Manifest};
use lance_table::io::deletion::relative_deletion_file_path;
use uuid::Uuid;

/// A folder of a table that is swept. Whatever lies in another folder is left alone.
#[derive(Debug)]
pub(super) struct Room {
    /// Directly below the table.
    pub(super) folder: &'static str,
    /// The name by which a manifest names a file of this folder, from the parts of its path below it. None: no file of ours.
    name: fn(&[&str]) -> Option<String>,
    /// A name is that of a folder directly below, whose files are judged together.
    pub(super) whole: bool,
}

/// The folders that are swept; a further one is a further row.
pub(super) const ROOMS: &[Room] = &[
    Room { folder: "data", name: data, whole: false },
    Room { folder: "_deletions", name: deletion, whole: false },
    Room { folder: "_transactions", name: transaction, whole: false },
    Room { folder: "_versions", name: unfinished, whole: false },
    Room { folder: "_indices", name: index, whole: true },
    Room { folder: "_lance_gateway", name: prepared, whole: false },
];

/// Lance writes a local file under such a name first; nobody ever names it.
const UNFINISHED: &str = ".tmp";

/// The name by which a manifest names this file, from its path below the table. None: it is left alone.
pub(super) fn name_of(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let (folder, below) = parts.split_first()?;
    let room = ROOMS.iter().find(|room| room.folder == *folder)?;
    (room.name)(below).map(|name| format!("{folder}/{name}"))
}

fn data(below: &[&str]) -> Option<String> {
    match below {
        [file] if file.ends_with(".lance") || file.starts_with(UNFINISHED) => Some((*file).to_owned()),
        // Large values lie beside the data file in a folder of its name, and live as long as it.
        [stem, file] if file.ends_with(".blob") => Some(format!("{stem}.lance")),
        _ => None,
    }
}

fn deletion(below: &[&str]) -> Option<String> {
    file(below, &[".arrow", ".bin"])
}

fn transaction(below: &[&str]) -> Option<String> {
    file(below, &[".txn"])
}

/// Manifests are versions, and no concern of the sweep.
fn unfinished(below: &[&str]) -> Option<String> {
    file(below, &[])
}

fn file(below: &[&str], ends: &[&str]) -> Option<String> {
    match below {
        [file] if file.starts_with(UNFINISHED) || ends.iter().any(|end| file.ends_with(end)) => {
            Some((*file).to_owned())
        }
        _ => None,
    }
}

/// A record of a prepared commit, or its changes: no manifest names them, and one that is old can no longer be committed.
fn prepared(below: &[&str]) -> Option<String> {
    match below {
        [folder @ ("prepared" | "changes"), file] => Some(format!("{folder}/{file}")),
        _ => None,
    }
}

fn index(below: &[&str]) -> Option<String> {
    match below {
        [uuid, _, ..] if Uuid::parse_str(uuid).is_ok() => Some((*uuid).to_owned()),
        _ => None,
    }
}

/// Everything that a manifest names, as [`name_of`] spells it. A file that lies below another root, as those of a branch or a
/// shallow clone do, is named, too: names are random, so at worst a file stays.
pub(super) fn names<'a>(manifest: &'a Manifest, indexes: &'a [IndexMetadata]) -> impl Iterator<Item = String> + 'a {
    let data = manifest.fragments.iter().flat_map(|fragment| fragment.referenced_lance_files()).map(|file| {
        let file = file.path.rsplit('/').next().unwrap_or_default();
        format!("data/{file}")
    });
    let deletions = manifest.fragments.iter().filter_map(|fragment| {
        fragment.deletion_file.as_ref().map(|file| relative_deletion_file_path(fragment.id, file))
    });
    let transaction = manifest.transaction_file.iter().map(|file| format!("_transactions/{file}"));
    let indexes = indexes.iter().map(|index| format!("_indices/{}", index.uuid));
    data.chain(deletions).chain(transaction).chain(indexes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_the_name_that_a_manifest_gives_it() {
        for (path, name) in [
            ("data/a1.lance", "data/a1.lance"),
            ("data/a1/000.blob", "data/a1.lance"),
            ("_lance_gateway/prepared/e.1", "_lance_gateway/prepared/e.1"),
            ("_lance_gateway/changes/c.arrows", "_lance_gateway/changes/c.arrows"),
            ("data/.tmpX1", "data/.tmpX1"),
            ("_deletions/0-3-77.arrow", "_deletions/0-3-77.arrow"),
            ("_deletions/0-3-77.bin", "_deletions/0-3-77.bin"),
            ("_transactions/3-u.txn", "_transactions/3-u.txn"),
            ("_versions/.tmp_9.manifest", "_versions/.tmp_9.manifest"),
            (
                "_indices/6b1b2f9e-1f43-4d2c-9a77-111111111111/part/page.lance",
                "_indices/6b1b2f9e-1f43-4d2c-9a77-111111111111",
            ),
        ] {
            assert_eq!(name_of(path).as_deref(), Some(name), "{path}");
        }
    }

    #[test]
    fn what_is_no_file_of_ours_is_left_alone() {
        for path in [
            "_versions/18446744073709551614.manifest",
            "_versions/latest_version_hint.json",
            "_refs/tags/v1.json",
            "_refs/branches/b.json",
            "tree/b/data/a.lance",
            "_lance_gateway/other/x",
            "_fri/1/x",
            "_blobs/x.blob",
            "_indices/x/page.lance",
            "_indices/6b1b2f9e-1f43-4d2c-9a77-111111111111",
            "data/notes.txt",
            "data/a/b/c.blob",
            "README.md",
            "",
        ] {
            assert_eq!(name_of(path), None, "{path}");
        }
    }
}
