//! The one table of errors: what clients decide by.

use std::fmt;
use std::str::FromStr;

use tonic::Code;

/// The `domain` of every `google.rpc.ErrorInfo` of the gateway.
pub const ERROR_DOMAIN: &str = "lance-gateway";

/// What a client does with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The same call will fail again.
    Never,
    /// Nothing was done; the same call may work later.
    Backoff,
    /// Something may have been done. Ask (`GetCommit`), or repeat a call that may be repeated.
    Resolve,
}

impl Retry {
    /// The name in the golden file and the docs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Backoff => "backoff",
            Self::Resolve => "resolve",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $code:ident, $retry:ident;)*) => {
        /// Why a call failed. Stable: names are never reused. `docs/errors/<NAME>.md` explains each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $variant,)* }

        impl Reason {
            /// All rows, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The reason in `google.rpc.ErrorInfo`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The gRPC code that goes with it.
            pub fn code(self) -> Code {
                match self { $(Self::$variant => Code::$code,)* }
            }

            /// What a client does.
            pub fn retry(self) -> Retry {
                match self { $(Self::$variant => Retry::$retry,)* }
            }
        }

        impl FromStr for Reason {
            type Err = UnknownReason;
            fn from_str(s: &str) -> Result<Self, Self::Err> {
                match s { $($name => Ok(Self::$variant),)* _ => Err(UnknownReason) }
            }
        }
    };
}

reasons! {
    /// The request is wrong by itself.
    InvalidArgument = "INVALID_ARGUMENT", InvalidArgument, Never;
    /// A named column does not exist.
    ColumnNotFound = "COLUMN_NOT_FOUND", InvalidArgument, Never;
    /// Rows, files or a schema do not fit the table.
    SchemaMismatch = "SCHEMA_MISMATCH", InvalidArgument, Never;
    /// The query, the table and the index do not compare vectors alike.
    MetricMismatch = "METRIC_MISMATCH", InvalidArgument, Never;
    /// Two rows of a merge have one key.
    DuplicateKey = "DUPLICATE_KEY", InvalidArgument, Never;
    /// There is no such table.
    TableNotFound = "TABLE_NOT_FOUND", NotFound, Never;
    /// The table has no such version, or no longer.
    TableVersionNotFound = "TABLE_VERSION_NOT_FOUND", NotFound, Never;
    /// The table exists already.
    TableAlreadyExists = "TABLE_ALREADY_EXISTS", AlreadyExists, Never;
    /// There is no such namespace.
    NamespaceNotFound = "NAMESPACE_NOT_FOUND", NotFound, Never;
    /// The namespace exists already.
    NamespaceAlreadyExists = "NAMESPACE_ALREADY_EXISTS", AlreadyExists, Never;
    /// The namespace still holds something.
    NamespaceNotEmpty = "NAMESPACE_NOT_EMPTY", FailedPrecondition, Never;
    /// The table was dropped and made again since the write began.
    TableReplaced = "TABLE_REPLACED", FailedPrecondition, Never;
    /// A staged data file is gone.
    StagedFileMissing = "STAGED_FILE_MISSING", FailedPrecondition, Never;
    /// The committable is older than commits are remembered.
    CommittableExpired = "COMMITTABLE_EXPIRED", FailedPrecondition, Never;
    /// The commit id was aborted.
    CommitAborted = "COMMIT_ABORTED", FailedPrecondition, Never;
    /// The gateway knows no such job, or no longer.
    JobNotFound = "JOB_NOT_FOUND", NotFound, Never;
    /// The table has no such index.
    IndexNotFound = "INDEX_NOT_FOUND", NotFound, Never;
    /// The table has an index of this name already.
    IndexAlreadyExists = "INDEX_ALREADY_EXISTS", AlreadyExists, Never;
    /// It contradicts what is committed already.
    CommitConflict = "COMMIT_CONFLICT", FailedPrecondition, Never;
    /// Other writers were faster, more often than the gateway retries.
    ConcurrentModification = "CONCURRENT_MODIFICATION", Aborted, Backoff;
    /// An earlier commit of the epoch is neither committed nor aborted.
    CommitOutOfOrder = "COMMIT_OUT_OF_ORDER", Aborted, Backoff;
    /// The commit may or may not have happened.
    CommitStateUnknown = "COMMIT_STATE_UNKNOWN", Unknown, Resolve;
    /// Commits to the store could be lost.
    StoreNotAtomic = "STORE_NOT_ATOMIC", FailedPrecondition, Never;
    /// A bound of the gateway is reached; later it may fit.
    Overloaded = "OVERLOADED", ResourceExhausted, Backoff;
    /// The store is full.
    QuotaExceeded = "QUOTA_EXCEEDED", ResourceExhausted, Never;
    /// One row is larger than a message may be.
    RowTooLarge = "ROW_TOO_LARGE", ResourceExhausted, Never;
    /// A message is larger than the gateway takes.
    MessageTooLarge = "MESSAGE_TOO_LARGE", ResourceExhausted, Never;
    /// The gateway does not serve yet.
    Starting = "STARTING", Unavailable, Backoff;
    /// The gateway stops and takes no new work.
    Draining = "DRAINING", Unavailable, Backoff;
    /// The object store does not answer.
    StoreUnavailable = "STORE_UNAVAILABLE", Unavailable, Backoff;
    /// The time of the call is over.
    DeadlineExceeded = "DEADLINE_EXCEEDED", DeadlineExceeded, Resolve;
    /// A stream sent nothing, or was not read, for too long.
    StreamIdle = "STREAM_IDLE", DeadlineExceeded, Backoff;
    /// The caller went away.
    Cancelled = "CANCELLED", Cancelled, Resolve;
    /// Who calls is not known.
    Unauthenticated = "UNAUTHENTICATED", Unauthenticated, Never;
    /// The operator does not allow it.
    PermissionDenied = "PERMISSION_DENIED", PermissionDenied, Never;
    /// Bytes are not what they should be.
    CorruptData = "CORRUPT_DATA", DataLoss, Never;
    /// The gateway cannot do it.
    Unsupported = "UNSUPPORTED", Unimplemented, Never;
    /// A fault of the gateway.
    Internal = "INTERNAL", Internal, Never;
}

/// A name that is no reason of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownReason;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Reason {
    /// Whether the same call may work later, nothing having been done.
    pub fn is_retriable(self) -> bool {
        self.retry() == Retry::Backoff
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_table_is_the_golden_one_that_all_clients_read() {
        let golden = include_str!("../../tests/golden/errors.json");
        let golden: Vec<Value> = serde_json::from_str(golden).unwrap();
        // tonic says `InvalidArgument` for INVALID_ARGUMENT.
        let golden: Vec<_> = golden
            .iter()
            .map(|row| [&row["reason"], &row["code"], &row["retry"]].map(|cell| cell.as_str().unwrap().to_owned()))
            .map(|[reason, code, retry]| (reason, code.replace('_', "").to_lowercase(), retry))
            .collect();
        let table = Reason::ALL.iter().map(|reason| {
            let code = format!("{:?}", reason.code()).to_lowercase();
            (reason.name().to_owned(), code, reason.retry().name().to_owned())
        });
        assert_eq!(table.collect::<Vec<_>>(), golden);
    }
}
