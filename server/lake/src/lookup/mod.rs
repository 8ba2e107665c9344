//! Lookups: the rows whose columns equal keys, in a version that stays pinned.
//!
//! One scan finds the rows of many keys. Its filter is a list of values for each column of the key, so that an index over one of them
//! is used; for keys of several columns that keeps too many rows, and each row is matched with the keys after it was read.

mod keys;
mod matches;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt, try_unfold};
use lance::deps::datafusion::logical_expr::Expr;
use lance_core::datatypes::Schema as LanceSchema;

use crate::Lake;
use crate::error::{Error, Result};
use crate::scan::{Bounds, Piece, Projected, ScanStream, filter, ranges};
use crate::schema::find_path;
use crate::table::Handle;
use crate::types::{ColumnPath, Filter, RowMetadata, TableId, VersionSelector};
use keys::{KeyColumn, Keys};
pub(crate) use keys::{both_zeros, is_comparable, positive_zero, value_type};
use matches::{Matches, Output};

/// The column that says which key found a row.
const QUERY: &str = "_query";
/// What names a column.
const PLACE: &str = "the key of the lookup";

/// See `lancegateway.v1.LookupRequest`.
#[derive(Debug, Clone)]
pub struct LookupSpec {
    /// The table.
    pub table: TableId,
    /// Its version.
    pub version: VersionSelector,
    /// None: all columns. Empty: none.
    pub projection: Option<Vec<ColumnPath>>,
    /// Rows that can be found.
    pub filter: Option<Filter>,
    /// Columns that Lance keeps.
    pub metadata: RowMetadata,
    /// Rows of one batch.
    pub batch_rows: Option<usize>,
    /// Bytes of one batch.
    pub batch_bytes: Option<usize>,
    /// What is compared.
    pub keys: Vec<ColumnPath>,
}

/// A version of a table, ready for any number of lookups.
#[derive(Clone)]
pub struct Lookup {
    lake: Lake,
    dataset: Handle,
    read: Arc<Projected>,
    output: Arc<Output>,
    keys: Arc<Vec<KeyColumn>>,
    filter: Option<Expr>,
    pieces: Arc<Vec<Piece>>,
    bounds: Bounds,
}

impl Lake {
    /// Pins the version, and checks columns and filter, and whether keys of that schema can be compared.
    pub fn lookup<'a>(&'a self, spec: &'a LookupSpec, keys: &'a Schema) -> BoxFuture<'a, Result<Lookup>> {
        Box::pin(async move {
            let location = self.locate(&spec.table)?;
            let dataset = self.open_version(&location, &spec.version).await?;
            let shown = Projected::new(&dataset, spec.projection.as_deref(), spec.metadata)?.shown;
            if shown.column_with_name(QUERY).is_some() {
                let why = format!("column '{QUERY}' of the table hides what the lookup adds under that name");
                return Err(Error::invalid(why));
            }
            for key in &spec.keys {
                find_path(dataset.schema(), key, PLACE)?;
            }
            let columns = with_keys(spec.projection.as_deref(), &spec.keys);
            let read = Projected::new(&dataset, columns.as_deref(), spec.metadata)?;
            let keys = key_columns(dataset.schema(), &read.shown, &spec.keys, keys)?;
            let filter = match &spec.filter {
                Some(given) => Some(filter::plan(given, dataset.schema(), self.inner.options.scan.max_filter_depth)?),
                None => None,
            };
            Ok(Lookup {
                lake: self.clone(),
                output: Arc::new(Output::new(&read.shown, &shown)?),
                read: Arc::new(read),
                keys: Arc::new(keys),
                filter,
                pieces: Arc::new(ranges::all(&dataset).await?),
                bounds: self.bounds(spec.batch_rows, spec.batch_bytes),
                dataset,
            })
        })
    }
}

impl Lookup {
    /// The version that is read.
    pub fn version(&self) -> u64 {
        self.dataset.manifest().version
    }

    /// The schema of the rows.
    pub fn schema(&self) -> SchemaRef {
        self.output.schema.clone()
    }

