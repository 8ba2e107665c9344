//! Messages out of the body of a gRPC call.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use arrow_schema::SchemaRef;
use bytes::{Buf, Bytes, BytesMut};
use futures::{Stream, StreamExt};
use http::HeaderMap;
use http_body::Body;
use tonic::{Code, Status};

use super::assemble::{Assembler, Incoming};
use super::decode::{Decoded, Decoder, Item};
use super::error::{Error, Result};
use crate::Reason;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body, and whether its end must tell a status.
#[derive(Debug)]
struct Source<B> {
    body: B,
    response: bool,
    ended: bool,
}

enum Event {
    Data(Bytes),
    End,
}

impl<B: Body<Data = Bytes> + Unpin> Source<B>
where
    B::Error: Into<BoxError>,
{
    fn request(body: B) -> Self {
        Self { body, response: false, ended: false }
    }

    fn response(response: http::Response<B>) -> Result<Self> {
        let (head, body) = response.into_parts();
        let ended = match Status::from_header_map(&head.headers) {
            Some(status) if status.code() != Code::Ok => return Err(Error::status(status)),
            known => known.is_some(),
        };
        if head.status != http::StatusCode::OK {
            return Err(Error::Transport(format!("the other side answered HTTP {}", head.status).into()));
        }
        Ok(Self { body, response: true, ended })
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event>> {
        while !self.ended {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
                self.ended = true;
                if self.response {
                    return Poll::Ready(Err(Error::Transport("the stream ended without a status".into())));
                }
                // A reset without an error looks like an end, but the client has not said that this was all.
                if !self.body.is_end_stream() {
                    return Poll::Ready(Err(Error::Transport("the stream was given up".into())));
                }
                break;
            };
            let frame = frame.map_err(|e| {
                self.ended = true;
                Error::Transport(e.into())
            })?;
            match frame.into_data() {
                Ok(data) => return Poll::Ready(Ok(Event::Data(data))),
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        self.ended = true;
                        check(&trailers)?;
                    }
                }
            }
        }
        Poll::Ready(Ok(Event::End))
    }
}

fn check(trailers: &HeaderMap) -> Result<()> {
    match Status::from_header_map(trailers) {
        Some(status) if status.code() != Code::Ok => Err(Error::status(status)),
        _ => Ok(()),
    }
}

/// Flight messages of a request or response, each with its body in one aligned buffer.
#[derive(Debug)]
pub struct MessageReader<B> {
    source: Source<B>,
    assembler: Assembler,
    failed: bool,
}

