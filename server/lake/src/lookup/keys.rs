//! Keys: values of any type that could be equal to those of a column, as values of its type.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, Schema};
use lance::deps::datafusion::logical_expr::{Expr, lit};
use lance::deps::datafusion::scalar::ScalarValue;
use lance_core::datatypes::Schema as LanceSchema;
use lance_datafusion::logical_expr::field_path_to_expr;

use super::PLACE;
use super::matches::Matches;
use crate::error::{Error, Result};
use crate::scan::filter;
use crate::schema::find_path;
use crate::table::excerpt;
use crate::types::{ColumnPath, Literal};

const MILLIS_PER_DAY: i64 = 86_400_000;

/// One column of the key.
pub(super) struct KeyColumn {
    /// For a filter.
    expr: Expr,
    /// Of its values; that of the values of a dictionary.
    data_type: DataType,
    /// Where it is in what is read: a column, and fields of structs in it.
    at: usize,
    nested: Vec<String>,
}

impl KeyColumn {
    /// The column at the path, if values of type `given` can be compared with it.
    pub(super) fn new(schema: &LanceSchema, read: &Schema, path: &ColumnPath, given: &DataType) -> Result<Self> {
        let found = find_path(schema, path, PLACE)?;
        let data_type = found.field.data_type();
        if !comparable(given, &data_type) {
            return Err(Error::invalid(format!(
                "keys of type {given} cannot be compared with column '{}' of type {data_type}",
                excerpt(&found.shown)
            )));
        }
        let expr = field_path_to_expr(&found.path)
            .map_err(|e| Error::internal("a stored column name cannot be addressed").with_source(e))?;
        let at = read.index_of(&path[0]).map_err(broken)?;
        Ok(Self { expr, data_type: value_type(&data_type).clone(), at, nested: path[1..].to_vec() })
    }

    /// Its values, null where a struct around them is.
    fn values(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        let lost = || Error::internal("lance returned other columns than planned");
        let mut values = rows.columns().get(self.at).ok_or_else(lost)?;
        let mut nulls: Option<NullBuffer> = None;
        for name in &self.nested {
            nulls = NullBuffer::union(nulls.as_ref(), values.nulls());
            values = values.as_struct_opt().and_then(|fields| fields.column_by_name(name)).ok_or_else(lost)?;
        }
        let values = if *values.data_type() == self.data_type {
            values.clone()
        } else {
            cast(values, &self.data_type).map_err(broken)?
        };
        if nulls.is_none() {
            return Ok(values);
        }
        let nulls = NullBuffer::union(nulls.as_ref(), values.nulls());
        let data = values.to_data().into_builder().nulls(nulls).build().map_err(broken)?;
        Ok(arrow_array::make_array(data))
    }
}

/// Keys that can find something, each with the numbers under which it was asked for.
pub(super) struct Keys {
    /// Of each column, a value for each key.
    columns: Vec<Vec<ScalarValue>>,
    converter: RowConverter,
    places: HashMap<Box<[u8]>, usize>,
    pub(super) queries: Vec<Vec<u64>>,
}

impl Keys {
    /// `first`: the number of the first.
    pub(super) fn new(key: &[KeyColumn], given: &RecordBatch, first: u64) -> Result<Self> {
        let mut columns: Vec<Vec<ScalarValue>> = vec![Vec::new(); key.len()];
        let mut asked = Vec::new();
        for row in 0..given.num_rows() {
            let values: Option<Vec<ScalarValue>> =
                key.iter().zip(given.columns()).map(|(column, given)| value(given, row, &column.data_type)).collect();
            if let Some(values) = values {
                asked.push(first + row as u64);
                columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            }
        }
        let fields = key.iter().map(|column| SortField::new(column.data_type.clone())).collect();
        let mut keys = Self {
            converter: RowConverter::new(fields).map_err(broken)?,
            columns,
            places: HashMap::new(),
            queries: Vec::new(),
        };
        if asked.is_empty() {
            return Ok(keys);
        }
        let arrays = keys.columns.iter().map(|values| {
            ScalarValue::iter_to_array(values.iter().cloned())
                .map(positive_zero)
                .map_err(|e| Error::internal("keys of one column differ in their type").with_source(e))
        });
        let rows = keys.converter.convert_columns(&arrays.collect::<Result<Vec<_>>>()?).map_err(broken)?;
        for (row, query) in rows.iter().zip(asked) {
            let next = keys.queries.len();
            let place = *keys.places.entry(row.as_ref().into()).or_insert(next);
            if place == next {
                keys.queries.push(Vec::new());
            }
            keys.queries[place].push(query);
        }
        Ok(keys)
    }

