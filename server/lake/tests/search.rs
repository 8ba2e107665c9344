//! Searches beside Lance's own indexes: the same rows with and without them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use lance::Dataset;
use lance::dataset::{WriteMode, WriteParams};
use lance::index::DatasetIndexExt;
use lance::index::vector::VectorIndexParams;
use lance_gateway_lake::{
    ErrorKind, Filter, Found, HybridQuery, Lake, LakeOptions, Metric, QueryVector, Search, SearchSpec, TableId,
    TextQuery, TextSearch, VectorQuery, VersionSelector,
};
use lance_index::IndexType;
use lance_index::pb::VectorMetricType;
use lance_index::scalar::{InvertedIndexParams, ScalarIndexParams};
use tempfile::TempDir;

/// A table that Lance writes and indexes by itself, and that the gateway searches.
struct Table {
    lake: Lake,
    uri: String,
    _dir: TempDir,
}

impl Table {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = LakeOptions { warehouse: dir.path().to_str().unwrap().to_owned(), ..LakeOptions::default() };
        let lake = Lake::open(options).await.unwrap();
        Self { lake, uri: dir.path().join("t.lance").to_str().unwrap().to_owned(), _dir: dir }
    }

    /// Rows as one more fragment.
    async fn append(&self, rows: RecordBatch) -> Dataset {
        let schema = rows.schema();
        let params = WriteParams { mode: WriteMode::Append, ..WriteParams::default() };
        Dataset::write(RecordBatchIterator::new([Ok(rows)], schema), &self.uri, Some(params)).await.unwrap()
    }

    /// One partition and nothing compressed: the answers are exact.
    async fn index(&self, metric: VectorMetricType) {
        self.index_as(VectorIndexParams::ivf_flat(1, metric.into())).await;
    }

    async fn index_as(&self, params: VectorIndexParams) {
        let mut dataset = Dataset::open(&self.uri).await.unwrap();
        dataset.create_index(&["v"], IndexType::Vector, None, &params, true).await.unwrap();
    }

    fn spec(&self, filter: Option<&str>) -> SearchSpec {
        SearchSpec {
            table: TableId::Name(vec!["t".into()]),
            version: VersionSelector::Latest,
            projection: None,
            filter: filter.map(|sql| Filter::Sql(sql.into())),
            metadata: Default::default(),
        }
    }

    async fn search(&self, search: impl Into<Search>, filter: Option<&str>) -> lance_gateway_lake::Result<Found> {
        self.lake.searcher(&self.spec(filter)).await?.search(&search.into()).await
    }

    async fn nearest(&self, query: VectorQuery) -> Vec<i64> {
        ids(&self.search(Search::Vector(query), None).await.unwrap())
    }
}

/// Rows `first..first + points.len()`; a point without numbers is null.
fn rows(first: i64, points: &[Option<Vec<f32>>], dimension: i32) -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + points.len() as i64));
    let points = points.iter().map(|point| point.as_ref().map(|point| point.iter().copied().map(Some)));
    let v: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(points, dimension));
    RecordBatch::try_from_iter_with_nullable([("id", id, false), ("v", v, true)]).unwrap()
}

/// `[first, 0], [first + 1, 0], ...`
fn line(first: i64, count: i64) -> RecordBatch {
    let points: Vec<_> = (first..first + count).map(|n| Some(vec![n as f32, 0.0])).collect();
    rows(first, &points, 2)
}

fn query(vector: &[f32]) -> VectorQuery {
    VectorQuery {
        column: vec!["v".into()],
        vector: one(vector),
        metric: None,
        k: None,
        offset: 0,
        lower_bound: None,
        upper_bound: None,
        min_nprobes: None,
        max_nprobes: None,
        ef: None,
        refine_factor: None,
        exact: false,
        postfilter: false,
    }
}

fn one(vector: &[f32]) -> QueryVector {
    QueryVector::One(Arc::new(Float32Array::from(vector.to_vec())))
}

