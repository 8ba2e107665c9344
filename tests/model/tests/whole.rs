//! The whole protocol breaks no rule, whatever happens in whatever order, and never gets stuck.
#![allow(clippy::panic)]

use lance_gateway_model::explore::explore;
use lance_gateway_model::{Bounds, Model};

fn holds(bounds: Bounds) {
    let explored = explore(&Model { bounds, without: &[] });
    println!("{} states, the farthest {} steps away: {bounds:?}", explored.states, explored.depth);
    if let Some(found) = explored.counterexample {
        panic!("{found}");
    }
}

#[test]
fn commits_that_race_overtake_each_other_and_are_aborted() {
    holds(Bounds { rows: 2, gateways: 2, puts: 2, aborts: 1, ..Bounds::default() });
}

#[test]
fn three_commits_of_one_epoch_in_any_order() {
    holds(Bounds { rows: 3, gateways: 1, puts: 2, ..Bounds::default() });
}

#[test]
fn crashes_restores_and_rewinds_of_the_sink() {
    holds(Bounds { rows: 2, gateways: 1, puts: 1, crashes: 1, ..Bounds::default() });
    holds(Bounds { rows: 1, gateways: 1, puts: 2, crashes: 2, ..Bounds::default() });
}

#[test]
fn an_abort_beside_crashes_and_two_gateways() {
    holds(Bounds { rows: 1, gateways: 2, puts: 2, crashes: 1, aborts: 1, ..Bounds::default() });
}

#[test]
fn cleanup_compaction_and_another_job_beside_commits_and_aborts() {
    let beside = Bounds { appends: 1, compactions: 1, cleanups: 1, ..Bounds::default() };
    holds(Bounds { rows: 1, gateways: 2, puts: 2, aborts: 1, ..beside });
}

#[test]
fn the_sweep_and_old_committables_after_a_crash() {
    holds(Bounds { rows: 1, gateways: 1, puts: 1, crashes: 1, ticks: 4, sweep: true, ..Bounds::default() });
}

#[test]
fn the_sweep_and_a_ledger_that_forgets_beside_an_abort() {
    holds(Bounds { rows: 1, gateways: 1, puts: 1, aborts: 1, appends: 1, ticks: 4, sweep: true, ..Bounds::default() });
}

#[test]
fn all_of_that_after_a_crash() {
    let beside = Bounds { compactions: 1, cleanups: 1, ..Bounds::default() };
    holds(Bounds { rows: 1, gateways: 1, puts: 1, crashes: 1, aborts: 1, ..beside });
    holds(Bounds { rows: 1, gateways: 1, puts: 1, crashes: 1, ticks: 1, sweep: true, ..beside });
}

#[test]
#[ignore = "takes a minute or two; for changes of the protocol"]
fn wider_bounds() {
    holds(Bounds { rows: 2, gateways: 2, puts: 1, crashes: 1, ..Bounds::default() });
    holds(Bounds { rows: 2, gateways: 1, puts: 2, crashes: 1, ..Bounds::default() });
    holds(Bounds { rows: 1, gateways: 1, puts: 1, crashes: 1, appends: 1, ticks: 4, sweep: true, ..Bounds::default() });
}
