//! Rows as of any version, in the columns of one.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, RecordBatch, StructArray, new_null_array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use futures::TryStreamExt as _;
use lance_core::datatypes::{Field as LanceField, Schema as LanceSchema};
use lance_core::{ROW_ADDR, ROW_ADDR_FIELD};
use roaring::RoaringTreemap;

use super::{COMMIT_TIMESTAMP, COMMIT_VERSION};
use crate::Lake;
use crate::error::{Error, ErrorKind, Result};
use crate::merge::{CHANGE_KIND, numbers};
use crate::scan::{Bounds, Projected, system_field};
use crate::schema::{shown_name, shown_schema};
use crate::table::{Handle, excerpt};

/// The columns in which all rows are shown.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    /// Of the primary key of the last version.
    pub(super) key: Vec<i32>,
    /// Of the last version.
    fields: Vec<LanceField>,
    /// What clients see.
    shown: SchemaRef,
}

/// Some rows in these columns, with their addresses.
pub(super) struct Images {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) addresses: Vec<u64>,
}

impl Columns {
    /// `last`: what is projected of the last version. `first`: the schema of the version where the changes begin.
    pub(super) fn new(last: LanceSchema, key: Vec<i32>, first: Option<&LanceSchema>) -> Result<Self> {
        let data = LanceSchema {
            fields: last.fields.into_iter().filter(|field| field.id >= 0).collect(),
            metadata: last.metadata,
        };
        let shown = shown_schema(&data);
        let mut fields: Vec<Arc<Field>> = Vec::with_capacity(data.fields.len() + 3);
        for (field, shown) in data.fields.iter().zip(shown.fields()) {
            let before = first.map(|first| first.fields.iter().find(|before| before.id == field.id));
            fields.push(Arc::new(match before {
                Some(before) => since(field, shown, before),
                None => shown.as_ref().clone(),
            }));
        }
        for field in [
            Field::new(CHANGE_KIND, DataType::Int8, false),
            Field::new(COMMIT_VERSION, DataType::UInt64, false),
            Field::new(COMMIT_TIMESTAMP, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
        ] {
            if fields.iter().any(|column| column.name() == field.name()) {
                let why =
                    format!("column '{}' of the table hides the column of that name of its changes", field.name());
                return Err(Error::invalid(format!("{why}; leave it out of the projection")));
            }
            fields.push(Arc::new(field));
        }
        Ok(Self {
            key,
            fields: data.fields,
            shown: Arc::new(Schema::new_with_metadata(fields, shown.metadata().clone())),
        })
    }

    /// With the columns that tell what happened.
    pub(super) fn schema(&self) -> SchemaRef {
        self.shown.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// What is read of a version for them.
    pub(super) fn of(&self, dataset: &Handle) -> Result<Projected> {
        let schema = dataset.schema();
        let fields: Vec<LanceField> = self.fields.iter().filter_map(|field| narrow(field, &schema.fields)).collect();
        let data = LanceSchema { fields, metadata: schema.metadata.clone() };
        let shown = Schema::from(&data);
        let address: &Field = &ROW_ADDR_FIELD;
        let mut read = data;
        read.fields.push(system_field(address)?);
        let shown: Vec<Arc<Field>> =
            shown.fields().iter().cloned().chain(std::iter::once(Arc::new(address.clone()))).collect();
        Ok(Projected { read, shown: Arc::new(Schema::new(shown)) })
    }

    /// What was read of a version, in these columns.
    pub(super) fn images(&self, projected: &Projected, rows: &RecordBatch) -> Result<Images> {
        let columns = self.fields.iter().zip(self.shown.fields()).map(|(field, shown)| {
            match projected.read.fields.iter().position(|have| have.id == field.id && have.id >= 0) {
                Some(place) => fit(rows.column(place), &projected.read.fields[place], field, shown.data_type()),
                None => Ok(new_null_array(shown.data_type(), rows.num_rows())),
            }
        });
        Ok(Images { columns: columns.collect::<Result<_>>()?, addresses: numbers(rows, ROW_ADDR)?.to_vec() })
    }
}

/// The column as it is shown, if the version where the changes begin has it as `before`.
fn since(field: &LanceField, shown: &Field, before: Option<&LanceField>) -> Field {
    let Some(before) = before else { return shown.clone().with_nullable(true) };
    let data_type = match shown.data_type() {
        DataType::Struct(children) => {
            let children =
                field.children.iter().zip(children).map(|(child, shown)| {
                    since(child, shown, before.children.iter().find(|before| before.id == child.id))
                });
            DataType::Struct(children.collect())
        }
        other => other.clone(),
    };
    shown.clone().with_data_type(data_type).with_nullable(shown.is_nullable() || before.nullable)
}

/// The field as one of these has it, with those of its children only that are wanted.
fn narrow(wanted: &LanceField, fields: &[LanceField]) -> Option<LanceField> {
    let mut found = fields.iter().find(|field| field.id == wanted.id)?.clone();
    if found.logical_type.is_struct() {
        found.children = wanted.children.iter().filter_map(|child| narrow(child, &found.children)).collect();
        // Without children Lance would read nothing, not even which rows are NULL.
        if found.children.is_empty() {
            return None;
        }
    }
    Some(found)
}

/// Values of a field as of another version.
fn fit(values: &ArrayRef, have: &LanceField, want: &LanceField, data_type: &DataType) -> Result<ArrayRef> {
    if values.data_type() == data_type {
        return Ok(values.clone());
    }
    let (DataType::Struct(fields), Some(parts)) = (data_type, values.as_struct_opt()) else {
        return cast(values, data_type).map_err(|e| {
            let name = excerpt(shown_name(&want.name, &want.metadata));
            let why =
                format!("column '{name}' had type {} once, which cannot be shown as {data_type}", values.data_type());
            Error::new(ErrorKind::SchemaMismatch, format!("{why}; read up to the version that changed it"))
                .with_source(e)
        });
    };
    let columns = want.children.iter().zip(fields).map(|(child, field)| {
        match have.children.iter().position(|have| have.id == child.id) {
            Some(place) => fit(parts.column(place), &have.children[place], child, field.data_type()),
            None => Ok(new_null_array(field.data_type(), values.len())),
        }
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let rebuilt = StructArray::try_new(Fields::clone(fields), columns, parts.nulls().cloned());
    Ok(Arc::new(rebuilt.map_err(|e| Error::internal("a struct of an older version cannot be shown").with_source(e))?))
}

impl Lake {
    /// The rows at these addresses in their order, all at once. `projected`: what is read of their version for the columns.
    pub(super) async fn images_at(
        &self,
        dataset: &Handle,
        columns: &Columns,
        projected: &Projected,
        rows: &RoaringTreemap,
        bounds: Bounds,
    ) -> Result<Vec<Images>> {
        let mut stream = self.at_addresses(dataset, projected, rows, bounds).await?;
        let mut images = Vec::new();
        while let Some(batch) = stream.try_next().await? {
            images.push(columns.images(projected, &batch)?);
        }
        Ok(images)
    }
}