fn ids(found: &Found) -> Vec<i64> {
    found.rows.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec()
}

fn distances(found: &Found) -> Vec<f32> {
    found.rows.column_by_name("_distance").unwrap().as_primitive::<Float32Type>().values().to_vec()
}

#[tokio::test]
async fn deleted_rows_take_no_place_among_the_nearest() {
    let table = Table::new().await;
    table.append(line(0, 60)).await;
    table.index(VectorMetricType::L2).await;
    Dataset::open(&table.uri).await.unwrap().delete("id < 10").await.unwrap();
    assert_eq!(table.nearest(VectorQuery { k: Some(5), ..query(&[0.0, 0.0]) }).await, [10, 11, 12, 13, 14]);
    assert_eq!(table.nearest(VectorQuery { k: Some(1), ..query(&[0.0, 0.0]) }).await, [10]);
}

#[tokio::test]
async fn a_filter_finds_the_same_with_no_a_partial_and_a_full_index() {
    let table = Table::new().await;
    table.append(line(0, 64)).await;
    table.append(line(64, 64)).await;
    let find = async |unindexed: u64| {
        let wanted = Search::Vector(VectorQuery { k: Some(5), ..query(&[0.0, 0.0]) });
        let found = table.search(wanted, Some("id % 2 = 0")).await.unwrap();
        assert_eq!(ids(&found), [0, 2, 4, 6, 8]);
        assert_eq!(found.info.vector.unwrap().num_unindexed_rows, unindexed);
    };
    find(128).await;
    table.index(VectorMetricType::L2).await;
    find(0).await;
    table.append(line(128, 64)).await;
    table.append(line(192, 64)).await;
    find(128).await;
}

#[tokio::test]
async fn an_index_of_another_metric_is_named_and_not_passed_over() {
    let table = Table::new().await;
    table.append(line(0, 300)).await;
    table.index(VectorMetricType::Dot).await;
    let l2 = VectorQuery { metric: Some(Metric::L2), k: Some(2), ..query(&[7.2, 0.0]) };
    let error = table.search(Search::Vector(l2.clone()), None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MetricMismatch);
    assert!(error.message().contains("l2") && error.message().contains("dot"), "{error}");
    assert_eq!(table.nearest(VectorQuery { exact: true, ..l2 }).await, [7, 8]);
    let found = table.search(Search::Vector(query(&[1.0, 0.0])), None).await.unwrap();
    assert_eq!((found.info.metric, ids(&found)[0]), (Some(Metric::Dot), 299));
}

#[tokio::test]
async fn of_two_indexes_the_one_with_the_metric_is_used() {
    let table = Table::new().await;
    let spiral = |n: i64| {
        let (angle, length) = (n as f32 / 100.0, n as f32);
        Some(vec![angle.cos() * length, angle.sin() * length])
    };
    table.append(rows(0, &(0..300).map(spiral).collect::<Vec<_>>(), 2)).await;
    let mut dataset = Dataset::open(&table.uri).await.unwrap();
    for (name, metric) in [("by_l2", VectorMetricType::L2), ("by_dot", VectorMetricType::Dot)] {
        let params = VectorIndexParams::ivf_flat(1, metric.into());
        dataset.create_index(&["v"], IndexType::Vector, Some(name.into()), &params, false).await.unwrap();
    }
    for (metric, name) in [(Metric::L2, "by_l2"), (Metric::Dot, "by_dot")] {
        let asked = VectorQuery { metric: Some(metric), ..query(&[20.0, 20.0]) };
        let found = table.search(Search::Vector(asked.clone()), None).await.unwrap();
        assert_eq!(found.info.vector.as_ref().unwrap().indexes, [name]);
        assert_eq!(ids(&found), table.nearest(VectorQuery { exact: true, ..asked }).await);
    }
    let error = table
        .search(Search::Vector(VectorQuery { metric: Some(Metric::Cosine), ..query(&[1.0, 0.0]) }), None)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MetricMismatch);
}

