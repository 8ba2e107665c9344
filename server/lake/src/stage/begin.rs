//! Beginning a write: the table exists from here on, and the schema of the rows is settled.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use chrono::Utc;
use futures::future::BoxFuture;
use lance::Dataset;

use crate::Lake;
use crate::commit::committable;
use crate::commit::envelope::{self, Kind};
use crate::commit::messages::{Mode, WriteHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Fit, fingerprint, shown_schema, to_ipc, to_lance};
use crate::table::{Handle, known_incarnation};
use crate::types::{BegunWrite, ChangedRows, CreateOptions, TableId, WriteMode};

impl Lake {
    /// Opens a table for writing, and creates it if `create` is there and it is not: once, whoever races.
    pub fn begin_write<'a>(
        &'a self,
        table: &'a TableId,
        schema: Option<SchemaRef>,
        create: Option<&'a CreateOptions>,
        mode: WriteMode,
        run_id: &'a str,
        request_id: &'a str,
    ) -> BoxFuture<'a, Result<BegunWrite>> {
        Box::pin(async move {
            if mode == WriteMode::Merge {
                return self.begin_merge(table, schema, create, ChangedRows::default(), request_id).await;
            }
            if mode == WriteMode::Overwrite && run_id.is_empty() {
                return Err(Error::invalid(
                    "an overwrite needs a run id, so that a restarted run does not overwrite itself",
                ));
            }
            let (dataset, created) = self.open_or_create(table, schema.as_ref(), create, request_id).await?;
            let handle = WriteHandle::new(table, &dataset, mode.into());
            let stored_version = &handle.data_storage_version;
            let table_schema = Arc::new(shown_schema(dataset.schema()));
            if mode == WriteMode::Append {
                if let Some(given) = schema {
                    Fit::new(&table_schema, given, stored_version)?;
                }
                let handle = WriteHandle { schema_ipc: to_ipc(&table_schema)?, run_id: run_id.to_owned(), ..handle };
                return sealed(&handle, table_schema, created);
            }
            // The table's own columns keep what else they carry, such as the primary key.
            let same = schema.as_deref().is_none_or(|given| same_columns(given, &table_schema));
            let given = schema.filter(|_| !same).unwrap_or(table_schema);
            let key = create.map(|create| create.primary_key.as_slice()).filter(|_| !same).unwrap_or_default();
            let lance_schema = to_lance(&given, key, stored_version)?;
            let wanted = Arc::new(shown_schema(&lance_schema));
            let handle = WriteHandle {
                run_id: run_id.to_owned(),
                schema_ipc: to_ipc(&wanted)?,
                schema_fingerprint: fingerprint(&lance_schema),
                fields: committable::encode_fields(&lance_schema),
                schema_metadata: lance_schema.metadata.clone().into_iter().collect(),
                ..handle
            };
            sealed(&handle, wanted, created)
        })
    }

    /// The table as it is, with an incarnation, and whether this call created it.
    pub(crate) async fn open_or_create(
        &self,
        table: &TableId,
        schema: Option<&SchemaRef>,
        create: Option<&CreateOptions>,
        request_id: &str,
    ) -> Result<(Handle, bool)> {
        let location = self.locate(table)?;
        let mut created = false;
        let dataset = match self.open_marked(&location).await {
            Ok(dataset) => dataset,
            Err(e) if e.kind() == ErrorKind::TableNotFound => {
                let (Some(create), Some(schema)) = (create, schema) else { return Err(e) };
                (_, created) = self.create_table(table, schema.clone(), create, request_id, true).await?;
                self.open_marked(&location).await?
            }
            Err(e) => return Err(e),
        };
        self.check_store(&location).await?;
        Ok((dataset, created))
    }
}

impl WriteHandle {
    /// For rows with the columns of the table; without their Arrow schema.
    pub(crate) fn new(table: &TableId, dataset: &Dataset, mode: Mode) -> Self {
        let (table_name, table_uri) = match table {
            TableId::Name(parts) => (parts.clone(), String::new()),
            TableId::Uri(uri) => (Vec::new(), uri.clone()),
        };
        let schema = dataset.schema();
        Self {
            table_name,
            table_uri,
            incarnation: known_incarnation(dataset).unwrap_or_default().to_owned(),
            mode: mode as i32,
            read_version: dataset.manifest().version,
            schema_fingerprint: fingerprint(schema),
            data_storage_version: dataset.manifest().data_storage_format.version.to_string(),
            created_at_ms: Utc::now().timestamp_millis(),
            fields: committable::encode_fields(schema),
            schema_metadata: schema.metadata.clone().into_iter().collect(),
            ..Default::default()
        }
    }
}

/// What a begun write answers.
pub(crate) fn sealed(handle: &WriteHandle, schema: SchemaRef, created: bool) -> Result<BegunWrite> {
    let write = envelope::seal(Kind::WriteHandle, handle)?;
    Ok(BegunWrite { write, schema, version: handle.read_version, created })
}

fn same_columns(given: &Schema, table: &Schema) -> bool {
    let column =
        |field: &Arc<arrow_schema::Field>| (field.name().clone(), field.data_type().clone(), field.is_nullable());
    given.fields().len() == table.fields().len()
        && given.fields().iter().zip(table.fields()).all(|(given, table)| column(given) == column(table))
}
