//! Search: the nearest vectors, the best texts, and both as one ranking, in a version that stays pinned.
//!
//! What a query can get wrong is refused before anything is planned. A search sees every row of its version: those that no index
//! covers are compared one by one, so an answer differs with and without an index only by what the index gives away.
//! Plans run under the memory bound of scans, and the rows of an answer are bounded by their number and their bytes.

mod column;
mod hybrid;
mod index;
mod metric;
mod rank;
mod shared;
mod text;
mod types;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, Float32Array, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take_record_batch;
use futures::future::{BoxFuture, try_join};
use lance::dataset::scanner::{DEFAULT_XTR_OVERFETCH, Scanner};
use lance::deps::datafusion::logical_expr::Expr;
use lance_core::ROW_ID;
use lance_core::datatypes::Schema as LanceSchema;
use lance_index::pb::VectorMetricType;

use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::{Live, Piece, Projected, filter, plan_error, ranges};
use crate::table::{Handle, excerpt};
use crate::types::RowMetadata;
use column::VectorColumn;
use hybrid::Side;
use index::VectorIndex;
use rank::Order;

pub use metric::check_metric_property;
pub(crate) use metric::{declared_metric, default_metric};
pub use types::*;

const DISTANCE: &str = "_distance";
const SCORE: &str = "_score";
const RELEVANCE: &str = "_relevance_score";
const NEAREST_FIRST: Order = Order::Ascending(DISTANCE);
const BEST_FIRST: Order = Order::Descending(SCORE);

/// Rows that are found if the query does not say how many.
const DEFAULT_K: u64 = 10;
/// Of an index over rows with several vectors, if the query says none: candidates whose vectors are read, for each row that is wanted.
const REFINE_MULTI: u32 = 5;
const DOING: &str = "cannot plan the search";
/// What names a column.
const PLACE: &str = "the search";

impl SearchKind {
    /// The columns that it adds.
    fn ranks(self) -> &'static [&'static str] {
        match self {
            Self::Vector => &[DISTANCE],
            Self::Text => &[SCORE],
            Self::Hybrid => &[DISTANCE, SCORE, RELEVANCE],
        }
    }
}

/// A version of a table, ready to be searched any number of times.
#[derive(Clone)]
pub struct Searcher {
    lake: Lake,
    dataset: Handle,
    /// What is read: the projected columns, and always the row id.
    read: LanceSchema,
    /// Which of them clients see, and as what.
    kept: Vec<usize>,
    shown: SchemaRef,
    filter: Option<Expr>,
    live: Arc<[Live]>,
    /// Rows that tell how wide others are; none in an empty table.
    first: Arc<[Piece]>,
}

/// Refuses what Lance would apply to each vector of a query alone, where an index finds rows that have several.
fn check_multi(query: &VectorQuery, index: &VectorIndex, count: Count) -> Result<()> {
    if query.lower_bound.is_some() || query.upper_bound.is_some() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "the index '{}' of rows with several vectors knows no bounds of their distance; leave them out, or ask for an \
                 exact search",
                excerpt(&index.name)
            ),
        ));
    }
    let least = count.wanted() as u64 * u64::from(*DEFAULT_XTR_OVERFETCH);
    match query.ef.map(u64::from) {
        Some(ef) if index.is_graph && ef < least => Err(Error::invalid(format!(
            "ef is {ef}, less than the {least} candidates that each vector of the query needs among rows with several"
        ))),
        _ => Ok(()),
    }
}

/// What a query of vectors is compared with, and how.
struct Target {
    column: VectorColumn,
    metric: Metric,
    /// Whether searches that differ in their vectors alone share what they read.
    shares: bool,
    /// So many times the rows that are wanted come from an index, to be ranked by their own vectors.
    refine_factor: Option<u32>,
    /// The segments of one index, if the column has several.
    segments: Option<Vec<uuid::Uuid>>,
    used: IndexUse,
    count: Count,
}

impl Target {
    fn key(&self, query: &VectorQuery) -> Result<ArrayRef> {
        self.column.key(&query.vector, self.metric)
    }
}

/// How many rows are found, and how many of the first are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    k: usize,
    offset: usize,
}

