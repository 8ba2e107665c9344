//! The one error of this crate.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use lance_gateway_proto::{ERROR_DOMAIN, Reason, Retry, v1};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The header that carries the id of a call.
pub(crate) const REQUEST_ID_HEADER: &str = "x-request-id";

/// What became of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The gateway refused; [`Error::reason`] says why. Nothing was changed.
    Refused,
    /// The gateway was not reached, or the connection broke, and nothing was changed.
    Unavailable,
    /// The call may or may not have changed the table. Repeat it with the same request id, or ask.
    OutcomeUnknown,
    /// The answer is not what a gateway of this version sends.
    Protocol,
    /// The request cannot be sent as it is.
    InvalidRequest,
    /// The rows that the caller provides failed.
    Input,
}

/// Why a call failed. Decide by [`reason`](Self::reason) and [`is_retriable`](Self::is_retriable), not by the message.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    reason: Option<Reason>,
    retriable: bool,
    message: String,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    after_lost_attempt: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What a call does, which decides what an error without a reason means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing that anybody else sees.
    Reads,
    /// Something that a repeat with the same request id does not do again.
    Changes,
}

impl Error {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            reason: None,
            retriable: kind == ErrorKind::Unavailable,
            message: message.into(),
            request_id: None,
            retry_after: None,
            after_lost_attempt: false,
            source: None,
        }))
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidRequest, message)
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    pub(crate) fn input(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let source = source.into();
        Self::new(ErrorKind::Input, format!("the rows to write failed: {source}")).with_source(source)
    }

    /// The same without its cause, for where the first is not to be had.
    pub(crate) fn again(&self) -> Self {
        let again = Self::new(self.kind(), self.message());
        let mut again = match self.reason() {
            Some(reason) => again.with_reason(reason),
            None => again,
        };
        again.0.retriable = self.0.retriable;
        again
    }

    pub(crate) fn timed_out(what: &str, after: Duration, effect: Effect) -> Self {
        Self::new(effect.lost(), format!("{what} got no answer within {after:?}"))
    }

    pub(crate) fn refused(reason: Reason, message: impl Into<String>) -> Self {
        let mut refused = Self::new(ErrorKind::Refused, message).with_reason(reason);
        refused.0.retriable = reason.retry() != Retry::Never;
        refused
    }

    /// What the gateway says of one query of many, which only read.
    pub(crate) fn of_query(error: v1::QueryError) -> Self {
        match error.reason.parse::<Reason>() {
            Ok(reason) => Self::refused(reason, error.message),
            Err(_) => Self::protocol(error.message),
        }
    }

    pub(crate) fn with_reason(mut self, reason: Reason) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// Classes a status: by its reason, and without one by whether something may have been changed.
    pub(crate) fn from_status(status: Status, effect: Effect) -> Self {
        let info = status.get_details_error_info().filter(|info| info.domain == ERROR_DOMAIN);
        let reason = info.as_ref().and_then(|info| info.reason.parse::<Reason>().ok());
        let kind = match (reason.map(Reason::retry), effect) {
            (Some(Retry::Resolve), Effect::Changes) => ErrorKind::OutcomeUnknown,
            (Some(_), _) => ErrorKind::Refused,
            // A reason that a later gateway has and this client does not: its code is all that there is to go by.
            (None, _) if info.is_some() && !is_transient(status.code()) => ErrorKind::Refused,
            (None, _) if was_never_sent(&status) => ErrorKind::Unavailable,
            (None, _) if is_verdict(status.code()) => ErrorKind::Protocol,
            (None, _) => effect.lost(),
        };
        let retriable = match reason.map(Reason::retry) {
            Some(Retry::Backoff) => true,
            Some(Retry::Resolve) => effect == Effect::Reads,
            Some(Retry::Never) => false,
            None => kind == ErrorKind::Unavailable,
        };
        let message = match status.message() {
            "" => format!("the call failed with {:?}", status.code()),
            message => message.to_owned(),
        };
        let mut error = Self::new(kind, message);
        error.0.reason = reason;
        error.0.retriable = retriable;
        error.0.retry_after = status.get_details_retry_info().and_then(|info| info.retry_delay);
        error.0.request_id = info
            .and_then(|mut info| info.metadata.remove("request_id"))
            .or_else(|| Some(status.metadata().get(REQUEST_ID_HEADER)?.to_str().ok()?.to_owned()))
            .filter(|id| !id.is_empty());
        error.with_source(Box::new(status))
    }

    fn with_source(mut self, source: Box<dyn StdError + Send + Sync>) -> Self {
        self.0.source = Some(source);
        self
    }

    pub(crate) fn with_request_id(mut self, id: &str) -> Self {
        self.0.request_id.get_or_insert_with(|| id.to_owned());
        self
    }

    /// An earlier attempt of the same call may have worked, so what this one says of the outcome does not hold.
    pub(crate) fn after_lost_attempt(mut self) -> Self {
        self.0.after_lost_attempt = true;
        if self.kind() != ErrorKind::Refused || self.is_retriable() {
            self.0.kind = ErrorKind::OutcomeUnknown;
            self.0.retriable = false;
        }
        self
    }

    /// Whether an attempt before this one was sent and got no answer.
    pub(crate) fn follows_lost_attempt(&self) -> bool {
        self.0.after_lost_attempt
    }

    /// What became of the call.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Why the gateway refused. None: the gateway did not say, for example because it was not reached.
    pub fn reason(&self) -> Option<Reason> {
        self.0.reason
    }

    /// Whether nothing was changed and the same call may work later. It has been repeated already as often as
    /// [`RetryOptions`](crate::RetryOptions) allow.
    pub fn is_retriable(&self) -> bool {
        self.0.retriable
    }

    /// The id of the call, which the gateway's log has too.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// What was wrong, where, and what to do.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// When the gateway wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the outcome is not known.
    pub fn is_outcome_unknown(&self) -> bool {
        self.0.kind == ErrorKind::OutcomeUnknown
    }
}

