//! `lgw tables`, `create`, `describe`, `drop` and `versions`

use std::collections::BTreeMap;
use std::path::Path;

use arrow_schema::{Schema, SchemaRef};
use lance_gateway_client::{Client, CreateOptions, TableId};
use serde::Serialize;

use super::time;
use crate::args::Namespace;
use crate::console::{Console, human_bytes};
use crate::failure::{Failure, Result};
use crate::input::Source;
use crate::sql_type::type_name;

#[derive(Serialize)]
struct Entry {
    name: String,
    kind: &'static str,
}

pub async fn list(client: &Client, namespace: Option<&Namespace>, console: &Console) -> Result<()> {
    let parent = namespace.map(|namespace| namespace.0.clone()).unwrap_or_default();
    let namespaces = client.list_namespaces(&parent).await?.into_iter().map(|name| {
        let name = parent.iter().chain([&name]).cloned().collect::<Vec<_>>().join(".");
        Entry { name, kind: "namespace" }
    });
    let tables = client.list_tables(&parent).await?;
    let tables = tables.into_iter().map(|table| Entry { name: table.to_string(), kind: "table" });
    let entries: Vec<_> = tables.chain(namespaces).collect();
    console.list(&entries, &["name", "kind"], |entry| vec![entry.name.clone(), entry.kind.to_owned()])
}

pub fn schema_to_create(schema: Option<&SchemaRef>, like: Option<&Path>) -> Result<SchemaRef> {
    match (schema, like) {
        (Some(schema), _) => Ok(schema.clone()),
        (None, Some(file)) => Source::open(file)?.schema(),
        (None, None) => Err(Failure::Usage("say --schema or --like".to_owned())),
    }
}

#[derive(Serialize)]
struct CreatedTable<'a> {
    table: &'a str,
    version: u64,
}

pub async fn create(
    client: &Client,
    table: &str,
    schema: &Schema,
    primary_key: &[String],
    console: &Console,
) -> Result<()> {
    let options = CreateOptions { primary_key: primary_key.to_vec(), ..CreateOptions::default() };
    let created = client.create_table(table, schema, &options).await?;
    let shown = CreatedTable { table, version: created.version };
    console.record(&shown, &[("table", table.to_owned()), ("version", created.version.to_string())])
}

#[derive(Serialize)]
struct Description {
    table: String,
    version: u64,
    committed_at: Option<String>,
    num_rows: u64,
    num_fragments: u64,
    num_bytes: u64,
    data_storage_version: String,
    stable_row_ids: bool,
    primary_key: Vec<String>,
    properties: BTreeMap<String, String>,
    indexes: Vec<Index>,
    columns: Vec<Column>,
}

#[derive(Serialize)]
struct Index {
    name: String,
    columns: Vec<String>,
    index_type: String,
}

#[derive(Serialize)]
struct Column {
    name: String,
    data_type: String,
    nullable: bool,
}

pub async fn describe(client: &Client, table: &str, console: &Console) -> Result<()> {
    let found = client.describe_table(table, lance_gateway_client::VersionSelector::Latest).await?;
    let columns = found.schema.fields().iter().map(|field| Column {
        name: field.name().clone(),
        data_type: type_name(field.data_type()),
        nullable: field.is_nullable(),
    });
    let indexes = found.indexes.into_iter().map(|index| Index {
        name: index.name,
        columns: index.columns,
        index_type: index.index_type,
    });
    let shown = Description {
        table: TableId::from(table).to_string(),
        version: found.version,
        committed_at: time(found.committed_at),
        num_rows: found.num_rows,
        num_fragments: found.num_fragments,
        num_bytes: found.num_bytes,
        data_storage_version: found.data_storage_version,
        stable_row_ids: found.stable_row_ids,
        primary_key: found.primary_key,
        properties: found.properties,
        indexes: indexes.collect(),
        columns: columns.collect(),
    };
    let mut properties = vec![
        ("table", shown.table.clone()),
        ("version", shown.version.to_string()),
        ("committed", shown.committed_at.clone().unwrap_or_default()),
        ("rows", shown.num_rows.to_string()),
        ("fragments", shown.num_fragments.to_string()),
        ("bytes", human_bytes(shown.num_bytes)),
        ("storage version", shown.data_storage_version.clone()),
        ("stable row ids", if shown.stable_row_ids { "yes" } else { "no" }.to_owned()),
    ];
    if !shown.primary_key.is_empty() {
        properties.push(("primary key", shown.primary_key.join(", ")));
    }
    let pairs = shown.properties.iter().map(|(key, value)| ("property", format!("{key} = {value}")));
    properties.extend(pairs);
    let indexes = shown
        .indexes
        .iter()
        .map(|index| ("index", format!("{} on {} ({})", index.name, index.columns.join(", "), index.index_type)));
    properties.extend(indexes);
    let columns = shown.columns.iter().map(|column| {
        let not_null = if column.nullable { "" } else { " NOT NULL" };
        ("column", format!("{} {}{not_null}", column.name, column.data_type))
    });
    properties.extend(columns);
    console.record(&shown, &properties)
}

#[derive(Serialize)]
struct Dropped<'a> {
    dropped: &'a str,
}

pub async fn drop(client: &Client, table: &str, console: &Console) -> Result<()> {
    client.drop_table(table).await?;
    console.record(&Dropped { dropped: table }, &[("dropped", table.to_owned())])
}

#[derive(Serialize)]
struct Version {
    version: u64,
    committed_at: Option<String>,
    operation: String,
    num_rows: u64,
    num_fragments: u64,
    properties: BTreeMap<String, String>,
}

pub async fn versions(client: &Client, table: &str, limit: u32, console: &Console) -> Result<()> {
    let found = client.list_versions(table, limit).await?;
    let versions: Vec<_> = found
        .into_iter()
        .map(|version| Version {
            version: version.version,
            committed_at: time(version.committed_at),
            operation: version.operation,
            num_rows: version.num_rows,
            num_fragments: version.num_fragments,
            properties: version.properties,
        })
        .collect();
    console.list(&versions, &["version", "committed", "operation", "rows", "fragments", "properties"], |version| {
        let properties: Vec<_> = version.properties.iter().map(|(key, value)| format!("{key}={value}")).collect();
        vec![
            version.version.to_string(),
            version.committed_at.clone().unwrap_or_default(),
            version.operation.clone(),
            version.num_rows.to_string(),
            version.num_fragments.to_string(),
            properties.join(" "),
        ]
    })
}