impl Count {
    fn wanted(self) -> usize {
        self.k + self.offset
    }
}

impl Lake {
    /// Pins the version, and checks columns and filter.
    pub fn searcher<'a>(&'a self, spec: &'a SearchSpec) -> BoxFuture<'a, Result<Searcher>> {
        Box::pin(async move {
            let location = self.locate(&spec.table)?;
            let dataset = self.open_version(&location, &spec.version).await?;
            let metadata = RowMetadata { row_id: true, ..spec.metadata };
            let projected = Projected::new(&dataset, spec.projection.as_deref(), metadata)?;
            let fields = projected.shown.fields();
            if let Some(hidden) =
                fields.iter().find(|field| [DISTANCE, SCORE, RELEVANCE].contains(&field.name().as_str()))
            {
                let why = format!("column '{}' of the table hides what the search adds under that name", hidden.name());
                return Err(Error::invalid(why));
            }
            let kept: Vec<usize> =
                (0..fields.len()).filter(|at| spec.metadata.row_id || fields[*at].name() != ROW_ID).collect();
            let shown = Schema::new_with_metadata(
                kept.iter().map(|at| fields[*at].clone()).collect::<Vec<_>>(),
                projected.shown.metadata().clone(),
            );
            let filter = match &spec.filter {
                Some(given) => Some(filter::plan(given, dataset.schema(), self.inner.options.scan.max_filter_depth)?),
                None => None,
            };
            let live = ranges::live(&dataset).await?;
            let first: Vec<_> = live.first().map(Live::range).into_iter().collect();
            let first = ranges::named(&dataset, &first).await?;
            Ok(Searcher {
                lake: self.clone(),
                dataset,
                read: projected.read,
                kept,
                shown: Arc::new(shown),
                filter,
                live: live.into(),
                first: first.into(),
            })
        })
    }
}

impl Searcher {
    /// The version that is searched.
    pub fn version(&self) -> u64 {
        self.dataset.manifest().version
    }

    /// The schema of the rows of such a search.
    pub fn schema(&self, kind: SearchKind) -> SchemaRef {
        let ranks = kind.ranks().iter().map(|name| Arc::new(Field::new(*name, DataType::Float32, true)));
        let fields: Vec<_> = self.shown.fields().iter().cloned().chain(ranks).collect();
        Arc::new(Schema::new_with_metadata(fields, self.shown.metadata().clone()))
    }

    /// Refuses what [`Searcher::search`] would refuse before it plans anything, and tells how it would search.
    pub fn check<'a>(&'a self, search: &'a Search) -> BoxFuture<'a, Result<SearchInfo>> {
        Box::pin(async move {
            let (vector, text, count) = match search {
                Search::Vector(query) => (Some(query), None, None),
                Search::Text(query) => (None, Some(query), None),
                Search::Hybrid(query) => (Some(&query.vector), Some(&query.text), Some(self.sides(query)?)),
            };
            let mut info = self.info();
            if let Some(query) = vector {
                let target = self.target(query, count).await?;
                target.key(query)?;
                (info.metric, info.vector) = (Some(target.metric), Some(target.used));
            }
            if let Some(query) = text {
                let (texts, _) = self.texts(query, count)?;
                info.text = Some(self.texts_used(&texts).await?);
            }
            Ok(info)
        })
    }

    /// Searches.
    pub fn search<'a>(&'a self, search: &'a Search) -> BoxFuture<'a, Result<Found>> {
        Box::pin(async move {
            let mut info = self.info();
            let rows = match search {
                Search::Vector(query) => {
                    let target = self.target(query, None).await?;
                    let rows = self.nearest(query, &target, &target.key(query)?, &self.read).await?;
                    (info.metric, info.vector) = (Some(target.metric), Some(target.used));
                    rows
                }
                Search::Text(query) => {
                    let (rows, used) = self.best(query, None, &self.read).await?;
                    info.text = Some(used);
                    rows
                }
                Search::Hybrid(query) => self.both(query, &mut info).await?,
            };
            self.found(&rows, search.kind(), info)
        })
    }

    fn info(&self) -> SearchInfo {
        SearchInfo { version: self.version(), metric: None, vector: None, text: None }
    }

