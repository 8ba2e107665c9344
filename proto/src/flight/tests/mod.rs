#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_possible_truncation)]

mod hostile;
mod interop;
mod samples;
mod sizes;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use arrow_select::concat::concat_batches;
use bytes::{Bytes, BytesMut};

use super::*;
use crate::Reason;

const MAX: usize = 64 << 20;

fn batch(column: ArrayRef) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("c", column.data_type().clone(), true)]);
    RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap()
}

/// A stream with these batches, as messages.
fn messages(batches: &[RecordBatch], options: EncodeOptions) -> Vec<Message> {
    let mut encoder = Encoder::new(&batches[0].schema(), options);
    let mut out = vec![encoder.schema_message(None, Bytes::new())];
    for batch in batches {
        out.extend(encoder.encode(batch, Bytes::new()).unwrap());
    }
    out
}

fn wire(message: Message) -> Bytes {
    let mut frames = Frames::from(message);
    let mut out = BytesMut::with_capacity(frames.len());
    let len = frames.len();
    while let Some(part) = frames.pop() {
        out.extend_from_slice(&part);
    }
    assert_eq!(out.len(), len, "the length of a message is what it takes on the wire");
    out.freeze()
}

fn wires(batches: &[RecordBatch], options: EncodeOptions) -> Bytes {
    messages(batches, options)
        .into_iter()
        .map(wire)
        .fold(BytesMut::new(), |mut all, one| {
            all.extend_from_slice(&one);
            all
        })
        .freeze()
}

/// Decodes a whole stream that arrives in pieces of this size.
fn read(bytes: &Bytes, piece: usize) -> Result<Vec<Decoded>> {
    let mut assembler = Assembler::new(MAX);
    let mut decoder = Decoder::new(MAX);
    let mut out = Vec::new();
    for start in (0..bytes.len()).step_by(piece) {
        assembler.push(bytes.slice(start..bytes.len().min(start + piece)));
        while let Some(incoming) = assembler.poll()? {
            out.push(decoder.decode(incoming)?);
        }
    }
    assert!(assembler.is_idle(), "the stream ends between messages");
    Ok(out)
}

/// All rows of a decoded stream in one batch.
fn rows(decoded: Vec<Decoded>) -> RecordBatch {
    let mut schema = None;
    let mut batches = Vec::new();
    for one in decoded {
        match one.item {
            Item::Schema(s) => schema = Some(s),
            Item::Batch(batch) => batches.push(batch),
            Item::Dictionary | Item::Metadata => {}
        }
    }
    concat_batches(&schema.expect("a schema"), &batches).unwrap()
}

