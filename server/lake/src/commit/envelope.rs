//! The envelope around everything that a client keeps for us: it tells what it is, and whether it is whole.
//!
//! Layout: magic `LGWE`, format version (u8), kind (u8), body length (u32 LE), body (protobuf), CRC-32C (u32 LE) over all before it.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use crate::error::{Error, ErrorKind, Result};

const MAGIC: &[u8; 4] = b"LGWE";
const FORMAT_VERSION: u8 = 1;
const HEADER_BYTES: usize = 10;
const CHECKSUM_BYTES: usize = 4;

/// What is in an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    WriteHandle = 1,
    StagedWrite = 2,
    Committable = 3,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::WriteHandle => "write handle",
            Self::StagedWrite => "staged write",
            Self::Committable => "committable",
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::WriteHandle, Self::StagedWrite, Self::Committable].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Seals a message.
pub(crate) fn seal(kind: Kind, message: &impl Message) -> Result<Bytes> {
    let body_bytes = message.encoded_len();
    let length = u32::try_from(body_bytes)
        .map_err(|_| Error::internal(format!("a {} of {body_bytes} bytes does not fit an envelope", kind.name())))?;
    let mut sealed = BytesMut::with_capacity(HEADER_BYTES + body_bytes + CHECKSUM_BYTES);
    sealed.put_slice(MAGIC);
    sealed.put_u8(FORMAT_VERSION);
    sealed.put_u8(kind as u8);
    sealed.put_u32_le(length);
    message
        .encode(&mut sealed)
        .map_err(|e| Error::internal(format!("a {} cannot be encoded", kind.name())).with_source(e))?;
    let checksum = crc32c::crc32c(&sealed);
    sealed.put_u32_le(checksum);
    Ok(sealed.freeze())
}

