//! Bounds and places, as the configuration of the service gives them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

/// Everything the lake is told at start. Each number is a bound; there is no "unlimited".
#[derive(Debug, Clone)]
pub struct LakeOptions {
    /// Root of all tables that are addressed by name: a local folder or a URI. Created if it is a missing local folder.
    pub warehouse: String,
    /// Paths and URIs below these prefixes may be addressed directly.
    pub uri_prefixes: Vec<String>,
    /// Options of the object stores below a folder or URI; the longest holds.
    pub stores: Vec<(String, StoreOptions)>,
    /// Options of all other object stores.
    pub storage_options: StoreOptions,
    /// How many stores that callers bring options for are kept open; 0: callers may bring none.
    pub client_stores: usize,
    /// How stores are asked whether they are atomic.
    pub probe: ProbeOptions,
    /// Bytes of Lance's index cache.
    pub index_cache_bytes: usize,
    /// Bytes of Lance's metadata cache.
    pub metadata_cache_bytes: usize,
    /// Open tables that are kept.
    pub open_tables: u64,
    /// Entries of one listing.
    pub max_list: usize,
    /// Lance file format of new tables: `2.0`, `2.1`, `2.2`.
    pub data_storage_version: String,
    /// Bytes of one fragment's row lineage in the manifest of a new table; 0: all of it, however much it is.
    pub row_lineage_inline_bytes: u64,
    /// Bounds of scans.
    pub scan: ScanOptions,
    /// Bounds of searches.
    pub search: SearchOptions,
    /// Bounds of staging.
    pub write: WriteOptions,
    /// Bounds of commits.
    pub commit: CommitOptions,
    /// Bounds of merges.
    pub merge: MergeOptions,
    /// Bounds of the change feed.
    pub changes: ChangesOptions,
    /// Bounds of maintenance.
    pub maintenance: MaintenanceOptions,
}

/// Options of an object store. Their values are never shown.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct StoreOptions(BTreeMap<String, String>);

impl StoreOptions {
    /// In the clear, for the store.
    pub(crate) fn expose(&self) -> HashMap<String, String> {
        self.0.clone().into_iter().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, String)> for StoreOptions {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(options: I) -> Self {
        Self(options.into_iter().collect())
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// How a store is asked, before the first commit to it, whether it creates a key for one writer only.
#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// Races for one key each.
    pub rounds: u32,
    /// Writers of one race.
    pub writers: usize,
    /// What each of them sends in every other race.
    pub bytes: usize,
    /// Time for all races together.
    pub timeout: Duration,
}

/// Bounds of scans.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// Rows of one batch, if the client does not say.
    pub batch_rows: usize,
    /// Bytes of one batch, if the client does not say; a batch is cut below `max_row_bytes` in any case.
    pub batch_bytes: usize,
    /// A row above this is an error that names its size.
    pub max_row_bytes: usize,
    /// Bytes of one split, if the client does not say.
    pub split_bytes: u64,
    /// Splits of one plan.
    pub max_splits: usize,
    /// Memory of one scan: Lance's IO buffer and the memory pool of its plan.
    pub memory_bytes: u64,
    /// Depth of a filter expression.
    pub max_filter_depth: usize,
}

/// Bounds of searches. They run within the memory of one scan.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    /// Rows that are found, those that are left out at the beginning included.
    pub max_k: usize,
    /// Candidates of one search: rows that are read again to be ranked exactly, entries of a search in a graph.
    pub max_candidates: usize,
    /// Clauses of a query of texts.
    pub max_clauses: usize,
    /// Bytes of the rows of one answer.
    pub max_reply_bytes: u64,
    /// Keys of a lookup that one scan looks for.
    pub lookup_keys: usize,
}

/// Bounds of staging.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// A data file is closed after this many rows, if the client does not say.
    pub max_rows_per_file: usize,
    /// A data file is closed after about this many bytes.
    pub max_bytes_per_file: usize,
}