    fn found(&self, rows: &RecordBatch, kind: SearchKind, info: SearchInfo) -> Result<Found> {
        let rows = rank::shown(rows, &self.schema(kind), &self.kept, kind.ranks())?;
        Ok(Found { rows, info })
    }

    /// Checks all of a query of vectors but the vectors. `default`: how many rows, if it does not say.
    async fn target(&self, query: &VectorQuery, default: Option<Count>) -> Result<Target> {
        let column = VectorColumn::new(self.dataset.schema(), &query.column)?;
        let count = self.count(query.k, query.offset, default)?;
        self.check_effort(query, count)?;
        let indexes = index::of_vectors(&self.dataset, &column, &self.live).await?;
        let declared = metric::declared_metric(&self.dataset, &column.shown)?;
        let (metric, index) = metric::choose(&column, query.metric, declared, &indexes, query.exact)?;
        let used = match index {
            Some(index) => index.used(&self.live),
            None => IndexUse { indexes: Vec::new(), num_unindexed_rows: self.num_rows() },
        };
        let fixed_probes = query.min_nprobes.is_some() && query.min_nprobes == query.max_nprobes;
        let shares = !column.multi
            && index.is_none_or(|index| {
                !index.is_graph && fixed_probes && used.num_unindexed_rows == 0 && shared::can_refine(query)
            });
        let segments = index.filter(|_| indexes.len() > 1).map(|index| index.segments());
        let mut refine_factor = query.refine_factor.filter(|_| index.is_some());
        if let Some(index) = index.filter(|_| column.multi) {
            check_multi(query, index, count)?;
            // What Lance guesses from the index alone is neither the distance nor the rank.
            refine_factor = refine_factor.or_else(|| {
                let most = self.lake.inner.options.search.max_candidates / count.wanted();
                Some(u32::try_from(most).unwrap_or(u32::MAX).clamp(1, REFINE_MULTI))
            });
        }
        Ok(Target { column, metric, shares, refine_factor, segments, used, count })
    }

    fn num_rows(&self) -> u64 {
        self.live.iter().map(|live| live.num_rows).sum()
    }

    fn count(&self, k: Option<u64>, offset: u64, default: Option<Count>) -> Result<Count> {
        let most = self.lake.inner.options.search.max_k;
        let k = k.unwrap_or_else(|| default.map_or(DEFAULT_K, |count| count.wanted() as u64));
        if k == 0 {
            return Err(Error::invalid("k is 0; it must be 1 or more"));
        }
        let wanted = k.saturating_add(offset);
        if wanted > most as u64 {
            let what = if offset == 0 { format!("k is {k}") } else { format!("k and offset are {wanted} together") };
            return Err(Error::invalid(format!("{what}, above {most}, the bound search.max-k")));
        }
        Ok(Count { k: k as usize, offset: offset as usize })
    }

    fn check_effort(&self, query: &VectorQuery, count: Count) -> Result<()> {
        let most = self.lake.inner.options.search.max_candidates as u64;
        let wanted = count.wanted() as u64;
        let refined = wanted.saturating_mul(u64::from(query.refine_factor.unwrap_or(1)));
        if refined > most {
            return Err(Error::invalid(format!(
                "refine_factor makes {refined} candidates, above {most}, the bound search.max-candidates"
            )));
        }
        if let Some(ef) = query.ef.map(u64::from) {
            if ef > most {
                return Err(Error::invalid(format!("ef is {ef}, above {most}, the bound search.max-candidates")));
            }
            if ef < refined {
                return Err(Error::invalid(format!("ef is {ef}, less than the {refined} candidates that are wanted")));
            }
        }
        if let (Some(least), Some(most)) = (query.min_nprobes, query.max_nprobes)
            && least > most
        {
            return Err(Error::invalid(format!("min_nprobes is {least}, and max_nprobes {most}")));
        }
        if [query.lower_bound, query.upper_bound].into_iter().flatten().any(f32::is_nan) {
            return Err(Error::invalid("a bound of the distance is no number"));
        }
        Ok(())
    }

