//! Bytes of a connection, in pieces of any size, to messages. No IO.
//!
//! A walker over the protobuf fields of `FlightData`, so that a body is written once, to where the arrays will read it.
//! Fields may come in any order; unknown ones are skipped as they pass.

use std::collections::VecDeque;

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_flight::FlightDescriptor;
use bytes::{Buf, Bytes, BytesMut};
use prost::Message as _;

use super::MAX_HEAD_BYTES;
use super::error::{Error, Result};
use crate::Reason;

const PREFIX: usize = 5;

/// One message as it came.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// In the first message of a DoPut.
    pub descriptor: Option<FlightDescriptor>,
    /// From the application.
    pub app_metadata: Bytes,
    /// Arrow IPC header, a flatbuffer; empty if the message holds metadata alone.
    pub header: Bytes,
    /// Aligned for every Arrow type.
    pub body: Buffer,
}

/// Makes messages of the bytes that are pushed.
#[derive(Debug)]
pub struct Assembler {
    max_body: usize,
    input: VecDeque<Bytes>,
    state: State,
    /// Bytes of the current message that are still to come.
    left: usize,
    /// Bytes of the small fields of the current message.
    head: usize,
    message: Partial,
}

#[derive(Debug, Default)]
struct Partial {
    descriptor: Bytes,
    header: Bytes,
    app_metadata: Bytes,
    body: Option<MutableBuffer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Descriptor,
    Header,
    AppMetadata,
    Body,
    Unknown,
}

#[derive(Debug)]
enum State {
    Prefix { bytes: [u8; PREFIX], have: usize },
    Key(Varint),
    Length(Field, Varint),
    Number(Varint),
    Small { field: Field, bytes: BytesMut, want: usize },
    Body { bytes: MutableBuffer, want: usize },
    Skip(usize),
}

#[derive(Debug, Default)]
struct Varint {
    value: u64,
    shift: u32,
}

impl Varint {
    /// Takes one byte; the value once it is complete.
    fn push(&mut self, byte: u8) -> Result<Option<u64>> {
        if self.shift == 63 && byte > 1 {
            return Err(wrong("a number is too long"));
        }
        self.value |= u64::from(byte & 0x7f) << self.shift;
        self.shift += 7;
        Ok((byte < 0x80).then_some(self.value))
    }
}

impl Default for State {
    fn default() -> Self {
        Self::Prefix { bytes: [0; PREFIX], have: 0 }
    }
}

impl Assembler {
    /// Refuses messages whose body is above this.
    pub fn new(max_body_bytes: usize) -> Self {
        Self {
            max_body: max_body_bytes,
            input: VecDeque::new(),
            state: State::default(),
            left: 0,
            head: 0,
            message: Partial::default(),
        }
    }

    /// The bound it was made with.
    pub fn max_body_bytes(&self) -> usize {
        self.max_body
    }

