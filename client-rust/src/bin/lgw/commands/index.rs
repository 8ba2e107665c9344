//! `lgw index`

use lance_gateway_client::{
    Client, ColumnPath, FullTextIndex, IndexSpec, IndexStatistics, JobKind, Metric, Optimization, ScalarIndexType,
    VectorIndex, VectorIndexType,
};
use serde::Serialize;

use super::{jobs, time};
use crate::args::{IndexAction, IndexType, Knobs};
use crate::console::{Console, human_bytes};
use crate::failure::{Failure, Result};

pub async fn run(client: &Client, action: &IndexAction, console: &Console) -> Result<()> {
    match action {
        IndexAction::Create { table, column, index_type, name, replace, knobs, wait } => {
            let mut spec = spec(column, *index_type, knobs)?.replace(*replace);
            if let Some(name) = name {
                spec = spec.name(name);
            }
            jobs::start(client, table, &JobKind::IndexBuild(spec), *wait, console).await
        }
        IndexAction::Optimize { table, names, merge, retrain, wait } => {
            let mut optimization = Optimization::default().names(names.clone()).retrain(*retrain);
            if let Some(merge) = merge {
                optimization = optimization.num_segments_to_merge(*merge);
            }
            jobs::start(client, table, &JobKind::IndexOptimization(optimization), *wait, console).await
        }
        IndexAction::List { table } => list(client, table, console).await,
        IndexAction::Describe { table, name } => {
            let shown = Shown::new(client.describe_index(table.as_str(), name).await?);
            console.record(&shown, &shown.properties())
        }
        IndexAction::Drop { table, name } => {
            let version = client.drop_index(table.as_str(), name).await?;
            let dropped = Dropped { name: name.clone(), version };
            console.record(&dropped, &[("dropped", name.clone()), ("version", version.to_string())])
        }
    }
}

#[derive(Serialize)]
struct Dropped {
    name: String,
    version: u64,
}

/// What a type is over.
enum Kind {
    Vectors(VectorIndexType),
    /// Nothing can be set of it.
    Others(IndexSpec),
}

/// Knobs that the type does not have are wrong usage: nothing that was asked for is left out silently.
fn spec(column: &ColumnPath, index_type: IndexType, knobs: &Knobs) -> Result<IndexSpec> {
    let scalar = |index_type| IndexSpec::scalar(column.clone(), index_type);
    let kind = match index_type {
        IndexType::IvfFlat => Kind::Vectors(VectorIndexType::IvfFlat),
        IndexType::IvfPq => Kind::Vectors(VectorIndexType::IvfPq),
        IndexType::IvfSq => Kind::Vectors(VectorIndexType::IvfSq),
        IndexType::IvfRq => Kind::Vectors(VectorIndexType::IvfRq),
        IndexType::IvfHnswFlat => Kind::Vectors(VectorIndexType::IvfHnswFlat),
        IndexType::IvfHnswSq => Kind::Vectors(VectorIndexType::IvfHnswSq),
        IndexType::IvfHnswPq => Kind::Vectors(VectorIndexType::IvfHnswPq),
        IndexType::BTree => Kind::Others(scalar(ScalarIndexType::BTree)),
        IndexType::Bitmap => Kind::Others(scalar(ScalarIndexType::Bitmap)),
        IndexType::LabelList => Kind::Others(scalar(ScalarIndexType::LabelList)),
        IndexType::Ngram => Kind::Others(scalar(ScalarIndexType::NGram)),
        IndexType::Zonemap => Kind::Others(scalar(ScalarIndexType::ZoneMap)),
        IndexType::BloomFilter => Kind::Others(scalar(ScalarIndexType::BloomFilter)),
        IndexType::Inverted => {
            Kind::Others(IndexSpec::full_text(column.clone(), FullTextIndex::default().with_position(true)))
        }
    };
    let vector = match kind {
        Kind::Vectors(vector) => vector,
        Kind::Others(other) if knobs.is_empty() => return Ok(other),
        Kind::Others(_) => {
            return Err(Failure::Usage(
                "--metric, --partitions, --sub-vectors, --bits, --m, --max-level and --ef-construction are for IVF_… types"
                    .to_owned(),
            ));
        }
    };
    let mut index = VectorIndex::new(vector);
    if let Some(metric) = knobs.metric {
        index = index.metric(metric);
    }
    type Set = fn(VectorIndex, u32) -> VectorIndex;
    let set: [(Option<u32>, Set); 6] = [
        (knobs.partitions, VectorIndex::num_partitions),
        (knobs.sub_vectors, VectorIndex::num_sub_vectors),
        (knobs.bits, VectorIndex::num_bits),
        (knobs.m, VectorIndex::m),
        (knobs.max_level, VectorIndex::max_level),
        (knobs.ef_construction, VectorIndex::ef_construction),
    ];
    for (value, set) in set {
        if let Some(value) = value {
            index = set(index, value);
        }
    }
    Ok(IndexSpec::vector(column.clone(), index))
}

#[derive(Serialize)]
struct Shown {
    name: String,
    columns: Vec<String>,
    #[serde(rename = "type")]
    index_type: String,
    metric: Option<&'static str>,
    num_indexed_rows: u64,
    num_unindexed_rows: u64,
    num_segments: u32,
    num_bytes: u64,
    created_at: Option<String>,
    deferred: bool,
    version: u64,
}

impl Shown {
    fn new(index: IndexStatistics) -> Self {
        Self {
            name: index.name,
            columns: index.columns,
            index_type: index.index_type,
            metric: index.metric.map(Metric::name),
            num_indexed_rows: index.num_indexed_rows,
            num_unindexed_rows: index.num_unindexed_rows,
            num_segments: index.num_segments,
            num_bytes: index.num_bytes,
            created_at: time(index.created_at),
            deferred: index.deferred,
            version: index.version,
        }
    }

    fn properties(&self) -> Vec<(&'static str, String)> {
        let mut properties = vec![
            ("index", self.name.clone()),
            ("column", self.columns.join(", ")),
            ("type", self.index_type.clone()),
            ("metric", self.metric.unwrap_or_default().to_owned()),
            ("indexed rows", self.num_indexed_rows.to_string()),
            ("unindexed rows", self.num_unindexed_rows.to_string()),
            ("segments", self.num_segments.to_string()),
            ("size", human_bytes(self.num_bytes)),
            ("built", self.created_at.clone().unwrap_or_default()),
        ];
        if self.deferred {
            properties.push(("deferred", "too few rows to train it: searches read all rows".to_owned()));
        }
        properties
    }
}

async fn list(client: &Client, table: &str, console: &Console) -> Result<()> {
    let shown: Vec<Shown> = client.list_indexes(table).await?.into_iter().map(Shown::new).collect();
    let headers = ["index", "column", "type", "metric", "indexed rows", "unindexed rows", "segments", "size", "built"];
    console.list(&shown, &headers, |index| {
        index.properties().into_iter().take(headers.len()).map(|(_, value)| value).collect()
    })
}