    async fn nearest(
        &self,
        query: &VectorQuery,
        target: &Target,
        key: &ArrayRef,
        read: &LanceSchema,
    ) -> Result<RecordBatch> {
        if self.live.is_empty() {
            return Ok(no_rows(read, DISTANCE));
        }
        let (mut scanner, batch_rows) = self.nearest_scanner(query, target, key, target.count.wanted(), read).await?;
        if let Some(factor) = target.refine_factor {
            scanner.refine(factor);
        }
        let rows = self.run(&scanner, batch_rows, self.max_bytes()).await?;
        rank::cut(&rows, NEAREST_FIRST, target.count.offset, target.count.k)
    }

    /// `key`: one query, or a list of several. Nothing is refined yet.
    async fn nearest_scanner(
        &self,
        query: &VectorQuery,
        target: &Target,
        key: &ArrayRef,
        k: usize,
        read: &LanceSchema,
    ) -> Result<(Scanner, usize)> {
        let Target { column, metric, .. } = target;
        let (mut scanner, batch_rows) = self.scanner(read, &[column.id], query.postfilter).await?;
        scanner
            .nearest(&column.path, key.as_ref(), k)
            .map_err(|e| plan_error(e, DOING))?
            .distance_metric(VectorMetricType::from(*metric).into())
            .distance_range(query.lower_bound, query.upper_bound)
            .use_index(!query.exact);
        if let Some(least) = query.min_nprobes {
            scanner.minimum_nprobes(least as usize);
        }
        if let Some(most) = query.max_nprobes {
            scanner.maximum_nprobes(most as usize);
        }
        if let Some(ef) = query.ef {
            scanner.ef(ef as usize);
        }
        if let Some(segments) = &target.segments {
            scanner.with_index_segments(segments.clone()).map_err(|e| plan_error(e, DOING))?;
        }
        Ok((scanner, batch_rows))
    }

    fn texts(&self, query: &TextSearch, default: Option<Count>) -> Result<(text::Texts, Count)> {
        let count = self.count(query.k, query.offset, default)?;
        Ok((text::plan(&query.query, self.dataset.schema(), &self.lake.inner.options.search)?, count))
    }

    async fn texts_used(&self, texts: &text::Texts) -> Result<IndexUse> {
        let used = index::of_texts(&self.dataset, &texts.columns, &self.live).await?;
        if texts.fuzzy && used.indexes.len() < texts.columns.len() && !self.live.is_empty() {
            let why = "a fuzzy query looks words up in a full-text index, and a column of this one has none; build one";
            return Err(Error::new(ErrorKind::Unsupported, why));
        }
        Ok(used)
    }

    async fn best(
        &self,
        query: &TextSearch,
        default: Option<Count>,
        read: &LanceSchema,
    ) -> Result<(RecordBatch, IndexUse)> {
        let (texts, count) = self.texts(query, default)?;
        let used = self.texts_used(&texts).await?;
        if self.live.is_empty() {
            return Ok((no_rows(read, SCORE), used));
        }
        let (mut scanner, batch_rows) = self.scanner(read, &texts.columns, query.postfilter).await?;
        let limit = i64::try_from(count.wanted()).unwrap_or(i64::MAX);
        scanner.full_text_search(texts.query.limit(Some(limit))).map_err(|e| plan_error(e, DOING))?;
        let rows = self.run(&scanner, batch_rows, self.max_bytes()).await?;
        Ok((rank::cut(&rows, BEST_FIRST, count.offset, count.k)?, used))
    }

    /// How many candidates each side has, if it does not say.
    fn sides(&self, query: &HybridQuery) -> Result<Count> {
        if query.vector.offset > 0 || query.text.offset > 0 {
            return Err(Error::invalid("the sides of a hybrid search have no offset; the whole has one"));
        }
        for (name, weight) in [("vector_weight", query.vector_weight), ("text_weight", query.text_weight)] {
            text::factor(name, weight.unwrap_or(1.0))?;
        }
        self.count(query.k, query.offset, None)
    }

