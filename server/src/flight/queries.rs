//! The queries of a DoExchange: rows of its batches, each the command with a vector, a text or both in it.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use lance_gateway_lake::{self as lake, QueryVector, Search, SearchKind, TextQuery};
use lance_gateway_proto::v1::search::Kind;
use lance_gateway_proto::{Reason, v1};
use tonic::Status;

use crate::convert::search;
use crate::status::status;

/// Columns of the queries.
const ID: &str = "id";
const VECTOR: &str = "vector";
const TEXT: &str = "text";
const K: &str = "k";
/// The column of the answers that says whose they are.
pub(super) const QUERY: &str = "_query";

/// What the command says of all queries.
#[derive(Clone)]
pub(super) struct Template {
    search: Search,
    id: FieldRef,
    has_k: bool,
}

impl Template {
    /// Refuses commands and schemas of batches that make no query.
    pub(super) fn new(mut wanted: v1::Search, schema: &SchemaRef) -> Result<Self, Status> {
        if vector_part(&mut wanted).is_some_and(|query| query.vector.replace(placeholder()).is_some()) {
            return Err(invalid(
                "the command of a DoExchange has no vector; the column `vector` of its batches has them",
            ));
        }
        if text_part(&mut wanted).is_some_and(|text| !text.is_empty()) {
            return Err(invalid("the command of a DoExchange has no text; the column `text` of its batches has them"));
        }
        let has_words = text_part(&mut wanted).is_some();
        let search = search::search(wanted)?;
        let field = |name: &str| {
            schema.fields().iter().find(|field| field.name() == name).cloned().ok_or_else(|| {
                invalid(&format!("the batches of the queries have no column `{name}`, which this search needs"))
            })
        };
        let id = field(ID)?;
        if search.kind() != SearchKind::Text {
            let data_type = field(VECTOR)?.data_type().clone();
            if list_item(&data_type).is_none() {
                return Err(invalid(&format!("the column `vector` of the queries is {data_type}; it must be a list")));
            }
        }
        if search.kind() != SearchKind::Vector {
            let data_type = field(TEXT)?.data_type().clone();
            if !matches!(data_type, DataType::Utf8 | DataType::LargeUtf8) {
                return Err(invalid(&format!(
                    "the column `text` of the queries is {data_type}; it must be of strings"
                )));
            }
            if !has_words {
                return Err(invalid(
                    "the text query of a DoExchange is a match or a phrase: the batches bring its text",
                ));
            }
        }
        let has_k = match field(K) {
            Err(_) => false,
            Ok(k) if matches!(k.data_type(), DataType::Int32 | DataType::Int64) => true,
            Ok(k) => {
                let data_type = k.data_type();
                return Err(invalid(&format!(
                    "the column `k` of the queries is {data_type}; it must be int32 or int64"
                )));
            }
        };
        Ok(Self { search, id, has_k })
    }

    pub(super) fn kind(&self) -> SearchKind {
        self.search.kind()
    }

    /// The query of vectors, if that is all that the queries differ in.
    pub(super) fn vectors_alone(&self) -> Option<&lake::VectorQuery> {
        match &self.search {
            Search::Vector(query) if !self.has_k => Some(query),
            _ => None,
        }
    }

    /// The schema of answers whose rows have that one.
    pub(super) fn answer_schema(&self, rows: &Schema) -> SchemaRef {
        let id = Field::new(QUERY, self.id.data_type().clone(), self.id.is_nullable());
        let fields: Vec<FieldRef> = std::iter::once(Arc::new(id)).chain(rows.fields().iter().cloned()).collect();
        Arc::new(Schema::new_with_metadata(fields, rows.metadata().clone()))
    }

    /// The query of a row.
    pub(super) fn query(&self, queries: &RecordBatch, row: usize) -> lake::Result<Search> {
        let mut search = self.search.clone();
        let (vector, text) = match &mut search {
            Search::Vector(query) => (Some(query), None),
            Search::Text(query) => (None, Some(&mut query.query)),
            Search::Hybrid(query) => (Some(&mut query.vector), Some(&mut query.text.query)),
        };
        if let Some(query) = vector {
            query.vector = vector_of(queries, row)?;
        }
        if let Some(TextQuery::Match { text, .. } | TextQuery::Phrase { text, .. }) = text {
            *text = words_of(queries, row)?;
        }
        if self.has_k
            && let Some(given) = k_of(queries, row)?
        {
            let k = match &mut search {
                Search::Vector(query) => &mut query.k,
                Search::Text(query) => &mut query.k,
                Search::Hybrid(query) => &mut query.k,
            };
            *k = Some(given);
        }
        Ok(search)
    }
}

