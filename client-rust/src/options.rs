//! How a client behaves. Everything that can wait or grow has a bound here.

use std::collections::HashMap;
use std::time::Duration;

use lance_gateway_proto::v1;
use prost::Message as _;
use tonic::metadata::{Binary, MetadataValue};

use crate::{Error, Result};

const MIB: u32 = 1 << 20;

/// Bounds and habits of a [`Client`](crate::Client).
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Connections to the gateway; streams take turns. One connection keeps about one core busy. Default 4.
    pub connections: usize,
    /// Longest time to connect. Default 5 s.
    pub connect_timeout: Duration,
    /// Longest time of one attempt of a call, and of opening a stream. Default 60 s.
    pub request_timeout: Duration,
    /// Longest time that a stream waits for the next batch or the next acknowledgement. Default 5 min.
    pub stream_idle_timeout: Duration,
    /// A connection that does not answer a ping for this long, and once more as long, is dead. Default 20 s.
    pub keep_alive_interval: Duration,
    /// Largest message that is taken and sent. Default 64 MiB.
    pub max_message_bytes: usize,
    /// HTTP/2 window of one stream: bytes of rows that are under way. Default 16 MiB.
    pub stream_window_bytes: u32,
    /// HTTP/2 window of one connection. Default 64 MiB.
    pub connection_window_bytes: u32,
    /// Largest HTTP/2 frame that is taken, 16 KiB to 16 MiB. Default 1 MiB.
    pub max_frame_bytes: u32,
    /// Splits that a scan over all splits reads at once. Default 2.
    pub prefetch_splits: usize,
    /// Batches that are decoded ahead, for each split that is read. Default 2.
    pub prefetch_batches: usize,
    /// Batches of keys that one lookup has under way at once. Default 8.
    pub lookups_in_flight: usize,
    /// Batches that a writer may be ahead of the connection. Default 2.
    pub write_ahead_batches: usize,
    /// How the stores of the tables are reached, where the gateway's own options are not meant and the operator allows it.
    pub storage: StorageOptions,
    /// How failed calls are repeated.
    pub retry: RetryOptions,
    /// Used with `grpc+tls://`.
    pub tls: TlsOptions,
}

/// How failed calls are repeated: with growing pauses, each drawn at random up to twice its length.
#[derive(Debug, Clone)]
pub struct RetryOptions {
    /// Attempts of one call, and of one stream without a row in between; 1: no repeat. Default 5.
    pub max_attempts: usize,
    /// First pause. Default 100 ms.
    pub initial_backoff: Duration,
    /// Longest pause, also of those that the gateway asks for. Default 5 s.
    pub max_backoff: Duration,
}

/// Options of a store by name, such as `s3-access-key`: see the message `StorageOptions` of the gateway. Sent with each call, and
/// never shown.
#[derive(Clone, Default)]
pub struct StorageOptions(HashMap<String, String>);

impl StorageOptions {
    /// As metadata of a call; none if there is nothing to say.
    pub(crate) fn header(&self) -> Option<MetadataValue<Binary>> {
        if self.0.is_empty() {
            return None;
        }
        let mut value = MetadataValue::from_bytes(&v1::StorageOptions { options: self.0.clone() }.encode_to_vec());
        value.set_sensitive(true);
        Some(value)
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for StorageOptions {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(options: I) -> Self {
        Self(options.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl std::fmt::Debug for StorageOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What a client trusts and shows with TLS.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// Certificates in PEM form of the authorities that are trusted. None: those of the operating system.
    pub ca_pem: Option<Vec<u8>>,
    /// The name in the certificate of the gateway. None: the host of the URI.
    pub domain: Option<String>,
    /// Certificate chain and private key of the client in PEM form, where the gateway asks for them.
    pub identity_pem: Option<(Vec<u8>, Vec<u8>)>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connections: 4,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(60),
            stream_idle_timeout: Duration::from_secs(300),
            keep_alive_interval: Duration::from_secs(20),
            max_message_bytes: 64 * MIB as usize,
            stream_window_bytes: 16 * MIB,
            connection_window_bytes: 64 * MIB,
            max_frame_bytes: MIB,
            prefetch_splits: 2,
            prefetch_batches: 2,
            lookups_in_flight: 8,
            write_ahead_batches: 2,
            storage: StorageOptions::default(),
            retry: RetryOptions::default(),
            tls: TlsOptions::default(),
        }
    }
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self { max_attempts: 5, initial_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(5) }
    }
}

impl std::fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsOptions")
            .field("ca_pem", &self.ca_pem.as_ref().map(Vec::len))
            .field("domain", &self.domain)
            .field("identity_pem", &self.identity_pem.as_ref().map(|_| "<redacted>"))
            .finish()
    }
}

