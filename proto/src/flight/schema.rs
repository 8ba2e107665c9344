//! A schema as bytes: the encapsulated Arrow IPC message that Flight and our own messages carry.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions, write_message};
use arrow_ipc::{Endianness, MetadataVersion, root_as_message};
use arrow_schema::Schema;
use bytes::Bytes;

use super::error::{Error, Result};
use crate::Reason;

const CONTINUATION: [u8; 4] = [0xff; 4];

/// The schema as an encapsulated IPC message.
pub fn schema_to_ipc(schema: &Schema) -> Bytes {
    let options = IpcWriteOptions::default();
    let encoded = IpcDataGenerator {}.schema_to_bytes_with_dictionary_tracker(
        schema,
        &mut DictionaryTracker::new(false),
        &options,
    );
    let mut out = Vec::with_capacity(encoded.ipc_message.len() + 64);
    match write_message(&mut out, encoded, &options) {
        Ok(_) => Bytes::from(out),
        // Writing to memory cannot fail; an empty message is refused by every reader.
        Err(_) => Bytes::new(),
    }
}

/// The schema of an encapsulated IPC message.
pub fn ipc_to_schema(bytes: &[u8]) -> Result<Schema> {
    let cut = || Error::corrupt("the schema is no arrow ipc message: it is cut short");
    // The marker came with format version 0.15; some clients still write the older form without it.
    let rest = bytes.strip_prefix(&CONTINUATION).unwrap_or(bytes);
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| cut())?;
    header_to_schema(rest.get(..length).ok_or_else(cut)?)
}

/// The schema of a bare flatbuffer message, as FlightData carries it.
pub(crate) fn header_to_schema(header: &[u8]) -> Result<Schema> {
    let message =
        root_as_message(header).map_err(|e| Error::corrupt(format!("the schema is no arrow ipc message: {e}")))?;
    if message.version() < MetadataVersion::V4 {
        return Err(Error::codec(Reason::Unsupported, "arrow ipc before metadata version 4 is not supported"));
    }
    let schema = message
        .header_as_schema()
        .ok_or_else(|| Error::corrupt("the arrow ipc message holds no schema where one is expected"))?;
    if schema.endianness() != Endianness::Little {
        return Err(Error::codec(Reason::Unsupported, "big-endian arrow data is not supported"));
    }
    guard("the schema", || Ok(arrow_ipc::convert::fb_to_schema(schema)))
}

/// The Arrow reader panics on many kinds of wrong bytes, and these come from strangers.
pub(crate) fn guard<T>(what: &str, read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(Error::corrupt(format!("{what} is not valid arrow data"))))
}