    /// A condition that rows fulfil if they are found, and perhaps others; None: none are.
    pub(super) fn filter(&self, key: &[KeyColumn]) -> Option<Expr> {
        if self.queries.is_empty() {
            return None;
        }
        let lists = key.iter().zip(&self.columns).map(|(column, values)| {
            let distinct: HashSet<ScalarValue> = values.iter().flat_map(both_zeros).collect();
            let mut list: Vec<Expr> = distinct.into_iter().map(lit).collect();
            match list.pop() {
                Some(only) if list.is_empty() => column.expr.clone().eq(only),
                last => {
                    list.extend(last);
                    column.expr.clone().in_list(list, false)
                }
            }
        });
        lists.reduce(Expr::and)
    }

    /// Which of the rows the keys find.
    pub(super) fn matches(&self, key: &[KeyColumn], rows: RecordBatch) -> Result<Matches> {
        let columns: Vec<ArrayRef> =
            key.iter().map(|column| column.values(&rows).map(positive_zero)).collect::<Result<_>>()?;
        let converted = self.converter.convert_columns(&columns).map_err(broken)?;
        // A null is never among the keys.
        let found =
            converted.iter().enumerate().filter_map(|(row, values)| Some((row, *self.places.get(values.as_ref())?)));
        Ok(Matches::new(found.collect(), rows))
    }
}

/// The value of a row in that type; None: it equals nothing there.
fn value(given: &ArrayRef, row: usize, data_type: &DataType) -> Option<ScalarValue> {
    let given = ScalarValue::try_from_array(given, row).ok()?;
    filter::exact(&literal(given)?, data_type)
}

fn literal(value: ScalarValue) -> Option<Literal> {
    use ScalarValue as S;
    Some(match value {
        S::Boolean(value) => Literal::Boolean(value?),
        S::Int8(value) => Literal::Integer(value?.into()),
        S::Int16(value) => Literal::Integer(value?.into()),
        S::Int32(value) => Literal::Integer(value?.into()),
        S::Int64(value) => Literal::Integer(value?),
        S::UInt8(value) => Literal::Unsigned(value?.into()),
        S::UInt16(value) => Literal::Unsigned(value?.into()),
        S::UInt32(value) => Literal::Unsigned(value?.into()),
        S::UInt64(value) => Literal::Unsigned(value?),
        S::Float16(value) => Literal::Float32(value?.to_f32()),
        S::Float32(value) => Literal::Float32(value?),
        S::Float64(value) => Literal::Float64(value?),
        S::Decimal32(value, _, scale) => Literal::Decimal { unscaled: value?.into(), scale },
        S::Decimal64(value, _, scale) => Literal::Decimal { unscaled: value?.into(), scale },
        S::Decimal128(value, _, scale) => Literal::Decimal { unscaled: value?, scale },
        S::Decimal256(value, _, scale) => Literal::Decimal { unscaled: value?.to_i128()?, scale },
        S::Utf8(value) | S::LargeUtf8(value) | S::Utf8View(value) => Literal::String(value?),
        S::Binary(value) | S::LargeBinary(value) | S::BinaryView(value) | S::FixedSizeBinary(_, value) => {
            Literal::Binary(value?)
        }
        S::Date32(days) => Literal::Date(days?),
        S::Date64(millis) => {
            let millis = millis?;
            Literal::Date((millis % MILLIS_PER_DAY == 0).then_some(millis / MILLIS_PER_DAY)?.try_into().ok()?)
        }
        S::Time32Second(value) => Literal::Time(i64::from(value?).checked_mul(1_000_000_000)?),
        S::Time32Millisecond(value) => Literal::Time(i64::from(value?).checked_mul(1_000_000)?),
        S::Time64Microsecond(value) => Literal::Time(value?.checked_mul(1_000)?),
        S::Time64Nanosecond(value) => Literal::Time(value?),
        S::TimestampSecond(value, zone) => timestamp(value?, 1, zone.is_some()),
        S::TimestampMillisecond(value, zone) => timestamp(value?, 1_000, zone.is_some()),
        S::TimestampMicrosecond(value, zone) => timestamp(value?, 1_000_000, zone.is_some()),
        S::TimestampNanosecond(value, zone) => timestamp(value?, 1_000_000_000, zone.is_some()),
        S::Dictionary(_, value) => return literal(*value),
        _ => return None,
    })
}

