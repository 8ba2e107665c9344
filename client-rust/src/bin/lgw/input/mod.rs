//! Files on their way in: parquet, csv, json lines and arrow, a batch at a time.

mod fit;
mod text;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use futures::{Stream, stream};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tokio::sync::mpsc;

use crate::failure::{Failure, Result};
use fit::Fit;

/// A batch of about this size is read from a file at once.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_ROWS: u64 = 65_536;

/// Batches that are read ahead of the sender.
const READ_AHEAD: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Parquet,
    Csv,
    JsonLines,
    ArrowFile,
    ArrowStream,
}

/// A file whose format is known.
#[derive(Debug, Clone)]
pub struct Source {
    path: PathBuf,
    format: Format,
    len: u64,
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

impl Source {
    pub fn open(path: &Path) -> Result<Self> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        let failed = |e: io::Error| Failure::local(format!("{}: {e}", path.display()));
        let mut file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let format = match ending.as_str() {
            "parquet" | "pq" => Format::Parquet,
            "csv" => Format::Csv,
            "json" | "jsonl" | "ndjson" => Format::JsonLines,
            "arrow" | "arrows" | "feather" | "ipc" => {
                let mut magic = Vec::new();
                (&mut file).take(6).read_to_end(&mut magic).map_err(failed)?;
                if magic == b"ARROW1" { Format::ArrowFile } else { Format::ArrowStream }
            }
            _ => {
                return Err(Failure::Usage(format!(
                    "{}: the ending names no format; .parquet, .csv, .jsonl and .arrow are known",
                    path.display()
                )));
            }
        };
        Ok(Self { path: path.to_owned(), format, len })
    }

