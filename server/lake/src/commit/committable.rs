//! A committable: all staged writes of one checkpoint, sealed.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use lance_core::datatypes::Schema;
use lance_file::datatypes::{Fields, FieldsWithMeta};
use lance_file::format::pb as file_pb;
use lance_table::format::{Fragment, pb};
use lance_table::transaction::Operation;
use prost::Message;

use super::envelope::{self, Kind};
use super::gate::Mark;
use super::land::Put;
use super::ledger::Size;
use super::messages::{Committable, Mode, StagedWrite, WriteHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::merge::Changes;
use crate::types::{CommitId, MergeRule, TableId, WriteMode};

/// Longest text of an epoch or a run id: they become keys in the manifest.
const MAX_ID_BYTES: usize = 64;
/// Bytes of all properties of one commit: they are kept with the version.
const MAX_PROPERTIES_BYTES: usize = 64 << 10;

/// A committable, opened and understood.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Of mode merge.
    pub(super) merge: Option<Changes>,
    pub(super) table: TableId,
    pub(super) incarnation: String,
    pub(super) id: CommitId,
    pub(super) mode: WriteMode,
    pub(super) run_id: String,
    /// With the field ids that the files have.
    pub(super) schema: Schema,
    pub(super) fragments: Vec<Fragment>,
    pub(super) properties: HashMap<String, String>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) num_rows: u64,
    pub(super) num_bytes: u64,
}

impl Opened {
    pub(super) fn put(&self, operation: Operation, mark: Mark) -> Put {
        Put {
            operation,
            mark,
            incarnation: self.incarnation.clone(),
            size: Size { rows: self.num_rows, bytes: self.num_bytes },
            properties: self.properties.clone(),
        }
    }
}

/// Puts staged writes together. The same input gives the same bytes, so that a repeated prepare is the same one.
pub(super) fn assemble(
    id: CommitId,
    write: &[u8],
    staged: &[Bytes],
    properties: HashMap<String, String>,
) -> Result<Committable> {
    check_id("epoch", &id.epoch)?;
    if id.seq == 0 {
        return Err(Error::invalid("seq of a commit counts from 1; it is 0"));
    }
    if properties.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>() > MAX_PROPERTIES_BYTES {
        return Err(Error::invalid(format!("properties of a commit are over {MAX_PROPERTIES_BYTES} bytes")));
    }
    let handle: WriteHandle = envelope::open(Kind::WriteHandle, write)?;
    let mode = handle.mode();
    let mut committable = Committable {
        mode: handle.mode,
        table_name: handle.table_name,
        table_uri: handle.table_uri,
        incarnation: handle.incarnation,
        run_id: handle.run_id,
        epoch: id.epoch,
        seq: id.seq,
        schema_metadata: handle.schema_metadata,
        properties: properties.into_iter().collect(),
        created_at_ms: handle.created_at_ms,
        ..Default::default()
    };
    if mode == Mode::Merge {
        (committable.key, committable.columns) = (handle.key, handle.columns);
        committable.chosen_in = handle.chosen_in;
    }
    // An overwrite brings its schema, and a merge may be one of no rows; an append names the fields of all its files, which may
    // have been staged before and after a change of the table.
    let mut fields = FieldSet::default();
    if mode != Mode::Append {
        fields.add(&handle.fields)?;
    }
    for (nth, bytes) in staged.iter().enumerate() {
        let part: StagedWrite = envelope::open(Kind::StagedWrite, bytes)?;
        let belongs = part.incarnation == committable.incarnation
            && part.mode() == mode
            && (mode != Mode::Overwrite || part.schema_fingerprint == handle.schema_fingerprint)
            && part.key == committable.key
            && part.columns == committable.columns
            && part.chosen_in == committable.chosen_in;
        if !belongs {
            return Err(Error::invalid(format!(
                "staged write {nth} belongs to another table, mode, schema or version than the handle it comes with"
            )));
        }
        committable.created_at_ms =
            if nth == 0 { part.created_at_ms } else { committable.created_at_ms.min(part.created_at_ms) };
        committable.num_rows += part.num_rows;
        committable.num_bytes += part.num_bytes;
        committable.fragments.extend(part.fragments);
        committable.changes.extend(part.changes);
        fields.add(&part.fields)?;
    }
    committable.fields = fields.encoded;
    let mut paths = HashSet::new();
    for fragment in fragments(&committable.fragments)? {
        for file in fragment.files {
            once(&mut paths, &file.path)?;
        }
    }
    for file in &committable.changes {
        once(&mut paths, &file.name)?;
    }
    Ok(committable)
}

