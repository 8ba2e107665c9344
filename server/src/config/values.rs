//! Kinds of values. Each knows how people write it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use serde_yaml_ng::Value as Yaml;
use url::Url;

/// A kind of value.
pub trait OptionValue: Sized {
    /// For people.
    const KIND: &'static str;
    /// Never shown.
    const SECRET: bool = false;

    /// From a flag or the environment. The error says what would be right; it does not repeat the value.
    fn parse(text: &str) -> Result<Self, String>;

    /// From the file.
    fn from_yaml(value: &Yaml) -> Result<Self, String> {
        match scalar(value) {
            Some(text) => Self::parse(&text),
            None => Err(format!("must be {}", Self::KIND)),
        }
    }

    /// For bounds.
    fn measure(&self) -> Option<u128> {
        None
    }
}

fn scalar(value: &Yaml) -> Option<String> {
    match value {
        Yaml::Null => Some(String::new()),
        Yaml::Bool(b) => Some(b.to_string()),
        Yaml::Number(n) => Some(n.to_string()),
        Yaml::String(s) => Some(s.clone()),
        Yaml::Sequence(_) | Yaml::Mapping(_) | Yaml::Tagged(_) => None,
    }
}

/// Elements of a sequence, or of a comma list.
fn elements(value: &Yaml) -> Result<Vec<String>, String> {
    match value {
        Yaml::Sequence(items) => {
            items.iter().map(|item| scalar(item).ok_or_else(|| "must be a list of plain values".to_owned())).collect()
        }
        _ => scalar(value).map(|text| split(&text)).ok_or_else(|| "must be a list".to_owned()),
    }
}

fn split(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

impl OptionValue for u32 {
    const KIND: &'static str = "a number";

    fn parse(text: &str) -> Result<Self, String> {
        text.trim().parse().map_err(|_| "must be a whole number".to_owned())
    }

    fn measure(&self) -> Option<u128> {
        Some(u128::from(*self))
    }
}

impl OptionValue for bool {
    const KIND: &'static str = "true or false";

    fn parse(text: &str) -> Result<Self, String> {
        text.trim().parse().map_err(|_| format!("must be {}", Self::KIND))
    }
}

/// A number of bytes, written with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

impl ByteSize {
    /// In bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// For sizes in memory.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// For HTTP/2, whose sizes have 31 bits.
    pub fn as_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl OptionValue for ByteSize {
    const KIND: &'static str = "a size";

    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "must be a size such as 512KiB, 64MiB or 1GiB".to_owned();
        let text = text.trim();
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let shift = match unit.trim_start() {
            "" | "B" => 0,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            "TiB" => 40,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(1 << shift).map(Self).ok_or_else(wrong)
    }

    fn measure(&self) -> Option<u128> {
        Some(u128::from(self.0))
    }
}

/// A time, written with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanDuration(Duration);

impl HumanDuration {
    /// As the standard library has it.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl OptionValue for HumanDuration {
    const KIND: &'static str = "a duration";

    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "must be a duration such as 500ms, 30s, 5m, 2h or 6d".to_owned();
        let text = text.trim();
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let millis = match unit.trim_start() {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(millis).map(|ms| Self(Duration::from_millis(ms))).ok_or_else(wrong)
    }

    fn measure(&self) -> Option<u128> {
        Some(self.0.as_millis())
    }
}

/// Text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text, for the one who needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// Names with secret values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretMap(BTreeMap<String, Secret>);

impl SecretMap {
    /// In the clear, for the store.
    pub fn expose(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(k, v)| (k.clone(), v.expose().to_owned()))
    }
}

impl OptionValue for SecretMap {
    const KIND: &'static str = "a map";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('{') {
            let map: BTreeMap<String, String> =
                serde_json::from_str(text).map_err(|_| "must be a JSON object whose values are strings".to_owned())?;
            return Ok(Self(map.into_iter().map(|(k, v)| (k, Secret(v))).collect()));
        }
        split(text)
            .into_iter()
            .map(|pair| match pair.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), Secret(value.to_owned()))),
                _ => Err("must be KEY=VALUE,KEY=VALUE or a JSON object".to_owned()),
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn from_yaml(value: &Yaml) -> Result<Self, String> {
        match value {
            Yaml::Mapping(map) => map
                .iter()
                .map(|(key, value)| match (scalar(key), scalar(value)) {
                    (Some(key), Some(value)) => Ok((key, Secret(value))),
                    _ => Err("must be a map of plain values".to_owned()),
                })
                .collect::<Result<_, _>>()
                .map(Self),
            Yaml::Null => Ok(Self::default()),
            _ => Err("must be a map".to_owned()),
        }
    }
}

/// Names of places, each with secret values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreMap(pub BTreeMap<String, SecretMap>);

