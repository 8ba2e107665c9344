//! The table as it lies in the store: manifests and data files.

use std::collections::{BTreeMap, BTreeSet};

use crate::Time;
use crate::ledger::Ledger;

/// Names a data file.
pub type FileId = u8;

/// A row, by where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// The run of the source: after a rewind it gives other rows. 0 is the other job.
    pub run: u8,
    /// Its place in the source.
    pub place: u8,
    /// The start of the sink that staged it: a later one stages it again if no checkpoint had it.
    pub start: u8,
}

/// A data file as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DataFile {
    /// Its name.
    pub id: FileId,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// One version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Manifest {
    /// What it shows.
    pub files: Vec<DataFile>,
    /// Which commits are in it.
    pub ledger: Ledger,
}

impl Manifest {
    /// Its rows.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.files.iter().flat_map(|file| file.rows.iter().copied())
    }

    /// Whether it names the file.
    #[must_use]
    pub fn names(&self, id: FileId) -> bool {
        self.files.iter().any(|file| file.id == id)
    }
}

/// What the store holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Table {
    /// By number; old ones may be gone.
    versions: BTreeMap<u8, Manifest>,
    /// When each data file that exists was written.
    pub(crate) files: BTreeMap<FileId, Time>,
    next_file: FileId,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { versions: BTreeMap::from([(1, Manifest::default())]), files: BTreeMap::new(), next_file: 0 }
    }

    /// Number and manifest of the newest version. There always is one: cleanup keeps it.
    pub(crate) fn latest(&self) -> (u8, Manifest) {
        self.versions.last_key_value().map(|(number, manifest)| (*number, manifest.clone())).unwrap_or_default()
    }

    pub(crate) fn versions(&self) -> impl Iterator<Item = &Manifest> {
        self.versions.values()
    }

    pub(crate) fn holds(&self, number: u8) -> bool {
        self.versions.contains_key(&number)
    }

    pub(crate) fn put(&mut self, number: u8, manifest: Manifest) {
        self.versions.insert(number, manifest);
    }

    pub(crate) fn write_file(&mut self, now: Time) -> FileId {
        self.next_file += 1;
        self.files.insert(self.next_file, now);
        self.next_file
    }

    /// Removes all versions but the latest, and the files that only those named: what Lance's cleanup does.
    pub(crate) fn clean(&mut self) {
        let (number, latest) = self.latest();
        let named: BTreeSet<FileId> =
            self.versions.values().flat_map(|manifest| manifest.files.iter().map(|file| file.id)).collect();
        self.files.retain(|id, _| !named.contains(id) || latest.names(*id));
        self.versions.retain(|version, _| *version == number);
    }
}
