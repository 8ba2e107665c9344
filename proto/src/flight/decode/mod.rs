//! Messages to record batches.

mod arrays;
mod check;

use std::collections::HashMap;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_flight::FlightDescriptor;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{Message, MessageHeader, root_as_message};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::assemble::Incoming;
use super::error::{Error, Result, from_reader};
use super::schema::{guard, header_to_schema};
use crate::Reason;

/// One message of a stream, understood.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// What it holds.
    pub item: Item,
    /// In the first message of a DoPut.
    pub descriptor: Option<FlightDescriptor>,
    /// From the application; may be empty.
    pub app_metadata: Bytes,
}

/// The Arrow part of a message.
#[derive(Debug, Clone)]
pub enum Item {
    /// The schema of the batches that follow.
    Schema(SchemaRef),
    /// Values that later batches refer to; kept by the decoder.
    Dictionary,
    /// Rows.
    Batch(RecordBatch),
    /// None: the message has metadata alone.
    Metadata,
}

/// State of one stream: its schema and its dictionaries.
#[derive(Debug)]
pub struct Decoder {
    max_bytes: usize,
    schema: Option<SchemaRef>,
    /// All columns are of types that we read ourselves.
    known: bool,
    dictionaries: HashMap<i64, ArrayRef>,
}

impl Decoder {
    /// Refuses a compressed body that unpacks to more than this, and dictionaries that hold more than this.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, schema: None, known: false, dictionaries: HashMap::new() }
    }

    /// The schema, once its message was decoded.
    pub fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    /// Decodes one message. The arrays share its body.
    pub fn decode(&mut self, incoming: Incoming) -> Result<Decoded> {
        let item = if incoming.header.is_empty() { Item::Metadata } else { self.item(&incoming)? };
        Ok(Decoded { item, descriptor: incoming.descriptor, app_metadata: incoming.app_metadata })
    }

    fn item(&mut self, incoming: &Incoming) -> Result<Item> {
        let message = root_as_message(&incoming.header)
            .map_err(|e| Error::corrupt(format!("a message has no valid arrow ipc header: {e}")))?;
        match message.header_type() {
            MessageHeader::Schema => {
                if self.schema.is_some() {
                    return Err(Error::codec(Reason::InvalidArgument, "a stream has one schema, and this is a second"));
                }
                let schema = SchemaRef::new(header_to_schema(&incoming.header)?);
                self.known = arrays::known(&schema);
                self.schema = Some(schema.clone());
                Ok(Item::Schema(schema))
            }
            MessageHeader::DictionaryBatch => self.dictionary(incoming, &message),
            MessageHeader::RecordBatch => self.batch(incoming, &message),
            other => Err(Error::codec(
                Reason::Unsupported,
                format!(
                    "arrow ipc messages of the kind {} are not supported",
                    other.variant_name().unwrap_or("unknown")
                ),
            )),
        }
    }

    fn batch(&self, incoming: &Incoming, message: &Message<'_>) -> Result<Item> {
        let schema = self.known_schema()?.clone();
        let batch = message.header_as_record_batch().ok_or_else(|| Error::corrupt("a record batch has no header"))?;
        check::body(&batch, &incoming.body, self.max_bytes)?;
        let known = self.known && batch.compression().is_none();
        guard("a record batch", || {
            if known {
                return arrays::read(&incoming.body, &batch, schema);
            }
            read_record_batch(&incoming.body, batch, schema, &self.dictionaries, None, &message.version())
                .map_err(|e| from_reader("a record batch", &e))
        })
        .map(Item::Batch)
    }

    fn dictionary(&mut self, incoming: &Incoming, message: &Message<'_>) -> Result<Item> {
        let schema = self.known_schema()?.clone();
        let header = message.header_as_dictionary_batch();
        let batch = header.and_then(|h| h.data()).ok_or_else(|| Error::corrupt("a dictionary has no header"))?;
        check::body(&batch, &incoming.body, self.max_bytes)?;
        let dictionaries = &mut self.dictionaries;
        guard("a dictionary", || {
            let header = header.ok_or_else(|| Error::corrupt("a dictionary has no header"))?;
            read_dictionary(&incoming.body, header, &schema, dictionaries, &message.version())
                .map_err(|e| from_reader("a dictionary", &e))
        })?;
        self.bound_dictionaries()?;
        Ok(Item::Dictionary)
    }

    /// Deltas add to a dictionary, so the bound of one message does not bound it.
    fn bound_dictionaries(&self) -> Result<()> {
        let mut held = 0_usize;
        for values in self.dictionaries.values() {
            let bytes = values.to_data().get_slice_memory_size().map_err(|e| from_reader("a dictionary", &e))?;
            held = held.saturating_add(bytes);
        }
        if held > self.max_bytes {
            return Err(Error::codec(
                Reason::MessageTooLarge,
                format!(
                    "the dictionaries of the stream hold {held} bytes, above the limit of {} bytes",
                    self.max_bytes
                ),
            ));
        }
        Ok(())
    }

    fn known_schema(&self) -> Result<&SchemaRef> {
        self.schema.as_ref().ok_or_else(|| {
            Error::codec(Reason::InvalidArgument, "a stream begins with its schema, and this one does not")
        })
    }
}
