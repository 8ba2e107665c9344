//! The last change of each key.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_cast::display::array_value_to_string;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, DataType};
use lance::deps::datafusion::logical_expr::{Expr, ident, lit};
use lance::deps::datafusion::scalar::ScalarValue;
use lance_core::ROW_ID as ROW_ID_NAME;
use lance_core::datatypes::{Field as LanceField, Schema as LanceSchema, format_field_path_minimal};
use lance_datafusion::logical_expr::field_path_to_expr;
use xxhash_rust::xxh3::xxh3_64;

use super::intake::kinds;
use super::{Kind, Marks, ROW_ID};
use crate::error::{Error, ErrorKind, Result};
use crate::lookup::{both_zeros, positive_zero, value_type};
use crate::schema::shown_name;
use crate::table::excerpt;
use crate::types::{ColumnPath, MergeCounts, MergeRule, WhenMatched, WhenNotMatched};

/// The columns that tell rows apart.
pub(crate) struct Key {
    columns: Vec<KeyColumn>,
    converter: RowConverter,
}

struct KeyColumn {
    id: i32,
    shown: String,
    expr: Expr,
    data_type: DataType,
}

impl Key {
    /// The columns with these ids in the table of now.
    pub(crate) fn new(schema: &LanceSchema, ids: &[i32]) -> Result<Self> {
        let columns = ids.iter().map(|id| KeyColumn::new(schema, *id)).collect::<Result<Vec<_>>>()?;
        let fields = columns.iter().map(|column| SortField::new(column.data_type.clone())).collect();
        Ok(Self { converter: RowConverter::new(fields).map_err(broken)?, columns })
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = i32> + '_ {
        self.columns.iter().map(|column| column.id)
    }

    /// For a projection of a version, whose columns may have other names. The id of a row is none of them.
    pub(crate) fn paths(&self, schema: &LanceSchema) -> Vec<ColumnPath> {
        let columns = self.columns.iter().filter(|column| column.id != ROW_ID).map(|column| {
            let field = schema.fields.iter().find(|field| field.id == column.id);
            vec![field.map_or(column.shown.as_str(), |field| shown_name(&field.name, &field.metadata)).to_owned()]
        });
        columns.collect()
    }

    /// Whether rows are told apart by their ids.
    pub(crate) fn is_row_id(&self) -> bool {
        self.ids().eq([ROW_ID])
    }

    /// Keys of rows, encoded: two are equal exactly if their bytes are.
    pub(crate) fn rows<'a>(&self, columns: impl Iterator<Item = &'a ArrayRef>) -> Result<Rows> {
        self.converter.convert_columns(&self.values(columns)?).map_err(broken)
    }

    /// The values of keys, where equal ones have equal bytes.
    pub(crate) fn values<'a>(&self, columns: impl Iterator<Item = &'a ArrayRef>) -> Result<Vec<ArrayRef>> {
        columns.zip(&self.columns).map(|(values, column)| column.values(values)).collect()
    }

    /// For a message.
    fn show(&self, key: &[u8]) -> String {
        let columns = self.converter.convert_rows([self.converter.parser().parse(key)]);
        let values = columns.iter().flatten().zip(&self.columns).map(|(value, column)| {
            let value = array_value_to_string(value, 0).unwrap_or_default();
            format!("{} = {}", excerpt(&column.shown), excerpt(&value))
        });
        values.collect::<Vec<_>>().join(", ")
    }

    /// A condition that rows with one of these keys fulfil, and perhaps others.
    fn filter(&self, keys: &[&[u8]]) -> Result<Expr> {
        let parser = self.converter.parser();
        let columns = self.converter.convert_rows(keys.iter().map(|key| parser.parse(key))).map_err(broken)?;
        let lists = self.columns.iter().zip(columns).map(|(column, values)| {
            let values = (0..values.len()).map(|row| ScalarValue::try_from_array(&values, row));
            let mut values = values
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| Error::internal("a key is of a type that no filter takes").with_source(e))?;
            values.dedup();
            Ok(column.expr.clone().in_list(values.iter().flat_map(both_zeros).map(lit).collect(), false))
        });
        lists
            .reduce(|all: Result<Expr>, next| Ok(all?.and(next?)))
            .unwrap_or_else(|| Err(Error::internal("a key without columns")))
    }
}

impl KeyColumn {
    fn new(schema: &LanceSchema, id: i32) -> Result<Self> {
        if id == ROW_ID {
            let shown = ROW_ID_NAME.to_owned();
            return Ok(Self { id, expr: ident(&shown), shown, data_type: DataType::UInt64 });
        }
        let Some(field) = schema.fields.iter().find(|field: &&LanceField| field.id == id) else {
            let why = "a column of the key was dropped after the changes were staged; stage them again";
            return Err(Error::new(ErrorKind::SchemaMismatch, why));
        };
        let expr = field_path_to_expr(&format_field_path_minimal(&[field.name.as_str()]))
            .map_err(|e| Error::internal("a stored column name cannot be addressed").with_source(e))?;
        let shown = shown_name(&field.name, &field.metadata).to_owned();
        Ok(Self { id, shown, expr, data_type: value_type(&field.data_type()).clone() })
    }

