//! Accepted connections of all listeners as one stream, bounded in number.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::{self, Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use super::listener::Listener;
use crate::config::ConnectionConfig;
use crate::telemetry::Metrics;

/// After an error of accept (no file handles, for example) the kernel has nothing better a microsecond later.
const AFTER_ERROR: Duration = Duration::from_millis(50);

type Socket = Either<TcpStream, UnixStream>;

/// One client connection, TCP or Unix.
pub struct Connection {
    stream: Socket,
    /// Runs until the first byte is there.
    silent: Option<Pin<Box<Sleep>>>,
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
}

/// Accepts from all listeners. They close when the stream is dropped.
pub fn connections(
    listeners: Vec<Listener>,
    config: &ConnectionConfig,
    metrics: &Arc<Metrics>,
) -> impl Stream<Item = io::Result<Connection>> + use<> {
    let permits = Arc::new(Semaphore::new(usize::try_from(config.max).unwrap_or(Semaphore::MAX_PERMITS)));
    stream::select_all(listeners.into_iter().map(|listener| {
        let accept = Accept {
            listener,
            permits: Arc::clone(&permits),
            handshake: config.handshake_timeout.get(),
            metrics: Arc::clone(metrics),
        };
        stream::unfold(accept, |accept| async { Some((Ok(accept.next().await), accept)) }).boxed()
    }))
}

struct Accept {
    listener: Listener,
    permits: Arc<Semaphore>,
    handshake: Duration,
    metrics: Arc<Metrics>,
}

impl Accept {
    async fn next(&self) -> Connection {
        loop {
            let stream = match self.accept().await {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(AFTER_ERROR).await;
                    continue;
                }
            };
            let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
                self.metrics.connection_refused();
                tracing::debug!("a connection was closed: connection.max is reached");
                continue;
            };
            self.metrics.connection_opened();
            return Connection {
                stream,
                silent: Some(Box::pin(tokio::time::sleep(self.handshake))),
                metrics: Arc::clone(&self.metrics),
                _permit: permit,
            };
        }
    }

    async fn accept(&self) -> io::Result<Socket> {
        match &self.listener {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Either::Left(stream))
            }
            Listener::Unix(listener, _) => listener.accept().await.map(|(stream, _)| Either::Right(stream)),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.metrics.connection_closed();
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.silent = None;
        } else if let Some(silent) = &mut self.silent
            && silent.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the connection sent nothing")));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
