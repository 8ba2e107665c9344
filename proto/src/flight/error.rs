//! What goes wrong between two ends of a Flight stream.

use std::error::Error as StdError;
use std::fmt;

use arrow_schema::ArrowError;
use tonic::Status;

use crate::Reason;

/// Result of the codec.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a message could not be written or read.
#[derive(Debug)]
pub enum Error {
    /// The message itself: for a server the fault of the client, for a client a fault of the server.
    Codec {
        /// Row of the table of errors.
        reason: Reason,
        /// What was wrong, where, and what to do.
        message: String,
    },
    /// The other side ended the stream with this status.
    Status(Box<Status>),
    /// The connection broke.
    Transport(Box<dyn StdError + Send + Sync>),
}

impl Error {
    pub(crate) fn codec(reason: Reason, message: impl Into<String>) -> Self {
        Self::Codec { reason, message: message.into() }
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::codec(Reason::CorruptData, message)
    }

    pub(crate) fn status(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Codec { message, .. } => f.write_str(message),
            Self::Status(status) => f.write_str(status.message()),
            Self::Transport(cause) => write!(f, "the connection broke: {cause}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Codec { .. } => None,
            Self::Status(status) => Some(status.as_ref()),
            Self::Transport(cause) => Some(cause.as_ref()),
        }
    }
}

/// What the Arrow reader refuses is never our fault: the bytes came from the other side.
pub(crate) fn from_reader(what: &str, error: &ArrowError) -> Error {
    Error::corrupt(format!("{what} is not valid arrow data: {error}"))
}