    fn values(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let values = if *values.data_type() == self.data_type {
            values.clone()
        } else {
            cast(values, &self.data_type).map_err(|e| {
                let why = format!("column '{}' of the key changed its type; stage the changes again", self.shown);
                Error::new(ErrorKind::SchemaMismatch, why).with_source(e)
            })?
        };
        Ok(positive_zero(values))
    }
}

/// What is known of one key. Small, since there are many.
struct Last {
    /// Of the row that it has from then on, among all that were staged; [`GONE`] or [`LEFT_ALONE`].
    place: u64,
    /// The row that it has: its id, or [`NONE`], and its address.
    old: u64,
    address: u64,
}

const GONE: u64 = u64::MAX;
const LEFT_ALONE: u64 = u64::MAX - 1;
const NONE: u64 = u64::MAX;

impl Last {
    fn new(place: u64) -> Self {
        Self { place, old: NONE, address: 0 }
    }

    fn is_staged(&self) -> bool {
        self.place < LEFT_ALONE
    }

    fn is_there(&self) -> bool {
        self.old != NONE
    }
}

/// The last change of each key of one pass. A pass holds the keys of one part of the hashes, so that memory is bounded.
pub(super) struct LastChanges {
    key: Arc<Key>,
    keys: HashMap<Box<[u8]>, Last>,
    pass: u64,
    passes: u64,
    /// Upserts so far, of all passes.
    next: u64,
}

/// A row that comes, in its batch, and what is there with its key.
pub(super) struct Staying {
    pub(super) row: u32,
    /// The id of the row that it replaces.
    pub(super) old: Option<u64>,
}

impl LastChanges {
    pub(super) fn new(key: Arc<Key>, pass: u64, passes: u64) -> Self {
        Self { key, keys: HashMap::new(), pass, passes, next: 0 }
    }

    /// Changes as they came.
    pub(super) fn add(&mut self, changes: &RecordBatch, rule: &MergeRule, marks: &mut Marks) -> Result<()> {
        let keys = self.key.rows(key_columns(changes, &self.key)?)?;
        for (key, kind) in keys.iter().zip(kinds(changes)?) {
            let upsert = Kind::of(*kind) == Some(Kind::Upsert);
            let place = if upsert { self.next } else { GONE };
            self.next += u64::from(upsert);
            let key = key.as_ref();
            if !self.is_mine(key) {
                continue;
            }
            match self.keys.get_mut(key) {
                Some(_) if rule.refuse_duplicates => {
                    let why = format!("two rows have the key {}; send one", self.key.show(key));
                    return Err(Error::new(ErrorKind::DuplicateKey, why));
                }
                Some(last) => {
                    if last.is_staged() {
                        marks.overtaken.insert(last.place);
                    }
                    last.place = place;
                }
                None => {
                    self.keys.insert(key.into(), Last::new(place));
                }
            }
        }
        Ok(())
    }

    /// Rows that are there. Those with a key that comes are marked as replaced, if the rule says so.
    pub(super) fn find(&mut self, rows: &Found<'_>, rule: &MergeRule, marks: &mut Marks) -> Result<()> {
        let keys = self.key.rows(rows.key_columns(&self.key))?;
        for ((key, id), address) in keys.iter().zip(rows.ids).zip(rows.addresses) {
            let Some(last) = self.keys.get_mut(key.as_ref()) else { continue };
            (last.old, last.address) = (*id, *address);
            // A change that deletes does so under any rule.
            let replaced = !last.is_staged()
                || match rule.when_matched {
                    WhenMatched::UpdateAll | WhenMatched::Delete => true,
                    // What an update depends on is looked at later.
                    WhenMatched::UpdateIf(_) | WhenMatched::DoNothing => false,
                    WhenMatched::Fail => {
                        let why = format!("the table has a row with the key {} already", self.key.show(key.as_ref()));
                        return Err(Error::new(ErrorKind::DuplicateKey, why));
                    }
                };
            if replaced {
                marks.replaced.insert(*address);
            }
        }
        Ok(())
    }

    /// Rows that are there, and whose keys do not come, are marked as replaced. Answers how many.
    pub(super) fn find_others(&self, rows: &Found<'_>, marks: &mut Marks) -> Result<u64> {
        let keys = self.key.rows(rows.key_columns(&self.key))?;
        let mut others = 0;
        for (key, address) in keys.iter().zip(rows.addresses) {
            let key = key.as_ref();
            if self.is_mine(key) && !self.keys.contains_key(key) && marks.replaced.insert(*address) {
                others += 1;
            }
        }
        Ok(others)
    }

    /// Rows that changes are told apart by the ids of must be there.
    pub(super) fn require_old(&self, version: u64) -> Result<()> {
        match self.keys.iter().find(|(_, last)| !last.is_there()) {
            Some((key, _)) => Err(Error::invalid(format!("version {version} has no row with {}", self.key.show(key)))),
            None => Ok(()),
        }
    }

