//! The one place where an error of Lance, DataFusion, Arrow or an object store becomes one of ours.
//!
//! Texts of these libraries name files and addresses of the server, so they become the source of our error, for the log. Where
//! their words help a client (a filter, a schema), the caller asks for them with [`detail`].

use std::error::Error as StdError;
use std::io;

use arrow_schema::ArrowError;
use lance::Error as LanceError;
use lance::deps::datafusion::error::DataFusionError;

use crate::error::{Error, ErrorKind};

type BoxedError = Box<dyn StdError + Send + Sync>;

/// What a missing file or version means where the call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Table,
    Version,
    StagedFile,
}

impl Missing {
    fn kind(self) -> ErrorKind {
        match self {
            Self::Table => ErrorKind::TableNotFound,
            Self::Version => ErrorKind::TableVersionNotFound,
            Self::StagedFile => ErrorKind::StagedFileMissing,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Table => "there is no such table",
            Self::Version => "the version, or a data file of it, does not exist or no longer",
            Self::StagedFile => "a staged data file is gone",
        }
    }
}

/// Maps an error of Lance. `doing` says what failed, in words that a client may see.
pub(crate) fn from_lance(error: LanceError, doing: impl std::fmt::Display, missing: Missing) -> Error {
    let error = match ours(error) {
        Ok(ours) => return ours,
        Err(error) => error,
    };
    let (kind, reason) = classify(&error, missing);
    Error::new(kind, format!("{doing}: {reason}")).with_source(error)
}

/// Maps an error that comes out of a running plan.
pub(crate) fn from_datafusion(error: DataFusionError, doing: impl std::fmt::Display, missing: Missing) -> Error {
    let error = match ours_in_box(Box::new(error)) {
        Ok(ours) => return ours,
        Err(error) => error,
    };
    let (kind, reason) = classify_dyn(error.as_ref(), missing);
    Error::new(kind, format!("{doing}: {reason}")).with_source(error)
}

/// Maps an error of an object store.
pub(crate) fn from_store(error: object_store::Error, doing: impl std::fmt::Display) -> Error {
    let (kind, reason) = classify_store(&error, Missing::Table);
    Error::new(kind, format!("{doing}: {reason}")).with_source(error)
}

/// Lance's own words without its place in the source. Only for errors that cannot name a path of the server.
pub(crate) fn detail(error: &LanceError) -> String {
    match error {
        LanceError::InvalidInput { source, .. } | LanceError::NotSupported { source, .. } => source.to_string(),
        LanceError::Schema { message, .. } | LanceError::Arrow { message, .. } => message.clone(),
        LanceError::SchemaMismatch { difference, .. } => difference.clone(),
        LanceError::External { source } => source.to_string(),
        other => other.to_string().split(", /").next().unwrap_or_default().to_owned(),
    }
}

/// An error of ours that travelled through Lance, for example from the stream of batches that a client sends.
fn ours(error: LanceError) -> Result<Error, LanceError> {
    match error {
        LanceError::External { source } => ours_in_box(source).map_err(|source| LanceError::External { source }),
        LanceError::Wrapped { error, location, backtrace } => {
            ours_in_box(error).map_err(|error| LanceError::Wrapped { error, location, backtrace })
        }
        LanceError::IO { source, location, backtrace } => {
            ours_in_box(source).map_err(|source| LanceError::IO { source, location, backtrace })
        }
        LanceError::InvalidInput { source, location, backtrace } => {
            ours_in_box(source).map_err(|source| LanceError::InvalidInput { source, location, backtrace })
        }
        other => Err(other),
    }
}

