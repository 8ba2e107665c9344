//! Rows as CSV. Nested values are JSON within their cell, bytes are hexadecimal, null is an empty cell.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow_csv::{Writer, WriterBuilder};
use arrow_json::writer::make_encoder;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::{Rows, json};
use crate::failure::Result;

pub struct CsvRows<W: Write> {
    writer: Writer<W>,
    schema: SchemaRef,
}

impl<W: Write> CsvRows<W> {
    pub fn new(out: W, schema: &SchemaRef) -> Result<Self> {
        let fields = schema.fields().iter().map(|field| match field.data_type().is_nested() {
            true => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
            false => field.clone(),
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut writer = WriterBuilder::new().with_header(true).build(out);
        // The head is there even if no row is.
        writer.write(&RecordBatch::new_empty(schema.clone()))?;
        Ok(Self { writer, schema })
    }
}

impl<W: Write + Send> Rows for CsvRows<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema();
        let columns =
            schema.fields().iter().zip(batch.columns()).map(|(field, column)| match field.data_type().is_nested() {
                true => Ok(Arc::new(as_json(field, column)?) as ArrayRef),
                false => Ok(column.clone()),
            });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        Ok(self.writer.write(&batch)?)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(self.writer.into_inner().flush()?)
    }
}

fn as_json(field: &Arc<Field>, column: &ArrayRef) -> Result<StringArray, ArrowError> {
    let options = json::value_options();
    let mut encoder = make_encoder(field, column.as_ref(), &options)?;
    let mut cells = StringBuilder::new();
    let mut cell = Vec::new();
    for row in 0..column.len() {
        if encoder.is_null(row) {
            cells.append_null();
            continue;
        }
        cell.clear();
        encoder.encode(row, &mut cell);
        cells.append_value(std::str::from_utf8(&cell).map_err(|e| ArrowError::JsonError(e.to_string()))?);
    }
    Ok(cells.finish())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use arrow_array::types::Float32Type;
    use arrow_array::{FixedSizeListArray, Float64Array, Int64Array};

    use super::*;

    fn csv(batch: &RecordBatch) -> String {
        let mut out = Vec::new();
        let mut rows = Box::new(CsvRows::new(&mut out, &batch.schema()).unwrap());
        rows.write(batch).unwrap();
        rows.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_vector_is_json_within_its_cell() {
        let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
            vec![Some(vec![Some(1.0), Some(f32::NAN)]), None],
            2,
        );
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("id", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef, true),
            ("v", Arc::new(vectors), true),
            ("x", Arc::new(Float64Array::from(vec![Some(f64::NAN), None])), true),
        ])
        .unwrap();
        assert_eq!(csv(&batch), "id,v,x\n1,\"[1.0,\"\"NaN\"\"]\",NaN\n2,,\n");
    }

    #[test]
    fn the_head_is_there_without_rows() {
        let schema = Arc::new(Schema::new(vec![Field::new("a,b", DataType::Int64, true)]));
        assert_eq!(csv(&RecordBatch::new_empty(schema)), "\"a,b\"\n");
    }
}
