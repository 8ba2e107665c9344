//! The lake through its door, on a local folder and in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod catalog;
mod tables;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lance_gateway_lake::*;

/// A lake in a folder that goes away with the first value.
async fn local_lake() -> (tempfile::TempDir, Lake) {
    let folder = tempfile::tempdir().unwrap();
    let warehouse = folder.path().join("ware house").to_str().unwrap().to_owned();
    (folder, Lake::open(LakeOptions { warehouse, ..Default::default() }).await.unwrap())
}

async fn memory_lake() -> Lake {
    Lake::open(LakeOptions { warehouse: "memory://".into(), ..Default::default() }).await.unwrap()
}

fn name(dotted: &str) -> TableId {
    TableId::Name(parts(dotted))
}

fn parts(dotted: &str) -> Vec<String> {
    dotted.split('.').map(str::to_owned).collect()
}

fn schema(columns: &[&str]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|name| Field::new(*name, DataType::Int64, false)).collect::<Vec<_>>()))
}

async fn create(lake: &Lake, table: &TableId) -> Result<(u64, bool)> {
    lake.create_table(table, schema(&["id"]), &CreateOptions::default(), "", false).await
}

async fn describe(lake: &Lake, table: &TableId) -> Result<TableDescription> {
    lake.describe(table, &VersionSelector::Latest).await
}