    /// What the rule leaves alone, now that it is known what is there.
    pub(super) fn settle(&mut self, rule: &MergeRule, marks: &mut Marks) {
        for last in self.keys.values_mut().filter(|last| last.is_staged()) {
            let settled = match (&rule.when_matched, rule.when_not_matched, last.is_there()) {
                (_, WhenNotMatched::InsertAll, false) => continue,
                (_, WhenNotMatched::DoNothing, false) => LEFT_ALONE,
                (WhenMatched::UpdateAll | WhenMatched::UpdateIf(_), _, true) => continue,
                (WhenMatched::DoNothing | WhenMatched::Fail, _, true) => LEFT_ALONE,
                (WhenMatched::Delete, _, true) => GONE,
            };
            marks.overtaken.insert(last.place);
            last.place = settled;
        }
    }

    /// Of changes that are read once more, the rows that stay.
    pub(super) fn stay(&mut self, changes: &RecordBatch) -> Result<Vec<Staying>> {
        let keys = self.key.rows(key_columns(changes, &self.key)?)?;
        let mut stay = Vec::new();
        for (row, (key, kind)) in keys.iter().zip(kinds(changes)?).enumerate() {
            if Kind::of(*kind) != Some(Kind::Upsert) {
                continue;
            }
            if let Some(last) = self.keys.get(key.as_ref()).filter(|last| last.place == self.next) {
                stay.push(Staying { row: row as u32, old: last.is_there().then_some(last.old) });
            }
            self.next += 1;
        }
        Ok(stay)
    }

    /// Of the rows that stay, each that replaces another is let through or left alone; `update` says so of those, in their order.
    pub(super) fn decide(
        &mut self,
        changes: &RecordBatch,
        stay: Vec<Staying>,
        update: &[bool],
        marks: &mut Marks,
    ) -> Result<Vec<Staying>> {
        let keys = self.key.rows(key_columns(changes, &self.key)?)?;
        let mut update = update.iter();
        let mut kept = Vec::with_capacity(stay.len());
        for staying in stay {
            if staying.old.is_none() {
                kept.push(staying);
                continue;
            }
            let Some(last) = self.keys.get_mut(keys.row(staying.row as usize).as_ref()) else { continue };
            if update.next() == Some(&true) {
                marks.replaced.insert(last.address);
                kept.push(staying);
            } else {
                last.place = LEFT_ALONE;
            }
        }
        Ok(kept)
    }

    /// Before the changes are read once more.
    pub(super) fn rewind(&mut self) {
        self.next = 0;
    }

    /// Upserts that were read.
    pub(super) fn upserts(&self) -> u64 {
        self.next
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The ids of rows that are keys.
    pub(super) fn row_ids(&self) -> Result<Vec<u64>> {
        let parser = self.key.converter.parser();
        let columns = self.key.converter.convert_rows(self.keys.keys().map(|key| parser.parse(key))).map_err(broken)?;
        let ids = columns.first().and_then(|column| column.as_primitive_opt::<UInt64Type>());
        Ok(ids.ok_or_else(|| Error::internal("the key of a merge is no row id"))?.values().to_vec())
    }

    /// Conditions for so many keys at a time, in the order of the keys: an index finds those of one condition near each other.
    pub(super) fn filters(&self, keys: usize) -> Result<Vec<Expr>> {
        let mut sorted: Vec<&[u8]> = self.keys.keys().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        sorted.chunks(keys.max(1)).map(|keys| self.key.filter(keys)).collect()
    }

    pub(super) fn count(&self, counts: &mut MergeCounts) {
        for last in self.keys.values() {
            let count = match (last.place, last.is_there()) {
                (LEFT_ALONE, _) | (GONE, false) => &mut counts.num_unchanged,
                (GONE, true) => &mut counts.num_deleted,
                (_, true) => &mut counts.num_updated,
                (_, false) => &mut counts.num_inserted,
            };
            *count += 1;
        }
    }

    fn is_mine(&self, key: &[u8]) -> bool {
        self.passes == 1 || xxh3_64(key) % self.passes == self.pass
    }
}

/// Rows that are there.
pub(super) struct Found<'a> {
    pub(super) rows: &'a RecordBatch,
    pub(super) ids: &'a [u64],
    pub(super) addresses: &'a [u64],
}

impl<'a> Found<'a> {
    /// They come first, and so does the id of a row.
    fn key_columns(&self, key: &Key) -> impl Iterator<Item = &'a ArrayRef> {
        self.rows.columns().iter().take(key.columns.len())
    }
}

/// The columns of the key in a file of changes, which names its columns by their ids.
fn key_columns<'a>(changes: &'a RecordBatch, key: &Key) -> Result<impl Iterator<Item = &'a ArrayRef>> {
    let found: Option<Vec<&ArrayRef>> = key.ids().map(|id| changes.column_by_name(&id.to_string())).collect();
    let damaged = || Error::new(ErrorKind::CorruptData, "a file of changes does not have the columns of the key");
    Ok(found.ok_or_else(damaged)?.into_iter())
}

pub(super) fn broken(error: ArrowError) -> Error {
    Error::internal("the keys of a merge do not fit together").with_source(error)
}
