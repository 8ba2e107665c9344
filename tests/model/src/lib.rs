//! The commit protocol as a state machine small enough to walk through every interleaving: stage, prepare, commit, abort, sweep,
//! with whatever may crash, stall, get lost or come late.
//!
//! To be read next to "The ledger" in `docs/architecture.md`. [`ledger`] is `server/lake/src/commit/ledger.rs`, [`gateway`] is its
//! neighbours `mod.rs` and `gate.rs`, [`sink`] is what Flink does around them, [`upkeep`] is the sweep and what other writers do.
//! [`rules`] says what must hold in every state; [`explore`] visits all of them.

pub mod explore;
pub mod gateway;
pub mod ledger;
mod rules;
pub mod sink;
pub mod table;
pub mod upkeep;

use std::collections::BTreeSet;

use gateway::{Outcome, Put, Task, Wish};
use ledger::Id;
use sink::{Committable, Sink};
use table::{FileId, Row, Table};

/// Ticks of the model's clock.
pub type Time = u8;

/// Longest age of a committable that is still taken: `commit.max-committable-age`.
pub const MAX_AGE: Time = 1;
/// Longest time from the look of a commit at the age to the end of its put.
pub const LONGEST_ATTEMPT: Time = 1;
/// What ledger entries and staged files outlive that age by: `CLOCK_SLACK`.
pub const SLACK: Time = LONGEST_ATTEMPT;

/// How much of everything there is. What costs no new state is not bounded: lost replies, repeats, deaths of a gateway.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bounds {
    /// Rows that the source gives; each is staged as one file and sealed as one committable.
    pub rows: u8,
    /// Gateways, each with one call at a time.
    pub gateways: usize,
    /// Puts in the hands of the store at once.
    pub puts: usize,
    /// Times that the sink dies and is restored, from any of its checkpoints.
    pub crashes: u8,
    /// Commits that somebody aborts.
    pub aborts: u8,
    /// Commits of another job.
    pub appends: u8,
    /// Compactions.
    pub compactions: u8,
    /// Cleanups to one version.
    pub cleanups: u8,
    /// Ticks of the clock.
    pub ticks: Time,
    /// Whether the sweep runs.
    pub sweep: bool,
}

/// A rule of the protocol, left out on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// The ledger is checked before the put instead of in it.
    CheckInThePut,
    /// A version is put whether it is absent or not.
    PutIfAbsent,
    /// Ids are checkpoint numbers of the job instead of a new epoch for each start.
    NewEpochForEachStart,
    /// The ledger remembers the highest seq of an epoch alone.
    SetAboveTheGap,
    /// The ledger forgets an epoch as soon as the clock has moved.
    MemoryAsLongAsTheAge,
    /// A commit is answered as the store acknowledged it.
    LookBeforeSuccess,
    /// A commit whose outcome is unknown is taken as failed, and its files are deleted.
    PatienceWithTheUnknown,
    /// Abort deletes the files before it has fenced the id.
    FenceBeforeDelete,
    /// Abort of a committable that is too old to be judged fences and deletes.
    AgeOfAborted,
    /// The sweep deletes whatever no manifest names.
    AgeOfSwept,
    /// The sweep deletes what is older than a committable may be, without slack.
    SlackOfSwept,
    /// The age of a committable counts from the end of its stage.
    AgeFromTheFirstRow,
    /// Cleanup removes versions that a put may still be based on.
    PatienceOfCleanup,
}

/// The protocol within bounds, whole or without some of its rules.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// How much of everything.
    pub bounds: Bounds,
    /// What is left out.
    pub without: &'static [Without],
}

/// All there is at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    now: Time,
    table: Table,
    sink: Sink,
    gateways: Vec<Option<Task>>,
    /// Puts that the store has not done yet; the gateway may wait for them, or not any more.
    puts: Vec<Put>,
    /// Requests that were ever sent. Any may come, again, at any time.
    requests: BTreeSet<(Wish, Committable)>,
    /// What the sweep found and is about to delete.
    swept: BTreeSet<FileId>,
    answers: Vec<(Id, Outcome)>,
    /// Rows whose commit was answered as success.
    promised: BTreeSet<Row>,
    /// Rows whose abort was answered as success.
    aborted: BTreeSet<Row>,
    /// Rows whose commit was refused for good.
    refused: BTreeSet<Row>,
    left: Left,
    wrong: Option<&'static str>,
}

/// What is left of the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Left {
    crashes: u8,
    aborts: u8,
    appends: u8,
    compactions: u8,
    cleanups: u8,
}

/// One step of somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Of the sink.
    Sink(sink::Step),
    /// Of the gateway of that number.
    Gateway(usize, gateway::Step),
    /// Of the store, with the put at that place.
    Store(usize, gateway::Fate),
    /// Of the sweep, of maintenance, of other writers.
    Upkeep(upkeep::Step),
    /// Time passes.
    Tick,
}

impl Model {
    pub(crate) fn lacks(&self, rule: Without) -> bool {
        self.without.contains(&rule)
    }

    /// An empty table, a sink at its first start.
    #[must_use]
    pub fn start(&self) -> World {
        let Bounds { crashes, aborts, appends, compactions, cleanups, .. } = self.bounds;
        World {
            now: 0,
            table: Table::new(),
            sink: Sink::new(),
            gateways: vec![None; self.bounds.gateways],
            puts: Vec::new(),
            requests: BTreeSet::new(),
            swept: BTreeSet::new(),
            answers: Vec::new(),
            promised: BTreeSet::new(),
            aborted: BTreeSet::new(),
            refused: BTreeSet::new(),
            left: Left { crashes, aborts, appends, compactions, cleanups },
            wrong: None,
        }
    }

    /// What may happen next.
    #[must_use]
    pub fn actions(&self, world: &World) -> Vec<Action> {
        let mut actions = Vec::new();
        actions.extend(self.sink_steps(world).into_iter().map(Action::Sink));
        for at in 0..world.gateways.len() {
            actions.extend(self.gateway_steps(world, at).into_iter().map(|step| Action::Gateway(at, step)));
        }
        for at in 0..world.puts.len() {
            actions.extend(gateway::Fate::ALL.map(|fate| Action::Store(at, fate)));
        }
        actions.extend(self.upkeep_steps(world).into_iter().map(Action::Upkeep));
        if self.may_tick(world) {
            actions.push(Action::Tick);
        }
        actions
    }

    /// The world after it.
    #[must_use]
    pub fn next(&self, world: &World, action: Action) -> World {
        let mut next = world.clone();
        match action {
            Action::Sink(step) => self.sink_step(&mut next, step),
            Action::Gateway(at, step) => self.gateway_step(&mut next, at, step),
            Action::Store(at, fate) => self.store_step(&mut next, at, fate),
            Action::Upkeep(step) => self.upkeep_step(&mut next, step),
            Action::Tick => next.now += 1,
        }
        next
    }

    /// Time passes while no attempt takes longer than it may.
    fn may_tick(&self, world: &World) -> bool {
        let may_last = |since: Time| world.now < since + LONGEST_ATTEMPT;
        world.now < self.bounds.ticks
            && world.gateways.iter().flatten().all(|task| may_last(task.since))
            && world.puts.iter().all(|put| may_last(put.since))
    }
}
