//! Arrays whose slices keep all values of the whole: here what a slice does not use is left behind, so that a batch that is
//! cut into pieces is not sent many times over.

use arrow_array::types::ByteViewType;
use arrow_array::{Array, ArrayRef, GenericByteViewArray, GenericListViewArray, OffsetSizeTrait, UnionArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::UnionFields;

/// Below this, unused bytes are cheaper to send than to find.
const WORTH_BYTES: usize = 64 << 10;

/// Views over no more than twice the bytes that they use.
pub(super) fn views<T: ByteViewType>(array: &GenericByteViewArray<T>) -> GenericByteViewArray<T> {
    let held: usize = array.data_buffers().iter().map(|b| b.len()).sum();
    if held > WORTH_BYTES && held / 2 > array.total_buffer_bytes_used() { array.gc() } else { array.clone() }
}

/// Offsets, sizes and the values between the first and the last that is used.
pub(super) fn list_view<O: OffsetSizeTrait>(
    array: &GenericListViewArray<O>,
) -> (ScalarBuffer<O>, ScalarBuffer<O>, ArrayRef) {
    let used = array.offsets().iter().zip(array.sizes().iter()).filter(|(_, size)| size.as_usize() > 0);
    let (start, end) = used.fold((usize::MAX, 0), |(start, end), (offset, size)| {
        (start.min(offset.as_usize()), end.max(offset.as_usize() + size.as_usize()))
    });
    let start = start.min(end);
    if start == 0 && end == array.values().len() {
        return (array.offsets().clone(), array.sizes().clone(), array.values().clone());
    }
    // An empty list may point anywhere, also outside of what is left.
    let offsets = array.offsets().iter().zip(array.sizes().iter()).map(|(offset, size)| {
        let moved = if size.as_usize() > 0 { offset.as_usize() - start } else { 0 };
        O::usize_as(moved)
    });
    (offsets.collect::<Vec<_>>().into(), array.sizes().clone(), array.values().slice(start, end - start))
}

/// Offsets and children; of each child what the offsets point to.
pub(super) fn dense_union(
    array: &UnionArray,
    offsets: &ScalarBuffer<i32>,
    fields: &UnionFields,
) -> (ScalarBuffer<i32>, Vec<ArrayRef>) {
    let mut ranges = [(i32::MAX, 0_i32); 256];
    let slot = |id: i8| usize::from(id.cast_unsigned());
    for (id, offset) in array.type_ids().iter().zip(offsets.iter()) {
        let (start, end) = ranges[slot(*id)];
        ranges[slot(*id)] = (start.min(*offset), end.max(*offset + 1));
    }
    let moved = array.type_ids().iter().zip(offsets.iter()).map(|(id, offset)| *offset - ranges[slot(*id)].0);
    let moved: Vec<i32> = moved.collect();
    let children = fields.iter().map(|(id, _)| {
        let (start, end) = ranges[slot(id)];
        let start = usize::try_from(start.min(end)).unwrap_or(0);
        array.child(id).slice(start, usize::try_from(end).unwrap_or(0) - start)
    });
    (moved.into(), children.collect())
}
