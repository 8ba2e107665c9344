//! `lgw delete` and `lgw update`

use lance_gateway_client::{Assigned, ChangeOptions, Changed, Client};
use serde::Serialize;

use crate::console::Console;
use crate::failure::Result;

#[derive(Serialize)]
struct Shown<'a> {
    table: &'a str,
    version: u64,
    num_rows: u64,
}

pub async fn delete(client: &Client, table: &str, filter: &str, console: &Console) -> Result<()> {
    let deleted = client.delete_rows(table, &rows(filter)).await?;
    show(table, deleted, console)
}

pub async fn update(
    client: &Client,
    table: &str,
    set: &[(String, String)],
    filter: &str,
    console: &Console,
) -> Result<()> {
    let assignments = set.iter().map(|(column, value)| (column.clone(), Assigned::Sql(value.clone()))).collect();
    let updated = client.update_rows(table, &assignments, &rows(filter)).await?;
    show(table, updated, console)
}

fn rows(filter: &str) -> ChangeOptions {
    ChangeOptions { filter: Some(filter.into()), ..ChangeOptions::default() }
}

fn show(table: &str, changed: Changed, console: &Console) -> Result<()> {
    let Changed { version, num_rows, .. } = changed;
    console.record(
        &Shown { table, version, num_rows },
        &[("table", table.to_owned()), ("version", version.to_string()), ("rows", num_rows.to_string())],
    )
}
