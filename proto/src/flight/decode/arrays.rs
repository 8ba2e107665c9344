//! The arrays of a record batch over its body, for the types that most tables consist of. Everything is checked as Arrow's own
//! reader does, but without its calls for each string and list, which cost more than the way over the socket.

use std::sync::Arc;

use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, GenericByteArray, GenericListArray, MapArray, OffsetSizeTrait,
    RecordBatch, RecordBatchOptions, StructArray, make_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_ipc::FieldNode;
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, SchemaRef};

use super::super::error::{Error, Result, from_reader};

/// Whether all columns are of types that are read here.
pub(super) fn known(schema: &Schema) -> bool {
    schema.fields().iter().all(|field| known_type(field.data_type()))
}

fn known_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => known_type(item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| known_type(field.data_type())),
        DataType::Boolean
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::FixedSizeBinary(_) => true,
        other => other.is_primitive(),
    }
}

/// Reads an uncompressed batch whose header fits its body.
pub(super) fn read(body: &Buffer, batch: &arrow_ipc::RecordBatch<'_>, schema: SchemaRef) -> Result<RecordBatch> {
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else {
        return Err(wrong("it has no columns"));
    };
    let mut body = Body { body, nodes: nodes.iter(), buffers: buffers.iter() };
    let columns = schema.fields().iter().map(|field| body.array(field)).collect::<Result<Vec<_>>>()?;
    let rows = usize::try_from(batch.length()).map_err(|_| wrong("its length is negative"))?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(invalid)
}

struct Body<'a, N, B> {
    body: &'a Buffer,
    nodes: N,
    buffers: B,
}

/// Values and nulls of one array.
struct Node {
    len: usize,
    null_count: usize,
}

impl<'a, N, B> Body<'a, N, B>
where
    N: Iterator<Item = &'a FieldNode>,
    B: Iterator<Item = &'a arrow_ipc::Buffer>,
{
    fn array(&mut self, field: &FieldRef) -> Result<ArrayRef> {
        let node = self.node()?;
        let nulls = self.nulls(&node)?;
        let len = node.len;
        Ok(match field.data_type() {
            DataType::Boolean => Arc::new(BooleanArray::new(bits(self.buffer()?, len)?, nulls)),
            DataType::Utf8 => self.bytes::<Utf8Type>(len, nulls)?,
            DataType::LargeUtf8 => self.bytes::<LargeUtf8Type>(len, nulls)?,
            DataType::Binary => self.bytes::<BinaryType>(len, nulls)?,
            DataType::LargeBinary => self.bytes::<LargeBinaryType>(len, nulls)?,
            DataType::List(item) => self.list::<i32>(item, len, nulls)?,
            DataType::LargeList(item) => self.list::<i64>(item, len, nulls)?,
            DataType::Map(item, ordered) => {
                let offsets = self.offsets(len)?;
                let entries = self.array(item)?;
                let entries =
                    entries.as_any().downcast_ref::<StructArray>().ok_or_else(|| wrong("a map has no entries"))?;
                let map = MapArray::try_new(item.clone(), offsets, entries.clone(), nulls, *ordered);
                Arc::new(map.map_err(invalid)?)
            }
            DataType::FixedSizeList(item, size) => {
                let values = self.array(item)?;
                let list = FixedSizeListArray::try_new_with_length(item.clone(), *size, values, nulls, len);
                Arc::new(list.map_err(invalid)?)
            }
            DataType::Struct(fields) => {
                let columns = fields.iter().map(|field| self.array(field)).collect::<Result<Vec<_>>>()?;
                Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, len).map_err(invalid)?)
            }
            other => {
                let data = ArrayData::builder(other.clone()).len(len).add_buffer(self.buffer()?).nulls(nulls);
                make_array(data.align_buffers(true).build().map_err(invalid)?)
            }
        })
    }

    fn bytes<T: ByteArrayType>(&mut self, len: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let offsets = self.offsets::<T::Offset>(len)?;
        let array = GenericByteArray::<T>::try_new(offsets, self.buffer()?, nulls);
        Ok(Arc::new(array.map_err(invalid)?))
    }

    fn list<O: OffsetSizeTrait>(&mut self, item: &FieldRef, len: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let offsets = self.offsets::<O>(len)?;
        let values = self.array(item)?;
        let list = GenericListArray::<O>::try_new(item.clone(), offsets, values, nulls);
        Ok(Arc::new(list.map_err(invalid)?))
    }

    fn offsets<O: OffsetSizeTrait>(&mut self, len: usize) -> Result<OffsetBuffer<O>> {
        let buffer = self.buffer()?;
        if len == 0 && buffer.is_empty() {
            // Older writers leave out the one offset of an empty array.
            return Ok(OffsetBuffer::new_empty());
        }
        let offsets: ScalarBuffer<O> = scalars(buffer, len + 1)?;
        if offsets.first().is_some_and(|first| *first < O::usize_as(0)) || !offsets.is_sorted() {
            return Err(wrong("the offsets of a column are not in order"));
        }
        Ok(OffsetBuffer::new(offsets))
    }

    fn node(&mut self) -> Result<Node> {
        let node = self.nodes.next().ok_or_else(|| wrong("it has fewer columns than its schema"))?;
        match (usize::try_from(node.length()), usize::try_from(node.null_count())) {
            (Ok(len), Ok(null_count)) => Ok(Node { len, null_count }),
            _ => Err(wrong("the length of a column is negative")),
        }
    }

    fn nulls(&mut self, node: &Node) -> Result<Option<NullBuffer>> {
        let buffer = self.buffer()?;
        if node.null_count == 0 {
            return Ok(None);
        }
        let nulls = NullBuffer::new(bits(buffer, node.len)?);
        if nulls.null_count() == node.null_count {
            Ok(Some(nulls))
        } else {
            Err(wrong(&format!("a column has {} nulls and tells of {}", nulls.null_count(), node.null_count)))
        }
    }

    fn buffer(&mut self) -> Result<Buffer> {
        let buffer = self.buffers.next().ok_or_else(|| wrong("it has fewer buffers than its columns need"))?;
        match (usize::try_from(buffer.offset()), usize::try_from(buffer.length())) {
            (Ok(start), Ok(len)) if start.checked_add(len).is_some_and(|end| end <= self.body.len()) => {
                Ok(self.body.slice_with_length(start, len))
            }
            _ => Err(wrong("a buffer reaches over the end of the body")),
        }
    }
}

fn bits(buffer: Buffer, len: usize) -> Result<BooleanBuffer> {
    if buffer.len() < len.div_ceil(8) {
        return Err(wrong("a bitmap is too short"));
    }
    Ok(BooleanBuffer::new(buffer, 0, len))
}

fn scalars<T: ArrowNativeType>(buffer: Buffer, len: usize) -> Result<ScalarBuffer<T>> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= buffer.len());
    let bytes = bytes.ok_or_else(|| wrong("a buffer is too short"))?;
    let aligned = buffer.as_ptr().align_offset(align_of::<T>()) == 0;
    let buffer = if aligned { buffer } else { Buffer::from(&buffer[..bytes]) };
    Ok(ScalarBuffer::new(buffer, 0, len))
}

fn wrong(what: &str) -> Error {
    Error::corrupt(format!("a record batch is not valid arrow data: {what}"))
}

fn invalid(error: ArrowError) -> Error {
    from_reader("a record batch", &error)
}
