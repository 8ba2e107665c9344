//! The only place where a `tonic::Status` is made.
//!
//! Each status carries `google.rpc.ErrorInfo` (reason, domain, request id), and `RetryInfo` where the same call may work later.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::time::Duration;

use lance_gateway_lake::{Error as LakeError, ErrorKind};
use lance_gateway_proto::flight::Error as FlightError;
use lance_gateway_proto::{ERROR_DOMAIN, Reason, Retry, v1};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::middleware::context;

/// The message and its copy in the details travel as headers, and default clients take 8 KiB of those.
const MAX_MESSAGE_BYTES: usize = 1024;

/// What the recursion limit of the decoder means to a client.
const NESTED_TOO_DEEP: &str =
    "the request is nested too deep; filters take AND, OR and IN with any number of arguments";

/// Key of the request id in the metadata of `ErrorInfo`.
const REQUEST_ID: &str = "request_id";

/// A failure with its reason. `message` says what was wrong, where, and what to do; it goes to the client as it stands.
pub fn status(reason: Reason, message: impl Into<String>) -> Status {
    let message = shortened(message.into());
    log(reason, &message, None);
    make(reason, message)
}

/// A fault of ours: the cause goes to the log only.
pub fn internal(message: impl Into<String>, cause: &(dyn StdError + 'static)) -> Status {
    let message = shortened(message.into());
    log(Reason::Internal, &message, Some(cause));
    make(Reason::Internal, message)
}

/// A failure of the lake. Its cause goes to the log only.
pub fn from_lake(error: LakeError) -> Status {
    let reason = reason_of(error.kind());
    let message = shortened(error.message().to_owned());
    log(reason, &message, error.source());
    make(reason, message)
}

/// The same for one query of many: the call that it came with has not failed.
pub fn of_query(error: &LakeError) -> v1::QueryError {
    let reason = reason_of(error.kind());
    let message = shortened(error.message().to_owned());
    log(reason, &message, error.source());
    v1::QueryError { reason: reason.name().to_owned(), message }
}

/// A status that the transport made (a message that is too large or no protobuf, an unknown method): the same with a reason.
/// One of ours stays as it is.
pub fn from_transport(status: Status) -> Status {
    if status.get_error_details().error_info().is_some_and(|info| info.domain == ERROR_DOMAIN) {
        return status;
    }
    let text = status.message();
    // The texts are tonic's; tests send each case through a real server.
    let reason = match status.code() {
        Code::OutOfRange | Code::ResourceExhausted if text.contains("message length too large") => {
            Reason::MessageTooLarge
        }
        Code::Internal if text.contains("decode Protobuf") => Reason::InvalidArgument,
        Code::Internal if text.starts_with("protocol error") => Reason::InvalidArgument,
        // A stream that broke under the handler: the caller is gone.
        Code::Internal if text.starts_with("h2 protocol error") => Reason::Cancelled,
        Code::Cancelled | Code::Unknown | Code::Unavailable => Reason::Cancelled,
        Code::Unimplemented => Reason::Unsupported,
        Code::DeadlineExceeded => Reason::DeadlineExceeded,
        Code::InvalidArgument | Code::OutOfRange => Reason::InvalidArgument,
        Code::ResourceExhausted => Reason::Overloaded,
        Code::Ok
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => return internal("fault of the gateway, see its log", &status),
    };
    let message = match reason {
        Reason::Unsupported => "the gateway has no such method".to_owned(),
        Reason::InvalidArgument if text.contains("recursion limit") => NESTED_TOO_DEEP.to_owned(),
        _ => shortened(text.to_owned()),
    };
    log(reason, &message, None);
    make(reason, message)
}

/// A failure between the two ends of a Flight stream.
pub fn from_flight(error: FlightError) -> Status {
    match error {
        FlightError::Codec { reason, message } => status(reason, message),
        FlightError::Status(status) => from_transport(*status),
        FlightError::Transport(cause) => {
            tracing::debug!(%cause, "a stream broke");
            status(Reason::Cancelled, "the caller went away")
        }
    }
}

/// The row of the error table for each condition of the lake.
pub fn reason_of(kind: ErrorKind) -> Reason {
    match kind {
        ErrorKind::InvalidArgument => Reason::InvalidArgument,
        ErrorKind::ColumnNotFound => Reason::ColumnNotFound,
        ErrorKind::SchemaMismatch => Reason::SchemaMismatch,
        ErrorKind::MetricMismatch => Reason::MetricMismatch,
        ErrorKind::DuplicateKey => Reason::DuplicateKey,
        ErrorKind::TableNotFound => Reason::TableNotFound,
        ErrorKind::TableVersionNotFound => Reason::TableVersionNotFound,
        ErrorKind::TableAlreadyExists => Reason::TableAlreadyExists,
        ErrorKind::IndexNotFound => Reason::IndexNotFound,
        ErrorKind::IndexAlreadyExists => Reason::IndexAlreadyExists,
        ErrorKind::NamespaceNotFound => Reason::NamespaceNotFound,
        ErrorKind::NamespaceAlreadyExists => Reason::NamespaceAlreadyExists,
        ErrorKind::NamespaceNotEmpty => Reason::NamespaceNotEmpty,
        ErrorKind::TableReplaced => Reason::TableReplaced,
        ErrorKind::StagedFileMissing => Reason::StagedFileMissing,
        ErrorKind::CommittableExpired => Reason::CommittableExpired,
        ErrorKind::CommitAborted => Reason::CommitAborted,
        ErrorKind::CommitConflict => Reason::CommitConflict,
        ErrorKind::ConcurrentModification => Reason::ConcurrentModification,
        ErrorKind::CommitOutOfOrder => Reason::CommitOutOfOrder,
        ErrorKind::CommitStateUnknown => Reason::CommitStateUnknown,
        ErrorKind::Overloaded => Reason::Overloaded,
        ErrorKind::QuotaExceeded => Reason::QuotaExceeded,
        ErrorKind::RowTooLarge => Reason::RowTooLarge,
        ErrorKind::StoreNotAtomic => Reason::StoreNotAtomic,
        ErrorKind::StoreUnavailable => Reason::StoreUnavailable,
        ErrorKind::PermissionDenied => Reason::PermissionDenied,
        ErrorKind::CorruptData => Reason::CorruptData,
        ErrorKind::Unsupported => Reason::Unsupported,
        ErrorKind::Internal => Reason::Internal,
    }
}

/// How long a client should wait before it calls again.
fn retry_delay(reason: Reason) -> Option<Duration> {
    if reason.retry() != Retry::Backoff {
        return None;
    }
    Some(match reason {
        Reason::Starting | Reason::ConcurrentModification | Reason::CommitOutOfOrder => Duration::from_millis(100),
        _ => Duration::from_millis(500),
    })
}

fn make(reason: Reason, message: String) -> Status {
    let mut metadata = HashMap::new();
    if let Some(call) = context::current() {
        call.failed(reason);
        metadata.insert(REQUEST_ID.to_owned(), call.request_id().to_owned());
    }
    let mut details = ErrorDetails::with_error_info(reason.name(), ERROR_DOMAIN, metadata);
    if let Some(delay) = retry_delay(reason) {
        details.set_retry_info(Some(delay));
    }
    Status::with_error_details(reason.code(), message, details)
}

/// Once per failure; the access log has the reason too, so that what is no fault stays at debug.
fn log(reason: Reason, message: &str, cause: Option<&(dyn StdError + 'static)>) {
    let call = context::current();
    let request_id = call.as_deref().map_or("", |c| c.request_id());
    let reason_name = reason.name();
    let cause = cause.map(chain).unwrap_or_default();
    match reason {
        Reason::Internal | Reason::CommitStateUnknown => {
            tracing::error!(request_id, reason = reason_name, cause, "{message}");
        }
        Reason::StoreUnavailable | Reason::StoreNotAtomic | Reason::QuotaExceeded | Reason::CorruptData => {
            tracing::warn!(request_id, reason = reason_name, cause, "{message}");
        }
        // With a cause it was the store that refused the gateway, not the gateway that refused a client.
        Reason::PermissionDenied if !cause.is_empty() => {
            tracing::warn!(request_id, reason = reason_name, cause, "{message}");
        }
        _ => tracing::debug!(request_id, reason = reason_name, cause, "{message}"),
    }
}

/// The causes from the outside in.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let part = error.to_string();
        // Many wrappers repeat what they wrap.
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        next = error.source();
    }
    text
}

