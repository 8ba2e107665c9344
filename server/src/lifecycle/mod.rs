//! Five states, only forward: starting, serving, quiescing, draining, stopped.

mod run;

use std::fmt;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

pub use run::run;

/// Where the process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Opening the warehouse and the listeners.
    Starting,
    /// Takes work.
    Serving,
    /// Told to stop: refuses new work, finishes what runs.
    Quiescing,
    /// Nothing runs any more, or its time is over: connections close.
    Draining,
    /// The end.
    Stopped,
}

impl State {
    /// In order.
    pub const ALL: [Self; 5] = [Self::Starting, Self::Serving, Self::Quiescing, Self::Draining, Self::Stopped];
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Quiescing => "quiescing",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
        })
    }
}

/// The state, what runs, and the order to stop. Knows nothing of RPC.
#[derive(Debug)]
pub struct Lifecycle {
    state: watch::Sender<State>,
    work: TaskTracker,
    cut: CancellationToken,
    closing: CancellationToken,
}

/// A piece of work that a drain waits for, until it is dropped.
#[derive(Debug)]
pub struct Work {
    _token: TaskTrackerToken,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            state: watch::Sender::new(State::Starting),
            work: TaskTracker::new(),
            cut: CancellationToken::new(),
            closing: CancellationToken::new(),
        }
    }
}

impl Lifecycle {
    /// The state now.
    pub fn state(&self) -> State {
        *self.state.borrow()
    }

    /// Follows the state.
    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Steps forward; a step back is none.
    pub fn advance(&self, to: State) {
        let stepped = self.state.send_if_modified(|state| {
            let forward = to > *state;
            if forward {
                *state = to;
            }
            forward
        });
        if !stepped {
            return;
        }
        tracing::info!(state = %to, "state changed");
        if to >= State::Quiescing {
            self.work.close();
        }
        if to >= State::Draining {
            self.closing.cancel();
        }
    }

    /// Takes a piece of work, or tells the state that forbids it.
    pub fn begin(&self) -> Result<Work, State> {
        // First the token, then the look: a drain that begins between the two waits for us.
        let work = Work { _token: self.work.token() };
        match self.state() {
            State::Serving => Ok(work),
            state => Err(state),
        }
    }

    /// A part of work that began already and must not be cut with its call (a commit): a drain waits for it, too.
    pub fn continue_work(&self) -> Work {
        Work { _token: self.work.token() }
    }

    /// Pieces of work that run.
    pub fn running(&self) -> usize {
        self.work.len()
    }

    /// Ends when nothing runs any more. Only after `Quiescing`.
    pub async fn idle(&self) {
        self.work.wait().await;
    }

    /// Tells what still runs to end: the drain time is over.
    pub fn cut_work(&self) {
        self.cut.cancel();
    }

    /// Fires when work that still runs must end.
    pub fn cut(&self) -> &CancellationToken {
        &self.cut
    }

    /// Fires when connections close.
    pub fn closing(&self) -> &CancellationToken {
        &self.closing
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn states_only_step_forward() {
        let lifecycle = Lifecycle::default();
        lifecycle.advance(State::Serving);
        lifecycle.advance(State::Draining);
        lifecycle.advance(State::Serving);
        lifecycle.advance(State::Quiescing);
        assert_eq!(lifecycle.state(), State::Draining);
    }

    #[test]
    fn work_begins_only_while_serving() {
        let lifecycle = Lifecycle::default();
        assert_eq!(lifecycle.begin().unwrap_err(), State::Starting);
        lifecycle.advance(State::Serving);
        assert!(lifecycle.begin().is_ok());
        lifecycle.advance(State::Quiescing);
        assert_eq!(lifecycle.begin().unwrap_err(), State::Quiescing);
    }

    #[tokio::test]
    async fn a_drain_waits_for_work_and_for_what_it_left_behind() {
        let lifecycle = Lifecycle::default();
        lifecycle.advance(State::Serving);
        let work = lifecycle.begin().unwrap();
        let commit = lifecycle.continue_work();
        lifecycle.advance(State::Quiescing);
        drop(work);
        let mut idle = std::pin::pin!(lifecycle.idle());
        assert!(futures::poll!(&mut idle).is_pending());
        drop(commit);
        idle.await;
    }
}
