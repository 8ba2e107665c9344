//! CSV and JSON lines under the types of a table.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_csv::reader::Format;
use arrow_json::reader::infer_json_schema;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};

use super::{Batches, batch_rows};

/// Rows that are looked at to guess types.
const INFER_ROWS: usize = 1000;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Columns of a CSV file with a head; what has no value in the first rows is text.
pub fn infer_csv(mut file: BufReader<impl Read>) -> Result<SchemaRef, ArrowError> {
    skip_bom(&mut file)?;
    let (schema, _) = Format::default().with_header(true).infer_schema(file, Some(INFER_ROWS))?;
    named(&schema)?;
    Ok(Arc::new(without_null_types(&schema)))
}

/// Columns of a file of JSON objects; what has no value in the first rows is text.
pub fn infer_json(file: impl BufRead) -> Result<SchemaRef, ArrowError> {
    let (schema, _) = infer_json_schema(file, Some(INFER_ROWS))?;
    Ok(Arc::new(without_null_types(&schema)))
}

/// Reads CSV. A nested value is JSON in its cell and bytes are hexadecimal, as `lgw scan --output csv` writes them.
pub fn read_csv(
    mut file: BufReader<impl Read + Seek + Send + 'static>,
    target: &SchemaRef,
) -> Result<(SchemaRef, Batches), ArrowError> {
    skip_bom(&mut file)?;
    let head_start = file.stream_position()?;
    let (head, _) = Format::default().with_header(true).infer_schema(&mut file, Some(0))?;
    named(&head)?;
    file.seek(io::SeekFrom::Start(head_start))?;

    // A column that the table does not have is told by name later.
    let wanted = head.fields().iter().map(|column| match target.column_with_name(column.name()) {
        Some((_, field)) => field.clone().with_nullable(true),
        None => Field::new(column.name(), DataType::Utf8, true),
    });
    let wanted: Fields = wanted.collect();
    let in_file = wanted.iter().map(|field| match is_csv(field.data_type()) {
        true => field.clone(),
        false => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
    });
    let in_file = Arc::new(Schema::new(in_file.collect::<Vec<_>>()));

    let rows = rows_of_text(&mut file)?;
    let reader = arrow_csv::ReaderBuilder::new(in_file).with_header(true).with_batch_size(rows).build(file)?;
    let wanted = Arc::new(Schema::new(wanted));
    let schema = wanted.clone();
    Ok((schema, Box::new(reader.map(move |batch| parse_cells(&batch?, &wanted)))))
}

/// Reads JSON lines. A member that the table does not have is an error.
pub fn read_json(
    mut file: BufReader<impl Read + Send + 'static>,
    target: &SchemaRef,
) -> Result<(SchemaRef, Batches), ArrowError> {
    let rows = rows_of_text(&mut file)?;
    let reader =
        arrow_json::ReaderBuilder::new(target.clone()).with_strict_mode(true).with_batch_size(rows).build(file)?;
    Ok((target.clone(), Box::new(reader)))
}

fn skip_bom(file: &mut impl BufRead) -> io::Result<()> {
    if file.fill_buf()?.starts_with(BOM) {
        file.consume(BOM.len());
    }
    Ok(())
}

/// How many rows make a batch, by the lines of the part that is in the buffer.
fn rows_of_text(file: &mut impl BufRead) -> io::Result<usize> {
    let sample = file.fill_buf()?;
    let lines = sample.iter().filter(|&&byte| byte == b'\n').count();
    Ok(batch_rows(sample.len() as u64, lines as u64 + 1))
}

fn named(head: &Schema) -> Result<(), ArrowError> {
    let mut seen = HashMap::new();
    for (n, field) in head.fields().iter().enumerate() {
        if field.name().is_empty() {
            return Err(ArrowError::CsvError(format!("column {} has no name in the first line", n + 1)));
        }
        if seen.insert(field.name(), n).is_some() {
            return Err(ArrowError::CsvError(format!("column {:?} is there twice", field.name())));
        }
    }
    Ok(())
}

fn without_null_types(schema: &Schema) -> Schema {
    fn data_type(of: &DataType) -> DataType {
        let field = |f: &Arc<Field>| Arc::new(f.as_ref().clone().with_data_type(data_type(f.data_type())));
        match of {
            DataType::Null => DataType::Utf8,
            DataType::List(element) => DataType::List(field(element)),
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
            other => other.clone(),
        }
    }
    let fields = schema.fields().iter().map(|f| f.as_ref().clone().with_data_type(data_type(f.data_type())));
    Schema::new(fields.collect::<Vec<_>>())
}

/// Whether Arrow's reader of CSV knows the type itself.
fn is_csv(data_type: &DataType) -> bool {
    let simple =
        data_type.is_primitive() || matches!(data_type, DataType::Boolean | DataType::Utf8 | DataType::Utf8View);
    simple && !matches!(data_type, DataType::Float16 | DataType::Duration(_) | DataType::Interval(_))
}

