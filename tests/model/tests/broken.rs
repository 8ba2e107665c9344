//! A model that finds nothing shows nothing. Here the protocol lacks one rule at a time, and each time the explorer finds the way into
//! the damage that the rule prevents. `cargo test -p lance-gateway-model -- --nocapture` prints the ways.
#![allow(clippy::panic)]

use lance_gateway_model::explore::explore;
use lance_gateway_model::{Bounds, Model, Without};

const TWICE: &str = "a row is there twice";
const NOT_THERE: &str = "a commit was answered as success, and its row is not there";
const DELETED: &str = "a live file was deleted";
const ABORTED: &str = "an aborted row is there";
const GONE: &str = "a young committable lost its file";

/// The explorer finds this damage without the last of these rules, and none with it.
fn breaks(without: &'static [Without], rule: &str, bounds: Bounds) {
    if let Some(found) = explore(&Model { bounds, without: &without[..without.len() - 1] }).counterexample {
        panic!("it breaks also with the last of {without:?}: {found}");
    }
    let found = explore(&Model { bounds, without }).counterexample;
    let found = found.unwrap_or_else(|| panic!("nothing breaks without {without:?}"));
    println!("without {without:?}: {found}");
    assert_eq!(found.rule, rule);
}

/// One row, one gateway, one put at a time, and nothing else.
fn least() -> Bounds {
    Bounds { rows: 1, gateways: 1, puts: 1, ..Bounds::default() }
}

#[test]
fn checking_the_ledger_before_the_put_doubles_rows() {
    breaks(&[Without::CheckInThePut], TWICE, Bounds { gateways: 2, puts: 2, ..least() });
}

#[test]
fn putting_over_a_version_that_is_there_loses_commits() {
    breaks(&[Without::PutIfAbsent], NOT_THERE, Bounds { puts: 2, appends: 1, ..least() });
}

#[test]
fn naming_commits_by_checkpoint_numbers_loses_the_rows_after_a_rewind() {
    breaks(&[Without::NewEpochForEachStart], NOT_THERE, Bounds { crashes: 1, ..least() });
}

#[test]
fn remembering_the_highest_seq_alone_loses_commits_that_were_overtaken() {
    breaks(&[Without::SetAboveTheGap], NOT_THERE, Bounds { rows: 2, ..least() });
}

#[test]
fn a_ledger_that_forgets_before_committables_expire_doubles_rows() {
    breaks(&[Without::MemoryAsLongAsTheAge], TWICE, Bounds { appends: 1, ticks: 1, ..least() });
}

#[test]
fn success_by_the_word_of_the_store_alone_loses_commits_that_were_put_below_the_latest_version() {
    breaks(
        &[Without::PatienceOfCleanup, Without::LookBeforeSuccess],
        NOT_THERE,
        Bounds { appends: 2, cleanups: 1, ..least() },
    );
}

#[test]
fn taking_an_unknown_outcome_for_a_failure_deletes_live_files() {
    breaks(&[Without::PatienceWithTheUnknown], DELETED, least());
}

#[test]
fn deleting_before_the_fence_deletes_live_files() {
    breaks(&[Without::FenceBeforeDelete], DELETED, Bounds { gateways: 2, puts: 2, aborts: 1, ..least() });
}

#[test]
fn an_abort_that_asks_for_no_age_takes_back_what_is_committed() {
    breaks(&[Without::AgeOfAborted], ABORTED, Bounds { appends: 1, aborts: 1, ticks: 4, ..least() });
}

#[test]
fn a_sweep_that_asks_for_no_age_deletes_files_of_committables() {
    breaks(&[Without::AgeOfSwept], GONE, Bounds { sweep: true, ..least() });
}

#[test]
fn a_sweep_at_the_very_age_deletes_files_of_commits_on_their_way() {
    breaks(&[Without::SlackOfSwept], DELETED, Bounds { sweep: true, ticks: 2, ..least() });
}

#[test]
fn an_age_that_counts_from_the_end_of_a_long_stage_lets_the_sweep_delete_files_of_committables() {
    breaks(&[Without::AgeFromTheFirstRow], GONE, Bounds { sweep: true, ticks: 4, ..least() });
}

#[test]
fn a_cleanup_that_overtakes_a_put_deletes_files_of_committables() {
    breaks(&[Without::PatienceOfCleanup], GONE, Bounds { appends: 2, cleanups: 2, ..least() });
}
