//! Fault points: places where a test holds this process, to kill it there, or makes a store fail. Compiled in with the feature
//! `faults` alone, and asleep until [`enable`].
//!
//! | Point | Where |
//! |---|---|
//! | `put.KIND`, `get.KIND`, `delete.KIND` | before a request to the store |
//! | `put.KIND.done` | a put in one request was done, its answer is under way |
//! | `merge.marked` | the rows that a merge replaces are found and marked, nothing is committed |
//! | `commit.reply` | the commit is known to have landed, its answer is under way |
//!
//! KIND is `manifest`, `transaction`, `deletions`, `index`, `prepared`, `data` or `other`. Data files of a local disk do not pass
//! the store: Lance writes them itself.

mod store;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use tokio::sync::watch;

use lance_io::object_store::WrappingObjectStore;
use store::FaultyStores;

static ENABLED: AtomicBool = AtomicBool::new(false);
static POINTS: LazyLock<watch::Sender<BTreeMap<String, Point>>> = LazyLock::new(watch::Sender::default);

/// What happens to those who reach a point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Action {
    /// Nothing; it is counted.
    #[default]
    Pass,
    /// They wait until the point is set anew.
    Hold,
    /// They get an error, as from a store that answers 500.
    Fail,
}

#[derive(Debug, Default)]
struct Point {
    action: Action,
    /// How many more it happens to.
    left: u64,
    reached: u64,
    /// Grows with each `set`.
    turn: u64,
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "pass" => Ok(Self::Pass),
            "hold" => Ok(Self::Hold),
            "fail" => Ok(Self::Fail),
            other => Err(format!("'{other}' is none of pass, hold, fail")),
        }
    }
}

/// Lets stores that are opened from now on have fault points.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

/// What makes fault points of a store's requests. The same each time, since Lance shares stores that are opened alike.
pub(crate) fn wrapper() -> Option<Arc<dyn WrappingObjectStore>> {
    static WRAPPER: LazyLock<Arc<FaultyStores>> = LazyLock::new(|| Arc::new(FaultyStores));
    enabled().then(|| WRAPPER.clone() as _)
}

/// Whether this process has them.
pub fn enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Says what happens to the next `times` that reach the point. Those held there go on.
pub fn set(point: &str, action: Action, times: u64) {
    POINTS.send_modify(|points| {
        let point = points.entry(point.to_owned()).or_default();
        *point = Point { action, left: times, reached: 0, turn: point.turn + 1 };
    });
}

/// Waits until the point was reached this often since it was set.
pub async fn reached(point: &str, times: u64) {
    let mut points = POINTS.subscribe();
    // The sender is static: it never closes.
    points.wait_for(|points| points.get(point).is_some_and(|point| point.reached >= times)).await.ok();
}

/// Passes a point. False if it shall fail.
pub(crate) async fn pass(point: &str) -> bool {
    let mut mine = (Action::Pass, 0);
    POINTS.send_if_modified(|points| {
        let Some(point) = points.get_mut(point) else { return false };
        point.reached += 1;
        if point.left > 0 {
            point.left -= 1;
            mine = (point.action, point.turn);
        }
        true
    });
    match mine {
        (Action::Pass, _) => true,
        (Action::Fail, _) => false,
        (Action::Hold, turn) => {
            let mut points = POINTS.subscribe();
            points.wait_for(|points| points.get(point).is_none_or(|point| point.turn != turn)).await.ok();
            true
        }
    }
}
