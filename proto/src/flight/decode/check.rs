//! What must hold before the Arrow reader may see a body: it slices and allocates as the header says.

use arrow_buffer::Buffer;
use arrow_ipc::{CompressionType, RecordBatch};

use super::super::error::{Error, Result};
use crate::Reason;

/// Arrow's own advice for the length of an array; a batch of nulls takes no bytes that would bound it.
const MAX_ROWS: i64 = i32::MAX as i64;

pub(super) fn body(batch: &RecordBatch<'_>, body: &Buffer, max_bytes: usize) -> Result<()> {
    if !(0..=MAX_ROWS).contains(&batch.length()) {
        return Err(wrong(&format!("it has {} rows", batch.length())));
    }
    for node in batch.nodes().into_iter().flatten() {
        if node.length() < 0 || node.null_count() < 0 || node.null_count() > node.length() {
            return Err(wrong(&format!("a column has {} nulls in {} values", node.null_count(), node.length())));
        }
    }
    let mut ranges = Vec::new();
    for buffer in batch.buffers().into_iter().flatten() {
        let start = usize::try_from(buffer.offset()).ok();
        let end = usize::try_from(buffer.length()).ok().and_then(|len| start?.checked_add(len));
        match start.zip(end).and_then(|(start, end)| body.as_slice().get(start..end)) {
            Some(bytes) => ranges.push(bytes),
            None => return Err(wrong("a buffer reaches over the end of the body")),
        }
    }
    let mut variadic = 0_i64;
    for count in batch.variadicBufferCounts().into_iter().flatten() {
        variadic = variadic.saturating_add(if count < 0 { i64::MAX } else { count });
    }
    if usize::try_from(variadic).map_or(true, |n| n > ranges.len()) {
        return Err(wrong("it has fewer buffers than its views need"));
    }
    match batch.compression() {
        None => Ok(()),
        Some(compression) => unpacked(&ranges, compression.codec(), max_bytes),
    }
}

/// A few bytes can unpack to gigabytes.
fn unpacked(buffers: &[&[u8]], codec: CompressionType, max_bytes: usize) -> Result<()> {
    let mut total = 0_usize;
    for buffer in buffers.iter().filter(|b| !b.is_empty()) {
        let (len, packed) = buffer.split_first_chunk::<8>().ok_or_else(|| wrong("a compressed buffer is cut short"))?;
        let len = match i64::from_le_bytes(*len) {
            -1 => packed.len(),
            len => usize::try_from(len).map_err(|_| wrong("a compressed buffer has no valid length"))?,
        };
        // The lz4 reader unpacks all blocks, whatever length is claimed.
        let len = if codec == CompressionType::LZ4_FRAME && i64::from_le_bytes(head(buffer)) > 0 {
            len.max(lz4_blocks(packed)?.saturating_sub(LZ4_SLACK))
        } else {
            len
        };
        total = total.saturating_add(len);
    }
    if total > max_bytes {
        return Err(Error::codec(
            Reason::MessageTooLarge,
            format!(
                "a record batch unpacks to {total} bytes, above the limit of {max_bytes} bytes; send smaller batches"
            ),
        ));
    }
    Ok(())
}

fn head(buffer: &[u8]) -> [u8; 8] {
    buffer.first_chunk::<8>().copied().unwrap_or_default()
}

/// The last block of a frame is rarely full.
const LZ4_SLACK: usize = 4 << 20;
const LZ4_MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();

/// Most bytes that the blocks of an lz4 frame can unpack to.
fn lz4_blocks(frame: &[u8]) -> Result<usize> {
    let cut = || wrong("an lz4 frame is not valid");
    let rest = frame.strip_prefix(&LZ4_MAGIC).ok_or_else(cut)?;
    let ([flags, descriptor], rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
    let block_max = match (descriptor >> 4) & 7 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        7 => 4 << 20,
        _ => return Err(cut()),
    };
    let content_size = if flags & 0x08 != 0 { 8 } else { 0 };
    let dictionary_id = if flags & 0x01 != 0 { 4 } else { 0 };
    let block_checksum = if flags & 0x10 != 0 { 4 } else { 0 };
    let mut rest = rest.get(content_size + dictionary_id + 1..).ok_or_else(cut)?;
    let mut total = 0_usize;
    loop {
        let (size, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let size = u32::from_le_bytes(*size);
        if size == 0 {
            let checksum = if flags & 0x04 != 0 { 4 } else { 0 };
            // A second frame behind the first would be unpacked as well.
            return if after.len() == checksum { Ok(total) } else { Err(cut()) };
        }
        total = total.saturating_add(block_max);
        rest = after.get((size & 0x7fff_ffff) as usize + block_checksum..).ok_or_else(cut)?;
    }
}

fn wrong(what: &str) -> Error {
    Error::corrupt(format!("a record batch is not valid arrow data: {what}"))
}