impl<B: Body<Data = Bytes> + Unpin> MessageReader<B>
where
    B::Error: Into<BoxError>,
{
    /// Reads what a client sends.
    pub fn request(body: B, max_body_bytes: usize) -> Self {
        Self { source: Source::request(body), assembler: Assembler::new(max_body_bytes), failed: false }
    }

    /// Reads what a server answers; an answer that is an error from the start is returned at once.
    pub fn response(response: http::Response<B>, max_body_bytes: usize) -> Result<Self> {
        let source = Source::response(response)?;
        Ok(Self { source, assembler: Assembler::new(max_body_bytes), failed: false })
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Incoming>>> {
        loop {
            if let Some(incoming) = self.assembler.poll()? {
                return Poll::Ready(Ok(Some(incoming)));
            }
            match ready!(self.source.poll(cx))? {
                Event::Data(data) => self.assembler.push(data),
                Event::End if self.assembler.is_idle() => return Poll::Ready(Ok(None)),
                Event::End => return Poll::Ready(Err(Error::corrupt("the stream ends within a message"))),
            }
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Stream for MessageReader<B>
where
    B::Error: Into<BoxError>,
{
    type Item = Result<Incoming>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.failed {
            return Poll::Ready(None);
        }
        let item = ready!(this.poll_message(cx)).transpose();
        this.failed = matches!(item, Some(Err(_)));
        Poll::Ready(item)
    }
}

/// Decoded messages of a request or response.
#[derive(Debug)]
pub struct BatchReader<B> {
    messages: MessageReader<B>,
    decoder: Decoder,
    failed: bool,
}

impl<B: Body<Data = Bytes> + Unpin> BatchReader<B>
where
    B::Error: Into<BoxError>,
{
    /// Decodes these messages, with the bound of the reader for what they unpack to.
    pub fn new(messages: MessageReader<B>) -> Self {
        let decoder = Decoder::new(messages.assembler.max_body_bytes());
        Self { messages, decoder, failed: false }
    }

    /// The schema, once its message came.
    pub fn schema(&self) -> Option<&SchemaRef> {
        self.decoder.schema()
    }

    /// The next message; dictionaries are kept and not shown.
    pub async fn next(&mut self) -> Option<Result<Decoded>> {
        StreamExt::next(self).await
    }
}

impl<B: Body<Data = Bytes> + Unpin> Stream for BatchReader<B>
where
    B::Error: Into<BoxError>,
{
    type Item = Result<Decoded>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        while !this.failed {
            let Some(incoming) = ready!(Pin::new(&mut this.messages).poll_next(cx)) else { break };
            let decoded = incoming.and_then(|incoming| this.decoder.decode(incoming));
            this.failed = decoded.is_err();
            match decoded {
                Ok(Decoded { item: Item::Dictionary, .. }) => {}
                decoded => return Poll::Ready(Some(decoded)),
            }
        }
        Poll::Ready(None)
    }
}

/// Small protobuf messages of a request or response: tickets, acks.
#[derive(Debug)]
pub struct SmallMessages<B, M> {
    source: Source<B>,
    bytes: BytesMut,
    max_bytes: usize,
    failed: bool,
    message: PhantomData<fn() -> M>,
}

impl<B: Body<Data = Bytes> + Unpin, M: prost::Message + Default> SmallMessages<B, M>
where
    B::Error: Into<BoxError>,
{
    /// Reads what a client sends.
    pub fn request(body: B, max_bytes: usize) -> Self {
        Self::over(Source::request(body), max_bytes)
    }

    /// Reads what a server answers; an answer that is an error from the start is returned at once.
    pub fn response(response: http::Response<B>, max_bytes: usize) -> Result<Self> {
        Ok(Self::over(Source::response(response)?, max_bytes))
    }

    fn over(source: Source<B>, max_bytes: usize) -> Self {
        Self { source, bytes: BytesMut::new(), max_bytes, failed: false, message: PhantomData }
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<M>>> {
        loop {
            if let Some(message) = self.parse()? {
                return Poll::Ready(Ok(Some(message)));
            }
            match ready!(self.source.poll(cx))? {
                Event::Data(data) => self.bytes.extend_from_slice(&data),
                Event::End if self.bytes.is_empty() => return Poll::Ready(Ok(None)),
                Event::End => return Poll::Ready(Err(Error::corrupt("the stream ends within a message"))),
            }
        }
    }

    fn parse(&mut self) -> Result<Option<M>> {
        let Some([compressed, len @ ..]) = self.bytes.first_chunk::<5>().copied() else { return Ok(None) };
        if compressed != 0 {
            return Err(Error::codec(Reason::Unsupported, "messages compressed by grpc are not supported"));
        }
        let len = u32::from_be_bytes(len) as usize;
        if len > self.max_bytes {
            return Err(Error::codec(
                Reason::MessageTooLarge,
                format!("a message of {len} bytes is above the limit of {} bytes", self.max_bytes),
            ));
        }
        if self.bytes.len() < 5 + len {
            return Ok(None);
        }
        self.bytes.advance(5);
        let message = self.bytes.split_to(len).freeze();
        M::decode(message).map(Some).map_err(|e| Error::corrupt(format!("a message cannot be read: {e}")))
    }
}

impl<B: Body<Data = Bytes> + Unpin, M: prost::Message + Default> Stream for SmallMessages<B, M>
where
    B::Error: Into<BoxError>,
{
    type Item = Result<M>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.failed {
            return Poll::Ready(None);
        }
        let item = ready!(this.poll_message(cx)).transpose();
        this.failed = matches!(item, Some(Err(_)));
        Poll::Ready(item)
    }
}