fn vector_part(search: &mut v1::Search) -> Option<&mut v1::VectorQuery> {
    match search.kind.as_mut()? {
        Kind::Vector(query) => Some(query),
        Kind::Text(_) => None,
        Kind::Hybrid(query) => query.vector.as_mut(),
    }
}

/// The words of a match or a phrase.
fn text_part(search: &mut v1::Search) -> Option<&mut String> {
    let query = match search.kind.as_mut()? {
        Kind::Vector(_) => return None,
        Kind::Text(query) => query,
        Kind::Hybrid(query) => query.text.as_mut()?,
    };
    match query.query.as_mut()?.kind.as_mut()? {
        v1::text_query::Kind::Match(query) => Some(&mut query.text),
        v1::text_query::Kind::Phrase(query) => Some(&mut query.text),
        v1::text_query::Kind::Boolean(_) | v1::text_query::Kind::Boost(_) => None,
    }
}

/// The rows of the answer to the query of a row.
pub(super) fn answer(
    schema: &SchemaRef,
    queries: &RecordBatch,
    row: usize,
    rows: &RecordBatch,
) -> Result<RecordBatch, Status> {
    let failed = |error: arrow_schema::ArrowError| crate::status::internal("an answer cannot be put together", &error);
    let ids = column(queries, ID).ok_or_else(|| invalid("a query has no id"))?;
    let row = u32::try_from(row).unwrap_or(u32::MAX);
    let places = UInt32Array::from(vec![row; rows.num_rows()]);
    let ids = arrow_select::take::take(ids, &places, None).map_err(failed)?;
    let columns = std::iter::once(ids).chain(rows.columns().iter().cloned()).collect();
    RecordBatch::try_new(schema.clone(), columns).map_err(failed)
}

/// The vector of a row.
pub(super) fn vector_of(queries: &RecordBatch, row: usize) -> lake::Result<QueryVector> {
    let given = column(queries, VECTOR).filter(|vectors| vectors.is_valid(row));
    let vector = given.and_then(|vectors| list_value(vectors, row)).ok_or_else(|| missing("vector"))?;
    if list_item(vector.data_type()).is_none() {
        return Ok(QueryVector::One(vector));
    }
    let several = (0..vector.len()).map(|at| {
        let one = Some(&vector).filter(|vectors| vectors.is_valid(at)).and_then(|vectors| list_value(vectors, at));
        one.ok_or_else(|| missing("vector"))
    });
    several.collect::<lake::Result<_>>().map(QueryVector::Many)
}

fn words_of(queries: &RecordBatch, row: usize) -> lake::Result<String> {
    let texts = column(queries, TEXT).filter(|texts| texts.is_valid(row)).ok_or_else(|| missing("text"))?;
    let small = texts.as_string_opt::<i32>().map(|texts| texts.value(row));
    let text = small.or_else(|| texts.as_string_opt::<i64>().map(|texts| texts.value(row)));
    text.map(str::to_owned).ok_or_else(|| missing("text"))
}

fn k_of(queries: &RecordBatch, row: usize) -> lake::Result<Option<u64>> {
    let Some(given) = column(queries, K).filter(|k| k.is_valid(row)) else { return Ok(None) };
    let small = given.as_primitive_opt::<Int32Type>().map(|k| i64::from(k.value(row)));
    let Some(k) = small.or_else(|| given.as_primitive_opt::<Int64Type>().map(|k| k.value(row))) else {
        return Ok(None);
    };
    u64::try_from(k).map(Some).map_err(|_| lake::Error::invalid(format!("k is {k}; it must be 1 or more")))
}

fn column<'a>(queries: &'a RecordBatch, name: &str) -> Option<&'a ArrayRef> {
    queries.column_by_name(name)
}

fn list_item(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item) => Some(item),
        _ => None,
    }
}

fn list_value(lists: &ArrayRef, row: usize) -> Option<ArrayRef> {
    let fixed = lists.as_fixed_size_list_opt().map(|lists| lists.value(row));
    let small = || lists.as_list_opt::<i32>().map(|lists| lists.value(row));
    fixed.or_else(small).or_else(|| lists.as_list_opt::<i64>().map(|lists| lists.value(row)))
}

fn missing(what: &str) -> lake::Error {
    lake::Error::invalid(format!("the query has no {what}"))
}

fn invalid(message: &str) -> Status {
    status(Reason::InvalidArgument, message)
}

/// Stands for the vectors that are still to come.
fn placeholder() -> v1::Vector {
    v1::Vector { kind: Some(v1::vector::Kind::Float32(v1::Float32Values::default())) }
}