fn once(paths: &mut HashSet<String>, path: &str) -> Result<()> {
    if paths.insert(path.to_owned()) {
        return Ok(());
    }
    Err(Error::invalid(format!("file {path} is staged twice; give each staged write once")))
}

/// Fields by id, in the order in which they came.
#[derive(Default)]
struct FieldSet {
    encoded: Vec<Bytes>,
    types: HashMap<i32, String>,
}

impl FieldSet {
    fn add(&mut self, fields: &[Bytes]) -> Result<()> {
        for bytes in fields {
            let field = decode_field(bytes)?;
            match self.types.get(&field.id) {
                None => {
                    self.types.insert(field.id, field.logical_type);
                    self.encoded.push(bytes.clone());
                }
                Some(known) if *known == field.logical_type => {}
                Some(known) => {
                    return Err(Error::new(
                        ErrorKind::SchemaMismatch,
                        format!(
                            "column `{}` was staged as {known} and as {}: its type changed in between; stage the rows again",
                            field.name, field.logical_type
                        ),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn decode_field(bytes: &Bytes) -> Result<file_pb::Field> {
    file_pb::Field::decode(bytes.as_ref()).map_err(|e| corrupt("its schema does not decode").with_source(e))
}

/// The fields of a schema as they stand in handles and committables.
pub(crate) fn encode_fields(schema: &Schema) -> Vec<Bytes> {
    Fields::from(schema).0.iter().map(|field| Bytes::from(field.encode_to_vec())).collect()
}

/// Opens a committable.
pub(super) fn open(bytes: &[u8]) -> Result<Opened> {
    understand(envelope::open(Kind::Committable, bytes)?)
}

pub(super) fn understand(committable: Committable) -> Result<Opened> {
    let mode = WriteMode::from(committable.mode());
    if mode == WriteMode::Overwrite {
        check_id("run id", &committable.run_id)?;
    }
    let changes = Changes {
        key: committable.key,
        columns: committable.columns,
        files: committable.changes,
        chosen_in: committable.chosen_in,
        rule: MergeRule::default(),
    };
    Ok(Opened {
        mode,
        merge: (mode == WriteMode::Merge).then_some(changes),
        schema: schema_of(&committable.fields, &committable.schema_metadata)?,
        fragments: fragments(&committable.fragments)?,
        id: CommitId { epoch: committable.epoch, seq: committable.seq },
        properties: committable.properties.into_iter().collect(),
        created_at: DateTime::from_timestamp_millis(committable.created_at_ms)
            .ok_or_else(|| corrupt("its time is out of range"))?,
        num_rows: committable.num_rows,
        num_bytes: committable.num_bytes,
        table: table_id(committable.table_name, committable.table_uri),
        incarnation: committable.incarnation,
        run_id: committable.run_id,
    })
}

fn table_id(name: Vec<String>, uri: String) -> TableId {
    if name.is_empty() { TableId::Uri(uri) } else { TableId::Name(name) }
}

/// The Lance schema whose fields stand in a handle or a committable.
pub(crate) fn schema_of(fields: &[Bytes], metadata: &BTreeMap<String, String>) -> Result<Schema> {
    let fields = fields.iter().map(decode_field).collect::<Result<Vec<_>>>()?;
    let metadata = metadata.iter().map(|(k, v)| (k.clone(), v.clone().into_bytes())).collect();
    Schema::try_from(FieldsWithMeta { fields: Fields(fields), metadata })
        .map_err(|e| corrupt("its schema is not one of Lance").with_source(e))
}

fn fragments(encoded: &[Bytes]) -> Result<Vec<Fragment>> {
    encoded
        .iter()
        .map(|bytes| {
            let message = pb::DataFragment::decode(bytes.as_ref())
                .map_err(|e| corrupt("a fragment does not decode").with_source(e))?;
            let mut fragment =
                Fragment::try_from(message).map_err(|e| corrupt("a fragment is not one of Lance").with_source(e))?;
            // Lance gives ids at the commit, and only to those that have none.
            fragment.id = 0;
            Ok(fragment)
        })
        .collect()
}

/// Ids become part of a key in the manifest.
pub(super) fn check_id(what: &str, id: &str) -> Result<()> {
    let fine = !id.is_empty()
        && id.len() <= MAX_ID_BYTES
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if fine {
        Ok(())
    } else {
        Err(Error::invalid(format!("{what} must have 1 to {MAX_ID_BYTES} letters, digits, `-` or `_`; a UUID is best")))
    }
}

fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::CorruptData, format!("the committable cannot be used: {what}"))
}
