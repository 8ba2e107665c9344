use std::time::Instant;

use lance::Dataset;
use lance::index::DatasetIndexExt;
use lance::index::vector::VectorIndexParams;
use lance_gateway_client::{Client, IndexSpec, Job, JobState, VectorIndex, VectorIndexType};
use lance_index::IndexType;
use lance_index::pb::VectorMetricType;
use lance_index::vector::ivf::IvfBuildParams;
use lance_index::vector::pq::PQBuildParams;
use serde_json::{Value, json};

use crate::sides::COLUMN;
use crate::{Args, Result, path_of};

const NAME: &str = "vector_idx";

/// The index that is built, each time in place of the one before.
#[derive(Debug, clap::Args)]
pub struct Build {
    /// Table with the column `vector`.
    pub table: String,
    #[arg(long)]
    partitions: u32,
    #[arg(long)]
    sub_vectors: u32,
}

impl Build {
    async fn in_process(&self, args: &Args) -> Result<()> {
        let mut dataset = Dataset::open(&path_of(args, &self.table)).await?;
        let ivf = IvfBuildParams { num_partitions: Some(self.partitions as usize), ..Default::default() };
        let pq = PQBuildParams::new(self.sub_vectors as usize, 8);
        let params = VectorIndexParams::with_ivf_pq_params(VectorMetricType::L2.into(), ivf, pq);
        dataset.create_index(&[COLUMN], IndexType::Vector, Some(NAME.to_owned()), &params, true).await?;
        Ok(())
    }

    pub async fn start(&self, client: &Client) -> Result<Job> {
        let index = VectorIndex::new(VectorIndexType::IvfPq)
            .num_partitions(self.partitions)
            .num_sub_vectors(self.sub_vectors)
            .num_bits(8);
        let spec = IndexSpec::vector(COLUMN, index).name(NAME).replace(true);
        Ok(client.create_index(self.table.as_str(), &spec).await?)
    }
}

/// Waits for the end of a job.
pub async fn succeeded(client: &Client, job: &Job) -> Result<()> {
    let mut watch = client.watch_job(&job.id);
    let mut last = job.clone();
    while let Some(job) = watch.next().await? {
        last = job;
    }
    match last.state {
        JobState::Succeeded => Ok(()),
        other => Err(format!("the build ended as {other:?}: {}", last.message).into()),
    }
}

pub async fn measure(args: &Args, client: Client, build: &Build) -> Result<Value> {
    let (mut in_process, mut gateway) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let start = Instant::now();
        build.in_process(args).await?;
        in_process.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        succeeded(&client, &build.start(&client).await?).await?;
        gateway.push(start.elapsed().as_secs_f64());
    }
    Ok(json!({ "in_process": in_process, "gateway": gateway }))
}
