use std::sync::Arc;
use std::time::Instant;

use futures::{TryStreamExt, stream};
use lance_gateway_client::{Client, VectorQuery};
use serde_json::{Value, json};

use crate::sides::{COLUMN, Effort, Queries, Searched, Side};
use crate::{Args, Result};

/// Queries of one batch on a stream.
const BATCH: usize = 250;

/// All queries on one stream, beside one call after the other.
pub async fn measure(args: &Args, client: Client, searched: &Searched, effort: Effort) -> Result<Value> {
    let queries = searched.queries()?;
    let side = Side::Gateway(client.clone(), searched.table.clone());
    let (mut unary, mut bulk, mut recall) = (Vec::new(), Vec::new(), [0.0; 2]);
    for run in 0..=args.runs {
        let (alone, hits_alone) = side.answer_all(&queries, effort, 1).await?;
        let (together, hits_together) = on_a_stream(&client, &searched.table, &queries, effort).await?;
        if run > 0 {
            unary.push(alone);
            bulk.push(together);
            recall = [hits_alone, hits_together].map(|hits| queries.recall(hits));
        }
    }
    Ok(json!({ "queries": queries.len(), "unary": unary, "bulk": bulk, "recall": recall }))
}

async fn on_a_stream(client: &Client, table: &str, queries: &Arc<Queries>, effort: Effort) -> Result<(f64, usize)> {
    let rows =
        queries.rows.project(&[queries.rows.schema().index_of("id")?, queries.rows.schema().index_of(COLUMN)?])?;
    let batches: Vec<_> = (0..rows.num_rows())
        .step_by(BATCH)
        .map(|at| Ok::<_, std::io::Error>(rows.slice(at, BATCH.min(rows.num_rows() - at))))
        .collect();
    let start = Instant::now();
    let search = client.search(table, effort.of(VectorQuery::of(COLUMN))).columns(["id"]);
    let (_, mut answers) = search.run_many(&rows.schema(), stream::iter(batches)).await?;
    let (mut hits, mut answered) = (0, 0);
    while let Some(answer) = answers.try_next().await? {
        hits += queries.hits(usize::try_from(answer.query)?, &answer.found?.rows);
        answered += 1;
    }
    if answered != queries.len() {
        return Err(format!("{answered} of {} queries were answered", queries.len()).into());
    }
    Ok((start.elapsed().as_secs_f64(), hits))
}
