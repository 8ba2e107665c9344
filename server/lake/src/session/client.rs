//! Options that a caller brings for the store of its table.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use object_store::aws::AwsCredential;
use url::Url;

use super::Access;
use crate::error::{Error, Result};
use crate::options::{LakeOptions, StoreOptions};
use crate::table::{Place, excerpt};

const ACCESS_KEY: &str = "s3-access-key";
const SECRET_KEY: &str = "s3-secret-key";
const SESSION_TOKEN: &str = "s3-session-token";
const REGION: &str = "s3-region";
const ENDPOINT: &str = "s3-endpoint";
const VIRTUAL_HOSTED_STYLE: &str = "s3-virtual-hosted-style";
const ALLOW_HTTP: &str = "s3-allow-http";

/// What a caller says of the store, checked. Without Debug: it holds keys.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ClientOptions {
    access_key: String,
    secret_key: String,
    session_token: Option<String>,
    region: Option<String>,
    endpoint: Option<Url>,
    virtual_hosted_style: bool,
    allow_http: bool,
}

impl ClientOptions {
    pub(crate) fn parse(options: &StoreOptions) -> Result<Self> {
        let given: HashMap<&str, &str> = options.iter().collect();
        let known = [ACCESS_KEY, SECRET_KEY, SESSION_TOKEN, REGION, ENDPOINT, VIRTUAL_HOSTED_STYLE, ALLOW_HTTP];
        if let Some(unknown) = given.keys().find(|key| !known.contains(key)) {
            let unknown = excerpt(unknown);
            return Err(Error::invalid(format!("'{unknown}' is no storage option of clients: {}", known.join(", "))));
        }
        let text = |key| given.get(key).filter(|value| !value.is_empty()).map(|value| (*value).to_owned());
        let flag = |key, default| match given.get(key) {
            None => Ok(default),
            Some(&"true") => Ok(true),
            Some(&"false") => Ok(false),
            Some(_) => Err(Error::invalid(format!("{key} is true or false"))),
        };
        // Never the gateway's own keys at an address that a caller chose.
        let needed = |key| {
            text(key).ok_or_else(|| {
                Error::invalid(format!("storage options of a client need {ACCESS_KEY} and {SECRET_KEY}"))
            })
        };
        let endpoint = text(ENDPOINT).map(|endpoint| check_endpoint(&endpoint)).transpose()?;
        let allow_http = flag(ALLOW_HTTP, false)?;
        if endpoint.as_ref().is_some_and(|endpoint| endpoint.scheme() == "http") && !allow_http {
            return Err(Error::invalid(format!(
                "{ENDPOINT} is http, where keys and rows can be read on the way: use https, or set {ALLOW_HTTP}"
            )));
        }
        Ok(Self {
            access_key: needed(ACCESS_KEY)?,
            secret_key: needed(SECRET_KEY)?,
            session_token: text(SESSION_TOKEN),
            region: text(REGION),
            endpoint,
            virtual_hosted_style: flag(VIRTUAL_HOSTED_STYLE, true)?,
            allow_http,
        })
    }

    pub(super) fn credential(&self) -> AwsCredential {
        AwsCredential {
            key_id: self.access_key.clone(),
            secret_key: self.secret_key.clone(),
            token: self.session_token.clone(),
        }
    }

    /// All but the keys, as Lance calls it.
    pub(super) fn options(&self, bucket: &str) -> HashMap<String, String> {
        let mut options = HashMap::from([
            ("aws_virtual_hosted_style_request".to_owned(), self.virtual_hosted_style.to_string()),
            ("allow_http".to_owned(), self.allow_http.to_string()),
        ]);
        if let Some(region) = &self.region {
            options.insert("aws_region".to_owned(), region.clone());
        }
        if let Some(endpoint) = &self.endpoint {
            options.insert("aws_endpoint".to_owned(), self.address(endpoint, bucket));
        }
        options
    }

    /// Where the bucket is asked for. In virtual-hosted style it is a part of the host, which Lance leaves to the one who names it.
    fn address(&self, endpoint: &Url, bucket: &str) -> String {
        let host = endpoint.host_str().unwrap_or_default();
        let port = endpoint.port().map(|port| format!(":{port}")).unwrap_or_default();
        let bucket = match self.virtual_hosted_style && !host.starts_with(&format!("{bucket}.")) {
            true => format!("{bucket}."),
            false => String::new(),
        };
        format!("{}://{bucket}{host}{port}", endpoint.scheme())
    }
}

