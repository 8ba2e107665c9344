//! Commit and abort, step by step: `server/lake/src/commit/mod.rs` and `gate.rs`. Between any two steps anything else may happen.

use crate::ledger::{Id, Known};
use crate::sink::Committable;
use crate::table::{DataFile, Manifest};
use crate::{MAX_AGE, Model, Time, Without, World};

/// What a caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wish {
    /// The rows shall be visible.
    Commit,
    /// They shall never be.
    Abort,
}

/// A call that a gateway works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Task {
    wish: Wish,
    committable: Committable,
    stage: Stage,
    /// When it looked at the age.
    pub(crate) since: Time,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    /// The latest version does not know the id, the committable is young, its file is there.
    Looked,
    /// The put is in the hands of the store.
    Sent,
    /// The store acknowledged it.
    Acknowledged,
    /// The store did not answer.
    Unclear,
    /// The id is fenced: the files may go.
    Fenced,
}

/// A version on its way into the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Put {
    number: u8,
    manifest: Manifest,
    /// The gateway that waits for it, unless it died or gave up.
    awaited_by: Option<usize>,
    pub(crate) since: Time,
}

/// What a caller is told for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The rows are visible since this version.
    Committed(u8),
    /// They never will be.
    Aborted,
}

/// One step of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Takes a request and looks at the latest version.
    Take(Wish, Committable),
    /// Builds the next version on the latest one, checks and marks its ledger, hands it to the store.
    Put,
    /// Waits no longer for the store.
    GiveUp,
    /// Looks at the latest version again, and answers.
    Answer,
    /// Deletes the file of a fenced id, and answers.
    Delete,
    /// Is killed, or its reply is lost.
    Die,
}

/// What becomes of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Done, and the gateway hears of it.
    Done,
    /// Done, but the answer is lost or an error.
    DoneUnheard,
    /// Never done, and the gateway does not hear of that.
    Lost,
}

impl Fate {
    pub(crate) const ALL: [Self; 3] = [Self::Done, Self::DoneUnheard, Self::Lost];
}

impl Model {
    pub(crate) fn gateway_steps(&self, world: &World, at: usize) -> Vec<Step> {
        let Some(task) = &world.gateways[at] else {
            // Idle ones are alike.
            let first = world.gateways.iter().position(Option::is_none) == Some(at);
            let requests = world.requests.iter().filter(|_| first);
            return requests.map(|(wish, committable)| Step::Take(*wish, *committable)).collect();
        };
        let step = match task.stage {
            Stage::Looked if world.puts.len() >= self.bounds.puts => return vec![Step::Die],
            Stage::Looked => Step::Put,
            Stage::Sent => Step::GiveUp,
            Stage::Acknowledged | Stage::Unclear => Step::Answer,
            Stage::Fenced => Step::Delete,
        };
        vec![step, Step::Die]
    }

    pub(crate) fn gateway_step(&self, world: &mut World, at: usize, step: Step) {
        if let Step::Take(wish, committable) = step {
            world.gateways[at] = Some(Task { wish, committable, stage: Stage::Looked, since: world.now });
            return self.look(world, at);
        }
        let Some(task) = world.gateways[at] else { return };
        match step {
            Step::Take(..) => {}
            Step::Put => self.send(world, at, task),
            Step::GiveUp => {
                forget(world, at);
                set(world, at, Stage::Unclear);
            }
            Step::Answer => self.answer(world, at, task),
            Step::Delete => {
                world.table.files.remove(&task.committable.file);
                self.tell(world, task.committable, Outcome::Aborted);
                world.gateways[at] = None;
            }
            Step::Die => {
                forget(world, at);
                world.gateways[at] = None;
            }
        }
    }

    /// `try_commit` and `fence`, up to the put.
    fn look(&self, world: &mut World, at: usize) {
        let Some(task) = world.gateways[at] else { return };
        let committable = task.committable;
        let known = world.table.latest().1.ledger.state(committable.id, self);
        if known != Known::No {
            return self.finish(world, at, task, known);
        }
        let too_old = world.now > committable.made + MAX_AGE;
        let judged = task.wish == Wish::Commit || !self.lacks(Without::AgeOfAborted);
        if too_old && judged {
            world.gateways[at] = None;
            if task.wish == Wish::Commit {
                self.refuse(world, committable);
            }
            return;
        }
        if task.wish == Wish::Commit && !world.table.files.contains_key(&committable.file) {
            world.gateways[at] = None;
            let on_purpose =
                world.refused.contains(&committable.row) || world.requests.contains(&(Wish::Abort, committable));
            if !on_purpose {
                world.wrong = Some("a young committable lost its file");
            }
            return;
        }
        if task.wish == Wish::Abort && self.lacks(Without::FenceBeforeDelete) {
            world.table.files.remove(&committable.file);
        }
    }

