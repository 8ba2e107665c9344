//! How tables, versions, columns and commits are named.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use lance_gateway_proto::v1;
use uuid::Uuid;

use crate::{Error, Result};

/// A table.
///
/// From text: parts are separated by dots; text with `://` in it or a `/` in front is a URI.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TableId {
    /// Namespaces from the outside in, then the table.
    Name(Vec<String>),
    /// URI or absolute path of a dataset, where the operator allows it.
    Uri(String),
}

impl TableId {
    /// A table by the parts of its name, which may contain dots.
    pub fn name(parts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Name(parts.into_iter().map(Into::into).collect())
    }

    pub(crate) fn to_wire(&self) -> Option<v1::Table> {
        let kind = match self {
            Self::Name(parts) => v1::table::Kind::Name(v1::TableName { parts: parts.clone() }),
            Self::Uri(uri) => v1::table::Kind::Uri(uri.clone()),
        };
        Some(v1::Table { kind: Some(kind) })
    }
}

impl From<&str> for TableId {
    fn from(text: &str) -> Self {
        match text.contains("://") || text.starts_with('/') {
            true => Self::Uri(text.to_owned()),
            false => Self::Name(text.split('.').map(str::to_owned).collect()),
        }
    }
}

impl From<String> for TableId {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&TableId> for TableId {
    fn from(table: &TableId) -> Self {
        table.clone()
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(parts) => f.write_str(&parts.join(".")),
            Self::Uri(uri) => f.write_str(uri),
        }
    }
}

/// Which version of a table is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum VersionSelector {
    /// The newest.
    #[default]
    Latest,
    /// This one.
    Version(u64),
    /// The one that this tag names.
    Tag(String),
    /// The newest that is not younger than this time.
    AsOf(DateTime<Utc>),
}

impl VersionSelector {
    pub(crate) fn to_wire(&self) -> Option<v1::VersionSelector> {
        let kind = match self {
            Self::Latest => return None,
            Self::Version(version) => v1::version_selector::Kind::Version(*version),
            Self::Tag(tag) => v1::version_selector::Kind::Tag(tag.clone()),
            Self::AsOf(time) => v1::version_selector::Kind::AsOf(prost_types::Timestamp {
                seconds: time.timestamp(),
                // A leap second counts more than a second's nanoseconds; the wire has no such time.
                nanos: time.timestamp_subsec_nanos().min(999_999_999) as i32,
            }),
        };
        Some(v1::VersionSelector { kind: Some(kind) })
    }
}

impl From<u64> for VersionSelector {
    fn from(version: u64) -> Self {
        Self::Version(version)
    }
}

impl From<DateTime<Utc>> for VersionSelector {
    fn from(time: DateTime<Utc>) -> Self {
        Self::AsOf(time)
    }
}

/// A column, or with more than one name a field of a struct column. Names are exact: case matters and dots are ordinary.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnPath(Vec<String>);

impl ColumnPath {
    /// A field by the names from the top down.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }

    /// The names from the top down.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn into_wire(self) -> v1::Column {
        v1::Column { path: self.0 }
    }
}

impl From<&str> for ColumnPath {
    fn from(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }
}

impl From<String> for ColumnPath {
    fn from(name: String) -> Self {
        Self(vec![name])
    }
}

impl<const N: usize> From<[&str; N]> for ColumnPath {
    fn from(names: [&str; N]) -> Self {
        Self::new(names)
    }
}

/// Identity of a commit, drawn by the writer: a random epoch, and a number that counts up within it.
///
/// The gateway makes a commit visible once, however often it is asked for the same id. As text: `EPOCH:SEQ`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CommitId {
    /// A UUID, drawn each time the writer starts or is restored.
    pub epoch: String,
    /// 1, 2, 3, ... within the epoch.
    pub seq: u64,
}

impl CommitId {
    /// The first id of a new epoch.
    pub fn first_of_new_epoch() -> Self {
        Self { epoch: Uuid::new_v4().to_string(), seq: 1 }
    }

    /// The id that follows in the same epoch.
    pub fn next(&self) -> Self {
        Self { epoch: self.epoch.clone(), seq: self.seq + 1 }
    }

    pub(crate) fn to_wire(&self) -> Option<v1::CommitId> {
        Some(v1::CommitId { epoch: self.epoch.clone(), seq: self.seq })
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.seq)
    }
}

impl FromStr for CommitId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text.rsplit_once(':').and_then(|(epoch, seq)| Some((epoch, seq.parse().ok()?)));
        match parsed {
            Some((epoch, seq)) if !epoch.is_empty() => Ok(Self { epoch: epoch.to_owned(), seq }),
            _ => Err(Error::invalid_request(format!("{text:?} is no commit id; it looks like EPOCH:SEQ"))),
        }
    }
}

pub(crate) fn time_from_wire(time: Option<prost_types::Timestamp>) -> Option<DateTime<Utc>> {
    let time = time?;
    DateTime::from_timestamp(time.seconds, u32::try_from(time.nanos).ok()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_name_or_a_uri() {
        assert_eq!(TableId::from("a.b.t"), TableId::name(["a", "b", "t"]));
        assert_eq!(TableId::from("s3://bucket/t.lance"), TableId::Uri("s3://bucket/t.lance".into()));
        assert_eq!(TableId::from("/data/t.lance"), TableId::Uri("/data/t.lance".into()));
        assert_eq!(TableId::from("a.b").to_string(), "a.b");
    }

    #[test]
    fn a_commit_id_survives_its_text_form() {
        let id = CommitId::first_of_new_epoch().next();
        assert_eq!(id.to_string().parse::<CommitId>().unwrap(), id);
        assert_eq!(id.seq, 2);
        for wrong in ["", "abc", "abc:", ":1", "abc:x"] {
            assert!(wrong.parse::<CommitId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_point_in_time_before_the_epoch_keeps_its_fraction() {
        let time = DateTime::from_timestamp(-1, 500_000_000).unwrap();
        let Some(v1::version_selector::Kind::AsOf(wire)) = VersionSelector::from(time).to_wire().unwrap().kind else {
            panic!("not a time");
        };
        assert_eq!(time_from_wire(Some(wire)), Some(time));
    }
}