/// Bounds of commits.
#[derive(Debug, Clone)]
pub struct CommitOptions {
    /// Longest age of a committable; ledger entries are kept a little longer.
    pub max_committable_age: Duration,
    /// Attempts against other writers before CONCURRENT_MODIFICATION.
    pub max_attempts: u32,
    /// Time for one commit call.
    pub timeout: Duration,
    /// Finished commits above a gap that one epoch may hold.
    pub max_out_of_order: usize,
    /// Newest commits of an epoch whose version is remembered.
    pub remembered_versions: usize,
}

/// Bounds of merges.
#[derive(Debug, Clone)]
pub struct MergeOptions {
    /// Keys that a commit holds at once; with more of them it reads the changes several times.
    pub keys: usize,
}

/// Bounds of the change feed.
#[derive(Debug, Clone)]
pub struct ChangesOptions {
    /// Rows of a version that are compared at once; of a version that changed more, their keys are read several times.
    pub rows_at_once: usize,
    /// Age at which a version is held no longer.
    pub hold_age: Duration,
}

/// Bounds of maintenance.
#[derive(Debug, Clone)]
pub struct MaintenanceOptions {
    /// Rewrites of one compaction at once.
    pub threads: usize,
    /// Memory of one compaction for reading ahead.
    pub memory_bytes: u64,
    /// Attempts of one step of a compaction against other writers.
    pub max_attempts: u32,
    /// Rows that a step of a compaction rewrites while commits wait, once they were faster. 0: they never wait.
    pub held_rows: u64,
    /// Files that the answer of a sweep names.
    pub listed_files: usize,
}

impl Default for LakeOptions {
    fn default() -> Self {
        Self {
            warehouse: "./lance-warehouse".into(),
            uri_prefixes: Vec::new(),
            stores: Vec::new(),
            storage_options: StoreOptions::default(),
            client_stores: 0,
            probe: ProbeOptions::default(),
            index_cache_bytes: 256 << 20,
            metadata_cache_bytes: 128 << 20,
            open_tables: 256,
            max_list: 10_000,
            data_storage_version: "2.2".into(),
            row_lineage_inline_bytes: 8 << 10,
            scan: ScanOptions::default(),
            search: SearchOptions::default(),
            write: WriteOptions::default(),
            commit: CommitOptions::default(),
            merge: MergeOptions::default(),
            changes: ChangesOptions::default(),
            maintenance: MaintenanceOptions::default(),
        }
    }
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self { rounds: 4, writers: 16, bytes: 1 << 20, timeout: Duration::from_secs(30) }
    }
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            batch_rows: 65_536,
            batch_bytes: 2 << 20,
            max_row_bytes: 64 << 20,
            split_bytes: 64 << 20,
            max_splits: 10_000,
            memory_bytes: 128 << 20,
            max_filter_depth: 48,
        }
    }
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            max_k: 10_000,
            max_candidates: 100_000,
            max_clauses: 100,
            max_reply_bytes: 16 << 20,
            lookup_keys: 10_000,
        }
    }
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { max_rows_per_file: 1_000_000, max_bytes_per_file: 1 << 30 }
    }
}

impl Default for CommitOptions {
    fn default() -> Self {
        Self {
            max_committable_age: Duration::from_secs(6 * 24 * 3600),
            max_attempts: 100,
            timeout: Duration::from_secs(60),
            max_out_of_order: 1_000,
            remembered_versions: 64,
        }
    }
}

impl Default for MergeOptions {
    fn default() -> Self {
        Self { keys: 1_000_000 }
    }
}

impl Default for ChangesOptions {
    fn default() -> Self {
        Self { rows_at_once: 1_000_000, hold_age: Duration::from_secs(24 * 3600) }
    }
}

impl Default for MaintenanceOptions {
    fn default() -> Self {
        Self { threads: 1, memory_bytes: 256 << 20, max_attempts: 5, held_rows: 100_000, listed_files: 1_000 }
    }
}