impl OptionValue for StoreMap {
    const KIND: &'static str = "a map of maps";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        // Every JSON document is a YAML document.
        let value = serde_yaml_ng::from_str(text).map_err(|_| "must be a JSON object of objects".to_owned())?;
        Self::from_yaml(&value)
    }

    fn from_yaml(value: &Yaml) -> Result<Self, String> {
        let wrong = || "must be a map of maps: folders or URIs, each with the options of its store".to_owned();
        match value {
            Yaml::Mapping(map) => map
                .iter()
                .map(|(place, options)| match (scalar(place), options) {
                    (Some(place), Yaml::Mapping(_)) => {
                        // As it would be said of a warehouse: no key may hide in the name.
                        Warehouse::parse(&place)?;
                        Ok((place, SecretMap::from_yaml(options)?))
                    }
                    _ => Err(wrong()),
                })
                .collect::<Result<_, _>>()
                .map(Self),
            Yaml::Null => Ok(Self::default()),
            _ => Err(wrong()),
        }
    }
}

/// Any number of texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextList(pub Vec<String>);

impl OptionValue for TextList {
    const KIND: &'static str = "a list";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(split(text)))
    }

    fn from_yaml(value: &Yaml) -> Result<Self, String> {
        elements(value).map(Self)
    }
}

/// Where the gateway listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Listen {
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            // The kernel takes 108 bytes with a zero at the end.
            Some(path) if path.starts_with('/') && path.len() < 108 => Ok(Self::Unix(path.into())),
            Some(_) => Err("a Unix socket must be unix:/PATH with an absolute path of at most 107 bytes".to_owned()),
            None => SocketAddr::parse(text).map(Self::Tcp),
        }
    }
}

impl OptionValue for Vec<Listen> {
    const KIND: &'static str = "a list";

    fn parse(text: &str) -> Result<Self, String> {
        listens(split(text))
    }

    fn from_yaml(value: &Yaml) -> Result<Self, String> {
        listens(elements(value)?)
    }
}

fn listens(texts: Vec<String>) -> Result<Vec<Listen>, String> {
    if texts.is_empty() {
        return Err("must name at least one address".to_owned());
    }
    texts.iter().map(|text| Listen::parse(text)).collect()
}

impl OptionValue for SocketAddr {
    const KIND: &'static str = "HOST:PORT";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        // A name is looked up only if it is the one that needs no network.
        let address = match text.strip_prefix("localhost:") {
            Some(_) => text.to_socket_addrs().ok().and_then(|mut found| found.find(SocketAddr::is_ipv4)),
            None => text.parse().ok(),
        };
        match address {
            None => Err("must be HOST:PORT with an IP address or localhost".to_owned()),
            Some(address) if address.ip().is_loopback() => Ok(address),
            Some(_) => {
                Err("must be a loopback address: the gateway refuses to listen beyond this host without TLS and \
                            authentication, and has neither yet"
                    .to_owned())
            }
        }
    }
}

/// Root of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warehouse(String);

impl Warehouse {
    /// As given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl OptionValue for Warehouse {
    const KIND: &'static str = "a folder or URI";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("must be a folder or a URI".to_owned());
        }
        if text.contains("://") {
            let url = Url::parse(text).map_err(|_| "is no valid URI".to_owned())?;
            if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
                return Err("must hold no credentials and no query: they belong into storage.options".to_owned());
            }
        }
        Ok(Self(text.to_owned()))
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident: $kind:literal { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// As people write it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl OptionValue for $name {
            const KIND: &'static str = $kind;

            fn parse(text: &str) -> Result<Self, String> {
                match text.trim() {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(concat!("must be ", $kind).to_owned()),
                }
            }
        }
    };
}

choice! {
    /// Lance file format.
    StorageVersion: "2.0, 2.1 or 2.2" {
        /// 2.0
        V2_0 = "2.0",
        /// 2.1
        V2_1 = "2.1",
        /// 2.2
        V2_2 = "2.2",
    }
}

choice! {
    /// How log lines look.
    LogFormat: "text or json" {
        /// For people.
        Text = "text",
        /// One object a line.
        Json = "json",
    }
}

/// What is logged: directives of `tracing_subscriber::EnvFilter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLevel(String);

impl LogLevel {
    /// For `EnvFilter`.
    pub fn directives(&self) -> &str {
        &self.0
    }
}

impl OptionValue for LogLevel {
    const KIND: &'static str = "a level or directives";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let directives = match text {
            // Lance and its kin tell each file they open at info.
            "error" | "warn" | "info" | "debug" | "trace" => {
                let others = if text == "error" { "error" } else { "warn" };
                // It warns at each search of a behaviour that may change some day.
                format!("{others},lance::dataset::scanner=error,lance_gateway={text},lance_gateway_lake={text}")
            }
            _ => text.to_owned(),
        };
        if directives.is_empty() || tracing_subscriber::EnvFilter::try_new(&directives).is_err() {
            return Err("must be error, warn, info, debug, trace, or directives such as info,lance=debug".to_owned());
        }
        Ok(Self(directives))
    }
}

