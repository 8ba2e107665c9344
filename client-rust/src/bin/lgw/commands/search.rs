//! `lgw search`

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use futures::{StreamExt, TryStreamExt};
use lance_gateway_client::{
    Client, ColumnPath, FullTextQuery, IndexUse, Query, Search, SearchInfo, TextQuery, Vector, VectorQuery,
};
use serde_json::Value;

use crate::args::{Effort, SearchFor};
use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{self, Source};
use crate::rows;

/// Columns of a file of queries.
const ID: &str = "id";
const VECTOR: &str = "vector";
const K: &str = "k";

/// Describes the search.
pub fn describe(
    client: &Client,
    table: &str,
    column: &ColumnPath,
    wanted: &SearchFor,
    effort: &Effort,
) -> Result<Search> {
    let query: Query = match wanted {
        SearchFor { text: Some(words), .. } => {
            let query = FullTextQuery::new(TextQuery::any(column.clone(), words)).k(effort.k);
            if effort.postfilter { query.postfilter().into() } else { query.into() }
        }
        SearchFor { vector: Some(vector), .. } => {
            effort.apply(VectorQuery::new(column.clone(), parse_vector(vector)?)).into()
        }
        _ => effort.apply(VectorQuery::of(column.clone())).into(),
    };
    Ok(client.search(table, query))
}

/// One vector as JSON, or several that are one query.
fn parse_vector(text: &str) -> Result<Vector> {
    let wrong =
        || Failure::Usage("--vector is a list of numbers as JSON, such as [0.1, 0.2], or a list of those".to_owned());
    let Ok(Value::Array(items)) = serde_json::from_str(text) else { return Err(wrong()) };
    if !items.iter().any(Value::is_array) {
        return numbers(&items).map(Vector::from).ok_or_else(wrong);
    }
    let vectors: Option<Vec<Vec<f64>>> = items.iter().map(|item| numbers(item.as_array()?)).collect();
    vectors.map(Vector::multi).ok_or_else(wrong)
}

fn numbers(items: &[Value]) -> Option<Vec<f64>> {
    items.iter().map(Value::as_f64).collect()
}

/// Searches for one vector or text.
pub async fn one(search: Search, console: &Console) -> Result<()> {
    let found = search.run().await?;
    let mut out = rows::to_console(console, &found.rows.schema())?;
    out.write(&found.rows)?;
    out.finish()?;
    console.note(told(&found.info));
    Ok(())
}

/// Searches for all vectors of a file.
pub async fn many(search: Search, file: &Path, console: &Console) -> Result<()> {
    let source = Source::open(file)?;
    let found = source.schema()?;
    let read = columns(&found, file)?;
    let has_ids = read.field_with_name(ID).is_ok();
    let sent = if has_ids { read.clone() } else { with_id_field(&read) };
    let (numbered, mut first) = (sent.clone(), 0);
    let queries = input::stream(&[source], &read, Arc::new(AtomicU64::new(0))).map(move |batch| {
        let batch = batch?;
        if has_ids {
            return Ok(batch);
        }
        let ids = Int64Array::from_iter_values((first..).take(batch.num_rows()));
        first += batch.num_rows() as i64;
        let columns = std::iter::once(Arc::new(ids) as ArrayRef).chain(batch.columns().iter().cloned()).collect();
        RecordBatch::try_new(numbered.clone(), columns).map_err(|e| e.to_string())
    });
    let (schema, mut answers) = search.run_many(&sent, queries).await?;
    let mut out = rows::to_console(console, &schema)?;
    let (mut num_queries, mut num_failed) = (0_u64, 0_u64);
    while let Some(answer) = answers.try_next().await? {
        num_queries += 1;
        match answer.found {
            Ok(found) => out.write(&found.rows)?,
            Err(error) => {
                num_failed += 1;
                console.note(format!("query {}: {error}", answer.query));
            }
        }
    }
    out.finish()?;
    console.note(format!("{num_queries} queries"));
    match num_failed {
        0 => Ok(()),
        some => Err(Failure::local(format!("{some} of {num_queries} queries failed"))),
    }
}

/// Those columns of the file that a search of vectors takes.
fn columns(found: &Schema, file: &Path) -> Result<SchemaRef> {
    if found.field_with_name(VECTOR).is_err() {
        return Err(Failure::local(format!("{}: there is no column `vector`", file.display())));
    }
    let taken = found.fields().iter().filter(|field| [ID, VECTOR, K].contains(&field.name().as_str()));
    Ok(Arc::new(Schema::new(taken.cloned().collect::<Vec<_>>())))
}

/// Queries without ids are counted from 0.
fn with_id_field(schema: &Schema) -> SchemaRef {
    let id: FieldRef = Arc::new(Field::new(ID, DataType::Int64, false));
    Arc::new(Schema::new(std::iter::once(id).chain(schema.fields().iter().cloned()).collect::<Vec<_>>()))
}

/// How the rows were found, in a line.
fn told(info: &SearchInfo) -> String {
    let by = |what: &str, used: &Option<IndexUse>| {
        used.as_ref().map(|used| match (used.indexes.join(", "), used.num_unindexed_rows) {
            (names, _) if names.is_empty() => format!("; {what} without an index"),
            (names, 0) => format!("; {what} by index {names}"),
            (names, rows) => format!("; {what} by index {names}, {rows} rows without it"),
        })
    };
    let metric = info.metric.map(|metric| format!(", {metric}")).unwrap_or_default();
    let vector = by("vectors", &info.vector).unwrap_or_default();
    let text = by("texts", &info.text).unwrap_or_default();
    format!("version {}: {} rows{metric}{vector}{text}", info.version, info.num_rows)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_json_of_one_or_two_levels() {
        assert_eq!(parse_vector("[1, -2.5]").unwrap(), Vector::from(vec![1.0_f64, -2.5]));
        assert_eq!(parse_vector("[[1],[2]]").unwrap(), Vector::multi([vec![1.0_f64], vec![2.0]]));
        for text in ["", "1", "[1, \"a\"]", "[[1], 2]", "{\"a\": 1}"] {
            assert!(matches!(parse_vector(text), Err(Failure::Usage(_))), "{text}");
        }
    }
}
