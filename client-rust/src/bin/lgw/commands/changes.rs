//! `lgw changes`

use std::path::Path;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use lance_gateway_client::{Client, Plan, VersionSelector};

use super::put::summary;
use crate::args::{Columns, Output, Span};
use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::rows::{self, Rows};

/// How often a table that is followed is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

pub struct Feed<'a> {
    pub client: &'a Client,
    pub table: &'a str,
    pub span: &'a Span,
    pub columns: Option<&'a Columns>,
    /// Who holds the version where it stands.
    pub holder: Option<&'a str>,
}

impl Feed<'_> {
    /// Reads up to one version.
    pub async fn read(&self, to: Option<&Path>, console: &Console) -> Result<()> {
        let plan = self.plan(None).await?;
        let mut out = match to {
            Some(file) => rows::to_file(file, plan.schema())?,
            None => rows::to_console(console, plan.schema())?,
        };
        let (started, version) = (Instant::now(), plan.version());
        let (num_rows, num_bytes) = write(plan, out.as_mut()).await?;
        out.finish()?;
        self.hold(version).await?;
        console.note(format!("up to version {version}: {}", summary(num_rows, num_bytes, started.elapsed())));
        Ok(())
    }

    /// Reads on as new versions come, until somebody stops it.
    pub async fn follow(&self, console: &Console) -> Result<()> {
        if console.output() != Output::Json {
            return Err(Failure::Usage("--follow writes a line for each change: use --output json".to_owned()));
        }
        let mut position = None;
        loop {
            let plan = self.plan(position).await?;
            let version = plan.version();
            if position != Some(version) {
                let mut out = rows::to_console(console, plan.schema())?;
                write(plan, out.as_mut()).await?;
                out.finish()?;
                console.flush()?;
                position = Some(version);
            }
            self.hold(version).await?;
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// `position`: the version up to which everything was read.
    async fn plan(&self, position: Option<u64>) -> Result<Plan> {
        let mut changes = self.client.changes(self.table);
        changes = match position {
            Some(version) => changes.after(VersionSelector::Version(version)),
            None => self.span.apply(changes),
        };
        if let Some(columns) = self.columns {
            changes = changes.columns(columns.0.iter().cloned());
        }
        Ok(changes.plan().await?)
    }

    async fn hold(&self, version: u64) -> Result<()> {
        if let Some(holder) = self.holder {
            self.client.hold_version(self.table, holder, version).await?;
        }
        Ok(())
    }
}

/// Rows and bytes that were written.
async fn write(plan: Plan, out: &mut dyn Rows) -> Result<(u64, u64)> {
    let (mut num_rows, mut num_bytes) = (0, 0);
    let mut batches = plan.stream();
    while let Some(batch) = batches.try_next().await? {
        num_rows += batch.num_rows() as u64;
        num_bytes += batch.get_array_memory_size() as u64;
        out.write(&batch)?;
    }
    Ok((num_rows, num_bytes))
}
