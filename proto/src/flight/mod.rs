//! Record batches on the wire of Arrow Flight with one copy a side.
//!
//! Two seams, both without IO, so that another transport than HTTP/2 can stand behind them:
//!
//! ```text
//! RecordBatch -> Encoder -> Message { header, body: Vec<Bytes> } -> frames    -> GrpcBody (an http_body::Body)
//! RecordBatch <- Decoder <- Incoming { header, body: Buffer }    <- Assembler <- MessageReader (over any http_body::Body)
//! ```
//!
//! A [`Message`] holds the buffers of the batch as they are; the socket is the first to copy them. The [`Assembler`] copies
//! each body once, out of the frames of the connection into one aligned buffer that the decoded arrays share.
//!
//! Server, DoGet:
//!
//! ```text
//! let mut encoder = Encoder::new(&schema, EncodeOptions::default())?;
//! first:      Frames::from(encoder.schema_message(None, Bytes::new()))
//! each batch: for message in encoder.encode(&batch, Bytes::new())? { Frames::from(message) }
//! http::Response::new(tonic::body::Body::new(GrpcBody::response(stream of Result<Frames, tonic::Status>)))
//! ```
//!
//! Client, DoGet: send a unary request (`GrpcBody::request` over one `Frames::of(&ticket)`), then
//!
//! ```text
//! let mut batches = BatchReader::new(MessageReader::response(http_response, max_message_bytes)?);
//! while let Some(decoded) = batches.next().await { match decoded?.item { Item::Schema(_) | Item::Batch(_) | Item::Metadata => .. } }
//! ```
//!
//! DoPut is the same with the sides changed: `GrpcBody::request` over the messages (the first one made with
//! `encoder.schema_message(Some(&descriptor), ..)`), `MessageReader::request` on the server, and
//! `SmallMessages::<PutResult>::response` for the acks.
//!
//! Reading is the door for bytes of strangers: every length is checked before memory is taken, and whatever the Arrow
//! reader finds wrong becomes an [`Error`] with a [`Reason`](crate::Reason).

mod assemble;
mod body;
mod command;
mod decode;
mod encode;
mod error;
mod message;
mod reader;
mod schema;
#[cfg(test)]
mod tests;

pub use assemble::{Assembler, Incoming};
pub use body::{Frames, GrpcBody};
pub use command::{decode_command, encode_json};
pub use decode::{Decoded, Decoder, Item};
pub use encode::{EncodeOptions, Encoder};
pub use error::{Error, Result};
pub use message::Message;
pub use reader::{BatchReader, MessageReader, SmallMessages};
pub use schema::{ipc_to_schema, schema_to_ipc};

/// What a message may hold beside its body: descriptor, metadata and Arrow header.
pub const MAX_HEAD_BYTES: usize = 4 << 20;
