//! Why a command failed.

use std::io;
use std::process::ExitCode;

use lance_gateway_client::Error;
use serde_json::{Value, json};

use crate::args::Output;
use crate::console::Console;

/// Result of a command.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// What ends a command early.
#[derive(Debug)]
pub enum Failure {
    /// The gateway, or the way to it.
    Client(Error),
    /// The files or the terminal of the user.
    Local(String),
    /// What was typed cannot be done.
    Usage(String),
    /// Ctrl-C.
    Interrupted,
}

impl Failure {
    pub fn local(message: impl Into<String>) -> Self {
        Self::Local(message.into())
    }

    pub fn message(&self) -> String {
        match self {
            Self::Client(error) => error.message().to_owned(),
            Self::Local(message) | Self::Usage(message) => message.clone(),
            Self::Interrupted => "interrupted".to_owned(),
        }
    }

    /// Tells the failure on stderr and gives the exit code.
    pub fn report(&self, console: &Console) -> ExitCode {
        let message = self.message();
        let code = match self {
            Self::Client(_) | Self::Local(_) => 1,
            Self::Usage(_) => 2,
            Self::Interrupted => 130,
        };
        let error = match self {
            Self::Client(error) => Some(error),
            Self::Local(_) | Self::Usage(_) | Self::Interrupted => None,
        };
        let reason = error.and_then(Error::reason).map(|reason| reason.name());
        if console.output() == Output::Json {
            let mut report = json!({ "message": message, "reason": reason });
            if let (Some(error), Value::Object(report)) = (error, &mut report) {
                report.insert("retriable".to_owned(), error.is_retriable().into());
                report.insert("outcome_unknown".to_owned(), error.is_outcome_unknown().into());
                report.insert("request_id".to_owned(), error.request_id().into());
            }
            eprintln!("{}", json!({ "error": report }));
            return ExitCode::from(code);
        }
        match reason {
            Some(reason) => eprintln!("lgw: {message} ({reason})"),
            None => eprintln!("lgw: {message}"),
        }
        if let Some(error) = error.filter(|error| error.is_outcome_unknown()) {
            let id = error.request_id().unwrap_or("unknown");
            eprintln!("lgw: it may or may not have been done; request id {id}");
        }
        ExitCode::from(code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Local(error.to_string())
    }
}