fn shortened(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        let mut end = MAX_MESSAGE_BYTES;
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str("...");
    }
    message
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::middleware::context::Call;

    #[test]
    fn a_status_carries_reason_domain_and_request_id() {
        let call = Call::new("id-1".into(), None);
        let status = context::sync_scope(&call, || status(Reason::TableNotFound, "there is no table a.b"));
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message(), "there is no table a.b");
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("TABLE_NOT_FOUND", "lance-gateway"));
        assert_eq!(info.metadata.get("request_id").map(String::as_str), Some("id-1"));
        assert!(details.retry_info().is_none());
        assert_eq!(call.reason(), Some(Reason::TableNotFound));
    }

    #[test]
    fn exactly_the_reasons_that_may_be_repeated_carry_a_retry_hint() {
        for reason in Reason::ALL {
            let status = status(*reason, "x");
            assert_eq!(status.get_error_details().retry_info().is_some(), reason.is_retriable(), "{reason}");
            assert_eq!(status.code(), reason.code());
        }
    }

    #[test]
    fn the_cause_of_a_lake_error_stays_in_the_gateway() {
        let error = LakeError::internal("cannot read the table").with_source("s3://bucket/secret/path refused");
        let status = from_lake(error);
        assert!(!format!("{status:?}").contains("bucket"));
        assert_eq!(status.code(), Code::Internal);
    }

    #[test]
    fn statuses_of_the_transport_get_a_reason_and_ours_stay() {
        let large =
            Status::out_of_range("Error, decoded message length too large: found 9 bytes, the limit is: 8 bytes");
        assert_eq!(from_transport(large).code(), Code::ResourceExhausted);
        let ours = status(Reason::Draining, "going down");
        assert_eq!(from_transport(ours).get_error_details().error_info().unwrap().reason, "DRAINING");
        assert_eq!(from_transport(Status::unimplemented("")).message(), "the gateway has no such method");
    }

    #[test]
    fn a_message_is_cut_below_what_default_clients_take_as_headers() {
        let status = status(Reason::InvalidArgument, "ü".repeat(50_000));
        assert!(status.message().len() <= MAX_MESSAGE_BYTES + 3);
        assert!(status.details().len() < 2 * MAX_MESSAGE_BYTES);
    }
}
