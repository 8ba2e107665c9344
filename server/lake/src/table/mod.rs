//! Tables: where they lie, how they are opened, created, described and dropped.

mod create;
mod describe;
mod handler;
mod open;
mod place;

use std::sync::Arc;

use futures::future::BoxFuture;
use lance::Dataset;

use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::session::Access;
use crate::types::TableId;

pub(crate) use create::{INCARNATION_KEY, parse_file_version};
pub(crate) use describe::column_path;
pub(crate) use handler::EditingHandler;
pub(crate) use open::OpenTables;
pub(crate) use place::{Place, check_part, excerpt, table_of_folder};

/// Where a table is.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// What Lance opens.
    pub(crate) uri: String,
    /// What clients may see: what the client sent.
    pub(crate) shown: String,
    /// How its store is reached.
    pub(crate) access: Arc<Access>,
}

impl Location {
    /// The table as a text that differs where what was read must not be shared: between incarnations, and between callers that
    /// reach it with options of their own. Lance's caches are keyed by the text of the URI, and no store looks at
    /// the fragment.
    pub(crate) fn marked_uri(&self, incarnation: &str) -> String {
        match (self.access.tag(), incarnation) {
            ("", "") => self.uri.clone(),
            (tag, "") => format!("{}#{tag}", self.uri),
            ("", incarnation) => format!("{}#{incarnation}", self.uri),
            (tag, incarnation) => format!("{}#{tag}.{incarnation}", self.uri),
        }
    }
}

impl Lake {
    /// The place of a table, if the operator allows it. Nothing is read.
    pub(crate) fn locate(&self, table: &TableId) -> Result<Location> {
        match table {
            TableId::Name(parts) => {
                let place = self.inner.warehouse.table(parts)?;
                Ok(Location { uri: place.uri()?, shown: parts.join("."), access: self.access(&place)? })
            }
            TableId::Uri(uri) => {
                let place = Place::parse(uri)?;
                let allowed = place.is_below(&self.inner.warehouse)
                    || self.inner.uri_prefixes.iter().any(|prefix| place.is_below(prefix));
                if !allowed || place.is_inside_table() {
                    return Err(place::not_allowed(uri));
                }
                Ok(Location { uri: place.uri()?, shown: excerpt(uri), access: self.access(&place)? })
            }
        }
    }

    /// Deletes a table with all its versions. False: there was none, and `if_exists` allowed it.
    pub fn drop_table<'a>(&'a self, table: &'a TableId, if_exists: bool) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            let doing = format!("cannot drop table {}", location.shown);
            match self.open_latest(&location).await {
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::TableNotFound && if_exists => return Ok(false),
                Err(e) => return Err(e),
            }
            let (store, path) = self.inner.stores.store(&location.uri, &location.access).await?;
            // The versions go first: from then on the table is gone for everybody, whatever happens to the rest.
            for folder in [path.clone().join("_versions"), path] {
                match store.remove_dir_all(folder).await {
                    Ok(()) => {}
                    Err(e) if e.is_not_found() => {}
                    Err(e) => return Err(from_lance(e, &doing, Missing::Table)),
                }
            }
            self.forget(&location).await;
            Ok(true)
        })
    }
}

/// The incarnation of a table that the gateway knows.
pub(crate) fn incarnation(dataset: &Dataset) -> Result<String> {
    known_incarnation(dataset).map(str::to_owned).ok_or_else(|| {
        Error::new(ErrorKind::TableReplaced, "the table carries no mark of this gateway any more; begin the write anew")
    })
}

/// The same if there is one: a table made by another tool has none before its first write through the gateway.
pub(crate) fn known_incarnation(dataset: &Dataset) -> Option<&str> {
    dataset.manifest().table_metadata.get(INCARNATION_KEY).map(String::as_str)
}

/// A handle that others may share.
pub(crate) type Handle = Arc<Dataset>;
