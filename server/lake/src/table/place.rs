//! Where a table lies: from names and URIs to one spelling, and no way out of the warehouse.

use url::Url;

use crate::error::{Error, ErrorKind, Result};

const MAX_PART_BYTES: usize = 128;
const MAX_PARTS: usize = 16;
const MAX_URI_BYTES: usize = 2_048;
const TABLE_SUFFIX: &str = ".lance";

/// A folder in a store, in one spelling: two of them are the same folder exactly if they are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    scheme: String,
    authority: String,
    segments: Vec<String>,
}

impl Place {
    /// From an absolute local path or a URI. Everything that could be spelled twice or lead upwards is refused.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let refuse = |why: &str| Err(Error::invalid(format!("'{}' is no place for a table: {why}", excerpt(text))));
        if text.len() > MAX_URI_BYTES {
            return refuse("it is too long");
        }
        if text.chars().any(|c| c.is_control() || c == '\\') {
            return refuse("it holds a control character or a backslash");
        }
        let (scheme, authority, path) = if text.starts_with('/') {
            ("file".to_owned(), String::new(), text)
        } else if let Some((scheme, rest)) = text.split_once("://") {
            if rest.contains(['%', '?', '#', '@']) {
                return refuse("%, ?, # and @ are not allowed in a URI");
            }
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (scheme.to_ascii_lowercase(), authority.to_owned(), path)
        } else if let Some(path) = text.strip_prefix("file:").filter(|path| path.starts_with('/')) {
            ("file".to_owned(), String::new(), path)
        } else {
            return refuse("it is neither an absolute path nor a URI");
        };
        if scheme.is_empty() || !scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
            return refuse("the scheme is malformed");
        }
        if scheme == "file" && !authority.is_empty() {
            return refuse("a file URI has no host");
        }
        let trimmed = path.strip_prefix('/').unwrap_or(path).trim_end_matches('/');
        let segments: Vec<String> = trimmed.split('/').filter(|_| !trimmed.is_empty()).map(str::to_owned).collect();
        if segments.iter().any(|s| s.is_empty() || s == "." || s == "..") {
            return refuse("an empty segment, '.' and '..' are not allowed");
        }
        Ok(Self { scheme, authority, segments })
    }

    /// From the operator's option, where a relative path counts from the working directory.
    pub(crate) fn parse_option(text: &str) -> Result<Self> {
        if text.contains("://") || text.starts_with("file:/") {
            return Self::parse(text);
        }
        let absolute = std::path::absolute(text)
            .map_err(|e| Error::invalid(format!("'{text}' is no path for a warehouse")).with_source(e))?;
        let mut clean = std::path::PathBuf::new();
        for component in absolute.components() {
            match component {
                std::path::Component::ParentDir => {
                    clean.pop();
                }
                other => clean.push(other),
            }
        }
        match clean.to_str() {
            Some(path) => Self::parse(path),
            None => Err(Error::invalid(format!("'{text}' is no path for a warehouse: it is not UTF-8"))),
        }
    }

    /// The folder of a table below this one.
    pub(crate) fn table(&self, name: &[String]) -> Result<Self> {
        let Some((table, namespaces)) = name.split_last() else {
            return Err(Error::invalid("a table needs a name"));
        };
        check_part(table)?;
        let mut place = self.namespace(namespaces)?;
        place.segments.push(format!("{table}{TABLE_SUFFIX}"));
        Ok(place)
    }

    /// The folder of a namespace below this one.
    pub(crate) fn namespace(&self, name: &[String]) -> Result<Self> {
        if name.len() >= MAX_PARTS {
            return Err(Error::invalid(format!("a name has fewer than {MAX_PARTS} namespaces")));
        }
        let mut place = self.clone();
        for part in name {
            check_part(part)?;
            if part.ends_with(TABLE_SUFFIX) {
                return Err(Error::invalid(format!("a namespace cannot end in {TABLE_SUFFIX}: '{part}'")));
            }
            place.segments.push(part.clone());
        }
        Ok(place)
    }

    /// Whether this lies below the other.
    pub(crate) fn is_below(&self, root: &Self) -> bool {
        self.scheme == root.scheme
            && self.authority == root.authority
            && self.segments.len() > root.segments.len()
            && self.segments.starts_with(&root.segments)
    }

    /// The bucket, if it is one of S3.
    pub(crate) fn bucket(&self) -> Option<&str> {
        (self.scheme == "s3" && !self.authority.is_empty()).then_some(self.authority.as_str())
    }

    /// Folders from the root of the store down to here.
    pub(crate) fn depth(&self) -> usize {
        self.segments.len()
    }

    /// Whether a segment above the last is the folder of a table.
    pub(crate) fn is_inside_table(&self) -> bool {
        self.segments.iter().rev().skip(1).any(|segment| segment.ends_with(TABLE_SUFFIX))
    }

    /// What Lance opens.
    pub(crate) fn uri(&self) -> Result<String> {
        let path = self.segments.join("/");
        if self.scheme == "file" {
            return Url::from_file_path(format!("/{path}"))
                .map(String::from)
                .map_err(|()| Error::invalid("this is no place for a table: the path is malformed"));
        }
        let separator = if path.is_empty() { "" } else { "/" };
        Ok(format!("{}://{}{separator}{path}", self.scheme, self.authority))
    }

    /// The folder on this machine, if it is one.
    pub(crate) fn local_folder(&self) -> Option<String> {
        (self.scheme == "file").then(|| format!("/{}", self.segments.join("/")))
    }
}