fn reason(error: Error) -> Reason {
    match error {
        Error::Codec { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

/// Whole, empty, and cut so that bitmaps begin within a byte.
fn slices(batch: &RecordBatch) -> Vec<(&'static str, RecordBatch)> {
    let n = batch.num_rows();
    vec![
        ("whole", batch.clone()),
        ("no rows", batch.slice(n / 2, 0)),
        ("the first row", batch.slice(0, 1)),
        ("from the middle of a byte", batch.slice(3, n - 7)),
        ("at a byte", batch.slice(8, n / 2)),
        ("the end", batch.slice(n - 5, 5)),
    ]
}

#[test]
fn every_type_comes_back_equal_in_whole_and_in_slices() {
    for rows_of_column in [60, 5_000] {
        for (name, column) in samples::columns(rows_of_column) {
            for (part, batch) in slices(&batch(column)) {
                let bytes = wires(std::slice::from_ref(&batch), EncodeOptions::default());
                let back = rows(read(&bytes, 16 << 10).unwrap_or_else(|e| panic!("{name}, {part}: {e}")));
                assert_eq!(back, batch, "{name}, {part}, {rows_of_column} rows");
            }
        }
    }
}

#[test]
fn the_size_of_the_pieces_that_arrive_does_not_matter() {
    let columns = samples::columns(40);
    let fields: Vec<Field> = columns.iter().map(|(name, c)| Field::new(*name, c.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    let bytes = wires(&[batch.clone(), batch.slice(5, 20)], EncodeOptions::default());
    let all = concat_batches(&batch.schema(), [&batch, &batch.slice(5, 20)]).unwrap();
    for piece in [1, 2, 3, 7, 64, 1000, bytes.len()] {
        assert_eq!(rows(read(&bytes, piece).unwrap()), all, "pieces of {piece} bytes");
    }
}

#[test]
fn bodies_are_aligned_and_large_buffers_are_not_copied() {
    let column = Arc::new(arrow_array::Int64Array::from_iter_values(0..100_000));
    let address = column.values().as_ptr() as usize;
    let batch = batch(column);
    let messages = messages(&[batch], EncodeOptions::default());
    assert!(messages[1].body.iter().any(|part| part.as_ptr() as usize == address));
    assert_eq!(messages[1].body_len % 64, 0);
    let bytes = wire(messages[1].clone());
    let mut assembler = Assembler::new(MAX);
    assembler.push(bytes.slice(0..1001));
    assert!(assembler.poll().unwrap().is_none());
    assembler.push(bytes.slice(1001..));
    assert_eq!(assembler.poll().unwrap().unwrap().body.as_ptr() as usize % 64, 0);
}

#[test]
fn a_batch_without_columns_keeps_its_rows() {
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(42));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    let decoded = read(&wires(&[batch], EncodeOptions::default()), 10).unwrap();
    assert!(matches!(&decoded[1].item, Item::Batch(b) if b.num_rows() == 42 && b.num_columns() == 0));
}

#[test]
fn a_dictionary_is_sent_once_and_again_when_it_changes() {
    let column = |words: &[&str]| -> ArrayRef {
        Arc::new(
            words.iter().copied().map(Some).collect::<arrow_array::DictionaryArray<arrow_array::types::Int32Type>>(),
        )
    };
    let batches = [batch(column(&["a", "b"])), batch(column(&["a", "b"])), batch(column(&["c"]))];
    let decoded = read(&wires(&batches, EncodeOptions::default()), 100).unwrap();
    let dictionaries = decoded.iter().filter(|d| matches!(d.item, Item::Dictionary)).count();
    assert_eq!(dictionaries, 2);
    let back: Vec<&RecordBatch> =
        decoded.iter().filter_map(|d| if let Item::Batch(b) = &d.item { Some(b) } else { None }).collect();
    assert_eq!(back, batches.iter().collect::<Vec<_>>());
}

#[test]
fn descriptor_and_metadata_travel_with_their_message() {
    let batch = batch(Arc::new(arrow_array::Int32Array::from(vec![1])));
    let mut encoder = Encoder::new(&batch.schema(), EncodeOptions::default());
    let descriptor = arrow_flight::FlightDescriptor::new_path(vec!["a".into(), "b".into()]);
    let first = wire(encoder.schema_message(Some(&descriptor), Bytes::from_static(b"hello")));
    let second = wire(encoder.encode(&batch, Bytes::from_static(b"rows")).unwrap().remove(0));
    let third = wire(Message::metadata(Bytes::from_static(b"alone")));
    let decoded = read(&Bytes::from([first, second, third].concat()), 9).unwrap();
    assert_eq!(decoded[0].descriptor, Some(descriptor));
    let metadata: Vec<&[u8]> = decoded.iter().map(|d| d.app_metadata.as_ref()).collect();
    assert_eq!(metadata, [&b"hello"[..], b"rows", b"alone"]);
    assert!(matches!(decoded[2].item, Item::Metadata));
}

#[test]
fn a_schema_comes_back_from_its_ipc_message() {
    let columns = samples::columns(9);
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, c)| {
            Field::new(*name, c.data_type().clone(), false).with_metadata([("k".to_owned(), "v".to_owned())].into())
        })
        .collect();
    let schema = Schema::new(fields).with_metadata([("table".to_owned(), "t".to_owned())].into());
    let bytes = schema_to_ipc(&schema);
    assert_eq!(ipc_to_schema(&bytes).unwrap(), schema);
    // The form before 0.15 has no marker.
    assert_eq!(ipc_to_schema(&bytes[4..]).unwrap(), schema);
    for end in 0..bytes.len() - 8 {
        assert_eq!(reason(ipc_to_schema(&bytes[..end]).unwrap_err()), Reason::CorruptData, "cut at {end}");
    }
}
