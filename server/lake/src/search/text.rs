//! Queries of texts, as Lance takes them.

use arrow_schema::DataType;
use lance_core::datatypes::Schema as LanceSchema;
use lance_index::scalar::FullTextSearchQuery;
use lance_index::scalar::inverted::query::{
    BooleanQuery, BoostQuery, FtsQuery, MatchQuery, Occur, Operator, PhraseQuery,
};

use super::PLACE;
use super::types::TextQuery;
use crate::error::{Error, Result};
use crate::options::SearchOptions;
use crate::schema::{Found, find_path};
use crate::table::excerpt;
use crate::types::ColumnPath;

/// Letters of a word that may differ: Lance's automata know no more.
const MAX_FUZZINESS: u32 = 2;

/// A query that was checked.
pub(super) struct Texts {
    pub(super) query: FullTextSearchQuery,
    /// The columns that it is about, each once.
    pub(super) columns: Vec<i32>,
    /// Letters may differ somewhere in it.
    pub(super) fuzzy: bool,
}

pub(super) fn plan(query: &TextQuery, schema: &LanceSchema, options: &SearchOptions) -> Result<Texts> {
    let mut planner = Planner { schema, options, clauses: 0, columns: Vec::new(), fuzzy: false };
    let query = planner.query(query)?;
    Ok(Texts { query: FullTextSearchQuery::new_query(query), columns: planner.columns, fuzzy: planner.fuzzy })
}

struct Planner<'a> {
    schema: &'a LanceSchema,
    options: &'a SearchOptions,
    clauses: usize,
    columns: Vec<i32>,
    fuzzy: bool,
}

impl Planner<'_> {
    /// The bound of clauses is one of depth as well.
    fn query(&mut self, query: &TextQuery) -> Result<FtsQuery> {
        self.clauses += 1;
        if self.clauses > self.options.max_clauses {
            let most = self.options.max_clauses;
            return Err(Error::invalid(format!(
                "the query has more than {most} clauses, the bound search.max-clauses"
            )));
        }
        Ok(match query {
            TextQuery::Match { column, text, all_words, fuzziness, max_expansions, prefix_length, boost } => {
                self.fuzzy |= *fuzziness > 0;
                let mut query = MatchQuery::new(words(text)?)
                    .with_column(Some(self.column(column)?))
                    .with_operator(if *all_words { Operator::And } else { Operator::Or })
                    .with_fuzziness(Some(letters(*fuzziness)?))
                    .with_prefix_length(*prefix_length);
                if let Some(boost) = boost {
                    query = query.with_boost(factor("boost", *boost)?);
                }
                if let Some(expansions) = max_expansions.map(|n| n as usize) {
                    let most = self.options.max_candidates;
                    if expansions > most {
                        return Err(Error::invalid(format!(
                            "max_expansions is {expansions}, above {most}, the bound search.max-candidates"
                        )));
                    }
                    query = query.with_max_expansions(expansions);
                }
                query.into()
            }
            TextQuery::Phrase { column, text, slop } => {
                PhraseQuery::new(words(text)?).with_column(Some(self.column(column)?)).with_slop(*slop).into()
            }
            TextQuery::Boolean { must, should, must_not } => {
                if must.is_empty() && should.is_empty() {
                    return Err(Error::invalid("a boolean query needs a clause in `must` or in `should`"));
                }
                let mut clauses = Vec::with_capacity(must.len() + should.len() + must_not.len());
                for query in must {
                    clauses.push((Occur::Must, self.query(query)?));
                }
                for query in should {
                    clauses.push((Occur::Should, self.query(query)?));
                }
                for query in must_not {
                    clauses.push((Occur::MustNot, self.query(query)?));
                }
                BooleanQuery::new(clauses).into()
            }
            TextQuery::Boost { positive, negative, negative_boost } => {
                let negative_boost = negative_boost.map(|boost| factor("negative_boost", boost)).transpose()?;
                BoostQuery::new(self.query(positive)?, self.query(negative)?, negative_boost).into()
            }
        })
    }

    fn column(&mut self, path: &ColumnPath) -> Result<String> {
        let Found { field, path, shown } = find_path(self.schema, path, PLACE)?;
        let data_type = field.data_type();
        if !is_text(&data_type) {
            let shown = excerpt(&shown);
            return Err(Error::invalid(format!("column '{shown}' of type {data_type} has no text to search")));
        }
        if !self.columns.contains(&field.id) {
            self.columns.push(field.id);
        }
        Ok(path)
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => true,
        DataType::List(item) | DataType::LargeList(item) => is_text(item.data_type()),
        _ => false,
    }
}

fn words(text: &str) -> Result<String> {
    if text.trim().is_empty() {
        return Err(Error::invalid("the query has no words"));
    }
    Ok(text.to_owned())
}

fn letters(fuzziness: u32) -> Result<u32> {
    if fuzziness <= MAX_FUZZINESS {
        return Ok(fuzziness);
    }
    Err(Error::invalid(format!("fuzziness is {fuzziness}; at most {MAX_FUZZINESS} letters of a word may differ")))
}

pub(super) fn factor(name: &str, value: f32) -> Result<f32> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(Error::invalid(format!("{name} is {value}; it must be a number from 0 up")))
}
