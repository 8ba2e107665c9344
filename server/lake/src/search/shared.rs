//! Queries that differ in their vectors alone, answered by one plan: what it reads, it reads once for all.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use futures::future::BoxFuture;
use lance_core::ROW_ID;
use lance_core::datatypes::Schema as LanceSchema;
use lance_index::pb::VectorMetricType;
use lance_index::vector::flat::compute_distance;

use super::types::{Found, QueryVector, SearchKind, VectorQuery};
use super::{Count, DISTANCE, NEAREST_FIRST, Searcher, Target, rank};
use crate::error::{Error, Result};
use crate::lance_error::{Missing, from_lance};
use crate::scan::Projected;
use crate::types::RowMetadata;

/// Lance's name of the column that tells queries apart.
const QUERY: &str = "query_index";

impl Searcher {
    /// Whether searches that differ from this one in their vectors alone share what they read.
    pub fn shares<'a>(&'a self, query: &'a VectorQuery) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let hidden = self.dataset.schema().field(QUERY).is_some();
            !hidden && !self.live.is_empty() && self.target(query, None).await.is_ok_and(|target| target.shares)
        })
    }

    /// Searches for each of the vectors as [`Searcher::search`] would for `query` with it; each has its own result. Only for queries
    /// that [share](Searcher::shares). An error of all is one of none in particular: each may be searched for by itself.
    pub fn search_each<'a>(
        &'a self,
        query: &'a VectorQuery,
        vectors: &'a [QueryVector],
    ) -> BoxFuture<'a, Result<Vec<Result<Found>>>> {
        Box::pin(async move {
            let target = self.target(query, None).await?;
            let keys: Vec<_> = vectors.iter().map(|vector| target.column.key(vector, target.metric)).collect();
            let good: Vec<ArrayRef> = keys.iter().flatten().cloned().collect();
            let mut found = match good.is_empty() {
                true => Vec::new(),
                false => self.nearest_to_each(query, &target, &good).await?,
            }
            .into_iter();
            let answer = |key: Result<ArrayRef>| {
                key.and_then(|_| found.next().ok_or_else(|| Error::internal("a query has no answer")))
            };
            Ok(keys.into_iter().map(answer).collect())
        })
    }

    async fn nearest_to_each(&self, query: &VectorQuery, target: &Target, keys: &[ArrayRef]) -> Result<Vec<Found>> {
        let Count { k, offset } = target.count;
        let rows = match target.refine_factor {
            Some(factor) => self.refined(query, target, keys, factor).await?,
            None => {
                let rows = self.near_each(query, target, keys, target.count.wanted(), &self.read).await?;
                rows.iter().map(|own| rank::cut(own, NEAREST_FIRST, offset, k)).collect::<Result<_>>()?
            }
        };
        let found = |own: &RecordBatch| {
            let mut info = self.info();
            (info.metric, info.vector) = (Some(target.metric), Some(target.used.clone()));
            self.found(own, SearchKind::Vector, info)
        };
        rows.iter().map(found).collect()
    }

    /// What one plan finds for each of the keys.
    async fn near_each(
        &self,
        query: &VectorQuery,
        target: &Target,
        keys: &[ArrayRef],
        k: usize,
        read: &LanceSchema,
    ) -> Result<Vec<RecordBatch>> {
        let list = target.column.list(keys)?;
        let (scanner, batch_rows) = self.nearest_scanner(query, target, &list, k, read).await?;
        let mut rows = self.run(&scanner, batch_rows, self.max_bytes_of(keys)).await?;
        let at = rows.schema().index_of(QUERY).map_err(rank::broken)?;
        let queries = rows.remove_column(at);
        let queries = queries
            .as_primitive_opt::<Int32Type>()
            .ok_or_else(|| Error::internal("lance returned other columns than planned"))?;
        let own = |number: i32| {
            let own: BooleanArray = queries.values().iter().map(|query| Some(*query == number)).collect();
            filter_record_batch(&rows, &own).map_err(rank::broken)
        };
        (0_i32..).take(keys.len()).map(own).collect()
    }

    /// The nearest rows of each key, by their own vectors. Lance refines one query as this does, and several only one by one.
    async fn refined(
        &self,
        query: &VectorQuery,
        target: &Target,
        keys: &[ArrayRef],
        factor: u32,
    ) -> Result<Vec<RecordBatch>> {
        let Count { k, offset } = target.count;
        let ids = RowMetadata { row_id: true, ..RowMetadata::default() };
        let vectors = Projected::new(&self.dataset, Some(std::slice::from_ref(&query.column)), ids)?.read;
        let candidates = target.count.wanted().saturating_mul(factor as usize);
        let candidates = self.near_each(query, target, keys, candidates, &vectors).await?;
        let mut near = Vec::with_capacity(keys.len());
        for (key, own) in keys.iter().zip(candidates) {
            let metric = VectorMetricType::from(target.metric).into();
            let own = compute_distance(key.clone(), metric, &target.column.path, own).await;
            let own = own.map_err(|e| from_lance(e, "the search stopped", Missing::Version))?;
            near.push(rank::cut(&own, NEAREST_FIRST, offset, k)?);
        }
        let broken = || Error::internal("lance returned other columns than planned");
        let mut ids = Vec::with_capacity(keys.len() * k);
        for own in &near {
            let own = own.column_by_name(ROW_ID).and_then(|c| c.as_primitive_opt::<UInt64Type>()).ok_or_else(broken)?;
            ids.extend_from_slice(own.values());
        }
        let rows = self.rows(&ids, self.max_bytes_of(keys)).await?;
        let mut end = 0;
        let with_distances = |own: &RecordBatch| {
            let start = end;
            end += own.num_rows();
            let distances = own.column_by_name(DISTANCE).and_then(|c| c.as_primitive_opt::<Float32Type>());
            let distances = distances.ok_or_else(broken)?.clone();
            rank::with_columns(&rows.slice(start, own.num_rows()), [(DISTANCE, distances)])
        };
        near.iter().map(with_distances).collect()
    }

    fn max_bytes_of(&self, keys: &[ArrayRef]) -> u64 {
        self.max_bytes().saturating_mul(keys.len() as u64)
    }
}

/// Whether several such queries can be refined at once: only where ranking is all that Lance does with the candidates.
pub(super) fn can_refine(query: &VectorQuery) -> bool {
    let bounded = query.lower_bound.is_some() || query.upper_bound.is_some();
    query.refine_factor.is_none() || !(bounded || query.postfilter)
}
