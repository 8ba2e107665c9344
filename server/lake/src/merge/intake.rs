//! What comes into a stage of changes: all of them go to a file of changes, and those that say how a row is from then on to
//! data files, if they have all columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, BooleanArray, Int8Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use lance_io::object_store::ObjectStore;
use object_store::path::Path;

use super::changes::ChangeWriter;
use super::{CHANGE_KIND, Kind, ROW_ID};
use crate::commit::committable::schema_of;
use crate::commit::messages::{ChangeFile, WriteHandle};
use crate::error::{Error, Result};
use crate::schema::{Fit, from_ipc, shown_schema};

/// As Flink numbers an insert.
const UPSERT: i8 = 0;

/// Takes the batches of one stage.
pub(crate) struct Intake {
    store: Arc<ObjectStore>,
    table: Path,
    handle: WriteHandle,
    /// The schema in which changes are sent.
    sent: SchemaRef,
    fit: Option<Fit>,
    /// That of the file of changes, and where its columns are in what is sent.
    kept: SchemaRef,
    places: Vec<usize>,
    /// Where the columns of data files are in what is sent.
    data: Range<usize>,
    /// To data files, if all columns are sent, and the schema of that.
    rows: Option<(Fit, SchemaRef)>,
    file: Option<ChangeWriter>,
}

impl Intake {
    pub(crate) fn new(store: Arc<ObjectStore>, table: Path, handle: &WriteHandle) -> Result<Self> {
        let sent = from_ipc(&handle.schema_ipc)?;
        let lance = schema_of(&handle.fields, &handle.schema_metadata)?;
        let all = handle.columns.is_empty();
        let lost = || Error::internal("a write handle names columns that its schema does not have");
        let by_id = handle.key == [ROW_ID];
        let ids: Vec<i32> = match all {
            true => by_id.then_some(ROW_ID).into_iter().chain(lance.fields.iter().map(|f| f.id)).collect(),
            false => handle.columns.clone(),
        };
        if sent.fields().len() != ids.len() + 1 {
            return Err(lost());
        }
        let kept_ids = if all { &handle.key } else { &handle.columns };
        let mut places = Vec::with_capacity(kept_ids.len() + 1);
        let mut fields = Vec::with_capacity(kept_ids.len() + 1);
        for id in kept_ids {
            let place = ids.iter().position(|known| known == id).ok_or_else(lost)?;
            places.push(place);
            fields.push(sent.field(place).clone().with_name(id.to_string()));
        }
        places.push(ids.len());
        fields.push(Field::new(CHANGE_KIND, DataType::Int8, false));
        let data = usize::from(by_id)..ids.len();
        let rows = if all {
            let shown = only(&sent, data.clone());
            Some((Fit::new(&shown_schema(&lance), shown.clone(), &handle.data_storage_version)?, shown))
        } else {
            None
        };
        Ok(Self {
            store,
            table,
            handle: handle.clone(),
            sent,
            fit: None,
            kept: Arc::new(Schema::new(fields)),
            places,
            data,
            rows,
            file: None,
        })
    }

    /// Keeps the changes, and answers the rows for data files, perhaps none.
    pub(crate) async fn take(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let batch = &with_kind(batch)?;
        let schema = batch.schema();
        let fit = match self.fit.take() {
            Some(fit) if fit.is_for(&schema) => fit,
            _ => Fit::new(&self.sent, schema, &self.handle.data_storage_version)?,
        };
        let changes = self.fit.insert(fit).apply(batch)?;
        let upserts = upserts(&changes)?;
        if changes.num_rows() > 0 {
            let columns = self.places.iter().map(|place| changes.column(*place).clone()).collect();
            let kept = RecordBatch::try_new(self.kept.clone(), columns).map_err(broken)?;
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(ChangeWriter::create(&self.store, &self.table, &self.kept)?),
            };
            file.write(&kept, upserts.true_count()).await?;
        }
        let Some((rows, shown)) = &self.rows else { return Ok(RecordBatch::new_empty(Arc::new(Schema::empty()))) };
        let kept = filter_record_batch(&changes, &upserts).map_err(broken)?;
        let columns = kept.columns()[self.data.clone()].to_vec();
        rows.apply(&RecordBatch::try_new(shown.clone(), columns).map_err(broken)?)
    }

    /// None: nothing came.
    pub(crate) async fn finish(self) -> Result<Option<ChangeFile>> {
        match self.file {
            Some(file) => file.finish().await.map(Some),
            None => Ok(None),
        }
    }

    pub(crate) async fn abort(self) {
        if let Some(file) = self.file {
            file.abort().await;
        }
    }
}

/// Rows that come without a kind are there from then on.
fn with_kind(batch: &RecordBatch) -> Result<RecordBatch> {
    if batch.column_by_name(CHANGE_KIND).is_some() {
        return Ok(batch.clone());
    }
    let schema = batch.schema();
    let kind = Arc::new(Field::new(CHANGE_KIND, DataType::Int8, false));
    let fields: Vec<_> = schema.fields().iter().cloned().chain([kind]).collect();
    let kinds: ArrayRef = Arc::new(Int8Array::from(vec![UPSERT; batch.num_rows()]));
    let columns = batch.columns().iter().cloned().chain([kinds]).collect();
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    RecordBatch::try_new(Arc::new(schema), columns).map_err(broken)
}

fn only(sent: &Schema, columns: Range<usize>) -> SchemaRef {
    let fields: Vec<_> = sent.fields()[columns].to_vec();
    Arc::new(Schema::new_with_metadata(fields, sent.metadata().clone()))
}

/// Which of the changes say how a row is from then on.
fn upserts(changes: &RecordBatch) -> Result<BooleanArray> {
    let kinds = kinds(changes)?;
    if let Some(other) = kinds.iter().find(|kind| Kind::of(**kind).is_none()) {
        return Err(Error::invalid(format!(
            "{CHANGE_KIND} is {other}; it must be 0 (inserted), 1 (before an update), 2 (after an update) or 3 (deleted)"
        )));
    }
    Ok(kinds.iter().map(|kind| Some(Kind::of(*kind) == Some(Kind::Upsert))).collect())
}

/// The kinds of changes: the last column.
pub(super) fn kinds(changes: &RecordBatch) -> Result<&[i8]> {
    let last = changes.columns().last().and_then(|column| column.as_primitive_opt::<Int8Type>());
    Ok(last.ok_or_else(|| Error::internal("changes come without their kinds"))?.values())
}

fn broken(error: arrow_schema::ArrowError) -> Error {
    Error::internal("a batch of changes does not fit together").with_source(error)
}
