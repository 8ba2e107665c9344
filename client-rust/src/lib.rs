//! Client of lance-gateway: tables, scans and writes-once over Arrow Flight and gRPC.
//!
//! Rows travel as Arrow record batches; nothing of Lance is linked in. Calls that fail in a way that may pass are repeated,
//! a bounded number of times, and every call that changes something may be repeated without doing it twice.
//!
//! ```no_run
//! use futures::TryStreamExt;
//! use lance_gateway_client::{Client, ClientOptions, col, lit};
//!
//! # async fn example() -> Result<(), lance_gateway_client::Error> {
//! let client = Client::connect("grpc://127.0.0.1:8815", ClientOptions::default()).await?;
//!
//! let plan = client.scan("words").columns(["word"]).filter(col("frequency").gt(lit(1000))).limit(10).plan().await?;
//! println!("version {} in {} splits", plan.version(), plan.splits().len());
//!
//! let mut rows = plan.stream();
//! while let Some(batch) = rows.try_next().await? {
//!     println!("{} rows", batch.num_rows());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Writing in one call is [`Client::put`]. Writing from many places at once, with one commit, is
//! [`Client::begin_write`]: stage rows, prepare what was staged, commit it.
//!
//! What each version of a table changed is [`Client::changes`].
//!
//! Searching is [`Client::search`], for one vector or text or for many on one stream. Rows by their keys are
//! [`Client::lookup`].
//!
//! What went wrong is told by [`Error::reason`], and whether it may pass by [`Error::is_retriable`].

mod changes;
mod client;
mod connection;
mod error;
mod filter;
mod flight;
mod ids;
mod index;
mod jobs;
mod lookup;
mod merge;
mod options;
mod retry;
mod scan;
mod schema;
mod search;
mod setters;
mod table;
mod write;

pub use changes::Changes;
pub use client::Client;
pub use error::{Error, ErrorKind, Result};
pub use filter::{Expr, Filter, Literal, col, lit};
pub use ids::{ColumnPath, CommitId, TableId, VersionSelector};
pub use index::{
    FullTextIndex, IndexSpec, IndexStatistics, Indexed, Optimization, ScalarIndexType, VectorIndex, VectorIndexType,
};
pub use jobs::{Cleanup, Job, JobKind, JobResult, JobState, JobWatch, SweptFile};
pub use lance_gateway_proto::{Reason, Retry};
pub use lookup::{LookedUp, Lookup, Lookups};
pub use merge::{Assigned, ChangeOptions, Changed, MergeOptions, WhenMatched, WhenNotMatched, WhenNotMatchedBySource};
pub use options::{ClientOptions, RetryOptions, StorageOptions, TlsOptions};
pub use scan::{Plan, Read, RowMetadata, RowStream, Scan, Split};
pub use search::{
    Answer, Found, FullTextQuery, HybridQuery, IndexUse, Metric, Query, Search, SearchInfo, TextQuery, Vector,
    VectorQuery,
};
pub use table::{
    CreateOptions, Created, GatewayState, IndexDescription, Limits, RowCount, Status, TableDescription, TableVersion,
};
pub use write::{
    BeginOptions, CommitRecord, CommitState, Committable, Committed, MergeCounts, PutOptions, PutSummary, Stage,
    StageProgress, Staged, Write, WriteMode,
};
