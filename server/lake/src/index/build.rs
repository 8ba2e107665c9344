//! Building indexes, and bringing them up to date.

use std::sync::Arc;

use futures::future::BoxFuture;
use lance::index::DatasetIndexExt;
use lance_index::optimize::OptimizeOptions;

use super::known::{no_index, statistics};
use super::progress::Follow;
use super::{IndexSpec, Indexed, OptimizeSpec};
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::maintain::{Attempts, ProgressSender, marked};
use crate::table::{Location, excerpt};
use crate::types::TableId;

#[derive(Clone, Copy)]
enum Work<'a> {
    Build(&'a IndexSpec),
    Optimize(&'a OptimizeSpec),
}

impl Lake {
    /// Builds an index over the rows of the latest version. Stopped before it commits it leaves nothing.
    pub fn create_index<'a>(
        &'a self,
        table: &'a TableId,
        spec: &'a IndexSpec,
        progress: &'a ProgressSender,
    ) -> BoxFuture<'a, Result<Indexed>> {
        Box::pin(self.index_work(table, Work::Build(spec), progress))
    }

    /// Brings rows that came later into the indexes of the latest version.
    pub fn optimize_indexes<'a>(
        &'a self,
        table: &'a TableId,
        spec: &'a OptimizeSpec,
        progress: &'a ProgressSender,
    ) -> BoxFuture<'a, Result<Indexed>> {
        Box::pin(self.index_work(table, Work::Optimize(spec), progress))
    }

    async fn index_work(&self, table: &TableId, work: Work<'_>, progress: &ProgressSender) -> Result<Indexed> {
        let location = self.locate(table)?;
        let mut attempts = Attempts::new(self.inner.options.maintenance.max_attempts);
        loop {
            let done = match work {
                Work::Build(spec) => self.build(&location, spec, progress).await,
                Work::Optimize(spec) => self.optimize(&location, spec, progress).await,
            };
            match done {
                Ok(indexed) => return Ok(indexed),
                Err(error) => attempts.failed(error)?,
            }
        }
    }

    async fn build(&self, location: &Location, spec: &IndexSpec, progress: &ProgressSender) -> Result<Indexed> {
        let doing = format!("cannot build an index of table {}", location.shown);
        let mut own = self.open_to_maintain(location).await?;
        let fitting = spec.fit(&own.dataset)?;
        let taken = own.dataset.load_indices_by_name(&fitting.name).await.map_err(|e| own.failed(e, &doing))?;
        if !taken.is_empty() && !spec.replace {
            let name = excerpt(&fitting.name);
            return Err(Error::new(
                ErrorKind::IndexAlreadyExists,
                format!("there is an index '{name}' already: name another, or say that it is to be replaced"),
            ));
        }
        let columns = [fitting.column.as_str()];
        let built = own
            .dataset
            .create_index_builder(&columns, fitting.index_type, fitting.params.as_ref())
            .name(fitting.name.clone())
            .replace(spec.replace)
            .progress(Arc::new(Follow::new(progress.clone())))
            .transaction_properties(marked("index"))
            .await;
        built.map_err(|e| own.failed(e, &doing))?;
        let known = statistics(&own.dataset).await.map_err(|e| own.failed(e, &doing))?;
        let indexes = known.into_iter().filter(|index| index.name == fitting.name).collect();
        Ok(Indexed { version: own.dataset.manifest().version, indexes })
    }

    async fn optimize(&self, location: &Location, spec: &OptimizeSpec, progress: &ProgressSender) -> Result<Indexed> {
        let doing = format!("cannot optimize indexes of table {}", location.shown);
        let mut own = self.open_to_maintain(location).await?;
        let before = own.dataset.manifest().version;
        let known = statistics(&own.dataset).await.map_err(|e| own.failed(e, &doing))?;
        if let Some(missing) = spec.names.iter().find(|name| known.iter().all(|index| index.name != **name)) {
            return Err(no_index(missing));
        }
        let mut options = OptimizeOptions::default();
        options.num_indices_to_merge = spec.segments_to_merge.map(|n| n as usize);
        options.retrain = spec.retrain;
        options.index_names = (!spec.names.is_empty()).then(|| spec.names.clone());
        options.transaction_properties = Some(Arc::new(marked("index optimization")));
        options.progress = Arc::new(Follow::new(progress.clone()));
        let optimized = own.dataset.optimize_indices(&options).await;
        optimized.map_err(|e| own.failed(e, &doing))?;
        let after = own.dataset.manifest().version;
        let known = statistics(&own.dataset).await.map_err(|e| own.failed(e, &doing))?;
        let asked = |name: &String| spec.names.is_empty() || spec.names.contains(name);
        let indexes = known.into_iter().filter(|index| asked(&index.name)).collect();
        Ok(Indexed { version: if after == before { 0 } else { after }, indexes })
    }
}