impl ClientOptions {
    /// All problems at once.
    pub(crate) fn validate(&self) -> Result<()> {
        // HTTP/2 allows no larger window and no other frame size.
        const WINDOW: u64 = (1 << 31) - 1;
        let sizes = [
            ("connections", self.connections as u64, 1, 1024),
            ("max_message_bytes", self.max_message_bytes as u64, 1024, i32::MAX as u64),
            ("stream_window_bytes", self.stream_window_bytes.into(), 1 << 14, WINDOW),
            ("connection_window_bytes", self.connection_window_bytes.into(), 1 << 14, WINDOW),
            ("max_frame_bytes", self.max_frame_bytes.into(), 1 << 14, (1 << 24) - 1),
            ("prefetch_splits", self.prefetch_splits as u64, 1, 1024),
            ("prefetch_batches", self.prefetch_batches as u64, 1, 1024),
            ("write_ahead_batches", self.write_ahead_batches as u64, 1, 1024),
            ("retry.max_attempts", self.retry.max_attempts as u64, 1, 1000),
        ];
        let times = [
            ("connect_timeout", self.connect_timeout),
            ("request_timeout", self.request_timeout),
            ("stream_idle_timeout", self.stream_idle_timeout),
            ("keep_alive_interval", self.keep_alive_interval),
            ("retry.initial_backoff", self.retry.initial_backoff),
            ("retry.max_backoff", self.retry.max_backoff),
        ];
        let mut problems: Vec<String> = sizes
            .into_iter()
            .filter(|(_, value, low, high)| value < low || value > high)
            .map(|(name, value, low, high)| format!("{name} is {value}, allowed are {low} to {high}"))
            .collect();
        problems
            .extend(times.into_iter().filter(|(_, time)| time.is_zero()).map(|(name, _)| format!("{name} is zero")));
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::invalid_request(format!("wrong client options: {}", problems.join("; ")))),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_allowed() {
        ClientOptions::default().validate().unwrap();
    }

    #[test]
    fn all_wrong_options_are_told_at_once() {
        let options = ClientOptions {
            connections: 0,
            max_frame_bytes: 1 << 24,
            connect_timeout: Duration::ZERO,
            ..ClientOptions::default()
        };
        let message = options.validate().unwrap_err().message().to_owned();
        for name in ["connections is 0", "max_frame_bytes is 16777216", "connect_timeout is zero"] {
            assert!(message.contains(name), "{message}");
        }
    }

    #[test]
    fn a_storage_key_is_not_shown() {
        let storage = StorageOptions::from_iter([("s3-secret-key", "hunter2")]);
        assert_eq!(format!("{storage:?}"), r#"{"s3-secret-key"}"#);
        let sent = storage.header().unwrap().to_bytes().unwrap();
        assert_eq!(v1::StorageOptions::decode(sent).unwrap().options["s3-secret-key"], "hunter2");
        assert!(StorageOptions::default().header().is_none());
    }

    #[test]
    fn a_private_key_is_not_shown() {
        let tls = TlsOptions { identity_pem: Some((b"chain".to_vec(), b"secret".to_vec())), ..TlsOptions::default() };
        assert!(!format!("{tls:?}").contains("115"), "{tls:?}");
    }
}
