//! Between a task that makes things and one that takes them: bounded by bytes, with an end that is never mistaken.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::Stream;
use tokio::sync::Notify;

/// Nothing was taken for too long.
#[derive(Debug)]
pub(super) struct Stalled;

/// How a queue ended, if not by `finish`.
#[derive(Debug)]
pub(super) enum Broken<E> {
    /// The maker said so.
    Failed(E),
    /// The maker is gone and said nothing.
    Lost,
}

/// A queue of things that take together at most so many bytes; a larger one is taken alone.
pub(super) fn queue<T, E>(max_bytes: usize) -> (Sender<T, E>, Receiver<T, E>) {
    let state = State { items: VecDeque::new(), bytes: 0, end: End::Open, receiver: None };
    let shared = Arc::new(Shared { state: Mutex::new(state), taken: Notify::new(), max_bytes });
    (Sender { shared: Arc::clone(&shared) }, Receiver { shared })
}

struct Shared<T, E> {
    state: Mutex<State<T, E>>,
    /// Only the sender waits for it.
    taken: Notify,
    max_bytes: usize,
}

struct State<T, E> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    end: End<E>,
    receiver: Option<Waker>,
}

enum End<E> {
    Open,
    Done,
    Broken(Broken<E>),
}

impl<T, E> Shared<T, E> {
    fn lock(&self) -> MutexGuard<'_, State<T, E>> {
        // No code of others runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts things in.
pub(super) struct Sender<T, E> {
    shared: Arc<Shared<T, E>>,
}

impl<T, E> Sender<T, E> {
    /// Puts one in as soon as there is room. Fails if `stall` passes without anything being taken.
    pub(super) async fn send(&self, item: T, bytes: usize, stall: Option<Duration>) -> Result<(), Stalled> {
        let max = self.shared.max_bytes;
        self.until(|state| state.bytes == 0 || state.bytes.saturating_add(bytes) <= max, stall).await?;
        let mut state = self.shared.lock();
        state.items.push_back((item, bytes));
        state.bytes += bytes;
        wake(state);
        Ok(())
    }

    /// Waits until everything was taken. Fails if `stall` passes without anything being taken.
    pub(super) async fn drained(&self, stall: Duration) -> Result<(), Stalled> {
        self.until(|state| state.items.is_empty(), Some(stall)).await
    }

    async fn until(&self, ready: impl Fn(&State<T, E>) -> bool, stall: Option<Duration>) -> Result<(), Stalled> {
        loop {
            if ready(&self.shared.lock()) {
                return Ok(());
            }
            let taken = self.shared.taken.notified();
            match stall {
                Some(stall) => tokio::time::timeout(stall, taken).await.map_err(|_| Stalled)?,
                None => taken.await,
            }
        }
    }

    /// The good end: what is in the queue is still taken.
    pub(super) fn finish(self) {
        let mut state = self.shared.lock();
        state.end = End::Done;
        wake(state);
    }

    /// The bad end: what is in the queue is still taken, then the error.
    pub(super) fn fail(self, error: E) {
        let mut state = self.shared.lock();
        state.end = End::Broken(Broken::Failed(error));
        wake(state);
    }

    /// The bad end for a receiver that takes nothing: the queue gives back its memory.
    pub(super) fn abandon(self, error: E) {
        let mut state = self.shared.lock();
        let dropped = std::mem::take(&mut state.items);
        state.bytes = 0;
        state.end = End::Broken(Broken::Failed(error));
        wake(state);
        drop(dropped);
    }
}

impl<T, E> Drop for Sender<T, E> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if matches!(state.end, End::Open) {
            state.end = End::Broken(Broken::Lost);
            wake(state);
        }
    }
}

fn wake<T, E>(mut state: MutexGuard<'_, State<T, E>>) {
    let waker = state.receiver.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Takes things out.
pub(super) struct Receiver<T, E> {
    shared: Arc<Shared<T, E>>,
}

impl<T, E> Stream for Receiver<T, E> {
    type Item = Result<T, Broken<E>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.shared.lock();
        if let Some((item, bytes)) = state.items.pop_front() {
            state.bytes -= bytes;
            drop(state);
            self.shared.taken.notify_one();
            return Poll::Ready(Some(Ok(item)));
        }
        match std::mem::replace(&mut state.end, End::Done) {
            End::Open => {
                state.end = End::Open;
                state.receiver = Some(cx.waker().clone());
                Poll::Pending
            }
            End::Done => Poll::Ready(None),
            End::Broken(broken) => Poll::Ready(Some(Err(broken))),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use futures::{FutureExt as _, StreamExt as _};

    use super::*;

    #[tokio::test]
    async fn a_sender_waits_for_room_and_what_is_too_large_goes_alone() {
        let (sender, mut receiver) = queue::<_, ()>(10);
        sender.send('a', 6, None).await.unwrap();
        let mut waiting = Box::pin(sender.send('b', 50, None));
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(receiver.next().await.unwrap().unwrap(), 'a');
        waiting.await.unwrap();
        assert!(sender.send('c', 1, None).now_or_never().is_none());
        assert_eq!(receiver.next().await.unwrap().unwrap(), 'b');
        sender.finish();
        assert!(receiver.next().await.is_none());
    }

    #[tokio::test]
    async fn a_sender_gives_up_when_nothing_is_taken_and_the_queue_gives_back_its_memory() {
        let (sender, mut receiver) = queue::<_, &str>(2);
        let item = Arc::new(());
        sender.send(Arc::clone(&item), 2, None).await.unwrap();
        let stall = Duration::from_millis(1);
        assert!(sender.send(Arc::clone(&item), 1, Some(stall)).await.is_err());
        assert!(sender.drained(stall).await.is_err());
        sender.abandon("too slow");
        assert_eq!(Arc::strong_count(&item), 1);
        assert!(matches!(receiver.next().await, Some(Err(Broken::Failed("too slow")))));
        assert!(receiver.next().await.is_none());
    }

    #[tokio::test]
    async fn an_error_comes_after_what_was_sent_before_it() {
        let (sender, mut receiver) = queue::<_, &str>(2);
        sender.send('a', 1, None).await.unwrap();
        sender.fail("broken");
        assert!(matches!(receiver.next().await, Some(Ok('a'))));
        assert!(matches!(receiver.next().await, Some(Err(Broken::Failed("broken")))));
    }

    #[tokio::test]
    async fn a_sender_that_disappears_is_no_good_end() {
        let (sender, mut receiver) = queue::<_, ()>(10);
        sender.send(1, 1, None).await.unwrap();
        drop(sender);
        assert!(matches!(receiver.next().await, Some(Ok(1))));
        assert!(matches!(receiver.next().await, Some(Err(Broken::Lost))));
    }
}
