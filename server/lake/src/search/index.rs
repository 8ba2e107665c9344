//! The indexes of a column, and the rows that they do not cover.

use lance::Dataset;
use lance::index::{DatasetIndexExt, DatasetIndexInternalExt};
use lance_index::metrics::NoOpMetricsCollector;
use lance_index::pb::VectorMetricType;
use lance_table::format::IndexMetadata;
use uuid::Uuid;

use super::column::VectorColumn;
use super::types::{IndexUse, Metric};
use crate::error::Result;
use crate::index::{covers, is_of_others, vector_details};
use crate::lance_error::{Missing, from_lance};
use crate::scan::Live;

const DOING: &str = "cannot read the indexes of the table";

/// An index of vectors, over all its segments.
pub(super) struct VectorIndex {
    pub(super) name: String,
    pub(super) metric: Metric,
    /// HNSW.
    pub(super) is_graph: bool,
    segments: Vec<IndexMetadata>,
}

impl VectorIndex {
    pub(super) fn segments(&self) -> Vec<Uuid> {
        self.segments.iter().map(|segment| segment.uuid).collect()
    }

    pub(super) fn used(&self, live: &[Live]) -> IndexUse {
        used([(self.name.as_str(), self.segments.as_slice())], live)
    }
}

/// The indexes of the column that cover rows of this version.
pub(super) async fn of_vectors(dataset: &Dataset, column: &VectorColumn, live: &[Live]) -> Result<Vec<VectorIndex>> {
    let all = dataset.load_indices().await.map_err(|e| from_lance(e, DOING, Missing::Version))?;
    let mut found: Vec<VectorIndex> = Vec::new();
    for segment in all.iter().filter(|segment| segment.fields.first() == Some(&column.id)) {
        if let Some(index) = found.iter_mut().find(|index| index.name == segment.name) {
            index.segments.push(segment.clone());
            continue;
        }
        if is_of_others(segment) {
            continue;
        }
        let details = vector_details(segment);
        let known = details.as_ref().and_then(|details| VectorMetricType::try_from(details.metric_type).ok());
        let metric = match known {
            Some(metric) => metric,
            // An old index says it in its own file.
            None => dataset
                .open_vector_index(&column.path, &segment.uuid, &NoOpMetricsCollector)
                .await
                .map_err(|e| from_lance(e, DOING, Missing::Version))?
                .metric_type()
                .into(),
        };
        found.push(VectorIndex {
            name: segment.name.clone(),
            metric: metric.into(),
            is_graph: details.is_none_or(|details| details.hnsw_index_config.is_some()),
            segments: vec![segment.clone()],
        });
    }
    found.retain(|index| live.iter().any(|live| covers(&index.segments, live.fragment_id)));
    Ok(found)
}

/// The full-text indexes of these columns, by their ids. A row counts as unindexed if one of the columns has no index for it.
pub(super) async fn of_texts(dataset: &Dataset, columns: &[i32], live: &[Live]) -> Result<IndexUse> {
    let all = dataset.load_indices().await.map_err(|e| from_lance(e, DOING, Missing::Version))?;
    let is_text = |segment: &&IndexMetadata| {
        segment.index_details.as_ref().is_some_and(|details| details.type_url.ends_with("InvertedIndexDetails"))
    };
    let mut indexes = Vec::new();
    for column in columns {
        let of_column = |segment: &&IndexMetadata| segment.fields.first() == Some(column);
        let segments: Vec<IndexMetadata> = all.iter().filter(of_column).filter(is_text).cloned().collect();
        indexes.push((segments.first().map_or("", |segment| segment.name.as_str()).to_owned(), segments));
    }
    Ok(used(indexes.iter().map(|(name, segments)| (name.as_str(), segments.as_slice())), live))
}

fn used<'a>(indexes: impl IntoIterator<Item = (&'a str, &'a [IndexMetadata])> + Clone, live: &[Live]) -> IndexUse {
    let covered = |live: &&Live| indexes.clone().into_iter().all(|(_, segments)| covers(segments, live.fragment_id));
    let num_rows: u64 = live.iter().map(|live| live.num_rows).sum();
    let num_covered: u64 = live.iter().filter(covered).map(|live| live.num_rows).sum();
    let names =
        indexes.clone().into_iter().filter(|(_, segments)| live.iter().any(|live| covers(segments, live.fragment_id)));
    IndexUse { indexes: names.map(|(name, _)| name.to_owned()).collect(), num_unindexed_rows: num_rows - num_covered }
}
