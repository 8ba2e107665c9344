use std::collections::HashMap;
use std::time::Instant;

use lance_gateway_client::Client;
use serde_json::{Value, json};

use crate::sides::{Effort, Searched};
use crate::{Args, Result};

/// One search after the other: each query on each side, in turn who is first. The times of single searches.
pub async fn measure(args: &Args, client: Client, searched: &Searched, effort: Effort) -> Result<Value> {
    let queries = searched.queries()?;
    let sides = searched.sides(args, client).await?;
    let (mut times, mut hits) = (HashMap::<_, Vec<f64>>::new(), HashMap::<_, usize>::new());
    for run in 0..=args.runs {
        for query in 0..queries.len() {
            for at in 0..sides.len() {
                let (name, side) = &sides[(at + query) % sides.len()];
                let start = Instant::now();
                let found = side.search(&queries, query, effort).await?;
                let time = start.elapsed().as_secs_f64();
                if run > 0 {
                    times.entry(name).or_default().push(time);
                } else {
                    *hits.entry(name).or_default() += queries.hits(query, &found);
                }
            }
        }
    }
    let recall: HashMap<_, _> = hits.into_iter().map(|(name, hits)| (name, queries.recall(hits))).collect();
    Ok(json!({ "seconds": times, "recall": recall }))
}