fn parse_cells(batch: &RecordBatch, wanted: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = wanted.fields().iter().zip(batch.columns()).map(|(field, column)| {
        match field.data_type() == column.data_type() {
            true => Ok(column.clone()),
            false => from_json(field, column.as_string::<i32>()),
        }
    });
    RecordBatch::try_new(wanted.clone(), columns.collect::<Result<_, _>>()?)
}

/// Cells of JSON under the type of their column.
fn from_json(field: &Arc<Field>, cells: &StringArray) -> Result<ArrayRef, ArrowError> {
    let named = |e: &dyn std::fmt::Display| ArrowError::CsvError(format!("column {:?}: {e}", field.name()));
    let mut decoder = arrow_json::ReaderBuilder::new_with_field(field.clone())
        .with_batch_size(cells.len().max(1))
        .build_decoder()
        .map_err(|e| named(&e))?;
    let mut lines = Vec::new();
    for cell in cells {
        match cell {
            Some(cell) if field.data_type().is_nested() => lines.extend_from_slice(cell.as_bytes()),
            Some(cell) => serde_json::to_writer(&mut lines, cell).map_err(|e| named(&e))?,
            None => lines.extend_from_slice(b"null"),
        }
        lines.push(b'\n');
    }
    let read = decoder.decode(&lines).map_err(|e| named(&e))?;
    let batch = decoder.flush().map_err(|e| named(&e))?;
    match batch {
        Some(batch) if read == lines.len() && batch.num_rows() == cells.len() => Ok(batch.column(0).clone()),
        None if cells.is_empty() => Ok(arrow_array::new_empty_array(field.data_type())),
        _ => Err(named(&"a cell holds more or less than one JSON value")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::io::Cursor;

    use arrow_array::types::Float32Type;

    use super::*;
    use crate::sql_type::parse_schema;

    fn buffered(text: &str) -> BufReader<Cursor<Vec<u8>>> {
        BufReader::new(Cursor::new(text.as_bytes().to_vec()))
    }

    fn csv(text: &str, schema: &str) -> Result<RecordBatch, ArrowError> {
        let (_, mut batches) = read_csv(buffered(text), &parse_schema(schema).unwrap())?;
        batches.next().unwrap_or_else(|| Err(ArrowError::CsvError("no batch".into())))
    }

    #[test]
    fn cells_take_the_types_of_the_table() {
        let text = "\u{feff}v,id,b,s\n\"[1.5,\"\"NaN\"\"]\",1,00ff,\"a,b\"\n,2,,\n";
        let batch = csv(text, "id BIGINT, s STRING, v FLOAT[2], b BYTES").unwrap();
        let vectors = batch.column_by_name("v").unwrap().as_fixed_size_list();
        let first = vectors.value(0);
        let first = first.as_primitive::<Float32Type>().values();
        assert!(first[0] == 1.5 && first[1].is_nan() && vectors.is_null(1));
        assert_eq!(batch.column_by_name("b").unwrap().as_binary::<i32>().value(0), [0, 0xff]);
        assert_eq!(batch.column_by_name("s").unwrap().as_string::<i32>().value(0), "a,b");
        assert!(batch.column_by_name("s").unwrap().is_null(1));
    }

    #[test]
    fn a_wrong_cell_names_its_column() {
        for (cell, schema) in [("\"[1.0]\"", "v FLOAT[2]"), ("\"[1.0\"", "v FLOAT[2]"), ("zz", "v BYTES")] {
            let error = csv(&format!("v\n{cell}\n"), schema).unwrap_err().to_string();
            assert!(error.contains("\"v\""), "{cell}: {error}");
        }
        // Two values in one cell would shift all that follow.
        assert!(csv("v\n\"[1.0,2.0] [3.0,4.0]\"\n", "v FLOAT[2]").is_err());
    }

    #[test]
    fn a_head_must_name_each_column_once() {
        assert!(infer_csv(buffered("a,a\n1,2\n")).unwrap_err().to_string().contains("twice"));
        assert!(infer_csv(buffered("a,\n1,2\n")).unwrap_err().to_string().contains("no name"));
    }

    #[test]
    fn types_are_guessed_from_the_first_rows() {
        let schema = infer_csv(buffered("i,f,s,e\n1,1.5,x,\n2,2,y,\n")).unwrap();
        let types: Vec<_> = schema.fields().iter().map(|f| f.data_type().clone()).collect();
        assert_eq!(types, [DataType::Int64, DataType::Float64, DataType::Utf8, DataType::Utf8]);
        let schema = infer_json(buffered("{\"v\":[1.5],\"n\":null}\n{\"v\":[2.0],\"n\":[]}\n")).unwrap();
        assert_eq!(crate::sql_type::type_name(schema.field_with_name("v").unwrap().data_type()), "ARRAY<DOUBLE>");
        assert_eq!(crate::sql_type::type_name(schema.field_with_name("n").unwrap().data_type()), "ARRAY<STRING>");
    }

    #[test]
    fn an_unknown_member_of_json_is_an_error() {
        let target = parse_schema("id BIGINT").unwrap();
        let (_, mut batches) = read_json(buffered("{\"id\":1,\"x\":2}\n"), &target).unwrap();
        assert!(batches.next().unwrap().unwrap_err().to_string().contains('x'));
    }
}
