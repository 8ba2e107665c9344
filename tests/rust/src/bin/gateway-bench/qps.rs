use std::collections::HashMap;
use std::sync::Arc;

use lance_gateway_client::Client;
use serde_json::{Value, json};

use crate::sides::{Effort, Queries, Searched, Side};
use crate::{Args, Result};

/// All queries with so many in flight: seconds of each side.
pub async fn measure(
    args: &Args,
    client: Client,
    searched: &Searched,
    effort: Effort,
    in_flight: &[usize],
) -> Result<Value> {
    let queries = searched.queries()?;
    let sides = searched.sides(args, client).await?;
    let mut measured = Vec::with_capacity(in_flight.len());
    for in_flight in in_flight {
        let mut point = alternately(&sides, &queries, effort, *in_flight, args.runs).await?;
        point["in_flight"] = json!(in_flight);
        measured.push(point);
    }
    Ok(json!({ "queries": queries.len(), "points": measured }))
}

/// The same for all pairs of efforts.
pub async fn curve(
    args: &Args,
    client: Client,
    searched: &Searched,
    nprobes: &[u32],
    refine_factors: &[u32],
    in_flight: usize,
) -> Result<Value> {
    let queries = searched.queries()?;
    let sides = searched.sides(args, client).await?;
    let mut measured = Vec::with_capacity(nprobes.len() * refine_factors.len());
    for factor in refine_factors {
        for nprobes in nprobes {
            let effort = Effort { nprobes: Some(*nprobes), refine_factor: (*factor > 0).then_some(*factor) };
            let mut point = alternately(&sides, &queries, effort, in_flight, args.runs).await?;
            point["nprobes"] = json!(nprobes);
            point["refine_factor"] = json!(effort.refine_factor);
            measured.push(point);
        }
    }
    Ok(json!({ "queries": queries.len(), "in_flight": in_flight, "points": measured }))
}

async fn alternately(
    sides: &[(&'static str, Side)],
    queries: &Arc<Queries>,
    effort: Effort,
    in_flight: usize,
    runs: usize,
) -> Result<Value> {
    let (mut times, mut recall) = (HashMap::<_, Vec<f64>>::new(), HashMap::new());
    for run in 0..=runs {
        for (name, side) in sides {
            let (time, hits) = side.answer_all(queries, effort, in_flight).await?;
            if run > 0 {
                times.entry(*name).or_default().push(time);
            }
            recall.insert(*name, queries.recall(hits));
        }
    }
    Ok(json!({ "seconds": times, "recall": recall }))
}