#[tokio::test]
async fn rows_without_a_distance_are_never_found() {
    let table = Table::new().await;
    let mut points: Vec<_> = (0..300).map(|n| Some(vec![1.0, n as f32])).collect();
    points.extend([None, Some(vec![0.0, 0.0]), Some(vec![f32::NAN, 1.0])]);
    table.append(rows(0, &points, 2)).await;
    let all = VectorQuery { metric: Some(Metric::Cosine), k: Some(1_000), ..query(&[1.0, 0.0]) };
    let wanted: Vec<i64> = (0..300).collect();
    assert_eq!(table.nearest(all.clone()).await, wanted);
    table.index(VectorMetricType::Cosine).await;
    assert_eq!(table.nearest(all).await, wanted);
}

#[tokio::test]
async fn distances_are_those_of_the_metric_for_indexed_and_appended_rows() {
    let table = Table::new().await;
    table.append(rows(0, &[Some(vec![1.5, 0.0])], 2)).await;
    table.index(VectorMetricType::L2).await;
    table.append(rows(1, &[Some(vec![1.8, 0.0])], 2)).await;
    let found = table.search(Search::Vector(query(&[0.0, 0.0])), None).await.unwrap();
    assert_eq!((ids(&found), distances(&found)), (vec![0, 1], vec![2.25, 1.8 * 1.8]));
}

#[tokio::test]
async fn queries_that_share_a_scan_answer_as_each_alone() {
    let table = Table::new().await;
    table.append(line(0, 500)).await;
    let searcher = table.lake.searcher(&table.spec(Some("id <> 3"))).await.unwrap();
    let template = VectorQuery { k: Some(3), offset: 1, ..query(&[]) };
    assert!(searcher.shares(&template).await);
    let vectors = [one(&[3.0, 0.0]), one(&[f32::NAN, 0.0]), one(&[400.0, 0.0]), one(&[1.0])];
    let found = searcher.search_each(&template, &vectors).await.unwrap();
    for (vector, together) in vectors.into_iter().zip(found) {
        let alone = searcher.search(&Search::Vector(VectorQuery { vector, ..template.clone() })).await;
        match (together, alone) {
            (Ok(together), Ok(alone)) => assert_eq!((together.rows, together.info), (alone.rows, alone.info)),
            (Err(together), Err(alone)) => assert_eq!(together.message(), alone.message()),
            other => panic!("{other:?}"),
        }
    }
    table.index(VectorMetricType::L2).await;
    let searcher = table.lake.searcher(&table.spec(None)).await.unwrap();
    assert!(!searcher.shares(&template).await, "Lance probes each query by itself");
    let fixed = VectorQuery { min_nprobes: Some(1), max_nprobes: Some(1), ..template };
    assert!(searcher.shares(&fixed).await);
    let found = searcher.search_each(&fixed, &[one(&[7.0, 0.0]), one(&[9.0, 0.0])]).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|found| ids(&found.unwrap())).collect();
    assert_eq!(found, [[6, 8, 5], [8, 10, 7]]);
}

#[tokio::test]
async fn queries_that_share_a_scan_are_refined_as_each_alone() {
    let table = Table::new().await;
    table.append(line(0, 500)).await;
    table.index_as(VectorIndexParams::ivf_pq(2, 4, 2, VectorMetricType::L2.into(), 10)).await;
    let searcher = table.lake.searcher(&table.spec(Some("id <> 3"))).await.unwrap();
    let refined = VectorQuery {
        k: Some(3),
        offset: 1,
        min_nprobes: Some(2),
        max_nprobes: Some(2),
        refine_factor: Some(20),
        ..query(&[])
    };
    assert!(searcher.shares(&refined).await);
    let bounded = VectorQuery { upper_bound: Some(9.0), ..refined.clone() };
    assert!(!searcher.shares(&bounded).await, "Lance bounds the candidates, too");
    let vectors = [one(&[3.0, 0.0]), one(&[1.0]), one(&[400.0, 1.0]), one(&[3.0, 0.0])];
    let found = searcher.search_each(&refined, &vectors).await.unwrap();
    for (vector, together) in vectors.into_iter().zip(found) {
        let alone = searcher.search(&Search::Vector(VectorQuery { vector, ..refined.clone() })).await;
        match (together, alone) {
            (Ok(together), Ok(alone)) => assert_eq!((together.rows, together.info), (alone.rows, alone.info)),
            (Err(together), Err(alone)) => assert_eq!(together.message(), alone.message()),
            other => panic!("{other:?}"),
        }
    }
}

