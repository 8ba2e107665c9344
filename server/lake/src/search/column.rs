//! The column that is searched, and whether a vector can be compared with its vectors.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float64Array};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat;
use lance_core::datatypes::Schema as LanceSchema;

use super::PLACE;
use super::types::{Metric, QueryVector};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Found, find_path};
use crate::table::excerpt;
use crate::types::ColumnPath;

/// A column of vectors.
pub(super) struct VectorColumn {
    pub(super) id: i32,
    pub(super) path: String,
    pub(super) shown: String,
    pub(super) element: DataType,
    pub(super) dimension: usize,
    /// A row has a list of vectors.
    pub(super) multi: bool,
}

impl VectorColumn {
    pub(super) fn new(schema: &LanceSchema, path: &ColumnPath) -> Result<Self> {
        let Found { field, path, shown } = find_path(schema, path, PLACE)?;
        let data_type = field.data_type();
        let (vectors, multi) = match &data_type {
            DataType::List(item) => (item.data_type(), true),
            other => (other, false),
        };
        match vectors {
            DataType::FixedSizeList(item, _) if multi && *item.data_type() == DataType::Int8 => Err(Error::new(
                ErrorKind::Unsupported,
                format!("column '{}' has lists of int8 vectors, which lance cannot compare", excerpt(&shown)),
            )),
            DataType::FixedSizeList(item, dimension) if is_element(item.data_type()) => Ok(Self {
                id: field.id,
                path,
                shown,
                element: item.data_type().clone(),
                dimension: usize::try_from(*dimension).unwrap_or_default(),
                multi,
            }),
            _ => Err(Error::invalid(format!(
                "column '{}' of type {data_type} has no vectors: these are fixed-size lists of float16, float32, float64, int8 or \
                 uint8, or lists of those",
                excerpt(&shown)
            ))),
        }
    }

    /// The query as Lance takes it: of the type of the column, each number one that can be compared.
    pub(super) fn key(&self, vector: &QueryVector, metric: Metric) -> Result<ArrayRef> {
        match vector {
            QueryVector::One(vector) if self.multi => self.list(&[self.vector(vector, metric)?]),
            QueryVector::One(vector) => self.vector(vector, metric),
            QueryVector::Many(_) if !self.multi => Err(Error::invalid(format!(
                "the query has several vectors, and column '{}' has one in a row; send a query for each",
                excerpt(&self.shown)
            ))),
            QueryVector::Many(vectors) if vectors.is_empty() => Err(Error::invalid("the query has no vector")),
            QueryVector::Many(vectors) => {
                let vectors: Vec<_> = vectors.iter().map(|v| self.vector(v, metric)).collect::<Result<_>>()?;
                self.list(&vectors)
            }
        }
    }

    fn vector(&self, vector: &ArrayRef, metric: Metric) -> Result<ArrayRef> {
        let shown = excerpt(&self.shown);
        if vector.len() != self.dimension {
            let (given, wanted) = (vector.len(), self.dimension);
            return Err(Error::invalid(match self.element {
                DataType::UInt8 => format!(
                    "the query has {given} bytes, and the vectors of column '{shown}' have {wanted} ({} bits)",
                    wanted * 8
                ),
                _ => format!("the query has dimension {given}, and the vectors of column '{shown}' have {wanted}"),
            }));
        }
        if vector.null_count() > 0 {
            return Err(Error::invalid("the query has a null among its numbers"));
        }
        let bytes = *vector.data_type() == DataType::UInt8;
        if !vector.data_type().is_numeric() || (bytes && self.element != DataType::UInt8) {
            return Err(Error::invalid(format!(
                "the query is a vector of {}, and column '{shown}' has vectors of {}",
                vector.data_type(),
                self.element
            )));
        }
        if bytes {
            return Ok(vector.clone());
        }
        let numbers = cast(vector, &DataType::Float64)
            .map_err(|e| Error::internal("a query vector has no numbers").with_source(e))?;
        let numbers = numbers.as_primitive::<Float64Type>();
        if let Some(place) = numbers.values().iter().position(|number| !number.is_finite()) {
            let number = numbers.value(place);
            return Err(Error::invalid(format!("number {place} of the query, counted from 0, is {number}")));
        }
        if metric == Metric::Cosine && numbers.values().iter().all(|number| *number == 0.0) {
            return Err(Error::invalid(
                "the query is the zero vector, which has no angle to any other (metric cosine)",
            ));
        }
        self.fitted(vector, numbers)
    }

    fn fitted(&self, vector: &ArrayRef, numbers: &Float64Array) -> Result<ArrayRef> {
        if *vector.data_type() == self.element {
            return Ok(vector.clone());
        }
        let does_not_fit = |place: usize| {
            Error::invalid(format!(
                "number {place} of the query, counted from 0, is {}, which is no {} as column '{}' has them",
                numbers.value(place),
                self.element,
                excerpt(&self.shown)
            ))
        };
        if self.element.is_integer()
            && let Some(place) = numbers.values().iter().position(|number| number.fract() != 0.0)
        {
            return Err(does_not_fit(place));
        }
        let fitted = cast_with_options(numbers, &self.element, &CastOptions { safe: true, ..Default::default() })
            .map_err(|e| Error::internal("a query vector cannot be cast").with_source(e))?;
        let back = cast(&fitted, &DataType::Float32)
            .map_err(|e| Error::internal("a query vector cannot be cast").with_source(e))?;
        let back = back.as_primitive::<Float32Type>();
        let lost = |place: &usize| {
            // A float64 that is more than a float32 holds is still a number of its column.
            back.is_null(*place) || (self.element != DataType::Float64 && !back.value(*place).is_finite())
        };
        match (0..back.len()).find(lost) {
            Some(place) => Err(does_not_fit(place)),
            None => Ok(fitted),
        }
    }