/// The name of the table whose folder this is.
pub(crate) fn table_of_folder(folder: &str) -> Option<&str> {
    folder.strip_suffix(TABLE_SUFFIX).filter(|name| check_part(name).is_ok())
}

/// Whether a part of a name is well formed.
pub(crate) fn check_part(part: &str) -> Result<()> {
    let fits = (1..=MAX_PART_BYTES).contains(&part.len())
        && !part.starts_with('.')
        && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    if fits {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "'{}' is no name: a part has 1 to {MAX_PART_BYTES} of A-Z a-z 0-9 _ - . and does not start with a dot",
        excerpt(part)
    )))
}

/// Refuses a place that the operator did not open.
pub(crate) fn not_allowed(shown: &str) -> Error {
    Error::new(
        ErrorKind::PermissionDenied,
        format!(
            "'{}' lies neither below the warehouse nor below a prefix in table.uri-prefixes; name the table, or ask the \
             operator to allow the prefix",
            excerpt(shown)
        ),
    )
}

/// The beginning of what a client sent, harmless in a message.
pub(crate) fn excerpt(text: &str) -> String {
    const SHOWN: usize = 120;
    let mut shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn parts(name: &str) -> Vec<String> {
        name.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn every_spelling_of_a_local_folder_is_one_place() {
        let place = Place::parse("/data/wh/t.lance").unwrap();
        for other in
            ["/data/wh/t.lance/", "file:///data/wh/t.lance", "file:/data/wh/t.lance", "FILE:///data/wh/t.lance//"]
        {
            assert_eq!(Place::parse(other).unwrap(), place, "{other}");
        }
        assert_eq!(place.uri().unwrap(), "file:///data/wh/t.lance");
        let spaced = Place::parse("/data/my wh/é#1").unwrap();
        assert_eq!(spaced.uri().unwrap(), "file:///data/my%20wh/%C3%A9%231");
    }

    #[test]
    fn what_leads_upwards_or_could_be_spelled_twice_is_refused() {
        let bad = [
            "/data/../etc/passwd",
            "/data/./x",
            "/data//x",
            "file:///data/../etc",
            "file:///data/%2e%2e/etc",
            "file://host/data",
            "s3://bucket/a/../b",
            "s3://bucket//a",
            "s3://user:secret@bucket/a",
            "s3://bucket/a?x=1",
            "s3://bucket/a#x",
            "relative/path",
            "../up",
            "",
            "://x",
            "/a\0b",
            "/a\nb",
            "C:\\data",
        ];
        for text in bad {
            assert_eq!(Place::parse(text).unwrap_err().kind(), ErrorKind::InvalidArgument, "{text}");
        }
    }

    #[test]
    fn below_compares_whole_segments_and_scheme_and_bucket() {
        let root = Place::parse("s3://bucket/wh").unwrap();
        let below = |text: &str| Place::parse(text).unwrap().is_below(&root);
        assert!(below("s3://bucket/wh/t"));
        assert!(!below("s3://bucket/wh"));
        assert!(!below("s3://bucket/wh2/t"));
        assert!(!below("s3://other/wh/t"));
        assert!(!below("/bucket/wh/t"));
        assert!(!below("gs://bucket/wh/t"));
    }

    #[test]
    fn names_become_folders_and_bad_names_are_refused() {
        let root = Place::parse("/wh").unwrap();
        assert_eq!(root.table(&parts("a.b/T-1_x")).unwrap().uri().unwrap(), "file:///wh/a.b/T-1_x.lance");
        for name in ["..", ".", ".hidden", "", "a b", "a%2e", "é", "a\0", &"x".repeat(129)] {
            assert!(root.table(&[name.to_owned()]).is_err(), "{name}");
            assert!(root.table(&[name.to_owned(), "t".to_owned()]).is_err(), "{name}");
        }
        assert!(root.table(&parts("x.lance/t")).is_err());
        assert!(root.table(&[]).is_err());
        assert!(root.table(&vec!["a".to_owned(); 17]).is_err());
    }

    #[test]
    fn the_operator_may_give_a_relative_path() {
        let here = std::env::current_dir().unwrap();
        let place = Place::parse_option("./some/../wh").unwrap();
        assert_eq!(place.local_folder().unwrap(), here.join("wh").to_str().unwrap());
    }
}
