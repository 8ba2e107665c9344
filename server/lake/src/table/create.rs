//! Creating a table once, whoever races, and marking the incarnation of tables.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use futures::future::BoxFuture;
use lance::Dataset;
use lance::Error as LanceError;
use lance::dataset::CommitBuilder;
use lance::dataset::transaction::{Operation, TransactionBuilder, UpdateMap};
use lance_table::io::commit::CommitHandler;
use uuid::Uuid;

use super::{EditingHandler, Handle, Location, known_incarnation};
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::schema::to_lance;
use crate::types::{CreateOptions, TableId};

/// Key in the table's metadata: a random id of this table, so that one that is dropped and created again is told apart.
pub(crate) const INCARNATION_KEY: &str = "lance-gateway.incarnation";
/// Key in the table's metadata: the request that created it.
const REQUEST_KEY: &str = "lance-gateway.request-id";
/// File formats that new tables may have.
const FILE_VERSIONS: [&str; 3] = ["2.0", "2.1", "2.2"];
/// Attempts to mark a table beside other writers.
const MARK_ATTEMPTS: u32 = 20;
/// Prefixes of configuration keys that would make a writer clean up, or that belong to the gateway.
const RESERVED_PROPERTIES: [&str; 2] = ["lance.auto_cleanup.", "lance-gateway."];

/// Whether compactions move row lineage that is large out of the manifest, and how much of a fragment's stays in it.
const LINEAGE_PROPERTIES: [&str; 2] = ["lance.row_lineage.spill", "lance.row_lineage.inline_max_bytes"];

/// The properties of a new table, whose manifest would else grow with each commit for ever. What the client says of it holds.
fn with_bounded_lineage(given: &HashMap<String, String>, inline_bytes: u64) -> HashMap<String, String> {
    let mut properties = given.clone();
    if inline_bytes > 0 && !LINEAGE_PROPERTIES.iter().any(|key| given.contains_key(*key)) {
        let values = ["true".to_owned(), inline_bytes.to_string()];
        properties.extend(LINEAGE_PROPERTIES.map(str::to_owned).into_iter().zip(values));
    }
    properties
}

/// A fresh incarnation.
fn new_incarnation() -> String {
    Uuid::new_v4().to_string()
}

