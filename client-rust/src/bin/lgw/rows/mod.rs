//! Rows on their way out: to the terminal, a pipe or a file.

mod csv;
mod file;
pub mod json;
mod table;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::args::Output;
use crate::console::Console;
use crate::failure::{Failure, Result};
use csv::CsvRows;
use file::NewFile;
use json::JsonRows;
use table::TableRows;

/// A row group is closed at this size, so that a writer holds no more.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Takes batches one after the other.
pub trait Rows: Send {
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Everything is there; without this a file is not.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Rows to stdout, as the user wants them.
pub fn to_console(console: &Console, schema: &SchemaRef) -> Result<Box<dyn Rows>> {
    Ok(match console.output() {
        Output::Table => Box::new(TableRows::new(console.results(), schema)),
        Output::Json => Box::new(JsonRows::new(console.results())),
        Output::Csv => Box::new(CsvRows::new(console.results(), schema)?),
    })
}

/// Rows to a file, in the format of its ending. The file appears when it is complete.
pub fn to_file(path: &Path, schema: &SchemaRef) -> Result<Box<dyn Rows>> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let known = ["parquet", "csv", "json", "jsonl", "ndjson", "arrow", "arrows", "feather", "ipc"];
    if !known.contains(&ending.as_str()) {
        return Err(Failure::Usage(format!(
            "{}: the ending names no format; use .parquet, .csv, .jsonl, .arrow or .arrows",
            path.display()
        )));
    }
    let file = NewFile::create(path)?;
    let out = BufWriter::with_capacity(1 << 20, file.writer()?);
    let rows: Box<dyn Rows> = match ending.as_str() {
        "csv" => Box::new(CsvRows::new(out, schema)?),
        "json" | "jsonl" | "ndjson" => Box::new(JsonRows::new(out)),
        "parquet" => Box::new(ParquetRows::new(out, schema)?),
        "arrows" => Box::new(StreamWriter::try_new(out, schema)?),
        _ => Box::new(FileWriter::try_new(out, schema)?),
    };
    Ok(Box::new(FileRows { rows, file }))
}

struct FileRows {
    rows: Box<dyn Rows>,
    file: NewFile,
}

impl Rows for FileRows {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows.write(batch)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.rows.finish()?;
        self.file.keep()
    }
}

struct ParquetRows(ArrowWriter<BufWriter<File>>);

impl ParquetRows {
    fn new(out: BufWriter<File>, schema: &SchemaRef) -> Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        Ok(Self(ArrowWriter::try_new(out, schema.clone(), Some(properties))?))
    }
}

impl Rows for ParquetRows {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch)?;
        if self.0.in_progress_size() >= ROW_GROUP_BYTES {
            self.0.flush()?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.0.into_inner()?.flush().map_err(Failure::from)
    }
}

impl Rows for FileWriter<BufWriter<File>> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Ok(FileWriter::write(self, batch)?)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        FileWriter::finish(&mut self)?;
        self.into_inner()?.flush().map_err(Failure::from)
    }
}

impl Rows for StreamWriter<BufWriter<File>> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Ok(StreamWriter::write(self, batch)?)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        StreamWriter::finish(&mut self)?;
        self.into_inner()?.flush().map_err(Failure::from)
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::Local(error.to_string())
    }
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        Self::Local(error.to_string())
    }
}
