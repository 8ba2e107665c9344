//! Rows that keys find, as they leave: with the number of their key, once for each key, and no more at a time than a batch holds.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray, UInt32Array, UInt64Array};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema, SchemaRef};
use arrow_select::take::take;

use super::keys::{Keys, broken};
use super::with_query;
use crate::error::{Error, Result};
use crate::scan::{Bounds, size};

/// What leaves of the columns that are read.
pub(super) struct Output {
    pub(super) schema: SchemaRef,
    /// Where the columns after the first are in what is read.
    columns: Vec<usize>,
}

impl Output {
    pub(super) fn new(read: &Schema, shown: &Schema) -> Result<Self> {
        let columns = shown.fields().iter().map(|field| read.index_of(field.name())).collect::<Result<_, _>>();
        Ok(Self { schema: with_query(shown), columns: columns.map_err(broken)? })
    }

    fn batch(&self, rows: &RecordBatch, places: Vec<u32>, queries: Vec<u64>) -> Result<RecordBatch> {
        let places = UInt32Array::from(places);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(queries))];
        for (at, field) in self.columns.iter().zip(&self.schema.fields()[1..]) {
            let lost = || Error::internal("lance returned other columns than planned");
            let column = narrowed(rows.columns().get(*at).ok_or_else(lost)?, field.data_type());
            columns.push(take(&column, &places, None).map_err(broken)?);
        }
        RecordBatch::try_new(self.schema.clone(), columns).map_err(broken)
    }
}

/// A struct without the fields that were read for the key alone.
fn narrowed(column: &ArrayRef, wanted: &DataType) -> ArrayRef {
    match (column.as_any().downcast_ref::<StructArray>(), wanted) {
        (Some(read), DataType::Struct(fields)) if column.data_type() != wanted => {
            let children = fields
                .iter()
                .filter_map(|field| read.column_by_name(field.name()).map(|child| narrowed(child, field.data_type())));
            let children: Vec<_> = children.collect();
            StructArray::try_new_with_length(fields.clone(), children, read.nulls().cloned(), read.len())
                .map_or_else(|_| column.clone(), |narrowed| Arc::new(narrowed))
        }
        _ => column.clone(),
    }
}

/// The rows of one batch that keys find.
pub(super) struct Matches {
    rows: RecordBatch,
    data: Vec<ArrayData>,
    /// A row, and the place of its key.
    found: Vec<(usize, usize)>,
    /// The next of these, and the next of the numbers of its key.
    next: (usize, usize),
}

impl Matches {
    pub(super) fn new(found: Vec<(usize, usize)>, rows: RecordBatch) -> Self {
        Self { data: size::columns(&rows), rows, found, next: (0, 0) }
    }

    pub(super) fn next(&mut self, keys: &Keys, output: &Output, bounds: Bounds) -> Result<Option<RecordBatch>> {
        let (mut places, mut queries, mut bytes) = (Vec::new(), Vec::new(), 0_u64);
        'rows: while let Some((row, key)) = self.found.get(self.next.0) {
            let row_bytes = size::rows_bytes(&self.data, *row..*row + 1);
            for query in &keys.queries[*key][self.next.1..] {
                if places.len() == bounds.rows || bytes >= bounds.bytes {
                    break 'rows;
                }
                places.push(*row as u32);
                queries.push(*query);
                bytes = bytes.saturating_add(row_bytes);
                self.next.1 += 1;
            }
            self.next = (self.next.0 + 1, 0);
        }
        if places.is_empty() { Ok(None) } else { output.batch(&self.rows, places, queries).map(Some) }
    }
}