    /// Hands over the next bytes of the connection.
    pub fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.input.push_back(bytes);
        }
    }

    /// Whether the bytes so far end between two messages.
    pub fn is_idle(&self) -> bool {
        self.input.is_empty() && matches!(self.state, State::Prefix { have: 0, .. })
    }

    /// The next complete message; None if it needs more bytes.
    pub fn poll(&mut self) -> Result<Option<Incoming>> {
        loop {
            if self.at_end_of_message() {
                self.state = State::default();
                return self.finish().map(Some);
            }
            let Some(chunk) = self.input.front_mut() else { return Ok(None) };
            let before = chunk.len();
            let in_message = !matches!(self.state, State::Prefix { .. });
            let step = Self::step(&mut self.state, chunk, self.left)?;
            let used = before - chunk.len();
            if chunk.is_empty() {
                self.input.pop_front();
            }
            if in_message {
                self.left -= used;
            }
            match step {
                Step::More => {}
                Step::Began(len) => self.begin(len)?,
                Step::Key(key) => self.state = self.field(key)?,
                Step::Length(field, len) => self.state = self.enter(field, len)?,
                Step::Took(field, bytes) => {
                    match field {
                        Field::Descriptor => self.message.descriptor = bytes,
                        Field::Header => self.message.header = bytes,
                        _ => self.message.app_metadata = bytes,
                    }
                    self.state = State::Key(Varint::default());
                }
                Step::TookBody(bytes) => {
                    self.message.body = Some(bytes);
                    self.state = State::Key(Varint::default());
                }
                Step::Skipped => self.state = State::Key(Varint::default()),
            }
        }
    }

    fn at_end_of_message(&self) -> bool {
        self.left == 0 && matches!(&self.state, State::Key(Varint { shift: 0, .. }))
    }

    fn begin(&mut self, len: usize) -> Result<()> {
        if len > self.max_body.saturating_add(MAX_HEAD_BYTES) {
            return Err(self.too_large(len));
        }
        self.left = len;
        self.head = 0;
        self.state = State::Key(Varint::default());
        Ok(())
    }

    fn too_large(&self, len: usize) -> Error {
        Error::codec(
            Reason::MessageTooLarge,
            format!("a message of {len} bytes is above the limit of {} bytes; send smaller batches", self.max_body),
        )
    }

    /// Moves over at most the current chunk and the current message.
    fn step(state: &mut State, chunk: &mut Bytes, left: usize) -> Result<Step> {
        match state {
            State::Prefix { bytes, have } => {
                let n = chunk.len().min(PREFIX - *have);
                chunk.copy_to_slice(&mut bytes[*have..*have + n]);
                *have += n;
                if *have < PREFIX {
                    return Ok(Step::More);
                }
                let [compressed, a, b, c, d] = *bytes;
                if compressed != 0 {
                    return Err(Error::codec(
                        Reason::Unsupported,
                        "messages compressed by grpc are not supported; compress the arrow buffers instead",
                    ));
                }
                Ok(Step::Began(u32::from_be_bytes([a, b, c, d]) as usize))
            }
            State::Key(varint) => {
                let key = Self::varint(varint, chunk, left)?;
                Ok(key.map_or(Step::More, Step::Key))
            }
            State::Length(field, varint) => {
                let field = *field;
                let len = Self::varint(varint, chunk, left)?;
                Ok(len.map_or(Step::More, |len| Step::Length(field, len)))
            }
            State::Number(varint) => {
                let number = Self::varint(varint, chunk, left)?;
                Ok(number.map_or(Step::More, |_| Step::Skipped))
            }
            State::Small { field, bytes, want } => {
                let n = chunk.len().min(*want - bytes.len());
                bytes.extend_from_slice(&chunk[..n]);
                chunk.advance(n);
                let full = bytes.len() == *want;
                Ok(if full { Step::Took(*field, std::mem::take(bytes).freeze()) } else { Step::More })
            }
            State::Body { bytes, want } => {
                let n = chunk.len().min(*want - bytes.len());
                bytes.extend_from_slice(&chunk[..n]);
                chunk.advance(n);
                let full = bytes.len() == *want;
                Ok(if full { Step::TookBody(std::mem::take(bytes)) } else { Step::More })
            }
            State::Skip(want) => {
                let n = chunk.len().min(*want);
                chunk.advance(n);
                *want -= n;
                Ok(if *want == 0 { Step::Skipped } else { Step::More })
            }
        }
    }

    fn varint(varint: &mut Varint, chunk: &mut Bytes, left: usize) -> Result<Option<u64>> {
        for _ in 0..left.min(chunk.len()) {
            if let Some(value) = varint.push(chunk.get_u8())? {
                return Ok(Some(value));
            }
        }
        // The chunk is empty, or the message ends within the number.
        if chunk.is_empty() { Ok(None) } else { Err(wrong("it ends within a field")) }
    }

    fn field(&mut self, key: u64) -> Result<State> {
        let number = key >> 3;
        let field = match number {
            0 => return Err(wrong("it has a field with the number 0")),
            1 => Field::Descriptor,
            2 => Field::Header,
            3 => Field::AppMetadata,
            1000 => Field::Body,
            _ => Field::Unknown,
        };
        match (key & 7, field) {
            (2, field) => Ok(State::Length(field, Varint::default())),
            (0, Field::Unknown) => Ok(State::Number(Varint::default())),
            (1, Field::Unknown) => self.enter(Field::Unknown, 8),
            (5, Field::Unknown) => self.enter(Field::Unknown, 4),
            (wire, _) => Err(wrong(&format!("field {number} has the wire type {wire}"))),
        }
    }

    /// The length is known: checks it before memory is taken.
    fn enter(&mut self, field: Field, len: u64) -> Result<State> {
        let want = usize::try_from(len).ok().filter(|len| *len <= self.left);
        let want = want.ok_or_else(|| wrong(&format!("a field of {len} bytes reaches over its end")))?;
        match field {
            Field::Body if want > self.max_body => Err(self.too_large(want)),
            Field::Body if want == 0 => {
                self.message.body = None;
                Ok(State::Key(Varint::default()))
            }
            Field::Body => Ok(State::Body { bytes: MutableBuffer::with_capacity(want), want }),
            Field::Unknown if want == 0 => Ok(State::Key(Varint::default())),
            Field::Unknown => Ok(State::Skip(want)),
            field => {
                self.head += want;
                if self.head > MAX_HEAD_BYTES {
                    return Err(Error::codec(
                        Reason::MessageTooLarge,
                        format!("the head of a message is above the limit of {MAX_HEAD_BYTES} bytes"),
                    ));
                }
                let bytes = BytesMut::with_capacity(want);
                if want == 0 {
                    return Ok(State::Key(Varint::default()));
                }
                Ok(State::Small { field, bytes, want })
            }
        }
    }

    fn finish(&mut self) -> Result<Incoming> {
        let Partial { descriptor, header, app_metadata, body } = std::mem::take(&mut self.message);
        let descriptor = if descriptor.is_empty() {
            None
        } else {
            let decoded = FlightDescriptor::decode(descriptor);
            Some(decoded.map_err(|e| wrong(&format!("its descriptor cannot be read: {e}")))?)
        };
        Ok(Incoming { descriptor, app_metadata, header, body: body.map(Buffer::from).unwrap_or_default() })
    }
}

enum Step {
    More,
    Began(usize),
    Key(u64),
    Length(Field, u64),
    Took(Field, Bytes),
    TookBody(MutableBuffer),
    Skipped,
}

fn wrong(what: &str) -> Error {
    Error::corrupt(format!("the message is no FlightData: {what}"))
}
