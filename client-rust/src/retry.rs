//! Repeats calls, a bounded number of times.

use std::future::Future;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

use crate::error::Effect;
use crate::{Error, Result, RetryOptions};

/// The pauses between the attempts of one call.
pub(crate) struct Pauses {
    delays: backon::ExponentialBackoff,
    max: Duration,
}

impl Pauses {
    pub(crate) fn new(options: &RetryOptions) -> Self {
        let delays = ExponentialBuilder::default()
            .with_min_delay(options.initial_backoff)
            .with_max_delay(options.max_backoff)
            .with_max_times(options.max_attempts.saturating_sub(1))
            .with_jitter()
            .build();
        Self { delays, max: options.max_backoff }
    }

    /// How long to wait after `error`; None: there were attempts enough.
    fn after(&mut self, error: &Error) -> Option<Duration> {
        let pause = self.delays.next()?;
        Some(error.retry_after().map_or(pause, |asked| asked.min(self.max).max(pause)))
    }

    /// Waits before the next attempt, or gives `error` back if there were attempts enough.
    pub(crate) async fn wait(&mut self, error: Error) -> Result<()> {
        match self.after(&error) {
            Some(pause) => {
                tokio::time::sleep(pause).await;
                Ok(())
            }
            None => Err(error),
        }
    }
}

/// Calls `attempt` until it works, is refused for good, or was made often enough. Only for calls that may be repeated.
pub(crate) async fn repeat<T, F>(options: &RetryOptions, effect: Effect, mut attempt: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut pauses = Pauses::new(options);
    let mut lost = false;
    loop {
        let error = match attempt().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let unknown = effect == Effect::Changes && error.is_outcome_unknown();
        let error = if lost { error.after_lost_attempt() } else { error };
        if !error.is_retriable() && !error.is_outcome_unknown() {
            return Err(error);
        }
        lost |= unknown;
        pauses.wait(error).await?;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashMap;

    use lance_gateway_proto::{ERROR_DOMAIN, Reason};
    use tonic::Status;
    use tonic_types::{ErrorDetails, StatusExt};

    use super::*;
    use crate::ErrorKind;

    fn refused(reason: Reason, effect: Effect) -> Error {
        let details = ErrorDetails::with_error_info(reason.name(), ERROR_DOMAIN, HashMap::new());
        Error::from_status(Status::with_error_details(reason.code(), "", details), effect)
    }

    async fn run(effect: Effect, answers: &[Option<Error>], options: &RetryOptions) -> (Result<()>, usize)
where {
        let calls = Cell::new(0);
        let result = repeat(options, effect, || {
            let n = calls.replace(calls.get() + 1);
            let answer = match answers.get(n).unwrap_or(&None) {
                None => Ok(()),
                Some(error) => match error.reason() {
                    Some(reason) => Err(refused(reason, effect)),
                    None => Err(Error::from_status(Status::unavailable("lost"), effect)),
                },
            };
            async move { answer }
        })
        .await;
        (result, calls.get())
    }

    fn quick() -> RetryOptions {
        RetryOptions {
            max_attempts: 3,
            initial_backoff: Duration::from_millis(1),
            max_backoff: Duration::from_millis(2),
        }
    }

    #[tokio::test]
    async fn what_may_work_later_is_repeated_until_it_works() {
        let lost = Error::from_status(Status::unavailable(""), Effect::Changes);
        let answers = [Some(refused(Reason::Overloaded, Effect::Changes)), Some(lost), None];
        let (result, calls) = run(Effect::Changes, &answers, &quick()).await;
        result.unwrap();
        assert_eq!(calls, 3);
    }

    #[tokio::test]
    async fn attempts_are_bounded_and_the_last_error_is_kept() {
        let answers: Vec<_> = (0..9).map(|_| Some(refused(Reason::Overloaded, Effect::Reads))).collect();
        let (result, calls) = run(Effect::Reads, &answers, &quick()).await;
        assert_eq!((result.unwrap_err().reason(), calls), (Some(Reason::Overloaded), 3));
    }

    #[tokio::test]
    async fn a_refusal_for_good_is_not_repeated() {
        let answers = [Some(refused(Reason::TableNotFound, Effect::Reads))];
        let (result, calls) = run(Effect::Reads, &answers, &quick()).await;
        assert_eq!((result.unwrap_err().reason(), calls), (Some(Reason::TableNotFound), 1));
    }

    #[tokio::test]
    async fn a_lost_attempt_makes_the_outcome_unknown_whatever_retriable_error_follows() {
        let lost = Error::from_status(Status::unavailable(""), Effect::Changes);
        let mut answers = vec![Some(lost)];
        answers.extend((0..9).map(|_| Some(refused(Reason::Overloaded, Effect::Changes))));
        let (result, calls) = run(Effect::Changes, &answers, &quick()).await;
        assert_eq!((result.unwrap_err().kind(), calls), (ErrorKind::OutcomeUnknown, 3));
    }

    #[tokio::test]
    async fn the_pause_that_the_gateway_asks_for_is_kept_but_bounded() {
        let asked = |time| {
            let mut details = ErrorDetails::with_error_info("OVERLOADED", ERROR_DOMAIN, HashMap::new());
            details.set_retry_info(Some(time));
            Error::from_status(Status::with_error_details(tonic::Code::Unavailable, "", details), Effect::Reads)
        };
        let options = RetryOptions::default();
        let pause = Pauses::new(&options).after(&asked(Duration::from_secs(3))).unwrap();
        assert_eq!(pause, Duration::from_secs(3));
        let pause = Pauses::new(&options).after(&asked(Duration::from_secs(3600))).unwrap();
        assert_eq!(pause, options.max_backoff);
    }
}
