//! What a version knows of its indexes, and dropping one.

use futures::future::BoxFuture;
use lance::Dataset;
use lance::index::DatasetIndexExt;
use lance_index::IndexDescription;
use lance_index::pb::{VectorIndexDetails, VectorMetricType};
use lance_table::format::IndexMetadata;
use prost::Message as _;

use super::IndexStatistics;
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::lance_error::{Missing, from_lance};
use crate::maintain::Attempts;
use crate::search::Metric;
use crate::table::{column_path, excerpt};
use crate::types::TableId;

impl Lake {
    /// The indexes of the latest version, by name, and that version.
    pub fn indexes<'a>(&'a self, table: &'a TableId) -> BoxFuture<'a, Result<(u64, Vec<IndexStatistics>)>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            let dataset = self.open_latest(&location).await?;
            let doing = || format!("cannot list the indexes of table {}", location.shown);
            let known = statistics(&dataset).await.map_err(|e| from_lance(e, doing(), Missing::Version))?;
            Ok((dataset.manifest().version, known))
        })
    }

    /// One index of the latest version, and that version.
    pub fn index<'a>(&'a self, table: &'a TableId, name: &'a str) -> BoxFuture<'a, Result<(u64, IndexStatistics)>> {
        Box::pin(async move {
            let (version, known) = self.indexes(table).await?;
            let found = known.into_iter().find(|index| index.name == name).ok_or_else(|| no_index(name))?;
            Ok((version, found))
        })
    }

    /// Removes an index. Answers the version that has it no longer.
    pub fn drop_index<'a>(&'a self, table: &'a TableId, name: &'a str) -> BoxFuture<'a, Result<u64>> {
        Box::pin(async move {
            let location = self.locate(table)?;
            let doing = format!("cannot drop an index of table {}", location.shown);
            let mut attempts = Attempts::new(self.inner.options.maintenance.max_attempts);
            loop {
                let mut own = self.open_to_maintain(&location).await?;
                let named = own.dataset.load_indices_by_name(name).await;
                if named.map_err(|e| own.failed(e, &doing))?.is_empty() {
                    return Err(no_index(name));
                }
                match own.dataset.drop_index(name).await {
                    Ok(()) => return Ok(own.dataset.manifest().version),
                    Err(error) => attempts.failed(own.failed(error, &doing))?,
                }
            }
        })
    }
}

pub(super) fn no_index(name: &str) -> Error {
    Error::new(ErrorKind::IndexNotFound, format!("there is no index '{}'", excerpt(name)))
}

/// What a segment says of its vectors. None: it has none, or it is so old that only its own file tells.
pub(crate) fn vector_details(segment: &IndexMetadata) -> Option<VectorIndexDetails> {
    let details = segment.index_details.as_ref().filter(|_| !is_of_others(segment))?;
    Some(details.value.as_slice()).filter(|value| !value.is_empty()).and_then(|v| VectorIndexDetails::decode(v).ok())
}

/// Whether a segment says that it is not over vectors.
pub(crate) fn is_of_others(segment: &IndexMetadata) -> bool {
    segment.index_details.as_ref().is_some_and(|details| !details.type_url.ends_with("VectorIndexDetails"))
}

/// A segment that does not say what it covers is taken for whole, as Lance does.
pub(crate) fn covers(segments: &[IndexMetadata], fragment: u64) -> bool {
    let id = u32::try_from(fragment).unwrap_or(u32::MAX);
    segments.iter().any(|segment| segment.fragment_bitmap.as_ref().is_none_or(|covered| covered.contains(id)))
}

pub(super) async fn statistics(dataset: &Dataset) -> lance::Result<Vec<IndexStatistics>> {
    let mut known = Vec::new();
    for index in dataset.describe_indices(None).await? {
        // Lance's own book-keeping.
        if !index.name().starts_with("__lance") {
            known.push(one(dataset, index.as_ref()));
        }
    }
    known.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(known)
}

/// The name that a build asks for the type with. Lance shows some types by others.
fn type_name(of_lance: &str) -> &str {
    match of_lance {
        "BTree" => "BTREE",
        "Bitmap" => "BITMAP",
        "LabelList" => "LABEL_LIST",
        "NGram" => "NGRAM",
        "ZoneMap" => "ZONEMAP",
        "BloomFilter" => "BLOOM_FILTER",
        "Inverted" => "INVERTED",
        other => other,
    }
}

fn one(dataset: &Dataset, index: &dyn IndexDescription) -> IndexStatistics {
    let (mut indexed, mut unindexed) = (0, 0);
    for fragment in dataset.fragments().iter() {
        let rows = fragment.num_rows().unwrap_or_default() as u64;
        *(if covers(index.segments(), fragment.id) { &mut indexed } else { &mut unindexed }) += rows;
    }
    let details = index.segments().first().and_then(vector_details);
    let metric = details.and_then(|details| VectorMetricType::try_from(details.metric_type).ok());
    IndexStatistics {
        name: index.name().to_owned(),
        columns: index.field_ids().iter().map(|id| column_path(dataset, *id as i32)).collect(),
        index_type: type_name(index.index_type()).to_owned(),
        metric: metric.map(Metric::from),
        num_indexed_rows: indexed,
        num_unindexed_rows: unindexed,
        num_segments: u32::try_from(index.segments().len()).unwrap_or(u32::MAX),
        num_bytes: index.total_size_bytes().unwrap_or_default(),
        created_at: index.segments().iter().filter_map(|segment| segment.created_at).max(),
        deferred: index.segments().iter().all(|s| s.fragment_bitmap.as_ref().is_some_and(|bitmap| bitmap.is_empty())),
    }
}
