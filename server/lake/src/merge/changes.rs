//! Files of changes: what one stage brought, in the order in which it came. Each is a stream of Arrow batches, compressed, in
//! `_lance_gateway/changes` beside the data of a table; no manifest names it.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt, try_unfold};
use lance_io::object_store::ObjectStore;
use object_store::ObjectStoreExt as _;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use tokio::io::AsyncWriteExt as _;
use uuid::Uuid;

use crate::commit::messages::ChangeFile;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::from_store;

/// Below the table.
pub(crate) const FOLDER: [&str; 2] = ["_lance_gateway", "changes"];
/// Bytes of one part of an upload; a smaller file is one request.
const PART_BYTES: usize = 8 << 20;

/// Where a file of changes lies.
pub(crate) fn path(table: &Path, name: &str) -> Path {
    FOLDER.iter().fold(table.clone(), |path, part| path.join(*part)).join(name)
}

/// Writes one file.
pub(super) struct ChangeWriter {
    file: ChangeFile,
    encoder: StreamWriter<Vec<u8>>,
    upload: BufWriter,
}

impl ChangeWriter {
    pub(super) fn create(store: &ObjectStore, table: &Path, schema: &SchemaRef) -> Result<Self> {
        let name = format!("{}.arrows", Uuid::new_v4());
        let options = IpcWriteOptions::default()
            .try_with_compression(Some(CompressionType::ZSTD))
            .and_then(|options| StreamWriter::try_new_with_options(Vec::new(), schema, options));
        Ok(Self {
            upload: BufWriter::with_capacity(store.inner.clone(), path(table, &name), PART_BYTES),
            file: ChangeFile { name, ..Default::default() },
            encoder: options.map_err(unwritable)?,
        })
    }

    /// `upserts`: how many of them say how a row is from then on.
    pub(super) async fn write(&mut self, changes: &RecordBatch, upserts: usize) -> Result<()> {
        self.encoder.write(changes).map_err(unwritable)?;
        self.file.num_changes += changes.num_rows() as u64;
        self.file.num_upserts += upserts as u64;
        self.send().await
    }

    pub(super) async fn finish(mut self) -> Result<ChangeFile> {
        self.encoder.finish().map_err(unwritable)?;
        self.send().await?;
        self.upload.shutdown().await.map_err(unsent)?;
        Ok(self.file)
    }

    /// Gives the file up.
    pub(super) async fn abort(mut self) {
        if let Err(error) = self.upload.abort().await {
            tracing::warn!(%error, "the upload of a file of changes is left to the store");
        }
    }

    async fn send(&mut self) -> Result<()> {
        let encoded = std::mem::take(self.encoder.get_mut());
        self.file.num_bytes += encoded.len() as u64;
        self.upload.put(encoded.into()).await.map_err(|e| from_store(e, DOING))
    }
}

const DOING: &str = "cannot keep the changes";

fn unwritable(error: ArrowError) -> Error {
    Error::internal("a batch of changes cannot be written").with_source(error)
}

fn unsent(error: std::io::Error) -> Error {
    match error.downcast::<object_store::Error>() {
        Ok(store) => from_store(store, DOING),
        Err(other) => Error::new(ErrorKind::StoreUnavailable, DOING).with_source(other),
    }
}

/// The batches of files, in their order.
pub(super) fn read(
    store: Arc<ObjectStore>,
    table: Path,
    files: &[ChangeFile],
) -> BoxStream<'static, Result<RecordBatch>> {
    stream::iter(files.to_vec()).then(move |file| open(store.clone(), path(&table, &file.name))).try_flatten().boxed()
}

async fn open(store: Arc<ObjectStore>, path: Path) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let found = store.inner.get(&path).await.map_err(|e| match e {
        object_store::Error::NotFound { .. } => Error::new(
            ErrorKind::StagedFileMissing,
            format!(
                "the file of changes {} is gone; the rows must be staged again",
                path.filename().unwrap_or_default()
            ),
        ),
        other => from_store(other, READING),
    })?;
    let reading =
        Reading { bytes: found.into_stream(), decoder: StreamDecoder::new(), left: Buffer::from(Bytes::new()) };
    Ok(try_unfold(reading, |mut reading| async move { Ok(reading.next().await?.map(|batch| (batch, reading))) })
        .boxed())
}

const READING: &str = "cannot read the changes";

struct Reading {
    bytes: BoxStream<'static, object_store::Result<Bytes>>,
    decoder: StreamDecoder,
    left: Buffer,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.decoder.decode(&mut self.left).map_err(damaged)? {
                return Ok(Some(batch));
            }
            match self.bytes.next().await {
                Some(bytes) => self.left = Buffer::from(bytes.map_err(|e| from_store(e, READING))?),
                None => {
                    self.decoder.finish().map_err(damaged)?;
                    return Ok(None);
                }
            }
        }
    }
}

pub(super) fn damaged(error: ArrowError) -> Error {
    Error::new(ErrorKind::CorruptData, "a file of changes is damaged").with_source(error)
}