    pub(super) fn list(&self, vectors: &[ArrayRef]) -> Result<ArrayRef> {
        let wrong = |e| Error::internal("query vectors do not make a list").with_source(e);
        let values: Vec<&dyn Array> = vectors.iter().map(AsRef::as_ref).collect();
        let values = concat(&values).map_err(wrong)?;
        let item = Arc::new(Field::new("item", self.element.clone(), true));
        let dimension = i32::try_from(self.dimension).unwrap_or(i32::MAX);
        Ok(Arc::new(FixedSizeListArray::try_new(item, dimension, values, None).map_err(wrong)?))
    }
}

fn is_element(data_type: &DataType) -> bool {
    use DataType as D;
    matches!(data_type, D::Float16 | D::Float32 | D::Float64 | D::Int8 | D::UInt8)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use arrow_array::{Float32Array, Int8Array, Int64Array, StringArray, UInt8Array};
    use arrow_schema::Schema;

    use super::*;
    use crate::schema::to_lance;

    fn column(element: DataType, multi: bool) -> VectorColumn {
        let vectors = DataType::FixedSizeList(Arc::new(Field::new("item", element, true)), 2);
        let data_type = if multi { DataType::List(Arc::new(Field::new("item", vectors, true))) } else { vectors };
        let schema = to_lance(&Schema::new(vec![Field::new("a.v", data_type, true)]), &[], "2.2").unwrap();
        VectorColumn::new(&schema, &vec!["a.v".to_owned()]).unwrap()
    }

    fn one(array: impl Array + 'static) -> QueryVector {
        QueryVector::One(Arc::new(array))
    }

    fn floats(values: &[f64]) -> QueryVector {
        one(Float64Array::from(values.to_vec()))
    }

    fn refused(column: &VectorColumn, vector: &QueryVector, metric: Metric) -> String {
        let error = column.key(vector, metric).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        error.message().to_owned()
    }

    #[test]
    fn numbers_take_the_type_of_the_column_if_they_can() {
        for element in [DataType::Float16, DataType::Float32, DataType::Float64, DataType::Int8] {
            let key = column(element.clone(), false).key(&floats(&[1.0, -2.0]), Metric::L2).unwrap();
            assert_eq!((key.data_type(), key.len()), (&element, 2));
        }
        for whole in [one(Int8Array::from(vec![1, 2])), one(Int64Array::from(vec![1, 2]))] {
            let key = column(DataType::Float32, false).key(&whole, Metric::Dot).unwrap();
            assert_eq!(key.as_primitive::<Float32Type>().values(), &[1.0, 2.0]);
        }
        assert!(column(DataType::Float64, false).key(&floats(&[1e300, 0.0]), Metric::L2).is_ok());
        let message = refused(&column(DataType::Float16, false), &floats(&[0.0, 1e6]), Metric::L2);
        assert!(message.contains("number 1") && message.contains("Float16") && message.contains("'a.v'"), "{message}");
        assert!(refused(&column(DataType::Float32, false), &floats(&[0.0, 1e300]), Metric::L2).contains("number 1"));
        assert!(refused(&column(DataType::Int8, false), &floats(&[0.5, 1.0]), Metric::L2).contains("0.5"));
        assert!(refused(&column(DataType::Int8, false), &floats(&[1.0, 128.0]), Metric::L2).contains("128"));
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let column = |element| column(element, false);
        let floats32 = column(DataType::Float32);
        let message = refused(&floats32, &floats(&[1.0]), Metric::L2);
        assert!(message.contains("dimension 1") && message.contains("have 2"), "{message}");
        assert!(refused(&floats32, &floats(&[1.0, f64::NAN]), Metric::L2).contains("NaN"));
        assert!(refused(&floats32, &floats(&[f64::INFINITY, 1.0]), Metric::Dot).contains("inf"));
        assert!(refused(&floats32, &floats(&[0.0, -0.0]), Metric::Cosine).contains("zero vector"));
        assert!(floats32.key(&floats(&[0.0, 0.0]), Metric::L2).is_ok());
        let null = one(Float32Array::from(vec![Some(1.0), None]));
        assert!(refused(&floats32, &null, Metric::L2).contains("null"));
        assert!(refused(&floats32, &one(StringArray::from(vec!["1", "2"])), Metric::L2).contains("Utf8"));
        let bytes = one(UInt8Array::from(vec![1, 2]));
        assert!(refused(&floats32, &bytes, Metric::L2).contains("UInt8"));
        assert!(column(DataType::UInt8).key(&bytes, Metric::Hamming).is_ok());
        assert!(column(DataType::UInt8).key(&floats(&[1.0, 255.0]), Metric::Hamming).is_ok());
        assert!(refused(&column(DataType::UInt8), &floats(&[1.0, 256.0]), Metric::Hamming).contains("256"));
        assert!(refused(&column(DataType::UInt8), &floats(&[1.0]), Metric::Hamming).contains("16 bits"));
    }

    #[test]
    fn several_vectors_are_for_columns_that_have_several() {
        let vector = || -> ArrayRef { Arc::new(Float32Array::from(vec![1.0, 2.0])) };
        let many = QueryVector::Many(vec![vector(), vector()]);
        assert!(refused(&column(DataType::Float32, false), &many, Metric::L2).contains("several"));
        assert_eq!(column(DataType::Float32, true).key(&many, Metric::L2).unwrap().len(), 2);
        assert_eq!(column(DataType::Float32, true).key(&QueryVector::One(vector()), Metric::L2).unwrap().len(), 1);
        refused(&column(DataType::Float32, true), &QueryVector::Many(Vec::new()), Metric::L2);
    }
}