fn ours_in_box(error: BoxedError) -> Result<Error, BoxedError> {
    let error = match error.downcast::<Error>() {
        Ok(found) => return Ok(*found),
        Err(error) => error,
    };
    let error = match error.downcast::<LanceError>() {
        Ok(found) => return ours(*found).map_err(|e| Box::new(e) as BoxedError),
        Err(error) => error,
    };
    let error = match error.downcast::<DataFusionError>() {
        Ok(found) => {
            return match *found {
                DataFusionError::External(inner) => ours_in_box(inner),
                DataFusionError::ArrowError(inner, backtrace) => match *inner {
                    ArrowError::ExternalError(inner) => ours_in_box(inner),
                    other => Err(Box::new(DataFusionError::ArrowError(Box::new(other), backtrace))),
                },
                DataFusionError::Context(_, inner) => ours_in_box(inner),
                other => Err(Box::new(other)),
            };
        }
        Err(error) => error,
    };
    match error.downcast::<ArrowError>() {
        Ok(found) => match *found {
            ArrowError::ExternalError(inner) => ours_in_box(inner),
            other => Err(Box::new(other)),
        },
        Err(error) => Err(error),
    }
}

fn classify(error: &LanceError, missing: Missing) -> (ErrorKind, &'static str) {
    use LanceError as L;
    if error.is_commit_status_unknown() {
        return (ErrorKind::CommitStateUnknown, "the commit may or may not have happened");
    }
    match error {
        L::InvalidInput { .. } | L::InvalidRef { .. } | L::FieldNotFound { .. } => {
            (ErrorKind::InvalidArgument, "lance refuses the input")
        }
        L::DatasetAlreadyExists { .. } => (ErrorKind::TableAlreadyExists, "the table exists already"),
        L::SchemaMismatch { .. } | L::Schema { .. } => (ErrorKind::SchemaMismatch, "the schema does not fit the table"),
        L::DatasetNotFound { .. } | L::NotFound { .. } => (missing.kind(), missing.reason()),
        L::VersionNotFound { .. } | L::RefNotFound { .. } => {
            (ErrorKind::TableVersionNotFound, "there is no such version or tag")
        }
        L::CorruptFile { .. } => (ErrorKind::CorruptData, "a file of the table is corrupt"),
        L::NotSupported { .. } | L::VersionConflict { .. } => (ErrorKind::Unsupported, "lance cannot do this"),
        L::IncompatibleTransaction { .. } | L::RefConflict { .. } => {
            (ErrorKind::CommitConflict, "it contradicts what was committed meanwhile")
        }
        L::CommitConflict { .. } | L::RetryableCommitConflict { .. } | L::TooMuchWriteContention { .. } => {
            (ErrorKind::ConcurrentModification, "other writers were faster")
        }
        L::Timeout { .. } => (ErrorKind::CommitStateUnknown, "it took too long, and may or may not have happened"),
        L::Backpressure { .. } => (ErrorKind::Overloaded, "too much is being written at once"),
        L::DiskCapExceeded { .. } => (ErrorKind::QuotaExceeded, "the bound for temporary files is reached"),
        L::InvalidTableLocation { .. } => (ErrorKind::InvalidArgument, "this is no place for a table"),
        L::IO { source, .. }
        | L::External { source }
        | L::Wrapped { error: source, .. }
        | L::Namespace { source, .. } => classify_dyn(source.as_ref(), missing),
        L::Shared { source } => classify(source, missing),
        L::Internal { .. }
        | L::PrerequisiteFailed { .. }
        | L::Unprocessable { .. }
        | L::Arrow { .. }
        | L::Index { .. }
        | L::IndexNotFound { .. }
        | L::Stop
        | L::Cloned { .. }
        | L::Execution { .. }
        | L::Cleanup { .. }
        | L::Fenced { .. } => (ErrorKind::Internal, "an unexpected error of lance"),
    }
}

