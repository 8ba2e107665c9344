//! `lgw commits`

use std::collections::BTreeMap;

use lance_gateway_client::{Client, CommitId, CommitState, EpochCommits};
use serde::Serialize;

use super::time;
use crate::args::CommitAction;
use crate::console::Console;
use crate::failure::Result;

pub async fn run(client: &Client, table: &str, action: Option<&CommitAction>, console: &Console) -> Result<()> {
    match action {
        None | Some(CommitAction::List) => list(client, table, console).await,
        Some(CommitAction::Show { id }) => show(client, table, id, console).await,
        Some(CommitAction::Abort { id }) => {
            client.abort_id(table, id).await?;
            print(id, CommitState::Aborted, console)
        }
    }
}

#[derive(Serialize)]
struct Epoch {
    epoch: String,
    contiguous_seq: u64,
    above: Vec<u64>,
    aborted: Vec<u64>,
    last_commit: Option<String>,
    versions: BTreeMap<u64, u64>,
}

async fn list(client: &Client, table: &str, console: &Console) -> Result<()> {
    let epochs = client.list_commits(table).await?;
    let shown: Vec<_> = epochs
        .into_iter()
        .map(|EpochCommits { epoch, contiguous_seq, above, aborted, last_commit, versions, .. }| Epoch {
            epoch,
            contiguous_seq,
            above,
            aborted,
            last_commit: time(last_commit),
            versions,
        })
        .collect();
    let headers = ["epoch", "finished", "aborted", "newest", "version", "last commit"];
    console.list(&shown, &headers, |epoch| {
        let newest = epoch.versions.last_key_value();
        vec![
            epoch.epoch.clone(),
            finished(epoch.contiguous_seq, &epoch.above),
            join(&epoch.aborted),
            newest.map(|(seq, _)| format!("{}:{seq}", epoch.epoch)).unwrap_or_default(),
            newest.map(|(_, version)| version.to_string()).unwrap_or_default(),
            epoch.last_commit.clone().unwrap_or_default(),
        ]
    })
}

/// `1-5, 8`
fn finished(contiguous: u64, above: &[u64]) -> String {
    let first = match contiguous {
        0 => None,
        1 => Some("1".to_owned()),
        last => Some(format!("1-{last}")),
    };
    first.into_iter().chain(above.iter().map(u64::to_string)).collect::<Vec<_>>().join(", ")
}

fn join(seqs: &[u64]) -> String {
    seqs.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

async fn show(client: &Client, table: &str, id: &CommitId, console: &Console) -> Result<()> {
    print(id, client.get_commit(table, id).await?, console)
}

#[derive(Serialize)]
struct Shown {
    id: String,
    state: &'static str,
    version: Option<u64>,
}

fn print(id: &CommitId, state: CommitState, console: &Console) -> Result<()> {
    let (state, version) = match state {
        CommitState::NotCommitted => ("not committed", None),
        CommitState::Committed(0) => ("committed", None),
        CommitState::Committed(version) => ("committed", Some(version)),
        CommitState::Aborted => ("aborted", None),
    };
    let shown = Shown { id: id.to_string(), state, version };
    let version = version.map(|version| version.to_string()).unwrap_or_default();
    console.record(&shown, &[("id", shown.id.clone()), ("state", state.to_owned()), ("version", version)])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn finished_commits_are_a_range_and_what_is_above() {
        assert_eq!(finished(0, &[]), "");
        assert_eq!(finished(1, &[]), "1");
        assert_eq!(finished(5, &[7, 9]), "1-5, 7, 9");
        assert_eq!(finished(0, &[2]), "2");
    }
}
