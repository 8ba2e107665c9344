//! What can go wrong in the lake, in the words of a client.

use std::error::Error as StdError;
use std::fmt;

/// Result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The condition, independent of any wire. The server maps each kind to a row of its error table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is wrong by itself.
    InvalidArgument,
    /// A named column does not exist in the version that is read.
    ColumnNotFound,
    /// Rows, files or a schema do not fit the table.
    SchemaMismatch,
    /// The query, the table and the index do not compare vectors alike.
    MetricMismatch,
    /// Two rows of a merge have one key.
    DuplicateKey,
    /// There is no such table.
    TableNotFound,
    /// The table has no such version, or no longer.
    TableVersionNotFound,
    /// The table exists already.
    TableAlreadyExists,
    /// The table has no such index.
    IndexNotFound,
    /// The table has an index of this name already.
    IndexAlreadyExists,
    /// There is no such namespace.
    NamespaceNotFound,
    /// The namespace exists already.
    NamespaceAlreadyExists,
    /// The namespace still holds tables or namespaces.
    NamespaceNotEmpty,
    /// The table at this place is another one than the write began with.
    TableReplaced,
    /// A staged data file is gone.
    StagedFileMissing,
    /// The committable is older than commits are remembered.
    CommittableExpired,
    /// The commit id was aborted.
    CommitAborted,
    /// The operation contradicts what is committed already.
    CommitConflict,
    /// Another writer was faster, more often than we retry.
    ConcurrentModification,
    /// An earlier commit of the epoch is neither committed nor aborted.
    CommitOutOfOrder,
    /// The commit may or may not have happened.
    CommitStateUnknown,
    /// The store lets several writers create one key, so commits to it would be lost.
    StoreNotAtomic,
    /// A bound of this process is reached; later it may fit.
    Overloaded,
    /// The store is full, or a fixed bound would be passed.
    QuotaExceeded,
    /// One row is larger than a scan may send.
    RowTooLarge,
    /// The store does not answer, and nothing was done.
    StoreUnavailable,
    /// The operator does not allow this table, path or option.
    PermissionDenied,
    /// Bytes are not what they should be.
    CorruptData,
    /// Lance or this gateway cannot do it.
    Unsupported,
    /// A fault of ours.
    Internal,
}

/// A kind, a message that is safe for clients (no server paths, no secrets), and the cause for the log.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this kind. `message` says what was wrong, where, and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same with its cause, which goes to the log only.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// A request that is wrong by itself.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// A fault of ours.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The condition.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The text for the client.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|s| s as _)
    }
}