/// 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio(pub f64);

impl OptionValue for Ratio {
    const KIND: &'static str = "a number from 0 to 1";

    fn parse(text: &str) -> Result<Self, String> {
        match text.trim().parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Self(ratio)),
            _ => Err(format!("must be {}", Self::KIND)),
        }
    }
}

/// Permissions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(pub u32);

impl OptionValue for FileMode {
    const KIND: &'static str = "an octal mode";

    fn parse(text: &str) -> Result<Self, String> {
        match u32::from_str_radix(text.trim(), 8) {
            Ok(mode) if mode <= 0o777 => Ok(Self(mode)),
            _ => Err("must be an octal mode such as 0600 or 0660, in quotes in the file".to_owned()),
        }
    }

    fn from_yaml(value: &Yaml) -> Result<Self, String> {
        match value {
            // 0660 without quotes would arrive as a number in another base.
            Yaml::String(text) => Self::parse(text),
            _ => Err("must be an octal mode in quotes, such as \"0660\"".to_owned()),
        }
    }
}

/// Where telemetry goes, if anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpEndpoint(pub Option<Url>);

impl OptionValue for OtlpEndpoint {
    const KIND: &'static str = "a URL";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self(None));
        }
        match Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(Self(Some(url))),
            _ => Err("must be a URL such as http://127.0.0.1:4317".to_owned()),
        }
    }
}

/// Tells a gateway from the others of its warehouse, if it has a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceName(pub Option<String>);

impl OptionValue for InstanceName {
    const KIND: &'static str = "a name";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let fits = text.len() <= 128
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        match text {
            "" => Ok(Self(None)),
            _ if fits => Ok(Self(Some(text.to_owned()))),
            _ => {
                Err("must be at most 128 of a-z, A-Z, 0-9, '.', '-' and '_', and begin with a letter or a digit"
                    .to_owned())
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_need_a_known_unit_and_do_not_overflow() {
        assert_eq!(ByteSize::parse("64MiB").unwrap().bytes(), 64 << 20);
        assert_eq!(ByteSize::parse("1 GiB").unwrap().bytes(), 1 << 30);
        assert_eq!(ByteSize::parse("4096").unwrap().bytes(), 4096);
        for wrong in ["", "MiB", "1MB", "1.5GiB", "-1", "99999999999TiB"] {
            assert!(ByteSize::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(HumanDuration::parse("90s").unwrap().get(), Duration::from_secs(90));
        assert_eq!(HumanDuration::parse("6d").unwrap().get(), Duration::from_secs(6 * 86_400));
        for wrong in ["", "5", "s", "1 week", "99999999999999999d"] {
            assert!(HumanDuration::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_loopback_and_absolute_unix_paths_are_listened_on() {
        for right in ["127.0.0.1:0", "[::1]:8815", "localhost:8815", "unix:/run/lance-gateway.sock"] {
            assert!(Listen::parse(right).is_ok(), "{right}");
        }
        let beyond = Listen::parse("0.0.0.0:8815").unwrap_err();
        assert!(beyond.contains("TLS and authentication"), "{beyond}");
        for wrong in ["8815", "example.com:80", "unix:run.sock", "unix:", "[::]:1", "10.0.0.1:1"] {
            assert!(Listen::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Listen::parse(&format!("unix:/{}", "x".repeat(107))).is_err());
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let options = SecretMap::parse("aws_secret_access_key=hunter2, region=x=y").unwrap();
        assert!(!format!("{options:?}").contains("hunter2"));
        assert!(options.expose().any(|option| option == ("region".into(), "x=y".into())));
        assert!(SecretMap::parse(r#"{"a": "1,2"}"#).unwrap().expose().eq([("a".into(), "1,2".into())]));
        assert!(!SecretMap::parse("hunter2").unwrap_err().contains("hunter2"));
    }

    #[test]
    fn a_warehouse_holds_no_credentials() {
        assert!(Warehouse::parse("s3://key:secret@bucket/path").is_err());
        assert!(Warehouse::parse("s3://bucket/path?sig=1").is_err());
        assert!(Warehouse::parse("s3://bucket/path").is_ok());
        assert!(Warehouse::parse("./lance-warehouse").is_ok());
    }

    #[test]
    fn the_name_of_a_gateway_is_one_part_of_a_path() {
        assert_eq!(InstanceName::parse("").unwrap(), InstanceName(None));
        assert_eq!(InstanceName::parse("gateway-0.a_b").unwrap().0.as_deref(), Some("gateway-0.a_b"));
        for wrong in ["a/b", "..", "-", "a b", "ä", &"a".repeat(129)] {
            assert!(InstanceName::parse(wrong).is_err(), "{wrong}");
        }
    }
}
