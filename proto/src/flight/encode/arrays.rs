//! The body of a record batch: the buffers of its arrays, in the order of Arrow IPC.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteArrayType, ByteViewType, RunEndIndexType, StringViewType};
use arrow_array::{Array, GenericByteArray, GenericByteViewArray, OffsetSizeTrait, RunArray, downcast_run_array};
use arrow_buffer::{BooleanBuffer, Buffer, OffsetBuffer};
use arrow_ipc::FieldNode;
use arrow_schema::{DataType, UnionMode};
use bytes::{Bytes, BytesMut};

use super::super::body::COALESCE;
use super::super::error::{Error, Result};
use super::trim;
use crate::Reason;

const ALIGNMENT: usize = 64;
const PADDING: [u8; ALIGNMENT] = [0; ALIGNMENT];

/// Collects nodes and buffers. Small buffers and padding are copied into parts of their own, large ones are shared.
#[derive(Default)]
pub(super) struct Body {
    nodes: Vec<FieldNode>,
    buffers: Vec<arrow_ipc::Buffer>,
    variadic: Vec<i64>,
    parts: Vec<Bytes>,
    small: BytesMut,
    len: usize,
}

struct Shared(Buffer);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

type Parts = (Vec<FieldNode>, Vec<arrow_ipc::Buffer>, Vec<i64>, Vec<Bytes>, usize);

impl Body {
    pub(super) fn finish(mut self) -> Parts {
        self.flush();
        (self.nodes, self.buffers, self.variadic, self.parts, self.len)
    }

    fn flush(&mut self) {
        if !self.small.is_empty() {
            self.parts.push(self.small.split().freeze());
        }
    }

    fn buffer(&mut self, buffer: Buffer) {
        let len = buffer.len();
        self.buffers.push(arrow_ipc::Buffer::new(self.len as i64, len as i64));
        if len < COALESCE {
            self.small.extend_from_slice(&buffer);
        } else {
            self.flush();
            self.parts.push(Bytes::from_owner(Shared(buffer)));
        }
        let padded = len.next_multiple_of(ALIGNMENT);
        self.small.extend_from_slice(&PADDING[..padded - len]);
        self.len += padded;
    }

    fn bits(&mut self, bits: &BooleanBuffer) {
        // Shared where the slice begins at a byte, else shifted.
        self.buffer(bits.inner().bit_slice(bits.offset(), bits.len()));
    }

    fn node(&mut self, array: &dyn Array) {
        self.nodes.push(FieldNode::new(array.len() as i64, array.null_count() as i64));
    }

