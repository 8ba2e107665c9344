//! Which metric a search uses, and which index: the query, the table and the index must agree.

use arrow_schema::DataType;
use lance::Dataset;
use lance_index::pb::VectorMetricType;

use super::column::VectorColumn;
use super::index::VectorIndex;
use super::types::Metric;
use crate::error::{Error, ErrorKind, Result};
use crate::table::excerpt;

/// Property of a table that declares the metric of its vectors; with a dot and the name of a column after it, of that column's.
const PROPERTY: &str = "vector.metric";

/// Refuses properties of a new table that declare no metric.
pub fn check_metric_property(key: &str, value: &str) -> Result<()> {
    let named = key.strip_prefix(PROPERTY).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if named { parse(key, value).map(drop) } else { Ok(()) }
}

fn parse(key: &str, value: &str) -> Result<Metric> {
    value.parse().map_err(|()| {
        let (key, value) = (excerpt(key), excerpt(value));
        Error::invalid(format!("the property {key} of the table is '{value}'; it must be l2, cosine, dot or hamming"))
    })
}

/// What the table says of a column.
pub(crate) fn declared_metric(dataset: &Dataset, column: &str) -> Result<Option<Metric>> {
    let config = &dataset.manifest().config;
    let own = format!("{PROPERTY}.{column}");
    let found = config.get_key_value(&own).or_else(|| config.get_key_value(PROPERTY));
    found.map(|(key, value)| parse(key, value)).transpose()
}

/// Where neither query, nor table, nor index says one. An index over several vectors in a row has the cosine, so what is searched
/// without one has it, too.
pub(crate) fn default_metric(element: &DataType, multi: bool) -> Metric {
    match element {
        DataType::UInt8 => Metric::Hamming,
        _ if multi => Metric::Cosine,
        _ => Metric::L2,
    }
}

/// The metric, and the index if one is to be used.
pub(super) fn choose<'a>(
    column: &VectorColumn,
    requested: Option<Metric>,
    declared: Option<Metric>,
    indexes: &'a [VectorIndex],
    exact: bool,
) -> Result<(Metric, Option<&'a VectorIndex>)> {
    if let (Some(requested), Some(declared)) = (requested, declared)
        && requested != declared
    {
        let shown = excerpt(&column.shown);
        return Err(mismatch(format!(
            "the query asks for the metric {requested}, and the table declares {declared} for column '{shown}'; ask for \
             {declared}, or for none"
        )));
    }
    let wanted = requested.or(declared);
    let index = match wanted {
        Some(wanted) => indexes.iter().find(|index| index.metric == wanted),
        None => indexes.first(),
    };
    if let (Some(wanted), None, Some(other), false) = (wanted, index, indexes.first(), exact) {
        let who = if requested.is_some() { "the query asks for" } else { "the table declares" };
        return Err(mismatch(format!(
            "{who} the metric {wanted}, and the index '{}' of column '{}' has {}; ask for {}, or for an exact search",
            excerpt(&other.name),
            excerpt(&column.shown),
            other.metric,
            other.metric
        )));
    }
    let default = || default_metric(&column.element, column.multi);
    let metric = wanted.or(index.map(|index| index.metric)).unwrap_or_else(default);
    if (metric == Metric::Hamming) != (column.element == DataType::UInt8) {
        let shown = excerpt(&column.shown);
        return Err(Error::invalid(match metric {
            Metric::Hamming => {
                format!("the metric hamming is for vectors of uint8; column '{shown}' holds {}", column.element)
            }
            _ => format!(
                "column '{shown}' holds vectors of uint8, and for these there is the metric hamming, not {metric}"
            ),
        }));
    }
    Ok((metric, index.filter(|_| !exact)))
}

fn mismatch(message: String) -> Error {
    Error::new(ErrorKind::MetricMismatch, message)
}

// Lance has its own enum for it, which this one of its files turns into.

impl From<Metric> for VectorMetricType {
    fn from(metric: Metric) -> Self {
        match metric {
            Metric::L2 => Self::L2,
            Metric::Cosine => Self::Cosine,
            Metric::Dot => Self::Dot,
            Metric::Hamming => Self::Hamming,
        }
    }
}

impl From<VectorMetricType> for Metric {
    fn from(metric: VectorMetricType) -> Self {
        match metric {
            VectorMetricType::L2 => Self::L2,
            VectorMetricType::Cosine => Self::Cosine,
            VectorMetricType::Dot => Self::Dot,
            VectorMetricType::Hamming => Self::Hamming,
        }
    }
}
