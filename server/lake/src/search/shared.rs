//! Queries that differ in their vectors alone, answered by one plan: what it reads, it reads once for all.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray};
use arrow_select::filter::filter_record_batch;
use futures::future::BoxFuture;

use super::types::{Found, QueryVector, SearchKind, VectorQuery};
use super::{NEAREST_FIRST, Searcher, Target, rank};
use crate::error::{Error, Result};

/// Lance's name of the column that tells queries apart.
const QUERY: &str = "query_index";

impl Searcher {
    /// Whether searches that differ from this one in their vectors alone share what they read.
    pub fn shares<'a>(&'a self, query: &'a VectorQuery) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let hidden = self.dataset.schema().field(QUERY).is_some();
            !hidden && !self.pieces.is_empty() && self.target(query, None).await.is_ok_and(|target| target.shares)
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
        let list = target.column.list(keys)?;
        let (scanner, batch_rows) = self.nearest_scanner(query, target, &list, &self.read).await?;
        let mut rows = self.run(&scanner, batch_rows, self.max_bytes().saturating_mul(keys.len() as u64)).await?;
        let at = rows.schema().index_of(QUERY).map_err(rank::broken)?;
        let queries = rows.remove_column(at);
        let queries = queries
            .as_primitive_opt::<Int32Type>()
            .ok_or_else(|| Error::internal("lance returned other columns than planned"))?;
        let mut found = Vec::with_capacity(keys.len());
        for number in (0_i32..).take(keys.len()) {
            let own: BooleanArray = queries.values().iter().map(|query| Some(*query == number)).collect();
            let own = filter_record_batch(&rows, &own).map_err(rank::broken)?;
            let own = rank::cut(&own, NEAREST_FIRST, target.count.offset, target.count.k)?;
            let mut info = self.info();
            (info.metric, info.vector) = (Some(target.metric), Some(target.used.clone()));
            found.push(self.found(&own, SearchKind::Vector, info)?);
        }
        Ok(found)
    }
}