    fn validity(&mut self, array: &dyn Array) {
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => self.bits(nulls.inner()),
            None => self.buffer(Buffer::default()),
        }
    }

    /// Appends an array. Arrays know their own offset, so what is taken here is never more than the slice.
    pub(super) fn array(&mut self, array: &dyn Array) -> Result<()> {
        match array.data_type() {
            DataType::Null => {
                self.nodes.push(FieldNode::new(array.len() as i64, array.len() as i64));
                return Ok(());
            }
            DataType::RunEndEncoded(_, _) => {
                self.node(array);
                return downcast_run_array!(
                    array => self.runs(array),
                    other => Err(unexpected(other))
                );
            }
            DataType::Union(_, mode) => {
                self.node(array);
                return self.union(array, *mode);
            }
            _ => {
                self.node(array);
                self.validity(array);
            }
        }
        match array.data_type() {
            DataType::Null | DataType::RunEndEncoded(_, _) | DataType::Union(_, _) => {}
            DataType::Boolean => self.bits(array.as_boolean().values()),
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::Float16
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal32(_, _)
            | DataType::Decimal64(_, _)
            | DataType::Decimal128(_, _)
            | DataType::Decimal256(_, _)
            | DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
            | DataType::Duration(_)
            | DataType::Interval(_)
            | DataType::FixedSizeBinary(_)
            | DataType::Dictionary(_, _) => self.fixed(array)?,
            DataType::Utf8 => self.bytes(array.as_string::<i32>()),
            DataType::LargeUtf8 => self.bytes(array.as_string::<i64>()),
            DataType::Binary => self.bytes(array.as_binary::<i32>()),
            DataType::LargeBinary => self.bytes(array.as_binary::<i64>()),
            DataType::Utf8View => self.views::<StringViewType>(array.as_byte_view()),
            DataType::BinaryView => self.views::<BinaryViewType>(array.as_byte_view()),
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                self.list(list.offsets(), list.values().as_ref())?;
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                self.list(list.offsets(), list.values().as_ref())?;
            }
            DataType::Map(_, _) => {
                let map = array.as_map();
                self.list(map.offsets(), map.entries())?;
            }
            DataType::ListView(_) => self.list_view::<i32>(array)?,
            DataType::LargeListView(_) => self.list_view::<i64>(array)?,
            DataType::FixedSizeList(_, size) => {
                let values = array.as_fixed_size_list().values();
                let len = array.len() * usize::try_from(*size).unwrap_or(0);
                self.array(values.slice(0, len).as_ref())?;
            }
            DataType::Struct(_) => {
                for column in array.as_struct().columns() {
                    self.array(column.as_ref())?;
                }
            }
        }
        Ok(())
    }

    fn fixed(&mut self, array: &dyn Array) -> Result<()> {
        let data = array.to_data();
        let values = data.buffers().first().ok_or_else(|| unexpected(array.data_type()))?;
        self.buffer(values.clone());
        Ok(())
    }

    fn bytes<T: ByteArrayType>(&mut self, array: &GenericByteArray<T>) {
        let (start, end) = self.offsets(array.offsets());
        self.buffer(array.values().slice_with_length(start, end - start));
    }

    fn list<O: OffsetSizeTrait>(&mut self, offsets: &OffsetBuffer<O>, values: &dyn Array) -> Result<()> {
        let (start, end) = self.offsets(offsets);
        self.array(values.slice(start, end - start).as_ref())
    }

    /// Appends offsets that begin at zero, and returns where the values begin and end.
    fn offsets<O: OffsetSizeTrait>(&mut self, offsets: &OffsetBuffer<O>) -> (usize, usize) {
        let first = offsets.first().copied().unwrap_or_default();
        let last = offsets.last().copied().unwrap_or_default();
        if first.as_usize() == 0 {
            self.buffer(offsets.inner().inner().clone());
        } else {
            self.buffer(offsets.iter().map(|offset| *offset - first).collect::<Vec<O>>().into());
        }
        (first.as_usize(), last.as_usize())
    }

    fn views<T: ByteViewType>(&mut self, array: &GenericByteViewArray<T>) {
        let array = trim::views(array);
        self.buffer(array.views().inner().clone());
        for data in array.data_buffers() {
            self.buffer(data.clone());
        }
        self.variadic.push(array.data_buffers().len() as i64);
    }

    fn list_view<O: OffsetSizeTrait>(&mut self, array: &dyn Array) -> Result<()> {
        let (offsets, sizes, values) = trim::list_view(array.as_list_view::<O>());
        self.buffer(offsets.into_inner());
        self.buffer(sizes.into_inner());
        self.array(values.as_ref())
    }

    fn runs<R: RunEndIndexType>(&mut self, array: &RunArray<R>) -> Result<()> {
        let ends: Vec<R::Native> = array.run_ends().sliced_values().collect();
        let values = array.values_slice();
        self.nodes.push(FieldNode::new(ends.len() as i64, 0));
        self.buffer(Buffer::default());
        self.buffer(Buffer::from_vec(ends));
        self.array(values.as_ref())
    }

    fn union(&mut self, array: &dyn Array, mode: UnionMode) -> Result<()> {
        let union = array.as_union();
        let DataType::Union(fields, _) = array.data_type() else { return Err(unexpected(array.data_type())) };
        self.buffer(union.type_ids().inner().clone());
        match (mode, union.offsets()) {
            (UnionMode::Dense, Some(offsets)) => {
                let (offsets, children) = trim::dense_union(union, offsets, fields);
                self.buffer(offsets.into_inner());
                children.iter().try_for_each(|child| self.array(child.as_ref()))
            }
            _ => fields.iter().try_for_each(|(id, _)| self.array(union.child(id).as_ref())),
        }
    }
}

fn unexpected(data_type: &DataType) -> Error {
    Error::codec(Reason::Internal, format!("an array of type {data_type} is not laid out as its type says"))
}