    async fn both(&self, query: &HybridQuery, info: &mut SearchInfo) -> Result<RecordBatch> {
        let count = self.sides(query)?;
        let target = self.target(&query.vector, Some(count)).await?;
        let key = target.key(&query.vector)?;
        // Only ids are ranked; rows are read once it is known which.
        let ids = Projected::new(&self.dataset, Some(&[]), RowMetadata { row_id: true, ..Default::default() })?.read;
        let near = self.nearest(&query.vector, &target, &key, &ids);
        let (near, (good, used)) = try_join(near, self.best(&query.text, Some(count), &ids)).await?;
        (info.metric, info.vector, info.text) = (Some(target.metric), Some(target.used), Some(used));
        let vector = Side::new(&near, ROW_ID, DISTANCE, query.vector_weight.unwrap_or(1.0))?;
        let text = Side::new(&good, ROW_ID, SCORE, query.text_weight.unwrap_or(1.0))?;
        let fused = hybrid::fuse(&vector, &text, query.rrf_k.unwrap_or(hybrid::DEFAULT_RRF_K));
        let fused: Vec<_> = fused.into_iter().skip(count.offset).take(count.k).collect();
        let rows = self.rows(&fused.iter().map(|row| row.row_id).collect::<Vec<_>>(), self.max_bytes()).await?;
        let ranks: [(&str, Float32Array); 3] = [
            (DISTANCE, fused.iter().map(|row| row.distance).collect()),
            (SCORE, fused.iter().map(|row| row.score).collect()),
            (RELEVANCE, fused.iter().map(|row| Some(row.relevance)).collect()),
        ];
        rank::with_columns(&rows, ranks)
    }

    /// The rows with these ids, in this order.
    async fn rows(&self, ids: &[u64], max_bytes: u64) -> Result<RecordBatch> {
        if ids.is_empty() {
            return Ok(RecordBatch::new_empty(Arc::new(Schema::from(&self.read))));
        }
        let batch_rows = self.lake.batch_rows(&self.dataset, &self.read, None, &self.first).await?;
        let rows = self.lake.rows_by_id(&self.dataset, &self.read, ids, batch_rows).await?;
        let rows = rank::collect(rows, max_bytes).await?;
        let lost = || Error::internal("a row that was found is not in its table");
        let found = rows.column_by_name(ROW_ID).and_then(|c| c.as_primitive_opt::<UInt64Type>()).ok_or_else(lost)?;
        let places: std::collections::HashMap<u64, u32> = found.values().iter().copied().zip(0..).collect();
        let order: Option<UInt32Array> = ids.iter().map(|id| places.get(id).copied().map(Some)).collect();
        take_record_batch(&rows, &order.ok_or_else(lost)?).map_err(rank::broken)
    }

    /// A scanner that compares values of the columns with these ids, and the rows of `read` that a batch may hold.
    async fn scanner(&self, read: &LanceSchema, searched: &[i32], postfilter: bool) -> Result<(Scanner, usize)> {
        let schema = self.dataset.schema();
        let top = |id: &i32| schema.field_ancestry_by_id(*id).and_then(|path| path.first().map(|f| (*f).clone()));
        let searched = LanceSchema { fields: searched.iter().filter_map(top).collect(), metadata: Default::default() };
        let lake = &self.lake;
        let compared = lake.batch_rows(&self.dataset, &searched, self.filter.as_ref(), &self.first).await?;
        let read_rows = lake.batch_rows(&self.dataset, read, None, &self.first).await?;
        let mut scanner = lake.bare_scanner(&self.dataset, read, compared)?;
        if let Some(filter) = &self.filter {
            scanner.filter_expr(filter.clone());
        }
        scanner.prefilter(!postfilter);
        Ok((scanner, read_rows))
    }

    async fn run(&self, scanner: &Scanner, batch_rows: usize, max_bytes: u64) -> Result<RecordBatch> {
        let plan = scanner.create_plan().await.map_err(|e| plan_error(e, DOING))?;
        rank::collect(self.lake.run(plan, batch_rows, DOING)?, max_bytes).await
    }

    fn max_bytes(&self) -> u64 {
        self.lake.inner.options.search.max_reply_bytes
    }
}

fn no_rows(read: &LanceSchema, rank: &str) -> RecordBatch {
    let mut fields: Vec<_> = Schema::from(read).fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(rank, DataType::Float32, true)));
    RecordBatch::new_empty(Arc::new(Schema::new(fields)))
}
