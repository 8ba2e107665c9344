//! Messages as the body of a gRPC call over HTTP/2.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use futures::Stream;
use http::HeaderMap;
use http_body::{Body, Frame};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use tonic::Status;

use super::message::Message;

const DESCRIPTOR: u32 = 1;
const HEADER: u32 = 2;
const APP_METADATA: u32 = 3;
const BODY: u32 = 1000;
const PREFIX: usize = 5;

/// A part below this is copied into its neighbour: a frame of its own would cost more.
pub(crate) const COALESCE: usize = 8 << 10;

/// One gRPC message, cut into the pieces that are handed to the socket.
#[derive(Debug, Default)]
pub struct Frames {
    parts: VecDeque<Bytes>,
    len: usize,
}

impl Frames {
    /// Any small protobuf message.
    pub fn of(message: &impl prost::Message) -> Self {
        let len = message.encoded_len();
        let mut out = BytesMut::with_capacity(PREFIX + len);
        put_prefix(&mut out, len);
        message.encode_raw(&mut out);
        Self { len: out.len(), parts: VecDeque::from([out.freeze()]) }
    }

    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The next piece.
    pub fn pop(&mut self) -> Option<Bytes> {
        let part = self.parts.pop_front()?;
        self.len -= part.len();
        Some(part)
    }
}

impl From<Bytes> for Frames {
    /// A piece of a message that was cut already.
    fn from(piece: Bytes) -> Self {
        Self { len: piece.len(), parts: VecDeque::from([piece]) }
    }
}

impl From<Message> for Frames {
    fn from(message: Message) -> Self {
        let small =
            [(DESCRIPTOR, &message.descriptor), (HEADER, &message.header), (APP_METADATA, &message.app_metadata)];
        let mut len: usize = small.iter().map(|(field, bytes)| field_len(*field, bytes.len())).sum();
        len += field_len(BODY, message.body_len);

        let mut head = BytesMut::with_capacity(PREFIX + len - message.body_len + COALESCE);
        put_prefix(&mut head, len);
        for (field, bytes) in small {
            if !bytes.is_empty() {
                put_key(&mut head, field, bytes.len());
                head.extend_from_slice(bytes);
            }
        }
        if message.body_len > 0 {
            put_key(&mut head, BODY, message.body_len);
        }
        let mut body = message.body.into_iter().peekable();
        while let Some(part) = body.next_if(|part| part.len() < COALESCE) {
            head.extend_from_slice(&part);
        }
        let mut parts = VecDeque::with_capacity(1 + body.len());
        parts.push_back(head.freeze());
        parts.extend(body);
        Self { parts, len: PREFIX + len }
    }
}

fn put_prefix(out: &mut BytesMut, len: usize) {
    out.put_u8(0);
    // The limits of the encoder keep a message far below 4 GiB.
    out.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
}

fn put_key(out: &mut BytesMut, field: u32, len: usize) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(len as u64, out);
}

fn field_len(field: u32, len: usize) -> usize {
    if len == 0 { 0 } else { key_len(field) + encoded_len_varint(len as u64) + len }
}

/// The body of a request or response: messages, and for a response the trailers with its status.
#[derive(Debug)]
pub struct GrpcBody<S> {
    messages: Option<S>,
    current: Frames,
    trailers: bool,
}

impl<S> GrpcBody<S> {
    /// The body of a response. It ends with the status of the first error, or with OK.
    pub fn response(messages: S) -> Self {
        Self { messages: Some(messages), current: Frames::default(), trailers: true }
    }

    /// The body of a request. An error resets the stream.
    pub fn request(messages: S) -> Self {
        Self { messages: Some(messages), current: Frames::default(), trailers: false }
    }
}

impl<S: Stream<Item = Result<Frames, Status>> + Unpin> Body for GrpcBody<S> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        loop {
            if let Some(part) = this.current.pop() {
                return Poll::Ready(Some(Ok(Frame::data(part))));
            }
            let Some(messages) = this.messages.as_mut() else { return Poll::Ready(None) };
            let end = match std::task::ready!(Pin::new(messages).poll_next(cx)) {
                Some(Ok(frames)) => {
                    this.current = frames;
                    continue;
                }
                Some(Err(status)) => Err(status),
                None => Ok(()),
            };
            // Whatever feeds the stream is released now, not when the connection lets go of the body.
            this.messages = None;
            return Poll::Ready(match (end, this.trailers) {
                (Ok(()), false) => None,
                (Err(status), false) => Some(Err(status)),
                (end, true) => Some(trailers(end.err().unwrap_or_else(|| Status::ok("")))),
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        self.messages.is_none() && self.current.is_empty()
    }
}

fn trailers(status: Status) -> Result<Frame<Bytes>, Status> {
    let mut map = HeaderMap::with_capacity(3);
    status.add_header(&mut map)?;
    Ok(Frame::trailers(map))
}
