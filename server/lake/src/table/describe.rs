//! What people want to know of a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use lance::Dataset;
use lance::index::DatasetIndexExt;
use lance_table::format::Fragment;

use crate::Lake;
use crate::error::Result;
use crate::lance_error::{Missing, from_lance};
use crate::schema::{primary_key, shown_name, shown_schema};
use crate::types::{IndexInfo, TableDescription, TableId, VersionSelector};

impl Lake {
    /// Describes a version of a table.
    pub fn describe<'a>(
        &'a self,
        table: &'a TableId,
        version: &'a VersionSelector,
    ) -> BoxFuture<'a, Result<TableDescription>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            let dataset = self.open_version(&location, version).await?;
            let doing = || format!("cannot describe table {}", location.shown);
            let mut indexes = Vec::new();
            for index in dataset.describe_indices(None).await.map_err(|e| from_lance(e, doing(), Missing::Version))? {
                indexes.push(IndexInfo {
                    name: index.name().to_owned(),
                    columns: index.field_ids().iter().map(|id| column_path(&dataset, *id as i32)).collect(),
                    index_type: index.index_type().to_owned(),
                });
            }
            let num_rows = dataset.count_rows(None).await.map_err(|e| from_lance(e, doing(), Missing::Version))?;
            let manifest = dataset.manifest();
            Ok(TableDescription {
                schema: Arc::new(shown_schema(dataset.schema())),
                version: manifest.version,
                num_rows: num_rows as u64,
                num_fragments: manifest.fragments.len() as u64,
                num_bytes: manifest.fragments.iter().map(fragment_bytes).sum(),
                primary_key: primary_key(dataset.schema()),
                properties: manifest.config.iter().map(|(k, v)| (k.clone(), v.clone())).collect::<BTreeMap<_, _>>(),
                data_storage_version: manifest.data_storage_format.version.to_string(),
                stable_row_ids: manifest.uses_stable_row_ids(),
                indexes,
                committed_at: manifest.timestamp(),
            })
        })
    }
}

/// Bytes of the data files of a fragment, as far as the manifest knows them.
fn fragment_bytes(fragment: &Fragment) -> u64 {
    fragment.files.iter().filter_map(|file| file.file_size_bytes.get()).map(u64::from).sum()
}

/// The column as people write it.
pub(crate) fn column_path(dataset: &Dataset, id: i32) -> String {
    let path = dataset.schema().field_ancestry_by_id(id).unwrap_or_default();
    path.iter().map(|field| shown_name(&field.name, &field.metadata)).collect::<Vec<_>>().join(".")
}