fn timestamp(value: i64, per_second: i64, zoned: bool) -> Literal {
    let nanos = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
    // Less than a second.
    Literal::Timestamp { seconds: value.div_euclid(per_second), nanos: nanos as i32, zoned }
}

/// Kinds of values that may equal each other.
#[derive(PartialEq, Eq)]
enum Kind {
    Boolean,
    Integer,
    Float,
    Decimal,
    String,
    Binary,
    Date,
    Time,
    Timestamp { zoned: bool },
}

impl Kind {
    fn of(data_type: &DataType) -> Option<Self> {
        use DataType as D;
        Some(match data_type {
            D::Boolean => Self::Boolean,
            D::Float16 | D::Float32 | D::Float64 => Self::Float,
            D::Decimal32(..) | D::Decimal64(..) | D::Decimal128(..) | D::Decimal256(..) => Self::Decimal,
            D::Utf8 | D::LargeUtf8 | D::Utf8View => Self::String,
            D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => Self::Binary,
            D::Date32 | D::Date64 => Self::Date,
            D::Time32(_) | D::Time64(_) => Self::Time,
            D::Timestamp(_, zone) => Self::Timestamp { zoned: zone.is_some() },
            integer if integer.is_integer() => Self::Integer,
            _ => return None,
        })
    }
}

pub(crate) fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, value) => value,
        other => other,
    }
}

/// Whether values of the type can be compared with keys.
pub(crate) fn is_comparable(data_type: &DataType) -> bool {
    Kind::of(value_type(data_type)).is_some() && *value_type(data_type) != DataType::Float16
}

/// Whether a value of the one type could be equal to one of the other.
fn comparable(given: &DataType, column: &DataType) -> bool {
    let Some(column) = Kind::of(value_type(column)).filter(|_| is_comparable(column)) else {
        return false;
    };
    // What a column of nulls has as its type.
    if *given == DataType::Null {
        return true;
    }
    match (Kind::of(value_type(given)), column) {
        (Some(Kind::Integer), Kind::Integer | Kind::Float | Kind::Decimal)
        | (Some(Kind::Float), Kind::Integer)
        | (Some(Kind::Decimal), Kind::Integer) => true,
        (given, column) => given == Some(column),
    }
}

/// -0.0 and 0.0 are one value and two patterns of bits.
pub(crate) fn positive_zero(values: ArrayRef) -> ArrayRef {
    if let Some(floats) = values.as_primitive_opt::<Float32Type>() {
        return Arc::new(floats.unary::<_, Float32Type>(|value| value + 0.0));
    }
    if let Some(floats) = values.as_primitive_opt::<Float64Type>() {
        return Arc::new(floats.unary::<_, Float64Type>(|value| value + 0.0));
    }
    values
}

pub(crate) fn both_zeros(value: &ScalarValue) -> Vec<ScalarValue> {
    match value {
        ScalarValue::Float32(Some(0.0)) => vec![ScalarValue::Float32(Some(0.0)), ScalarValue::Float32(Some(-0.0))],
        ScalarValue::Float64(Some(0.0)) => vec![ScalarValue::Float64(Some(0.0)), ScalarValue::Float64(Some(-0.0))],
        other => vec![other.clone()],
    }
}

pub(super) fn broken(error: ArrowError) -> Error {
    Error::internal("the rows of a lookup do not fit together").with_source(error)
}
