//! Record batches to messages that hold the memory of the arrays.

mod arrays;
mod trim;

use arrow_array::RecordBatch;
use arrow_flight::FlightDescriptor;
use arrow_ipc::writer::{CompressionContext, DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteOptions};
use arrow_ipc::{MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder};
use arrow_schema::{DataType, Schema};
use bytes::Bytes;
use flatbuffers::FlatBufferBuilder;
use prost::Message as _;

use super::error::{Error, Result};
use super::message::Message;
use crate::Reason;
use arrays::Body;

/// Sizes of messages, in bytes of their bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodeOptions {
    /// A batch well above this is cut into messages of about this size.
    pub target_bytes: usize,
    /// A message of more than one row is not larger than this.
    pub max_bytes: usize,
    /// A row larger than this is an error.
    pub max_row_bytes: usize,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self { target_bytes: 2 << 20, max_bytes: 8 << 20, max_row_bytes: 64 << 20 }
    }
}

/// Encodes one stream: a schema, then batches that have it.
///
/// Dictionaries travel as dictionaries: once, and again when they change.
#[derive(Debug)]
pub struct Encoder {
    options: EncodeOptions,
    header: Bytes,
    dictionaries: Option<DictionaryTracker>,
}

impl Encoder {
    /// An encoder for batches of this schema.
    pub fn new(schema: &Schema, options: EncodeOptions) -> Self {
        let mut tracker = DictionaryTracker::new(false);
        let encoded = IpcDataGenerator {}.schema_to_bytes_with_dictionary_tracker(
            schema,
            &mut tracker,
            &IpcWriteOptions::default(),
        );
        let dictionaries = schema.fields().iter().any(|f| has_dictionary(f.data_type())).then_some(tracker);
        Self { options, header: Bytes::from(encoded.ipc_message), dictionaries }
    }

    /// The first message of the stream; a DoPut has its descriptor there.
    pub fn schema_message(&self, descriptor: Option<&FlightDescriptor>, app_metadata: Bytes) -> Message {
        let descriptor = descriptor.map(|d| Bytes::from(d.encode_to_vec())).unwrap_or_default();
        Message { descriptor, header: self.header.clone(), app_metadata, ..Message::default() }
    }

    /// The messages of one batch: changed dictionaries, then its rows in one or more messages. `app_metadata` goes with the
    /// first message of rows.
    pub fn encode(&mut self, batch: &RecordBatch, app_metadata: Bytes) -> Result<Vec<Message>> {
        let mut out = self.changed_dictionaries(batch)?;
        let first = out.len();
        self.rows(batch, 0, self.options.target_bytes, &mut out)?;
        if let Some(message) = out.get_mut(first) {
            message.app_metadata = app_metadata;
        }
        Ok(out)
    }

    fn rows(&self, batch: &RecordBatch, first_row: usize, target: usize, out: &mut Vec<Message>) -> Result<()> {
        let rows = batch.num_rows();
        let message = record_batch(batch)?;
        let EncodeOptions { max_bytes, max_row_bytes, .. } = self.options;
        // Rounded, so that a batch little above the target stays whole.
        let pieces = (message.body_len + target / 2) / target.max(1);
        if rows <= 1 {
            if message.body_len > max_row_bytes {
                return Err(Error::codec(
                    Reason::RowTooLarge,
                    format!(
                        "row {first_row} of a batch takes {} bytes, above the limit of {max_row_bytes} bytes for one row",
                        message.body_len
                    ),
                ));
            }
            out.push(message);
            return Ok(());
        }
        if pieces <= 1 && message.body_len <= max_bytes {
            out.push(message);
            return Ok(());
        }
        drop(message);
        let step = piece_rows(rows, pieces.max(2));
        for start in (0..rows).step_by(step) {
            let piece = batch.slice(start, step.min(rows - start));
            // Rows differ in size: a piece is cut again only if it breaks the bound.
            self.rows(&piece, first_row + start, max_bytes, out)?;
        }
        Ok(())
    }

    fn changed_dictionaries(&mut self, batch: &RecordBatch) -> Result<Vec<Message>> {
        let Some(tracker) = self.dictionaries.as_mut() else { return Ok(Vec::new()) };
        // Slicing to no rows keeps the dictionaries, so Arrow's writer encodes them and nothing else.
        let (changed, _) = IpcDataGenerator {}
            .encode(&batch.slice(0, 0), tracker, &IpcWriteOptions::default(), &mut CompressionContext::default())
            .map_err(|e| Error::codec(Reason::Internal, format!("a dictionary cannot be encoded: {e}")))?;
        changed.into_iter().map(|encoded| self.dictionary(encoded)).collect()
    }

    fn dictionary(&self, encoded: EncodedData) -> Result<Message> {
        let EncodedData { ipc_message, arrow_data } = encoded;
        if arrow_data.len() > self.options.max_row_bytes {
            return Err(Error::codec(
                Reason::MessageTooLarge,
                format!(
                    "a dictionary of {} bytes is above the limit of {} bytes for one message",
                    arrow_data.len(),
                    self.options.max_row_bytes
                ),
            ));
        }
        let body_len = arrow_data.len();
        let body = if body_len == 0 { Vec::new() } else { vec![Bytes::from(arrow_data)] };
        Ok(Message { header: Bytes::from(ipc_message), body, body_len, ..Message::default() })
    }
}

/// Rows of each of so many pieces. A multiple of 64 where that is possible: then bitmaps are cut without being shifted.
fn piece_rows(rows: usize, pieces: usize) -> usize {
    let even = rows.div_ceil(pieces).max(1);
    if even >= 64 { even.next_multiple_of(64).min(rows - 1) } else { even }
}

fn record_batch(batch: &RecordBatch) -> Result<Message> {
    let mut body = Body::default();
    for column in batch.columns() {
        body.array(column.as_ref())?;
    }
    let (nodes, buffers, variadic, parts, body_len) = body.finish();

    let mut fbb = FlatBufferBuilder::new();
    let buffers = fbb.create_vector(&buffers);
    let nodes = fbb.create_vector(&nodes);
    let variadic = (!variadic.is_empty()).then(|| fbb.create_vector(&variadic));
    let mut header = RecordBatchBuilder::new(&mut fbb);
    header.add_length(batch.num_rows() as i64);
    header.add_nodes(nodes);
    header.add_buffers(buffers);
    if let Some(variadic) = variadic {
        header.add_variadicBufferCounts(variadic);
    }
    let header = header.finish().as_union_value();
    let mut message = MessageBuilder::new(&mut fbb);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::RecordBatch);
    message.add_bodyLength(body_len as i64);
    message.add_header(header);
    let message = message.finish();
    fbb.finish(message, None);
    Ok(Message { header: Bytes::copy_from_slice(fbb.finished_data()), body: parts, body_len, ..Message::default() })
}

fn has_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, _) => true,
        DataType::List(f)
        | DataType::LargeList(f)
        | DataType::ListView(f)
        | DataType::LargeListView(f)
        | DataType::FixedSizeList(f, _)
        | DataType::Map(f, _) => has_dictionary(f.data_type()),
        DataType::RunEndEncoded(_, values) => has_dictionary(values.data_type()),
        DataType::Struct(fields) => fields.iter().any(|f| has_dictionary(f.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, f)| has_dictionary(f.data_type())),
        _ => false,
    }
}
