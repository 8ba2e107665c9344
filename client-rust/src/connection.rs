//! From a URI to HTTP/2 connections.

use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::{ClientOptions, Error, Result, TlsOptions};

/// Where a gateway listens if the URI names no port.
const DEFAULT_PORT: u16 = 8815;

/// The connections of one client.
#[derive(Debug)]
pub(crate) struct Connections {
    /// For the small calls, so that they never wait behind rows.
    calls: Channel,
    streams: Vec<Channel>,
    next: AtomicUsize,
}

impl Connections {
    /// Connects once, so that a wrong address is told at once; the connections for streams follow when they are needed.
    pub(crate) async fn open(uri: &str, options: &ClientOptions) -> Result<Self> {
        let endpoint = endpoint(uri, options)?;
        let calls = tokio::time::timeout(options.connect_timeout, endpoint.connect())
            .await
            .map_err(|_| Error::unavailable(format!("{uri} did not answer within {:?}", options.connect_timeout)))?
            .map_err(|e| Error::unavailable(format!("cannot connect to {uri}: {}", root_cause(&e))))?;
        let streams = (0..options.connections).map(|_| endpoint.connect_lazy()).collect();
        Ok(Self { calls, streams, next: AtomicUsize::new(0) })
    }

    pub(crate) fn for_call(&self) -> Channel {
        self.calls.clone()
    }

    pub(crate) fn for_stream(&self) -> Channel {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        self.streams[n % self.streams.len()].clone()
    }
}

/// tonic says "transport error"; what helps is at the end of the chain.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn endpoint(uri: &str, options: &ClientOptions) -> Result<Endpoint> {
    let (address, tls) = address(uri)?;
    let wrong = |e: tonic::transport::Error| Error::invalid_request(format!("wrong uri {uri}: {}", root_cause(&e)));
    let mut endpoint = Endpoint::from_shared(address)
        .and_then(|endpoint| endpoint.user_agent(concat!("lance-gateway-client/", env!("CARGO_PKG_VERSION"))))
        .map_err(wrong)?
        .connect_timeout(options.connect_timeout)
        .initial_stream_window_size(options.stream_window_bytes)
        .initial_connection_window_size(options.connection_window_bytes)
        .max_frame_size(options.max_frame_bytes)
        .http2_keep_alive_interval(options.keep_alive_interval)
        .keep_alive_timeout(options.keep_alive_interval)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    if tls {
        endpoint = endpoint.tls_config(tls_config(&options.tls)?).map_err(wrong)?;
    }
    Ok(endpoint)
}

/// What tonic calls the address, and whether TLS is spoken there.
fn address(uri: &str) -> Result<(String, bool)> {
    let wrong = |what: &str| {
        Error::invalid_request(format!(
            "wrong uri {uri}: {what}; use grpc://HOST:PORT, grpc+tls://HOST:PORT or grpc+unix:///PATH"
        ))
    };
    let (scheme, rest) = uri.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
    if scheme == "grpc+unix" {
        return match rest.starts_with('/') {
            true => Ok((format!("unix://{rest}"), false)),
            false => Err(wrong("the path of the socket is not absolute")),
        };
    }
    let (http, tls) = match scheme {
        "grpc" | "grpc+tcp" => ("http", false),
        "grpc+tls" => ("https", true),
        _ => return Err(wrong("its scheme is not known")),
    };
    let authority: http::uri::Authority =
        rest.strip_suffix('/').unwrap_or(rest).parse().map_err(|_| wrong("host and port are not as they should be"))?;
    if authority.host().is_empty() || authority.as_str().contains('@') {
        return Err(wrong("host and port are not as they should be"));
    }
    let port = authority.port_u16().unwrap_or(DEFAULT_PORT);
    Ok((format!("{http}://{}:{port}", authority.host()), tls))
}

fn tls_config(options: &TlsOptions) -> Result<ClientTlsConfig> {
    // Another library of the program may bring a second provider, and then rustls chooses none. A provider that is installed
    // already stays.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        rustls::crypto::ring::default_provider().install_default().ok();
    }
    let mut config = ClientTlsConfig::new();
    config = match &options.ca_pem {
        Some(pem) => config.ca_certificate(Certificate::from_pem(pem)),
        None => trust_system(config)?,
    };
    if let Some(domain) = &options.domain {
        config = config.domain_name(domain);
    }
    if let Some((chain, key)) = &options.identity_pem {
        config = config.identity(Identity::from_pem(chain, key));
    }
    Ok(config)
}

fn trust_system(config: ClientTlsConfig) -> Result<ClientTlsConfig> {
    let found = rustls_native_certs::load_native_certs();
    // A broken certificate among many is common and harms nobody; none at all does.
    let anchors: Vec<_> = found
        .certs
        .iter()
        .filter_map(|certificate| Some(webpki::anchor_from_trusted_cert(certificate).ok()?.to_owned()))
        .collect();
    match (anchors.is_empty(), found.errors.first()) {
        (false, _) => Ok(config.trust_anchors(anchors)),
        (true, Some(error)) => {
            Err(Error::invalid_request(format!("the system's certificates cannot be read: {error}")))
        }
        (true, None) => {
            Err(Error::invalid_request("the system has no certificates of authorities; give the authority to trust"))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_uri_has_its_address() {
        for (uri, expected) in [
            ("grpc://127.0.0.1:8815", ("http://127.0.0.1:8815", false)),
            ("grpc+tcp://gateway:1/", ("http://gateway:1", false)),
            ("grpc://gateway", ("http://gateway:8815", false)),
            ("grpc://[::1]:9000", ("http://[::1]:9000", false)),
            ("grpc+tls://gateway.example:443", ("https://gateway.example:443", true)),
            ("grpc+unix:///run/lance-gateway.sock", ("unix:///run/lance-gateway.sock", false)),
        ] {
            let (address, tls) = address(uri).unwrap();
            assert_eq!((address.as_str(), tls), expected, "{uri}");
        }
    }

    #[test]
    fn a_wrong_uri_says_what_is_wrong_and_what_is_right() {
        for uri in
            ["127.0.0.1:8815", "http://host:1", "grpc+unix://run/x", "grpc://", "grpc://h:1/path", "grpc://a@b:1"]
        {
            let error = address(uri).unwrap_err();
            assert!(error.message().contains(uri) && error.message().contains("grpc+unix:///PATH"), "{error}");
            assert!(!error.is_retriable());
        }
    }
}
