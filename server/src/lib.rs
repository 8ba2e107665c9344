//! The service: Arrow Flight and gRPC in front of Lance.
//!
//! A library only so that tests can drive its parts; it is no public interface.

#[cfg(all(feature = "faults", not(debug_assertions)))]
compile_error!("fault points are for tests: a release build has no feature `faults`");

pub mod admin;
pub mod admission;
pub mod config;
pub mod convert;
pub mod flight;
pub mod grpc;
pub mod jobs;
pub mod lifecycle;
pub mod middleware;
pub mod state;
pub mod status;
pub mod telemetry;
pub mod transport;

use lance_gateway_lake::{
    ChangesOptions, CommitOptions, LakeOptions, MaintenanceOptions, MergeOptions, ProbeOptions, ScanOptions,
    SearchOptions, WriteOptions,
};

use config::Config;

/// The version of Lance below, from the lock file.
pub const LANCE_VERSION: &str = env!("LANCE_VERSION");

/// What `--version` says after the name.
pub const VERSION_LINE: &str = concat!(env!("CARGO_PKG_VERSION"), " (lance ", env!("LANCE_VERSION"), ")");

/// What the lake is told of the configuration.
pub fn lake_options(config: &Config) -> LakeOptions {
    LakeOptions {
        warehouse: config.warehouse.as_str().to_owned(),
        uri_prefixes: config.table.uri_prefixes.0.clone(),
        stores: config.storage.stores.0.iter().map(|(place, of)| (place.clone(), of.expose().collect())).collect(),
        storage_options: config.storage.options.expose().collect(),
        client_stores: match config.storage.client_options {
            true => convert::saturating(config.storage.client_stores),
            false => 0,
        },
        probe: ProbeOptions {
            rounds: config.storage.probe_rounds,
            writers: convert::saturating(config.storage.probe_writers),
            bytes: config.storage.probe_bytes.as_usize(),
            timeout: config.storage.probe_timeout.get(),
        },
        index_cache_bytes: config.cache.index_bytes.as_usize(),
        metadata_cache_bytes: config.cache.metadata_bytes.as_usize(),
        open_tables: u64::from(config.table.open),
        max_list: convert::saturating(config.table.max_list),
        data_storage_version: config.table.data_storage_version.as_str().to_owned(),
        row_lineage_inline_bytes: config.table.row_lineage_inline_bytes.bytes(),
        scan: ScanOptions {
            batch_rows: convert::saturating(config.scan.batch_rows),
            batch_bytes: config.scan.batch_bytes.as_usize(),
            max_row_bytes: config.scan.max_row_bytes.as_usize(),
            split_bytes: config.scan.split_bytes.bytes(),
            max_splits: convert::saturating(config.scan.max_splits),
            memory_bytes: config.scan.memory_bytes.bytes(),
            max_filter_depth: convert::saturating(config.scan.max_filter_depth),
        },
        search: SearchOptions {
            max_k: convert::saturating(config.search.max_k),
            max_candidates: convert::saturating(config.search.max_candidates),
            max_clauses: convert::saturating(config.search.max_clauses),
            max_reply_bytes: config.search.max_reply_bytes.bytes(),
            lookup_keys: convert::saturating(config.search.lookup_keys),
        },
        write: WriteOptions {
            max_rows_per_file: convert::saturating(config.write.max_rows_per_file),
            max_bytes_per_file: config.write.max_bytes_per_file.as_usize(),
        },
        commit: CommitOptions {
            max_committable_age: config.commit.max_committable_age.get(),
            max_attempts: config.commit.max_attempts,
            timeout: config.commit.timeout.get(),
            max_out_of_order: convert::saturating(config.commit.max_out_of_order),
            remembered_versions: convert::saturating(config.commit.remembered_versions),
        },
        merge: MergeOptions { keys: convert::saturating(config.merge.keys) },
        changes: ChangesOptions {
            rows_at_once: convert::saturating(config.changes.rows_at_once),
            hold_age: config.changes.hold_age.get(),
        },
        maintenance: MaintenanceOptions {
            threads: convert::saturating(config.maintenance.threads),
            memory_bytes: config.maintenance.memory_bytes.bytes(),
            max_attempts: config.maintenance.max_attempts,
            held_rows: u64::from(config.maintenance.held_rows),
            listed_files: convert::saturating(config.maintenance.listed_files),
        },
    }
}
