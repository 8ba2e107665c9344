//! What happens to a table beside the commits of a sink: the sweep, cleanup, compaction, other writers.

use crate::ledger::Id;
use crate::table::{DataFile, Row};
use crate::{MAX_AGE, Model, SLACK, Time, Without, World};

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The sweep lists what no manifest names and is too old for any committable.
    ListUnnamed,
    /// The sweep deletes what it listed.
    DeleteListed,
    /// All versions but the latest go.
    Clean,
    /// The files of the table become one.
    Compact,
    /// Another job commits a row.
    Append,
}

impl Model {
    pub(crate) fn upkeep_steps(&self, world: &World) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.bounds.sweep {
            if world.swept.is_empty() {
                steps.push(Step::ListUnnamed);
            } else {
                steps.push(Step::DeleteListed);
            }
        }
        // Cleanup keeps versions for longer than a put may take.
        let free = world.puts.is_empty() || self.lacks(Without::PatienceOfCleanup);
        if world.left.cleanups > 0 && free {
            steps.push(Step::Clean);
        }
        if world.left.compactions > 0 && !world.table.latest().1.files.is_empty() {
            steps.push(Step::Compact);
        }
        if world.left.appends > 0 {
            steps.push(Step::Append);
        }
        steps
    }

    pub(crate) fn upkeep_step(&self, world: &mut World, step: Step) {
        let (number, mut latest) = world.table.latest();
        match step {
            Step::ListUnnamed => {
                let now = world.now;
                let table = &world.table;
                let old = table.files.iter().filter(|(_, written)| self.is_swept(**written, now));
                let unnamed = old.filter(|(id, _)| !table.versions().any(|manifest| manifest.names(**id)));
                world.swept = unnamed.map(|(id, _)| *id).collect();
            }
            Step::DeleteListed => {
                for id in std::mem::take(&mut world.swept) {
                    world.table.files.remove(&id);
                }
            }
            Step::Clean => {
                world.left.cleanups -= 1;
                world.table.clean();
            }
            Step::Compact => {
                world.left.compactions -= 1;
                let mut rows: Vec<Row> = latest.rows().collect();
                rows.sort_unstable();
                latest.files = vec![DataFile { id: world.table.write_file(world.now), rows }];
                world.table.put(number + 1, latest);
            }
            Step::Append => {
                let row = Row { run: 0, place: world.left.appends, start: 0 };
                world.left.appends -= 1;
                latest.files.push(DataFile { id: world.table.write_file(world.now), rows: vec![row] });
                let id = Id { epoch: 0, seq: self.bounds.appends - row.place + 1 };
                latest.ledger.mark_committed(id, number + 1, world.now, self);
                world.table.put(number + 1, latest);
                world.promised.insert(row);
            }
        }
    }

    fn is_swept(&self, written: Time, now: Time) -> bool {
        let slack = if self.lacks(Without::SlackOfSwept) { 0 } else { SLACK };
        self.lacks(Without::AgeOfSwept) || now > written + MAX_AGE + slack
    }
}
