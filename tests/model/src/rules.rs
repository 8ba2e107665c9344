//! What must hold in every state, and what must always remain within reach.

use std::collections::BTreeSet;

use crate::table::Row;
use crate::{Model, World};

impl Model {
    /// The rule that this state breaks.
    #[must_use]
    pub fn wrong(&self, world: &World) -> Option<&'static str> {
        if world.wrong.is_some() {
            return world.wrong;
        }
        let (_, latest) = world.table.latest();
        let rows: BTreeSet<Row> = latest.rows().collect();
        let mut given = BTreeSet::new();
        if !latest.rows().all(|row| given.insert((row.run, row.place))) {
            return Some("a row is there twice");
        }
        if !latest.files.iter().all(|file| world.table.files.contains_key(&file.id)) {
            return Some("a live file was deleted");
        }
        if !world.promised.is_subset(&rows) {
            return Some("a commit was answered as success, and its row is not there");
        }
        if !world.aborted.is_disjoint(&rows) {
            return Some("an aborted row is there");
        }
        let given_up = |row: Row| world.aborted.contains(&row) || world.refused.contains(&row);
        if !world.sink.settled().all(|row| rows.contains(&row) || given_up(row)) {
            return Some("a row of the job's state is lost");
        }
        None
    }

    /// The end that must be within reach of every state: all rows are given, and every commit is answered.
    #[must_use]
    pub fn is_done(&self, world: &World) -> bool {
        world.sink.is_done(self.bounds.rows)
    }
}