/// Opens an envelope that must hold this kind.
pub(crate) fn open<M: Message + Default>(kind: Kind, sealed: &[u8]) -> Result<M> {
    let corrupt =
        |what: &str| Error::new(ErrorKind::CorruptData, format!("these bytes are no {}: {what}", kind.name()));
    let Some((header, rest)) = sealed.split_first_chunk::<HEADER_BYTES>() else {
        return Err(corrupt("they are too short"));
    };
    let [m0, m1, m2, m3, version, kind_byte, l0, l1, l2, l3] = *header;
    if [m0, m1, m2, m3] != *MAGIC {
        return Err(corrupt("the magic is missing"));
    }
    if version != FORMAT_VERSION {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("a {} of format version {version}; this gateway reads version {FORMAT_VERSION}", kind.name()),
        ));
    }
    let Some((body, checksum)) = rest.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(corrupt("they are too short"));
    };
    if body.len() as u64 != u64::from(u32::from_le_bytes([l0, l1, l2, l3])) {
        return Err(corrupt("the length does not match"));
    }
    if crc32c::crc32c(&sealed[..sealed.len() - CHECKSUM_BYTES]) != u32::from_le_bytes(*checksum) {
        return Err(corrupt("the checksum does not match"));
    }
    match Kind::from_byte(kind_byte) {
        Some(found) if found == kind => {}
        Some(found) => return Err(Error::invalid(format!("a {} is wanted here, not a {}", kind.name(), found.name()))),
        None => return Err(corrupt("the kind is unknown")),
    }
    M::decode(body).map_err(|e| corrupt("the body does not decode").with_source(e))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::commit::messages::{ChangeFile, Committable, Mode, StagedWrite, WriteHandle};

    fn staged() -> StagedWrite {
        StagedWrite {
            incarnation: "i".into(),
            num_rows: 7,
            fragments: vec![Bytes::from_static(b"abc")],
            ..Default::default()
        }
    }

    #[test]
    fn a_sealed_message_opens_as_it_was() {
        let sealed = seal(Kind::StagedWrite, &staged()).unwrap();
        assert_eq!(open::<StagedWrite>(Kind::StagedWrite, &sealed).unwrap(), staged());
    }

    #[test]
    fn any_flipped_bit_and_any_cut_is_refused() {
        let sealed = seal(Kind::StagedWrite, &staged()).unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut broken = sealed.to_vec();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert!(open::<StagedWrite>(Kind::StagedWrite, &broken).is_err(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            let error = open::<StagedWrite>(Kind::StagedWrite, &sealed[..length]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::CorruptData, "length {length}");
        }
    }

    #[test]
    fn another_kind_is_named() {
        let sealed = seal(Kind::StagedWrite, &staged()).unwrap();
        let error = open::<StagedWrite>(Kind::Committable, &sealed).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("not a staged write"), "{error}");
    }

    fn map() -> BTreeMap<String, String> {
        BTreeMap::from([("k".to_owned(), "v".to_owned())])
    }

    fn parts(text: &'static str) -> Vec<Bytes> {
        vec![Bytes::from_static(text.as_bytes()), Bytes::new()]
    }

    /// Seals `message` to what stands in the golden file, and reads the same from it.
    fn assert_golden<M: Message + Default + PartialEq + std::fmt::Debug>(file: &str, kind: Kind, message: &M) {
        let path = format!("{}/../../tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
        let golden = std::fs::read(&path).unwrap_or_default();
        assert_eq!(open::<M>(kind, &golden).unwrap(), *message, "{file}");
        assert_eq!(seal(kind, message).unwrap(), golden, "{file}");
    }

    /// Jobs keep these bytes in their state, over upgrades of the gateway.
    #[test]
    fn bytes_that_clients_keep_stay_readable_and_the_same() {
        let (table_name, incarnation, run_id) =
            (vec!["ns".to_owned(), "t".to_owned()], "inc".to_owned(), "run".to_owned());
        let handle = WriteHandle {
            table_name: table_name.clone(),
            table_uri: "s3://b/t.lance".to_owned(),
            incarnation: incarnation.clone(),
            mode: Mode::Overwrite as i32,
            run_id: run_id.clone(),
            schema_ipc: Bytes::from_static(b"schema"),
            read_version: 7,
            schema_fingerprint: u64::MAX,
            data_storage_version: "2.2".to_owned(),
            created_at_ms: 1_700_000_000_000,
            fields: parts("field"),
            schema_metadata: map(),
            ..Default::default()
        };
        assert_golden("write-handle-1.bin", Kind::WriteHandle, &handle);
        let staged = StagedWrite {
            incarnation: incarnation.clone(),
            mode: Mode::Append as i32,
            run_id: run_id.clone(),
            fragments: parts("fragment"),
            num_rows: 10,
            num_bytes: 1 << 40,
            created_at_ms: 1_700_000_000_000,
            schema_fingerprint: 1,
            fields: parts("field"),
            ..Default::default()
        };
        assert_golden("staged-write-1.bin", Kind::StagedWrite, &staged);
        let committable = Committable {
            table_name,
            table_uri: "s3://b/t.lance".to_owned(),
            incarnation,
            mode: Mode::Overwrite as i32,
            run_id,
            epoch: "epoch".to_owned(),
            seq: 300,
            fragments: parts("fragment"),
            fields: parts("field"),
            schema_metadata: map(),
            properties: map(),
            created_at_ms: 1_700_000_000_000,
            num_rows: 10,
            num_bytes: 1 << 40,
            ..Default::default()
        };
        assert_golden("committable-1.bin", Kind::Committable, &committable);
    }

    #[test]
    fn what_a_merge_adds_stays_readable_and_the_same() {
        let changes = ChangeFile { name: "c.arrows".to_owned(), num_bytes: 1 << 33, num_changes: 7, num_upserts: 5 };
        let (key, columns) = (vec![3, 1], vec![1, 3, 9]);
        let mode = Mode::Merge as i32;
        let handle = WriteHandle { mode, key: key.clone(), columns: columns.clone(), ..Default::default() };
        assert_golden("merge-write-handle-1.bin", Kind::WriteHandle, &handle);
        let staged = StagedWrite {
            mode,
            changes: Some(changes.clone()),
            key: key.clone(),
            columns: columns.clone(),
            ..Default::default()
        };
        assert_golden("merge-staged-write-1.bin", Kind::StagedWrite, &staged);
        let committable = Committable { mode, changes: vec![changes], key, columns, ..Default::default() };
        assert_golden("merge-committable-1.bin", Kind::Committable, &committable);
    }

    #[test]
    fn what_changes_of_chosen_rows_add_stays_readable_and_the_same() {
        let (mode, key, chosen_in) = (Mode::Merge as i32, vec![crate::merge::ROW_ID], Some(1 << 40));
        let columns = vec![crate::merge::ROW_ID, 3];
        let handle = WriteHandle { mode, key: key.clone(), columns: columns.clone(), chosen_in, ..Default::default() };
        assert_golden("chosen-write-handle-1.bin", Kind::WriteHandle, &handle);
        let staged = StagedWrite { mode, key: key.clone(), columns: columns.clone(), chosen_in, ..Default::default() };
        assert_golden("chosen-staged-write-1.bin", Kind::StagedWrite, &staged);
        let committable = Committable { mode, key, columns, chosen_in, ..Default::default() };
        assert_golden("chosen-committable-1.bin", Kind::Committable, &committable);
    }
}