    /// The rows that the keys find, in no order. `first` is the number of the first key. Dropping the stream ends the lookup.
    pub fn rows(&self, keys: RecordBatch, first: u64) -> BoxStream<'static, Result<RecordBatch>> {
        let rows = Rows { lookup: self.clone(), keys, first, next: 0, part: None };
        try_unfold(rows, |mut rows| async move { Ok(rows.next().await?.map(|batch| (batch, rows))) }).boxed()
    }

    /// Begins to read the rows of some of the keys; None: they find nothing.
    async fn part(&self, keys: &RecordBatch, first: u64) -> Result<Option<Part>> {
        let keys = Keys::new(&self.keys, keys, first)?;
        let Some(wanted) = keys.filter(&self.keys) else { return Ok(None) };
        let filter = match &self.filter {
            Some(filter) => wanted.and(filter.clone()),
            None => wanted,
        };
        let rows = self.lake.selected(&self.dataset, &self.read, Some(filter), &self.pieces, self.bounds).await?;
        Ok(Some(Part { keys, rows, matches: None }))
    }
}

/// The rows of one batch of keys, as many keys at a time as one scan may look for.
struct Rows {
    lookup: Lookup,
    keys: RecordBatch,
    first: u64,
    next: usize,
    part: Option<Part>,
}

struct Part {
    keys: Keys,
    rows: ScanStream,
    matches: Option<Matches>,
}

impl Rows {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(part) = &mut self.part {
                if let Some(matches) = &mut part.matches {
                    if let Some(batch) = matches.next(&part.keys, &self.lookup.output, self.lookup.bounds)? {
                        return Ok(Some(batch));
                    }
                    part.matches = None;
                }
                match part.rows.next().await {
                    Some(rows) => part.matches = Some(part.keys.matches(&self.lookup.keys, rows?)?),
                    None => self.part = None,
                }
                continue;
            }
            let left = self.keys.num_rows() - self.next;
            if left == 0 || self.lookup.pieces.is_empty() {
                return Ok(None);
            }
            let len = left.min(self.lookup.lake.inner.options.search.lookup_keys.max(1));
            let keys = self.keys.slice(self.next, len);
            let first = self.first + self.next as u64;
            self.next += len;
            self.part = self.lookup.part(&keys, first).await?;
        }
    }
}

/// The columns that are read: those of the projection, and of the keys those that it lacks.
fn with_keys(projection: Option<&[ColumnPath]>, keys: &[ColumnPath]) -> Option<Vec<ColumnPath>> {
    let projection = projection?;
    let missing = keys.iter().filter(|key| !projection.iter().any(|path| key.starts_with(path)));
    Some(projection.iter().chain(missing).cloned().collect())
}

fn key_columns(schema: &LanceSchema, read: &Schema, paths: &[ColumnPath], given: &Schema) -> Result<Vec<KeyColumn>> {
    if paths.is_empty() {
        return Err(Error::invalid("the lookup names no column of its keys"));
    }
    if let Some(twice) = paths.iter().enumerate().find(|(at, path)| paths[..*at].contains(path)) {
        return Err(Error::invalid(format!("{PLACE} names column '{}' twice", twice.1.join("."))));
    }
    let given = given.fields();
    if given.len() != paths.len() {
        let (given, wanted) = (given.len(), paths.len());
        return Err(Error::invalid(format!("the keys have {given} columns; this lookup compares {wanted}")));
    }
    paths.iter().zip(given).map(|(path, given)| KeyColumn::new(schema, read, path, given.data_type())).collect()
}

/// The schema of rows with these columns.
fn with_query(shown: &Schema) -> SchemaRef {
    let query: FieldRef = Arc::new(Field::new(QUERY, DataType::UInt64, false));
    let fields: Vec<FieldRef> = std::iter::once(query).chain(shown.fields().iter().cloned()).collect();
    Arc::new(Schema::new_with_metadata(fields, shown.metadata().clone()))
}

#[cfg(test)]
mod tests;