fn texts() -> RecordBatch {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["red fox", "a red car", "blue fox fox", "green"]));
    let mut rows = line(0, 4).columns().to_vec();
    rows.push(texts);
    RecordBatch::try_from_iter(["id", "v", "t"].into_iter().zip(rows)).unwrap()
}

fn matching(text: &str, fuzziness: u32) -> TextSearch {
    let query = TextQuery::Match {
        column: vec!["t".into()],
        text: text.into(),
        all_words: false,
        fuzziness,
        max_expansions: None,
        prefix_length: 0,
        boost: None,
    };
    TextSearch { query, k: None, offset: 0, postfilter: false }
}

#[tokio::test]
async fn texts_and_both_find_with_and_without_an_index() {
    let table = Table::new().await;
    table.append(texts()).await;
    let fox = || matching("fox", 0);
    let hybrid = || {
        Search::Hybrid(Box::new(HybridQuery {
            vector: VectorQuery { k: Some(1), ..query(&[3.0, 0.0]) },
            text: fox(),
            k: Some(3),
            offset: 0,
            rrf_k: None,
            vector_weight: None,
            text_weight: Some(0.5),
        }))
    };
    let fuzzy = || Search::Text(matching("fax", 1));
    assert_eq!(table.search(fuzzy(), None).await.unwrap_err().kind(), ErrorKind::Unsupported);
    for indexed in [false, true] {
        if indexed {
            let mut dataset = Dataset::open(&table.uri).await.unwrap();
            let params = InvertedIndexParams::default();
            dataset.create_index(&["t"], IndexType::Inverted, None, &params, true).await.unwrap();
            assert_eq!(ids(&table.search(fuzzy(), None).await.unwrap()).len(), 2);
        }
        let found = table.search(Search::Text(fox()), None).await.unwrap();
        assert_eq!(ids(&found), [2, 0], "{indexed}");
        assert_eq!(found.info.text.unwrap().num_unindexed_rows, if indexed { 0 } else { 4 });
        assert_eq!(ids(&table.search(Search::Text(fox()), Some("id < 2")).await.unwrap()), [0]);
        assert_eq!(ids(&table.search(hybrid(), None).await.unwrap()), [3, 2, 0]);
    }
}

#[tokio::test]
async fn a_scalar_index_makes_no_difference_to_a_search() {
    let table = Table::new().await;
    table.append(texts()).await;
    let find = async || {
        let found = table.search(Search::Vector(query(&[0.0, 0.0])), Some("t <> 'green' AND id IN (1, 3, 2)")).await;
        assert_eq!(ids(&found.unwrap()), [1, 2]);
    };
    find().await;
    let mut dataset = Dataset::open(&table.uri).await.unwrap();
    dataset.create_index(&["id"], IndexType::BTree, None, &ScalarIndexParams::default(), true).await.unwrap();
    find().await;
}

#[tokio::test]
async fn what_a_search_adds_is_not_hidden_by_a_column_of_that_name() {
    let table = Table::new().await;
    let distance: ArrayRef = Arc::new(Float32Array::from(vec![1.0; 4]));
    let mut columns = line(0, 4).columns().to_vec();
    columns.push(distance);
    table.append(RecordBatch::try_from_iter(["id", "v", "_distance"].into_iter().zip(columns)).unwrap()).await;
    let error = table.search(Search::Vector(query(&[0.0, 0.0])), None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("_distance"), "{error}");
}
