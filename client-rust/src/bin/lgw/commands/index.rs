//! `lgw index`

use lance_gateway_client::{
    Client, ColumnPath, FullTextIndex, IndexSpec, IndexStatistics, JobKind, Metric, Optimization, ScalarIndexType,
    VectorIndex, VectorIndexType,
};
use serde::Serialize;

use super::{jobs, time};
use crate::args::{IndexAction, IndexType, TextKnobs, VectorKnobs};
use crate::console::{Console, human_bytes};
use crate::failure::{Failure, Result};

pub async fn run(client: &Client, action: &IndexAction, console: &Console) -> Result<()> {
    match action {
        IndexAction::Create { table, column, index_type, name, replace, vector, text, wait } => {
            let mut spec = spec(column, *index_type, vector, text)?.replace(*replace);
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
    Scalars(ScalarIndexType),
    Text,
}

impl Kind {
    fn of(index_type: IndexType) -> Self {
        match index_type {
            IndexType::IvfFlat => Self::Vectors(VectorIndexType::IvfFlat),
            IndexType::IvfPq => Self::Vectors(VectorIndexType::IvfPq),
            IndexType::IvfSq => Self::Vectors(VectorIndexType::IvfSq),
            IndexType::IvfRq => Self::Vectors(VectorIndexType::IvfRq),
            IndexType::IvfHnswFlat => Self::Vectors(VectorIndexType::IvfHnswFlat),
            IndexType::IvfHnswSq => Self::Vectors(VectorIndexType::IvfHnswSq),
            IndexType::IvfHnswPq => Self::Vectors(VectorIndexType::IvfHnswPq),
            IndexType::BTree => Self::Scalars(ScalarIndexType::BTree),
            IndexType::Bitmap => Self::Scalars(ScalarIndexType::Bitmap),
            IndexType::LabelList => Self::Scalars(ScalarIndexType::LabelList),
            IndexType::Ngram => Self::Scalars(ScalarIndexType::NGram),
            IndexType::Zonemap => Self::Scalars(ScalarIndexType::ZoneMap),
            IndexType::BloomFilter => Self::Scalars(ScalarIndexType::BloomFilter),
            IndexType::Inverted => Self::Text,
        }
    }
}

/// Knobs that the type does not have are wrong usage: nothing that was asked for is left out silently.
fn spec(column: &ColumnPath, index_type: IndexType, vector: &VectorKnobs, text: &TextKnobs) -> Result<IndexSpec> {
    let kind = Kind::of(index_type);
    if !matches!(kind, Kind::Vectors(_)) && *vector != VectorKnobs::default() {
        let knobs = "--metric, --partitions, --sub-vectors, --bits, --m, --max-level and --ef-construction";
        return Err(Failure::Usage(format!("{knobs} are for IVF_… types")));
    }
    if !matches!(kind, Kind::Text) && *text != TextKnobs::default() {
        let knobs = "--tokenizer, --language, --with-position, --lower-case, --stem, --remove-stop-words, --ascii-folding, \
                     --max-token-length, --ngram-min-length and --ngram-max-length";
        return Err(Failure::Usage(format!("{knobs} are for INVERTED")));
    }
    Ok(match kind {
        Kind::Vectors(index_type) => IndexSpec::vector(column.clone(), vector_index(index_type, vector)),
        Kind::Scalars(index_type) => IndexSpec::scalar(column.clone(), index_type),
        Kind::Text => IndexSpec::full_text(column.clone(), full_text_index(text)),
    })
}

fn vector_index(index_type: VectorIndexType, knobs: &VectorKnobs) -> VectorIndex {
    let mut index = VectorIndex::new(index_type);
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
    index
}

fn full_text_index(knobs: &TextKnobs) -> FullTextIndex {
    // Unlike in Lance, so that phrases are found.
    let mut index = FullTextIndex::default().with_position(knobs.with_position.unwrap_or(true));
    if let Some(tokenizer) = &knobs.tokenizer {
        index = index.tokenizer(tokenizer);
    }
    if let Some(language) = &knobs.language {
        index = index.language(language);
    }
    type Switch = fn(FullTextIndex, bool) -> FullTextIndex;
    let switches: [(Option<bool>, Switch); 4] = [
        (knobs.lower_case, FullTextIndex::lower_case),
        (knobs.stem, FullTextIndex::stem),
        (knobs.remove_stop_words, FullTextIndex::remove_stop_words),
        (knobs.ascii_folding, FullTextIndex::ascii_folding),
    ];
    type Set = fn(FullTextIndex, u32) -> FullTextIndex;
    let lengths: [(Option<u32>, Set); 3] = [
        (knobs.max_token_length, FullTextIndex::max_token_length),
        (knobs.ngram_min_length, FullTextIndex::ngram_min_length),
        (knobs.ngram_max_length, FullTextIndex::ngram_max_length),
    ];
    for (on, switch) in switches {
        if let Some(on) = on {
            index = switch(index, on);
        }
    }
    for (length, set) in lengths {
        if let Some(length) = length {
            index = set(index, length);
        }
    }
    index
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