impl Effect {
    /// The kind of a call whose answer never came.
    fn lost(self) -> ErrorKind {
        match self {
            Self::Reads => ErrorKind::Unavailable,
            Self::Changes => ErrorKind::OutcomeUnknown,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => write!(f, "{} ({reason})", self.message()),
            None => f.write_str(self.message()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Whether some server or proxy understood the call and said no.
fn is_verdict(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::DataLoss
    )
}

fn is_transient(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable
            | Code::Unknown
            | Code::Aborted
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::ResourceExhausted
    )
}

/// Whether the connection was refused before the call could be sent.
fn was_never_sent(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::*;

    fn refusal(reason: Reason) -> Status {
        let details = ErrorDetails::with_error_info(reason.name(), ERROR_DOMAIN, HashMap::new());
        Status::with_error_details(reason.code(), "said so", details)
    }

    #[test]
    fn every_reason_is_classed_by_its_retry_class_and_not_by_its_code() {
        for &reason in Reason::ALL {
            for effect in [Effect::Reads, Effect::Changes] {
                let error = Error::from_status(refusal(reason), effect);
                assert_eq!(error.reason(), Some(reason));
                let (kind, retriable) = match (reason.retry(), effect) {
                    (Retry::Never, _) => (ErrorKind::Refused, false),
                    (Retry::Backoff, _) => (ErrorKind::Refused, true),
                    (Retry::Resolve, Effect::Reads) => (ErrorKind::Refused, true),
                    (Retry::Resolve, Effect::Changes) => (ErrorKind::OutcomeUnknown, false),
                };
                assert_eq!((error.kind(), error.is_retriable()), (kind, retriable), "{reason} {effect:?}");
            }
        }
    }

    #[test]
    fn a_reason_wins_over_a_code_that_a_proxy_folded() {
        let details = ErrorDetails::with_error_info("TABLE_NOT_FOUND", ERROR_DOMAIN, HashMap::new());
        let error =
            Error::from_status(Status::with_error_details(Code::Unavailable, "no table", details), Effect::Reads);
        assert_eq!(error.reason(), Some(Reason::TableNotFound));
        assert!(!error.is_retriable());
    }

    #[test]
    fn an_error_without_a_reason_is_retriable_for_a_read_and_unknown_for_a_change() {
        for code in [Code::Unavailable, Code::Unknown, Code::Internal, Code::Cancelled, Code::DeadlineExceeded] {
            let read = Error::from_status(Status::new(code, "proxy"), Effect::Reads);
            assert_eq!((read.kind(), read.is_retriable()), (ErrorKind::Unavailable, true), "{code:?}");
            let change = Error::from_status(Status::new(code, "proxy"), Effect::Changes);
            assert_eq!((change.kind(), change.is_retriable()), (ErrorKind::OutcomeUnknown, false), "{code:?}");
        }
    }

    #[test]
    fn a_server_that_is_no_gateway_is_not_asked_again() {
        let error = Error::from_status(Status::unimplemented(""), Effect::Changes);
        assert_eq!((error.kind(), error.is_retriable()), (ErrorKind::Protocol, false));
    }

    #[test]
    fn a_reason_of_another_domain_is_no_reason_of_the_gateway() {
        let details = ErrorDetails::with_error_info("OVERLOADED", "some-proxy", HashMap::new());
        let status = Status::with_error_details(Code::Unavailable, "busy", details);
        let error = Error::from_status(status, Effect::Changes);
        assert_eq!((error.reason(), error.kind()), (None, ErrorKind::OutcomeUnknown));
    }

    #[test]
    fn a_retriable_refusal_after_a_lost_attempt_is_unknown() {
        let error = Error::from_status(refusal(Reason::Overloaded), Effect::Changes).after_lost_attempt();
        assert!(error.is_outcome_unknown() && !error.is_retriable());
        let error = Error::from_status(refusal(Reason::TableNotFound), Effect::Changes).after_lost_attempt();
        assert_eq!(error.kind(), ErrorKind::Refused);
    }

    #[test]
    fn the_pause_and_the_request_id_that_the_gateway_tells_are_kept() {
        let mut details = ErrorDetails::with_error_info(
            "OVERLOADED",
            ERROR_DOMAIN,
            HashMap::from([("request_id".into(), "r-1".into())]),
        );
        details.set_retry_info(Some(Duration::from_millis(250)));
        let error =
            Error::from_status(Status::with_error_details(Code::ResourceExhausted, "later", details), Effect::Reads);
        assert_eq!(error.retry_after(), Some(Duration::from_millis(250)));
        assert_eq!(error.request_id(), Some("r-1"));
        assert_eq!(error.to_string(), "later (OVERLOADED)");
    }
}