    /// Whether the file itself tells the types of its columns.
    pub fn is_typed(&self) -> bool {
        !matches!(self.format, Format::Csv | Format::JsonLines)
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// The columns of the file; of text, as its first rows suggest.
    pub fn schema(&self) -> Result<SchemaRef> {
        let file = self.file(&Arc::default())?;
        let schema = match self.format {
            Format::Parquet => {
                let file = File::open(&self.path).map_err(|e| self.failed(&e))?;
                return ParquetRecordBatchReaderBuilder::try_new(file)
                    .map(|reader| reader.schema().clone())
                    .map_err(|e| self.failed(&e));
            }
            Format::Csv => text::infer_csv(file),
            Format::JsonLines => text::infer_json(file),
            Format::ArrowFile => FileReader::try_new(file, None).map(|reader| reader.schema()),
            Format::ArrowStream => StreamReader::try_new(file, None).map(|reader| reader.schema()),
        };
        schema.map_err(|e| self.failed(&e))
    }

    fn file(&self, position: &Arc<AtomicU64>) -> Result<BufReader<Counted>> {
        let file = File::open(&self.path).map_err(|e| self.failed(&e))?;
        Ok(BufReader::with_capacity(1 << 20, Counted { file, position: position.clone() }))
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> Failure {
        Failure::local(format!("{}: {error}", self.path.display()))
    }

    /// The batches of the file under `target`.
    fn batches(&self, target: &SchemaRef, position: &Arc<AtomicU64>) -> Result<Batches> {
        let (schema, batches): (SchemaRef, Batches) = match self.format {
            Format::Parquet => self.parquet(position)?,
            Format::Csv => text::read_csv(self.file(position)?, target).map_err(|e| self.failed(&e))?,
            Format::JsonLines => text::read_json(self.file(position)?, target).map_err(|e| self.failed(&e))?,
            Format::ArrowFile => {
                let reader = FileReader::try_new(self.file(position)?, None).map_err(|e| self.failed(&e))?;
                (reader.schema(), Box::new(reader))
            }
            Format::ArrowStream => {
                let reader = StreamReader::try_new(self.file(position)?, None).map_err(|e| self.failed(&e))?;
                (reader.schema(), Box::new(reader))
            }
        };
        let fit = Fit::new(&schema, target).map_err(|e| self.failed(&e))?;
        Ok(Box::new(batches.map(move |batch| fit.apply(&batch?))))
    }

    fn parquet(&self, position: &Arc<AtomicU64>) -> Result<(SchemaRef, Batches)> {
        let file = File::open(&self.path).map_err(|e| self.failed(&e))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| self.failed(&e))?;
        let groups = builder.metadata().row_groups();
        let rows: u64 = groups.iter().map(|group| group.num_rows().max(0) as u64).sum();
        let bytes: u64 = groups.iter().map(|group| group.total_byte_size().max(0) as u64).sum();
        let schema = builder.schema().clone();
        let reader = builder.with_batch_size(batch_rows(bytes, rows)).build().map_err(|e| self.failed(&e))?;
        let (position, len) = (position.clone(), self.len);
        // The file is read column by column, so its position says little: rows tell how far it is.
        let batches = reader.inspect(move |batch| {
            if let Ok(batch) = batch {
                position.fetch_add(len * batch.num_rows() as u64 / rows.max(1), Ordering::Relaxed);
            }
        });
        Ok((schema, Box::new(batches)))
    }
}

/// Rows that make a batch of the wished size, if so many rows have so many bytes.
fn batch_rows(bytes: u64, rows: u64) -> usize {
    let row = bytes.checked_div(rows).unwrap_or(0).max(1);
    (BATCH_BYTES / row).clamp(1, BATCH_ROWS) as usize
}

/// All files one after the other, read by a thread of its own that is at most a few batches ahead. `position` counts bytes.
pub fn stream(
    sources: &[Source],
    target: &SchemaRef,
    position: Arc<AtomicU64>,
) -> impl Stream<Item = Result<RecordBatch, String>> + use<> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    let (sources, target) = (sources.to_vec(), target.clone());
    position.store(0, Ordering::Relaxed);
    tokio::task::spawn_blocking(move || {
        let rows = sources.iter().flat_map(|source| read(source, &target, &position));
        // After an error there is nothing more to say, and after the last row that it was the last: a reader that died must
        // not be taken for one that is done.
        for event in rows.map(Event::Rows).chain([Event::End]) {
            let last = matches!(event, Event::Rows(Err(_)));
            if sender.blocking_send(event).is_err() || last {
                return;
            }
        }
    });
    stream::unfold(Some(receiver), |receiver| async move {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Event::Rows(Err(e))) => Some((Err(e), None)),
            Some(Event::Rows(batch)) => Some((batch, Some(receiver))),
            Some(Event::End) => None,
            None => Some((Err("the reader of the files stopped".to_owned()), None)),
        }
    })
}

enum Event {
    Rows(Result<RecordBatch, String>),
    End,
}

fn read(
    source: &Source,
    target: &SchemaRef,
    position: &Arc<AtomicU64>,
) -> Box<dyn Iterator<Item = Result<RecordBatch, String>>> {
    let path = source.path.clone();
    match source.batches(target, position) {
        Ok(batches) => Box::new(batches.map(move |batch| batch.map_err(|e| format!("{}: {e}", path.display())))),
        Err(failure) => Box::new(std::iter::once(Err(failure.message()))),
    }
}

/// A file that tells how much of it was read.
struct Counted {
    file: File,
    position: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        self.position.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn wide_rows_make_small_batches() {
        assert_eq!(batch_rows(0, 0), BATCH_ROWS as usize);
        assert_eq!(batch_rows(8 << 30, 1 << 10), 1);
        assert_eq!(batch_rows(1 << 30, 1 << 20), 8192);
    }

    #[test]
    fn a_file_without_a_known_ending_is_wrong_usage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.xyz");
        File::create(&path).unwrap();
        assert!(matches!(Source::open(&path), Err(Failure::Usage(_))));
        assert!(matches!(Source::open(&dir.path().join("none.csv")), Err(Failure::Local(_))));
    }
}