impl Lake {
    /// Creates an empty table, and answers its version and whether it was created for this request. The loser of a race sees the
    /// table of the winner; a repeat with the same request id answers as the first time.
    pub fn create_table<'a>(
        &'a self,
        table: &'a TableId,
        schema: SchemaRef,
        options: &'a CreateOptions,
        request_id: &'a str,
        if_not_exists: bool,
    ) -> BoxFuture<'a, Result<(u64, bool)>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            if let TableId::Name(parts) = table
                && let Some((_, namespace)) = parts.split_last()
            {
                self.check_namespace(namespace).await?;
            }
            let file_version = self.file_version(options)?;
            if let Some(key) =
                options.properties.keys().find(|key| RESERVED_PROPERTIES.iter().any(|p| key.starts_with(p)))
            {
                return Err(Error::invalid(format!(
                    "the property '{}' is not for clients to set",
                    super::excerpt(key)
                )));
            }
            match self.open_latest(&location).await {
                Ok(found) => return answer_existing(&found, &location, request_id, if_not_exists),
                Err(e) if e.kind() == ErrorKind::TableNotFound => {}
                Err(e) => return Err(e),
            }
            let lance_schema = to_lance(&schema, &options.primary_key, &file_version)?;
            let properties = with_bounded_lineage(&options.properties, self.inner.options.row_lineage_inline_bytes);
            let operation = Operation::Overwrite {
                fragments: Vec::new(),
                schema: lance_schema,
                config_upsert_values: (!properties.is_empty()).then_some(properties),
                initial_bases: None,
            };
            let incarnation = new_incarnation();
            let marks = HashMap::from([
                (INCARNATION_KEY.to_owned(), incarnation.clone()),
                (REQUEST_KEY.to_owned(), request_id.to_owned()),
            ]);
            // Lance turns the creation of a table that has appeared meanwhile into an overwrite of it; this refuses that.
            let handler = EditingHandler::new(location.access.commit_handler(), move |manifest| {
                if manifest.version != 1 {
                    return Err(LanceError::prerequisite_failed("the table exists already"));
                }
                manifest.table_metadata.extend(marks.clone());
                Ok(())
            });
            let outcome = CommitBuilder::new(location.uri.as_str())
                .with_commit_handler(Arc::new(handler))
                .with_store_params(location.access.params())
                .with_session(self.inner.stores.session())
                .with_storage_format(parse_file_version(&file_version)?)
                .use_stable_row_ids(true)
                .enable_v2_manifest_paths(true)
                .with_skip_auto_cleanup(true)
                .execute(TransactionBuilder::new(0, operation).build())
                .await;
            // Whatever the outcome seemed to be, the table tells who created it.
            match self.open_latest(&location).await {
                Ok(found) if known_incarnation(&found) == Some(incarnation.as_str()) => Ok((1, true)),
                Ok(found) => answer_existing(&found, &location, request_id, if_not_exists),
                Err(error) => match outcome {
                    Err(e) => {
                        let doing = format!("cannot create table {}", location.shown);
                        Err(from_lance(e, doing, Missing::Table))
                    }
                    Ok(_) => Err(error),
                },
            }
        })
    }

    /// The handle of a table that certainly has an incarnation. A table of another tool gets one by a commit of its own.
    pub(crate) async fn open_marked(&self, location: &Location) -> Result<Handle> {
        let mut last = None;
        for _ in 0..MARK_ATTEMPTS {
            let latest = self.open_latest(location).await?;
            if known_incarnation(&latest).is_some() {
                return Ok(latest);
            }
            last = mark(latest, new_incarnation(), location.access.commit_handler()).await.err();
        }
        let doing = format!("cannot mark table {}", location.shown);
        Err(match last {
            Some(e) => from_lance(e, doing, Missing::Table),
            None => {
                Error::new(ErrorKind::ConcurrentModification, format!("{doing}: its mark disappears again and again"))
            }
        })
    }

    /// The file format that a new table gets.
    pub(crate) fn file_version(&self, options: &CreateOptions) -> Result<String> {
        let version = options.data_storage_version.as_deref().unwrap_or(&self.inner.options.data_storage_version);
        if FILE_VERSIONS.contains(&version) {
            return Ok(version.to_owned());
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "data storage version '{}': this gateway writes {}",
                super::excerpt(version),
                FILE_VERSIONS.join(", ")
            ),
        ))
    }
}

/// A version of the file format in whatever type the caller needs it in.
pub(crate) fn parse_file_version<V: std::str::FromStr>(version: &str) -> Result<V> {
    version
        .parse()
        .map_err(|_| Error::new(ErrorKind::Unsupported, format!("data storage version '{version}' is unknown")))
}

async fn mark(dataset: Handle, incarnation: String, commit: Arc<dyn CommitHandler>) -> Result<Dataset, LanceError> {
    let operation = Operation::UpdateConfig {
        config_updates: None,
        table_metadata_updates: Some(UpdateMap { update_entries: Vec::new(), replace: false }),
        schema_metadata_updates: None,
        field_metadata_updates: HashMap::new(),
    };
    // Not the transaction but the handler sets the mark: it alone sees whether the predecessor has one.
    let handler = EditingHandler::new(commit, move |manifest| {
        if manifest.table_metadata.contains_key(INCARNATION_KEY) {
            return Err(LanceError::prerequisite_failed("the table is marked already"));
        }
        manifest.table_metadata.insert(INCARNATION_KEY.to_owned(), incarnation.clone());
        Ok(())
    });
    let read_version = dataset.manifest().version;
    CommitBuilder::new(dataset)
        .with_commit_handler(Arc::new(handler))
        .with_skip_auto_cleanup(true)
        .execute(TransactionBuilder::new(read_version, operation).build())
        .await
}

fn answer_existing(found: &Dataset, location: &Location, request_id: &str, if_not_exists: bool) -> Result<(u64, bool)> {
    let ours =
        !request_id.is_empty() && found.manifest().table_metadata.get(REQUEST_KEY).is_some_and(|id| id == request_id);
    if ours {
        return Ok((1, true));
    }
    if if_not_exists {
        return Ok((found.manifest().version, false));
    }
    Err(Error::new(ErrorKind::TableAlreadyExists, format!("table {} exists already", location.shown)))
}
