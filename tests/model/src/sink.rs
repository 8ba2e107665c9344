//! A sink as Flink runs it: stage, prepare at the checkpoint, commit what completed checkpoints hold, restore from any of them.

use std::collections::BTreeSet;

use crate::gateway::Wish;
use crate::ledger::Id;
use crate::table::{FileId, Row};
use crate::{Model, Time, Without, World};

/// A sealed staged write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Committable {
    /// Drawn by the sink.
    pub id: Id,
    /// Its file.
    pub file: FileId,
    /// The row in it.
    pub row: Row,
    /// When its stage began.
    pub made: Time,
}

/// State of the job at a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// Rows that the source had given.
    rows: Vec<Row>,
    /// Committables that are not known to be committed.
    open: BTreeSet<Committable>,
}

/// The sink, its source, and what Flink keeps of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sink {
    alive: bool,
    /// Starts so far, each with an epoch of its own.
    starts: u8,
    run: u8,
    seq: u8,
    /// The file that is being written, since when.
    staging: Option<(FileId, Time)>,
    /// Sealed, in no completed checkpoint yet.
    prepared: BTreeSet<Committable>,
    /// As of the last completed checkpoint, less what is answered.
    now: Checkpoint,
    /// Completed checkpoints, oldest first. The first is the start without state.
    checkpoints: Vec<Checkpoint>,
}

/// One step of the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Begins the file of the next row.
    Stage,
    /// Ends it, and prepares it as a committable.
    Prepare,
    /// A checkpoint with all that is prepared completes.
    Complete,
    /// Somebody wants this committable aborted.
    Abort(Committable),
    /// All that is in memory is gone.
    Crash,
    /// Starts again with the checkpoint of this number.
    Restore(usize),
}

impl Sink {
    pub(crate) fn new() -> Self {
        Self {
            alive: true,
            starts: 1,
            run: 1,
            seq: 0,
            staging: None,
            prepared: BTreeSet::new(),
            now: Checkpoint::default(),
            checkpoints: vec![Checkpoint::default()],
        }
    }

    /// All rows are given, and every commit is answered.
    pub(crate) fn is_done(&self, rows: u8) -> bool {
        self.alive && self.now.rows.len() == usize::from(rows) && self.now.open.is_empty()
    }

    /// Rows of completed checkpoints whose commit is answered.
    pub(crate) fn settled(&self) -> impl Iterator<Item = Row> + '_ {
        let open = |row: &Row| self.now.open.iter().any(|committable| committable.row == *row);
        self.now.rows.iter().copied().filter(move |row| !open(row))
    }

    /// A commit or abort was answered for good.
    pub(crate) fn hear(&mut self, committable: &Committable) {
        if self.alive {
            self.now.open.remove(committable);
        }
    }

    /// All that was in memory is gone.
    fn die(&mut self) {
        let Self { starts, run, .. } = *self;
        *self = Self { alive: false, starts, run, checkpoints: std::mem::take(&mut self.checkpoints), ..Self::new() };
    }

    fn given(&self) -> usize {
        self.now.rows.len() + self.prepared.len()
    }

    fn draw(&mut self, model: &Model) -> Id {
        self.seq += 1;
        if model.lacks(Without::NewEpochForEachStart) {
            Id { epoch: 1, seq: self.given() as u8 + 1 }
        } else {
            Id { epoch: self.starts, seq: self.seq }
        }
    }
}

impl Model {
    pub(crate) fn sink_steps(&self, world: &World) -> Vec<Step> {
        let sink = &world.sink;
        let mut steps = Vec::new();
        if !sink.alive {
            steps.extend((0..sink.checkpoints.len()).map(Step::Restore));
            return steps;
        }
        match sink.staging {
            Some(_) => steps.push(Step::Prepare),
            None if sink.given() < usize::from(self.bounds.rows) => steps.push(Step::Stage),
            None => {}
        }
        if !sink.prepared.is_empty() {
            steps.push(Step::Complete);
        }
        if world.left.crashes > 0 {
            steps.push(Step::Crash);
        }
        if world.left.aborts > 0 {
            steps.extend(sink.prepared.iter().copied().map(Step::Abort));
            let sent = world.requests.iter().filter(|(wish, _)| *wish == Wish::Commit);
            steps.extend(sent.map(|(_, committable)| Step::Abort(*committable)));
        }
        steps
    }

    pub(crate) fn sink_step(&self, world: &mut World, step: Step) {
        match step {
            Step::Stage => world.sink.staging = Some((world.table.write_file(world.now), world.now)),
            Step::Prepare => {
                let Some((file, since)) = world.sink.staging.take() else { return };
                if !world.table.files.contains_key(&file) {
                    // It took so long that the sweep came: the job fails before its checkpoint.
                    return world.sink.die();
                }
                let Sink { run, starts, .. } = world.sink;
                let row = Row { run, place: world.sink.given() as u8, start: starts };
                let id = world.sink.draw(self);
                let made = if self.lacks(Without::AgeFromTheFirstRow) { world.now } else { since };
                world.sink.prepared.insert(Committable { id, file, row, made });
            }
            Step::Complete => {
                let prepared = std::mem::take(&mut world.sink.prepared);
                world.sink.now.rows.extend(prepared.iter().map(|committable| committable.row));
                world.sink.now.open.extend(prepared);
                world.sink.checkpoints.push(world.sink.now.clone());
                send_open(world);
            }
            Step::Abort(committable) => {
                world.left.aborts -= 1;
                world.requests.insert((Wish::Abort, committable));
            }
            Step::Crash => {
                world.left.crashes -= 1;
                world.sink.die();
            }
            Step::Restore(nth) => {
                let sink = &mut world.sink;
                let rewinds = nth + 1 < sink.checkpoints.len();
                sink.alive = true;
                sink.starts += 1;
                sink.run += u8::from(rewinds);
                sink.checkpoints.truncate(nth + 1);
                sink.now = sink.checkpoints[nth].clone();
                send_open(world);
            }
        }
    }
}

fn send_open(world: &mut World) {
    let open = world.sink.now.open.iter().map(|committable| (Wish::Commit, *committable));
    world.requests.extend(open);
}