    /// What Lance does under `put`, and the gate in it: each attempt is built on what is the latest version by then.
    fn send(&self, world: &mut World, at: usize, task: Task) {
        let (base, mut manifest) = world.table.latest();
        let id = task.committable.id;
        let known = manifest.ledger.state(id, self);
        if known != Known::No && !self.lacks(Without::CheckInThePut) {
            return self.finish(world, at, task, known);
        }
        let number = base + 1;
        match task.wish {
            Wish::Commit => {
                let file = DataFile { id: task.committable.file, rows: vec![task.committable.row] };
                manifest.files.push(file);
                manifest.ledger.mark_committed(id, number, world.now, self);
            }
            Wish::Abort => manifest.ledger.mark_aborted(id, world.now, self),
        }
        world.puts.push(Put { number, manifest, awaited_by: Some(at), since: task.since });
        set(world, at, Stage::Sent);
    }

    /// A version is put only if it is absent. A loser is based on the new latest version, and is checked again.
    pub(crate) fn store_step(&self, world: &mut World, nth: usize, fate: Fate) {
        let put = world.puts.remove(nth);
        let stage = if fate == Fate::Lost {
            Stage::Unclear
        } else if world.table.holds(put.number) && !self.lacks(Without::PutIfAbsent) {
            if fate == Fate::Done { Stage::Looked } else { Stage::Unclear }
        } else {
            world.table.put(put.number, put.manifest);
            if fate == Fate::Done { Stage::Acknowledged } else { Stage::Unclear }
        };
        if let Some(at) = put.awaited_by {
            set(world, at, stage);
        }
    }

    /// `known` after a success, `judge` after a failure: the latest version tells.
    fn answer(&self, world: &mut World, at: usize, task: Task) {
        let (number, latest) = world.table.latest();
        let mut known = latest.ledger.state(task.committable.id, self);
        if known == Known::No && task.stage == Stage::Acknowledged && self.lacks(Without::LookBeforeSuccess) {
            known = Known::Committed(number);
        }
        if known != Known::No {
            return self.finish(world, at, task, known);
        }
        if self.lacks(Without::PatienceWithTheUnknown) && task.wish == Wish::Commit {
            world.table.files.remove(&task.committable.file);
            self.refuse(world, task.committable);
        }
        // Unknown: the caller asks again.
        world.gateways[at] = None;
    }

    /// The ledger knows the id.
    fn finish(&self, world: &mut World, at: usize, task: Task, known: Known) {
        if task.wish == Wish::Abort && known == Known::Aborted {
            return set(world, at, Stage::Fenced);
        }
        match known {
            Known::No => {}
            Known::Committed(version) => self.tell(world, task.committable, Outcome::Committed(version)),
            Known::Aborted => self.tell(world, task.committable, Outcome::Aborted),
        }
        world.gateways[at] = None;
    }

    fn tell(&self, world: &mut World, committable: Committable, outcome: Outcome) {
        match told(world, committable.id) {
            None => world.answers.push((committable.id, outcome)),
            Some(first) if first != outcome => world.wrong = Some("two callers of one id got different answers"),
            Some(_) => {}
        }
        match outcome {
            Outcome::Committed(_) => world.promised.insert(committable.row),
            Outcome::Aborted => world.aborted.insert(committable.row),
        };
        world.sink.hear(&committable);
    }

    fn refuse(&self, world: &mut World, committable: Committable) {
        world.refused.insert(committable.row);
        world.sink.hear(&committable);
    }
}

fn told(world: &World, id: Id) -> Option<Outcome> {
    world.answers.iter().find(|(of, _)| *of == id).map(|(_, outcome)| *outcome)
}

fn set(world: &mut World, at: usize, stage: Stage) {
    if let Some(task) = &mut world.gateways[at] {
        task.stage = stage;
    }
}

/// Its put goes on without it.
fn forget(world: &mut World, at: usize) {
    for put in &mut world.puts {
        if put.awaited_by == Some(at) {
            put.awaited_by = None;
        }
    }
}
