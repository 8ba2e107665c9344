//! `lgw commits`

use lance_gateway_client::{Client, CommitId, CommitState};
use serde::Serialize;

use super::time;
use crate::args::CommitAction;
use crate::console::{Console, human_bytes};
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
struct Record {
    id: String,
    state: &'static str,
    version: Option<u64>,
    rows: u64,
    bytes: u64,
    at: Option<String>,
}

async fn list(client: &Client, table: &str, console: &Console) -> Result<()> {
    let records = client.list_commits(table).await?;
    let shown: Vec<_> = records
        .into_iter()
        .map(|record| {
            // In a list, what is not finished is prepared.
            let (state, version) = match record.state {
                CommitState::NotCommitted => ("prepared", None),
                finished => told(finished),
            };
            let (rows, bytes, at) = (record.num_rows, record.num_bytes, time(record.at));
            Record { id: record.id.to_string(), state, version, rows, bytes, at }
        })
        .collect();
    console.list(&shown, &["id", "state", "version", "rows", "bytes", "at"], |record| {
        vec![
            record.id.clone(),
            record.state.to_owned(),
            record.version.map(|version| version.to_string()).unwrap_or_default(),
            record.rows.to_string(),
            human_bytes(record.bytes),
            record.at.clone().unwrap_or_default(),
        ]
    })
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

fn told(state: CommitState) -> (&'static str, Option<u64>) {
    match state {
        CommitState::NotCommitted => ("not committed", None),
        // So long ago that the table no longer knows its version.
        CommitState::Committed(0) => ("committed", None),
        CommitState::Committed(version) => ("committed", Some(version)),
        CommitState::Aborted => ("aborted", None),
    }
}

fn print(id: &CommitId, state: CommitState, console: &Console) -> Result<()> {
    let (state, version) = told(state);
    let shown = Shown { id: id.to_string(), state, version };
    let version = version.map(|version| version.to_string()).unwrap_or_default();
    console.record(&shown, &[("id", shown.id.clone()), ("state", state.to_owned()), ("version", version)])
}