fn check_endpoint(text: &str) -> Result<Url> {
    let wrong = || Error::invalid(format!("{ENDPOINT} is http(s)://HOST or http(s)://HOST:PORT"));
    let url = Url::parse(text).map_err(|_| wrong())?;
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
        && matches!(url.path(), "" | "/");
    if matches!(url.scheme(), "http" | "https") && url.has_host() && plain { Ok(url) } else { Err(wrong()) }
}

/// The stores that callers brought options for, the last ones used.
pub(super) struct ClientStores {
    capacity: usize,
    kept: Mutex<VecDeque<(ClientOptions, String, Arc<Access>)>>,
}

impl ClientStores {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, kept: Mutex::new(VecDeque::new()) }
    }

    /// How a caller reaches the store of this place: the same for the same options and bucket.
    pub(super) fn access(&self, client: &ClientOptions, place: &Place, lake: &LakeOptions) -> Result<Arc<Access>> {
        let Some(bucket) = place.bucket() else {
            return Err(Error::invalid("storage options of a client (s3-…) are for tables in s3://; leave them out"));
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().position(|(options, of, _)| options == client && of == bucket);
        let access = match found.and_then(|at| kept.remove(at)) {
            Some((_, _, access)) => access,
            None => Arc::new(Access::of_client(client, bucket, lake)),
        };
        kept.push_front((client.clone(), bucket.to_owned(), access.clone()));
        kept.truncate(self.capacity);
        Ok(access)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn options(more: &[(&str, &str)]) -> StoreOptions {
        let keys = [(ACCESS_KEY, "k"), (SECRET_KEY, "hunter2")];
        keys.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn parsed(more: &[(&str, &str)]) -> Result<ClientOptions> {
        ClientOptions::parse(&options(more))
    }

    #[test]
    fn the_bucket_is_a_part_of_the_host_unless_the_style_is_the_other() {
        let at = |more: &[(&str, &str)]| parsed(more).unwrap().options("b").remove("aws_endpoint").unwrap();
        assert_eq!(at(&[(ENDPOINT, "https://s3.example.com")]), "https://b.s3.example.com");
        assert_eq!(at(&[(ENDPOINT, "https://b.s3.example.com/")]), "https://b.s3.example.com");
        let path_style = (VIRTUAL_HOSTED_STYLE, "false");
        assert_eq!(at(&[(ENDPOINT, "https://s3.example.com:9000"), path_style]), "https://s3.example.com:9000");
    }

    #[test]
    fn http_is_spoken_only_where_it_is_asked_for() {
        assert!(parsed(&[(ENDPOINT, "http://localhost:1")]).is_err());
        assert!(parsed(&[(ENDPOINT, "http://localhost:1"), (ALLOW_HTTP, "true")]).is_ok());
    }

    #[test]
    fn what_is_wrong_is_told_without_a_value() {
        let wrong: [&[(&str, &str)]; 5] = [
            &[("s3-scret-key", "hunter2")],
            &[(ENDPOINT, "https://k:hunter2@host")],
            &[(ENDPOINT, "hunter2")],
            &[(ALLOW_HTTP, "hunter2")],
            &[(SECRET_KEY, "")],
        ];
        for more in wrong {
            let Err(error) = parsed(more) else { unreachable!("{more:?}") };
            assert!(!error.message().contains("hunter2"), "{error}");
        }
        assert!(ClientOptions::parse(&StoreOptions::from_iter([(REGION.to_owned(), "r".to_owned())])).is_err());
    }

    #[test]
    fn only_callers_with_the_same_options_share_a_store_and_few_are_kept() {
        let stores = ClientStores::new(2);
        let lake = LakeOptions::default();
        let place = Place::parse("s3://b/t.lance").unwrap();
        let access = |more: &[(&str, &str)]| stores.access(&parsed(more).unwrap(), &place, &lake).unwrap();
        let first = access(&[]);
        assert!(Arc::ptr_eq(&first, &access(&[])));
        let other = access(&[(SESSION_TOKEN, "t")]);
        assert!(!Arc::ptr_eq(&first, &other));
        assert_ne!(first.tag(), other.tag());
        access(&[(REGION, "r")]);
        assert!(Arc::ptr_eq(&other, &access(&[(SESSION_TOKEN, "t")])));
        assert!(!Arc::ptr_eq(&first, &access(&[])), "the one that was not used for longest is gone");
        assert!(stores.access(&parsed(&[]).unwrap(), &Place::parse("/wh/t.lance").unwrap(), &lake).is_err());
    }
}
