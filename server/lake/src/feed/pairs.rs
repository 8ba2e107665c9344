//! Which rows of a version are updates: what went and what came with one key. And to which part a key belongs.

use std::collections::HashMap;

use arrow_array::{Array as _, ArrayRef};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use futures::TryStreamExt as _;
use lance_core::ROW_ADDR;
use roaring::RoaringTreemap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::diff::Diff;
use crate::Lake;
use crate::error::{Error, Result};
use crate::merge::{Key, ROW_ID, numbers};
use crate::scan::{Bounds, Projected};
use crate::table::Handle;
use crate::types::RowMetadata;

/// A subset of the keys: those of one part, or of one pass over it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) part: u64,
    pub(super) parts: u64,
    pub(super) pass: u64,
    pub(super) passes: u64,
}

/// What became of the rows of one share.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// Of the version before.
    pub(super) deleted: RoaringTreemap,
    /// All that came.
    pub(super) came: RoaringTreemap,
    /// Of those, the ones that replace a row, in order, with the row.
    pub(super) replaced: Vec<(u64, u64)>,
    /// Rows that were changed where they lie.
    pub(super) rewritten: RoaringTreemap,
}

/// What the rows of both versions are told apart by: the primary key, or the stable row id.
pub(super) fn identity(before: &Handle, after: &Handle) -> Result<Option<Key>> {
    let key = key_of(after);
    if !key.is_empty() && key == key_of(before) {
        return Key::new(after.schema(), &key).map(Some);
    }
    let stable = |dataset: &Handle| dataset.manifest().uses_stable_row_ids();
    (stable(before) && stable(after)).then(|| Key::new(after.schema(), &[ROW_ID])).transpose()
}

/// The field ids of the primary key; none: there is no key.
pub(super) fn key_of(dataset: &Handle) -> Vec<i32> {
    dataset.schema().unenforced_primary_key().iter().map(|field| field.id).collect()
}

impl Share {
    /// The whole of a part.
    pub(super) fn part(part: u32, parts: u32) -> Self {
        Self { part: part.into(), parts: parts.into(), pass: 0, passes: 1 }
    }

    fn is_all(&self) -> bool {
        self.parts == 1 && self.passes == 1
    }

    fn has(&self, hash: u64) -> bool {
        hash % self.parts == self.part && (hash / self.parts) % self.passes == self.pass
    }

    /// The shares in which a part compares at most about so many rows at once.
    pub(super) fn passes(self, rows: u64, at_once: u64) -> impl Iterator<Item = Self> {
        let passes = (rows / self.parts.max(1)).div_ceil(at_once.max(1)).max(1);
        (0..passes).map(move |pass| Self { pass, passes, ..self })
    }
}

impl Lake {
    /// What became of the rows of one share. `identity`: None if rows cannot be told apart.
    pub(super) async fn pairs(
        &self,
        before: Option<&Handle>,
        after: &Handle,
        diff: &Diff,
        identity: Option<&Key>,
        share: Share,
        bounds: Bounds,
    ) -> Result<Pairs> {
        let mut pairs = Pairs::default();
        let Some(identity) = identity else {
            (pairs.deleted, pairs.came, pairs.rewritten) =
                (diff.gone.clone(), diff.came.clone(), diff.rewritten.clone());
            return Ok(pairs);
        };
        // Only what both went and came has to be compared.
        let compare = !diff.gone.is_empty() && !diff.came.is_empty();
        let mut gone: HashMap<Box<[u8]>, Vec<u64>> = HashMap::new();
        match before {
            Some(before) if compare => {
                let mut keep = |key: &[u8], address: u64| gone.entry(key.into()).or_default().push(address);
                self.each_key(before, &diff.gone, identity, share, bounds, &mut keep).await?;
            }
            Some(before) => pairs.deleted = self.of_share(before, &diff.gone, identity, share, bounds).await?,
            None => {}
        }
        if compare {
            let (came, replaced) = (&mut pairs.came, &mut pairs.replaced);
            let mut find = |key: &[u8], address: u64| {
                came.insert(address);
                if let Some(old) = gone.get_mut(key).and_then(Vec::pop) {
                    replaced.push((address, old));
                }
            };
            self.each_key(after, &diff.came, identity, share, bounds, &mut find).await?;
            pairs.deleted.extend(gone.into_values().flatten());
        } else {
            pairs.came = self.of_share(after, &diff.came, identity, share, bounds).await?;
        }
        if share.pass == 0 {
            let whole = Share { passes: 1, ..share };
            pairs.rewritten = self.of_share(after, &diff.rewritten, identity, whole, bounds).await?;
        }
        Ok(pairs)
    }

    /// Those of the rows that belong to a share.
    async fn of_share(
        &self,
        dataset: &Handle,
        rows: &RoaringTreemap,
        identity: &Key,
        share: Share,
        bounds: Bounds,
    ) -> Result<RoaringTreemap> {
        if share.is_all() || rows.is_empty() {
            return Ok(rows.clone());
        }
        let mut mine = RoaringTreemap::new();
        let mut stream = self.at_addresses(dataset, &keys_of(identity, dataset)?, rows, bounds).await?;
        while let Some(batch) = stream.try_next().await? {
            let hashes = hashes(&identity.values(batch.columns().iter())?, batch.num_rows())?;
            let addresses = numbers(&batch, ROW_ADDR)?.iter().zip(hashes);
            mine.extend(addresses.filter(|(_, hash)| share.has(*hash)).map(|(address, _)| *address));
        }
        Ok(mine)
    }