fn classify_dyn(error: &(dyn StdError + 'static), missing: Missing) -> (ErrorKind, &'static str) {
    if let Some(error) = error.downcast_ref::<LanceError>() {
        return classify(error, missing);
    }
    if let Some(error) = error.downcast_ref::<object_store::Error>() {
        return classify_store(error, missing);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return classify_io(error, missing);
    }
    if let Some(DataFusionError::ResourcesExhausted(_)) = error.downcast_ref::<DataFusionError>() {
        return (ErrorKind::QuotaExceeded, "the memory bound of one scan is reached");
    }
    match error.source() {
        Some(source) => classify_dyn(source, missing),
        None => (ErrorKind::Internal, "an unexpected error"),
    }
}

fn classify_store(error: &object_store::Error, missing: Missing) -> (ErrorKind, &'static str) {
    use object_store::Error as S;
    match error {
        S::NotFound { .. } => (missing.kind(), missing.reason()),
        S::PermissionDenied { .. } | S::Unauthenticated { .. } => {
            (ErrorKind::PermissionDenied, "the store refuses access to the gateway")
        }
        S::NotSupported { .. } | S::NotImplemented { .. } => {
            (ErrorKind::Unsupported, "the store cannot do what this needs")
        }
        other => {
            let mut source: Option<&(dyn StdError + 'static)> = other.source();
            while let Some(inner) = source {
                if let Some(io) = inner.downcast_ref::<io::Error>() {
                    return classify_io(io, missing);
                }
                if refuses_access(&inner.to_string()) {
                    return (ErrorKind::PermissionDenied, "the store refuses access to the gateway");
                }
                source = inner.source();
            }
            (ErrorKind::StoreUnavailable, "the store does not answer as it should")
        }
    }
}

/// Whether this is the answer of a server to a key that it does not take. `object_store` has its own error for it where one object
/// is asked for, and none for listings and for credentials that have run out.
fn refuses_access(text: &str) -> bool {
    text.strip_prefix("Server returned non-2xx status code: ").is_some_and(|answer| {
        let tokens = ["<Code>ExpiredToken</Code>", "<Code>InvalidToken</Code>"];
        ["401", "403"].iter().any(|code| answer.starts_with(code)) || tokens.iter().any(|code| answer.contains(code))
    })
}

fn classify_io(error: &io::Error, missing: Missing) -> (ErrorKind, &'static str) {
    match error.kind() {
        io::ErrorKind::NotFound => (missing.kind(), missing.reason()),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            (ErrorKind::PermissionDenied, "the store refuses access to the gateway")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            (ErrorKind::QuotaExceeded, "the store is full")
        }
        _ => match error.get_ref() {
            Some(inner) if inner.is::<LanceError>() || inner.is::<object_store::Error>() => {
                classify_dyn(inner, missing)
            }
            _ => (ErrorKind::StoreUnavailable, "the store does not answer as it should"),
        },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn kind(error: LanceError) -> ErrorKind {
        from_lance(error, "cannot", Missing::Version).kind()
    }

    #[test]
    fn a_path_of_lance_does_not_reach_the_message_but_the_source() {
        let error = LanceError::not_found("/secret/place/data/x.lance");
        let ours = from_lance(error, "cannot read t", Missing::Table);
        assert!(!ours.message().contains("secret"), "{ours}");
        assert!(ours.source().unwrap().to_string().contains("secret"));
    }

    #[test]
    fn an_error_of_ours_comes_out_of_any_wrapping_as_it_was() {
        let inner = Error::new(ErrorKind::SchemaMismatch, "column x");
        let wrapped = LanceError::External {
            source: Box::new(DataFusionError::ArrowError(
                Box::new(ArrowError::ExternalError(Box::new(DataFusionError::External(Box::new(inner))))),
                None,
            )),
        };
        let ours = from_lance(wrapped, "cannot write", Missing::Table);
        assert_eq!((ours.kind(), ours.message()), (ErrorKind::SchemaMismatch, "column x"));
    }

    #[test]
    fn a_full_disk_is_told_from_a_store_that_is_away() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let away = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(kind(LanceError::io_source(Box::new(full))), ErrorKind::QuotaExceeded);
        assert_eq!(kind(LanceError::io_source(Box::new(away))), ErrorKind::StoreUnavailable);
        let generic = object_store::Error::Generic { store: "s3", source: "timeout".into() };
        assert_eq!(kind(LanceError::io_source(Box::new(generic))), ErrorKind::StoreUnavailable);
    }
}
