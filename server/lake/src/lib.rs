//! Everything lance-gateway knows about Lance: the only crate of the service that depends on it, and one without a wire in it.
//!
//! [`Lake`] is the door. It is a cheap clone, all its methods are async and may be dropped at any point unless they say otherwise,
//! and each error is an [`Error`] with an [`ErrorKind`] and a message that is safe for clients. They return boxed futures, since
//! the compiler would otherwise build all of Lance's async code again in each crate and test that awaits one: minutes each.
//!
//! | Folder | Subject |
//! |---|---|
//! | `session` | the one Lance session with bounded caches, the stores: how they are reached, whether they are atomic |
//! | `table` | from a [`TableId`] to a place, open handles, creating, describing, dropping |
//! | `catalog` | namespaces and listings |
//! | `schema` | between the schema clients see and the one Lance stores; whether a batch fits |
//! | `version` | the versions of a table |
//! | `scan` | plans pinned to a version, and the batches of one split |
//! | `search` | the nearest vectors, the best texts, and both |
//! | `lookup` | the rows whose columns equal keys |
//! | `stage` | beginning a write, and turning a stream of batches into data files that nobody sees |
//! | `commit` | prepare, commit, abort: the ledger |
//! | `merge` | changes by key: what a commit of them replaces |
//! | `feed` | what each version of a table changed, and the versions that readers of it hold |
//! | `maintain` | compaction, cleanup, and the sweep of files that nobody names |
//! | `records` | what a gateway keeps of itself in the warehouse |
//! | `cache` | values that are made once for all who ask at the same time |
//! | `faults` | where tests break things; not in a release build |
//!
//! A table is told apart from a later one at the same place by its *incarnation*, a random id in its metadata. A table that
//! another tool made gets one from the first write through the gateway.

mod cache;
mod catalog;
mod commit;
mod error;
#[cfg(feature = "faults")]
pub mod faults;
mod feed;
mod index;
mod lance_error;
mod lookup;
mod maintain;
mod merge;
mod options;
mod records;
mod scan;
mod schema;
mod search;
mod session;
mod stage;
mod table;
#[cfg(test)]
mod testing;
mod types;
mod version;

use std::sync::Arc;

pub use catalog::TablePage;
pub use error::*;
pub use feed::ChangesStream;
pub use index::{
    FullTextIndex, IndexKind, IndexSpec, IndexStatistics, Indexed, OptimizeSpec, ScalarIndexType, VectorIndex,
    VectorIndexType,
};
pub use lookup::{Lookup, LookupSpec};
pub use maintain::{
    Cleaned, CleanupSpec, Compacted, KeyIndex, Merge, Policy, Progress, ProgressSender, Swept, SweptFile,
};
pub use options::*;
pub use records::Record;
pub use scan::ScanStream;
pub use search::*;
pub use types::*;

use commit::CommitLocks;
use futures::future::BoxFuture;
use maintain::MaintenanceLocks;
use scan::RowWidths;
use session::{ClientOptions, Stores};
use table::{OpenTables, Place};

/// All tables of one warehouse.
#[derive(Clone)]
pub struct Lake {
    pub(crate) inner: Arc<Inner>,
    /// How the caller wants the stores to be reached.
    pub(crate) client: Option<ClientOptions>,
}

pub(crate) struct Inner {
    pub(crate) options: LakeOptions,
    pub(crate) warehouse: Place,
    pub(crate) uri_prefixes: Vec<Place>,
    pub(crate) stores: Stores,
    pub(crate) open_tables: OpenTables,
    pub(crate) row_widths: RowWidths,
    pub(crate) commit_locks: CommitLocks,
    pub(crate) maintenance_locks: MaintenanceLocks,
}

impl Lake {
    /// Opens the warehouse; a missing local folder is made.
    pub fn open(options: LakeOptions) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let warehouse = Place::parse_option(&options.warehouse)?;
            let uri_prefixes =
                options.uri_prefixes.iter().map(|prefix| Place::parse_option(prefix)).collect::<Result<_>>()?;
            let stores = Stores::open(&options, &warehouse).await?;
            let open_tables = OpenTables::new(options.open_tables);
            let row_widths = RowWidths::new(options.open_tables);
            let commit_locks = CommitLocks::new(options.open_tables);
            let maintenance_locks = MaintenanceLocks::new(options.open_tables);
            Ok(Self {
                inner: Arc::new(Inner {
                    options,
                    warehouse,
                    uri_prefixes,
                    stores,
                    open_tables,
                    row_widths,
                    commit_locks,
                    maintenance_locks,
                }),
                client: None,
            })
        })
    }
}