    /// Calls with the key and the address of each of the rows that belong to a share, in their order.
    async fn each_key(
        &self,
        dataset: &Handle,
        rows: &RoaringTreemap,
        identity: &Key,
        share: Share,
        bounds: Bounds,
        each: &mut (dyn FnMut(&[u8], u64) + Send),
    ) -> Result<()> {
        let mut stream = self.at_addresses(dataset, &keys_of(identity, dataset)?, rows, bounds).await?;
        while let Some(batch) = stream.try_next().await? {
            let values = identity.values(batch.columns().iter())?;
            let hashes = if share.is_all() { Vec::new() } else { hashes(&values, batch.num_rows())? };
            let keys = identity.rows(values.iter())?;
            for (row, (key, address)) in keys.iter().zip(numbers(&batch, ROW_ADDR)?).enumerate() {
                if hashes.get(row).is_none_or(|hash| share.has(*hash)) {
                    each(key.as_ref(), *address);
                }
            }
        }
        Ok(())
    }
}

/// The key of rows, whose columns come first, with their addresses.
fn keys_of(identity: &Key, dataset: &Handle) -> Result<Projected> {
    let metadata = RowMetadata { row_id: identity.is_row_id(), row_address: true, ..RowMetadata::default() };
    Projected::new(dataset, Some(&identity.paths(dataset.schema())), metadata)
}

/// A number for each key. Readers keep their parts over upgrades of the gateway, so it must never change, unlike the encodings of
/// libraries.
fn hashes(values: &[ArrayRef], rows: usize) -> Result<Vec<u64>> {
    let mut hashes = vec![0; rows];
    for values in values {
        let data = values.to_data();
        for (row, hash) in hashes.iter_mut().enumerate() {
            *hash = xxh3_64_with_seed(bytes_of(&data, row)?, *hash);
        }
    }
    Ok(hashes)
}

/// The bytes of a value: little-endian numbers, the bytes of a text, 0 or 1; none for NULL.
fn bytes_of(data: &ArrayData, row: usize) -> Result<&[u8]> {
    const BOOLEANS: [&[u8]; 2] = [&[0], &[1]];
    if data.is_null(row) {
        return Ok(&[]);
    }
    let at = data.offset() + row;
    let buffer = |index: usize| data.buffers().get(index).map(|buffer| buffer.as_slice()).unwrap_or_default();
    let bytes = match data.data_type() {
        DataType::Boolean => {
            let bit = buffer(0).get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
            return Ok(BOOLEANS[usize::from(bit)]);
        }
        DataType::Utf8 | DataType::Binary => {
            let offsets = data.buffer::<i32>(0);
            buffer(1).get(offsets[row] as usize..offsets[row + 1] as usize)
        }
        DataType::LargeUtf8 | DataType::LargeBinary => {
            let offsets = data.buffer::<i64>(0);
            buffer(1).get(offsets[row] as usize..offsets[row + 1] as usize)
        }
        DataType::FixedSizeBinary(width) => {
            let width = *width as usize;
            buffer(0).get(at * width..(at + 1) * width)
        }
        other => other.primitive_width().and_then(|width| buffer(0).get(at * width..(at + 1) * width)),
    };
    bytes.ok_or_else(|| Error::internal("a key is of a type that has no bytes"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, FixedSizeBinaryArray, Int64Array, LargeStringArray, StringArray};

    use super::*;

    fn hash_of(columns: Vec<ArrayRef>) -> Vec<u64> {
        let rows = columns[0].len();
        hashes(&columns, rows).unwrap()
    }

    #[test]
    fn parts_of_keys_are_the_same_in_all_versions_of_the_gateway() {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, -7]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "", "ü"]));
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
        assert_eq!(hash_of(vec![ids, names, flags]), GOLDEN);
    }

    const GOLDEN: [u64; 3] = [3_042_322_855_218_012_983, 4_860_405_606_752_844_138, 17_438_155_553_516_171_743];

    #[test]
    fn a_key_has_one_part_however_its_values_are_stored() {
        let texts = vec!["x", "abc", "defgh"];
        let small: ArrayRef = Arc::new(StringArray::from(texts.clone()));
        let large: ArrayRef = Arc::new(LargeStringArray::from(texts));
        assert_eq!(hash_of(vec![small.clone()]), hash_of(vec![large]));
        assert_eq!(hash_of(vec![small.slice(1, 2)]), hash_of(vec![small])[1..]);
        let bytes: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[1_u8, 2], [3, 4]].iter()).unwrap());
        assert_eq!(hash_of(vec![bytes.slice(1, 1)]), hash_of(vec![bytes])[1..]);
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]));
        assert_eq!(hash_of(vec![flags.slice(1, 2)]), hash_of(vec![flags])[1..]);
    }

    #[test]
    fn each_key_is_in_one_share() {
        let hashes = hash_of(vec![Arc::new(Int64Array::from_iter_values(0..10_000))]);
        let shares: Vec<Share> = (0..3).flat_map(|part| Share::part(part, 3).passes(12_000, 1_000)).collect();
        assert_eq!(shares.len(), 12);
        for share in &shares {
            let found = hashes.iter().filter(|hash| share.has(**hash)).count();
            assert!((600..1_100).contains(&found), "{share:?} has {found}");
        }
        assert!(hashes.iter().all(|hash| shares.iter().filter(|share| share.has(*hash)).count() == 1));
    }
}
