//! A committable: all staged writes of one checkpoint, sealed.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use lance_core::datatypes::Schema;
use lance_file::datatypes::{Fields, FieldsWithMeta};
use lance_file::format::pb as file_pb;
use lance_table::format::{Fragment, pb};
use prost::Message;

use super::envelope::{self, Kind};
use super::messages::{Committable, Mode, StagedWrite, WriteHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{CommitId, TableId, WriteMode};

/// Longest text of an epoch or a run id: they become keys in the manifest.
const MAX_ID_BYTES: usize = 64;
/// Bytes of all properties of one commit: they are kept with the version.
const MAX_PROPERTIES_BYTES: usize = 64 << 10;

/// A committable, opened and understood.
#[derive(Debug)]
pub(super) struct Opened {
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
    let mut committable = Committable {
        epoch: id.epoch,
        seq: id.seq,
        properties: properties.into_iter().collect(),
        created_at_ms: handle.created_at_ms,
        ..Default::default()
    };
    for (nth, bytes) in staged.iter().enumerate() {
        let part: StagedWrite = envelope::open(Kind::StagedWrite, bytes)?;
        if part.incarnation != handle.incarnation
            || part.mode != handle.mode
            || part.run_id != handle.run_id
            || part.schema_fingerprint != handle.schema_fingerprint
        {
            return Err(Error::invalid(format!(
                "staged write {nth} belongs to another write; give each to the handle it was staged with"
            )));
        }
        committable.created_at_ms =
            if nth == 0 { part.created_at_ms } else { committable.created_at_ms.min(part.created_at_ms) };
        committable.num_rows += part.num_rows;
        committable.num_bytes += part.num_bytes;
        committable.fragments.extend(part.fragments);
    }
    if committable.fragments.is_empty() && handle.mode() == Mode::Append {
        return Err(Error::invalid("nothing was staged; a commit without rows is only for mode OVERWRITE"));
    }
    committable.write = Some(handle);
    let mut paths = HashSet::new();
    for fragment in fragments(&committable.fragments)? {
        for file in fragment.files {
            if !paths.insert(file.path.clone()) {
                return Err(Error::invalid(format!("file {} is staged twice; give each staged write once", file.path)));
            }
        }
    }
    Ok(committable)
}

/// Opens a committable.
pub(super) fn open(bytes: &[u8]) -> Result<Opened> {
    understand(envelope::open(Kind::Committable, bytes)?)
}

pub(super) fn understand(committable: Committable) -> Result<Opened> {
    let handle = committable.write.ok_or_else(|| corrupt("it names no write"))?;
    let mode = match handle.mode() {
        Mode::Append => WriteMode::Append,
        Mode::Overwrite => WriteMode::Overwrite,
    };
    if mode == WriteMode::Overwrite {
        check_id("run id", &handle.run_id)?;
    }
    Ok(Opened {
        id: CommitId { epoch: committable.epoch, seq: committable.seq },
        mode,
        schema: schema(&handle)?,
        fragments: fragments(&committable.fragments)?,
        properties: committable.properties.into_iter().collect(),
        created_at: DateTime::from_timestamp_millis(committable.created_at_ms)
            .ok_or_else(|| corrupt("its time is out of range"))?,
        num_rows: committable.num_rows,
        num_bytes: committable.num_bytes,
        table: handle.table(),
        incarnation: handle.incarnation,
        run_id: handle.run_id,
    })
}

fn schema(handle: &WriteHandle) -> Result<Schema> {
    let fields = handle
        .fields
        .iter()
        .map(|bytes| file_pb::Field::decode(bytes.as_ref()))
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|e| corrupt("its schema does not decode").with_source(e))?;
    let metadata = handle.schema_metadata.iter().map(|(k, v)| (k.clone(), v.clone().into_bytes())).collect();
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
