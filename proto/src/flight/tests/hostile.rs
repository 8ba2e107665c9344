//! Bytes of strangers: whatever they hold, the answer is an error with a reason.

use super::*;

use arrow_array::{Int64Array, StringArray};
use arrow_ipc::{CompressionType, FieldNode, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder};
use bytes::BufMut;
use flatbuffers::FlatBufferBuilder;
use prost::encoding::encode_varint;

fn stream() -> Bytes {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a", Arc::new(Int64Array::from_iter((0..50).map(|i| (i % 3 > 0).then_some(i))))),
        ("b", Arc::new(StringArray::from_iter((0..50).map(|i| (i % 3 > 0).then(|| i.to_string()))))),
    ];
    wires(&[RecordBatch::try_from_iter(columns).unwrap()], EncodeOptions::default())
}

fn framed(message: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(0);
    out.put_u32(message.len() as u32);
    out.extend_from_slice(message);
    out.freeze()
}

/// A record batch of one column whose header says this.
fn forged(
    rows: i64,
    node: (i64, i64),
    buffers: &[(i64, i64)],
    codec: Option<CompressionType>,
    body: Vec<u8>,
) -> Message {
    let mut fbb = FlatBufferBuilder::new();
    let compression = codec.map(|codec| {
        let mut builder = arrow_ipc::BodyCompressionBuilder::new(&mut fbb);
        builder.add_codec(codec);
        builder.finish()
    });
    let buffers: Vec<_> = buffers.iter().map(|(offset, len)| arrow_ipc::Buffer::new(*offset, *len)).collect();
    let buffers = fbb.create_vector(&buffers);
    let nodes = fbb.create_vector(&[FieldNode::new(node.0, node.1)]);
    let mut batch = RecordBatchBuilder::new(&mut fbb);
    batch.add_length(rows);
    batch.add_nodes(nodes);
    batch.add_buffers(buffers);
    if let Some(compression) = compression {
        batch.add_compression(compression);
    }
    let batch = batch.finish().as_union_value();
    let mut message = MessageBuilder::new(&mut fbb);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::RecordBatch);
    message.add_bodyLength(body.len() as i64);
    message.add_header(batch);
    let message = message.finish();
    fbb.finish(message, None);
    let header = Bytes::copy_from_slice(fbb.finished_data());
    Message { header, body_len: body.len(), body: vec![Bytes::from(body)], ..Message::default() }
}

fn refusal(column: ArrayRef, message: Message) -> Reason {
    let mut all = messages(&[batch(column)], EncodeOptions::default());
    all.truncate(1);
    all.push(message);
    let bytes: Vec<u8> = all.into_iter().map(wire).flat_map(|b| b.to_vec()).collect();
    reason(read(&Bytes::from(bytes), 1000).unwrap_err())
}

fn int64() -> ArrayRef {
    Arc::new(Int64Array::from(vec![1]))
}

#[test]
fn unknown_fields_are_skipped_and_the_order_of_fields_is_free() {
    let batch = batch(int64());
    let mut out = Vec::new();
    for message in messages(std::slice::from_ref(&batch), EncodeOptions::default()) {
        let mut bytes = Vec::new();
        let field = |number: u64, wire: u64, bytes: &mut Vec<u8>| encode_varint(number << 3 | wire, bytes);
        field(77, 0, &mut bytes);
        encode_varint(u64::MAX, &mut bytes);
        if message.body_len > 0 {
            field(1000, 2, &mut bytes);
            encode_varint(message.body_len as u64, &mut bytes);
            message.body.iter().for_each(|part| bytes.extend_from_slice(part));
        }
        field(78, 1, &mut bytes);
        bytes.extend_from_slice(&[1; 8]);
        field(79, 5, &mut bytes);
        bytes.extend_from_slice(&[2; 4]);
        field(80, 2, &mut bytes);
        encode_varint(5, &mut bytes);
        bytes.extend_from_slice(b"hello");
        field(2, 2, &mut bytes);
        encode_varint(message.header.len() as u64, &mut bytes);
        bytes.extend_from_slice(&message.header);
        out.extend_from_slice(&framed(&bytes));
    }
    for piece in [1, 5, 10_000] {
        assert_eq!(rows(read(&Bytes::from(out.clone()), piece).unwrap()), batch);
    }
}

#[test]
fn bytes_that_are_no_flight_data_are_refused() {
    for message in [
        &b"\x00\x00"[..],
        b"hello, I am no protobuf",
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x13",
        b"\x0b\x0c",
        b"\x08\x01",
        b"\x12\x05abc",
        b"\x0a\x02\xff\xff",
        b"\xfd\x3e\x00\x00\x00",
    ] {
        assert_eq!(reason(read(&framed(message), 3).unwrap_err()), Reason::CorruptData, "{message:?}");
    }
}

#[test]
fn every_single_wrong_byte_is_an_error_or_another_valid_stream_but_never_a_panic() {
    let good = stream();
    for position in 0..good.len() {
        for flip in [0x01_u8, 0x80, 0xff] {
            let mut bytes = good.to_vec();
            bytes[position] ^= flip;
            let mut assembler = Assembler::new(MAX);
            let mut decoder = Decoder::new(MAX);
            assembler.push(Bytes::from(bytes));
            while let Ok(Some(incoming)) = assembler.poll() {
                if decoder.decode(incoming).is_err() {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_message_above_the_limit_is_refused_before_its_bytes_come() {
    let mut assembler = Assembler::new(1000);
    assembler.push(Bytes::from_static(&[0, 0x7f, 0xff, 0xff, 0xff]));
    let error = assembler.poll().unwrap_err();
    assert!(error.to_string().contains("1000"), "{error}");
    assert_eq!(reason(error), Reason::MessageTooLarge);

    let mut assembler = Assembler::new(1000);
    let mut message = Vec::new();
    encode_varint(1000 << 3 | 2, &mut message);
    encode_varint(2000, &mut message);
    message.resize(2100, 0);
    assembler.push(framed(&message));
    assert_eq!(reason(assembler.poll().unwrap_err()), Reason::MessageTooLarge);
}

#[test]
fn a_body_of_exactly_the_limit_is_taken() {
    let mut assembler = Assembler::new(6400);
    let column = Arc::new(Int64Array::from_iter_values(0..800));
    for message in messages(&[batch(column)], EncodeOptions::default()) {
        assembler.push(wire(message));
    }
    assert!(assembler.poll().unwrap().is_some());
    assert_eq!(assembler.poll().unwrap().unwrap().body.len(), 6400);
}

#[test]
fn messages_compressed_by_grpc_are_refused_with_a_hint() {
    let mut assembler = Assembler::new(MAX);
    assembler.push(Bytes::from_static(&[1, 0, 0, 0, 1, 0]));
    assert_eq!(reason(assembler.poll().unwrap_err()), Reason::Unsupported);
}

#[test]
fn headers_that_do_not_fit_the_body_are_refused() {
    let body = vec![0_u8; 64];
    let forge = |rows, node, buffers: &[(i64, i64)]| forged(rows, node, buffers, None, body.clone());
    assert!(
        read(
            &Bytes::from(
                [
                    wire(messages(&[batch(int64())], EncodeOptions::default()).remove(0)),
                    wire(forge(8, (8, 0), &[(0, 0), (0, 64)])),
                ]
                .concat()
            ),
            99
        )
        .is_ok()
    );
    for (what, message) in [
        ("over the end", forge(8, (8, 0), &[(0, 0), (8, 64)])),
        ("negative offset", forge(8, (8, 0), &[(0, 0), (-8, 64)])),
        ("negative length", forge(8, (8, 0), &[(0, 0), (0, -1)])),
        ("overflow", forge(8, (8, 0), &[(0, 0), (i64::MAX, i64::MAX)])),
        ("too few values", forge(9, (9, 0), &[(0, 0), (0, 64)])),
        ("another number of rows", forge(7, (8, 0), &[(0, 0), (0, 64)])),
        ("negative rows", forge(-1, (8, 0), &[(0, 0), (0, 64)])),
        ("more nulls than rows", forge(8, (8, 9), &[(0, 64), (0, 64)])),
        ("nulls without bits", forge(8, (8, 1), &[(0, 0), (0, 64)])),
        ("too few buffers", forge(8, (8, 0), &[(0, 0)])),
        ("no buffers", forge(8, (8, 0), &[])),
        ("billions of rows", forge(i64::MAX, (i64::MAX, 0), &[(0, 0), (0, 64)])),
    ] {
        assert_eq!(refusal(int64(), message), Reason::CorruptData, "{what}");
    }
    let nulls = forged(i64::MAX, (i64::MAX, i64::MAX), &[], None, vec![]);
    assert_eq!(refusal(Arc::new(arrow_array::NullArray::new(1)), nulls), Reason::CorruptData);
}

#[test]
fn strings_and_lists_that_are_not_what_they_tell_are_refused() {
    let offsets = |offsets: &[i32]| offsets.iter().flat_map(|o| o.to_le_bytes()).collect::<Vec<u8>>();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let list: ArrayRef = Arc::new(arrow_array::ListArray::from_iter_primitive::<arrow_array::types::Int8Type, _, _>([
        Some(vec![Some(1)]),
    ]));
    // Two strings: offsets at 0, values at 16.
    let strings = |ends: &[i32], values: &[u8]| {
        let mut body = offsets(ends);
        body.resize(16, 0);
        body.extend_from_slice(values);
        let buffers = [(0, 0), (0, ends.len() as i64 * 4), (16, values.len() as i64)];
        forged(2, (2, 0), &buffers, None, body)
    };
    for (what, message) in [
        ("backwards", strings(&[0, 3, 2], b"abc")),
        ("negative", strings(&[-1, 2, 3], b"abc")),
        ("over the end", strings(&[0, 2, 4], b"abc")),
        ("within a character", strings(&[0, 1, 2], "é".as_bytes())),
        ("no utf-8", strings(&[0, 1, 2], b"\xff\xfe")),
        ("too few offsets", strings(&[0, 1], b"abc")),
    ] {
        assert_eq!(refusal(text.clone(), message), Reason::CorruptData, "{what}");
    }
    assert_eq!(refusal(list, strings(&[0, 1, 2], b"ab")), Reason::CorruptData, "a list whose values have no node");
    let at_odds = forged(2, (2, 1), &[(0, 1), (8, 12), (24, 0)], None, vec![0xff; 64]);
    assert_eq!(refusal(text, at_odds), Reason::CorruptData, "a bitmap without the null that is told");
}

#[test]
fn an_array_at_an_odd_place_of_the_body_is_copied_to_a_better_one() {
    let mut body = vec![0_u8; 3];
    body.extend([0_i32, 1, 3].iter().flat_map(|o| o.to_le_bytes()));
    body.extend_from_slice(b"abc");
    let message = forged(2, (2, 0), &[(0, 0), (3, 12), (15, 3)], None, body);
    let column: ArrayRef = Arc::new(StringArray::from(vec!["a", "bc"]));
    let mut all = messages(&[batch(column.clone())], EncodeOptions::default());
    all.truncate(1);
    all.push(message);
    let bytes: Vec<u8> = all.into_iter().map(wire).flat_map(|b| b.to_vec()).collect();
    assert_eq!(rows(read(&Bytes::from(bytes), 1000).unwrap()), batch(column));
}

#[test]
fn bodies_that_unpack_to_more_than_the_limit_are_refused() {
    let claim = |len: i64, packed: &[u8]| [&len.to_le_bytes()[..], packed].concat();
    let huge = claim(1 << 40, b"xxxx");
    let message = forged(8, (8, 0), &[(0, 0), (0, huge.len() as i64)], Some(CompressionType::ZSTD), huge);
    assert_eq!(refusal(int64(), message), Reason::MessageTooLarge);

    // An lz4 frame of 100 blocks of 4 MiB that claims 64 bytes.
    let mut bomb = vec![0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73];
    for _ in 0..100 {
        bomb.extend_from_slice(&8_u32.to_le_bytes());
        bomb.extend_from_slice(&[0; 8]);
    }
    bomb.extend_from_slice(&[0; 4]);
    let bomb = claim(64, &bomb);
    let message = forged(8, (8, 0), &[(0, 0), (0, bomb.len() as i64)], Some(CompressionType::LZ4_FRAME), bomb);
    assert_eq!(refusal(int64(), message), Reason::MessageTooLarge);

    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let junk = claim(64, b"this is neither");
        let message = forged(8, (8, 0), &[(0, 0), (0, junk.len() as i64)], Some(codec), junk);
        assert_eq!(refusal(int64(), message), Reason::CorruptData);
        let short = forged(8, (8, 0), &[(0, 0), (0, 3)], Some(codec), vec![1, 2, 3]);
        assert_eq!(refusal(int64(), short), Reason::CorruptData);
    }
}

#[test]
fn rows_before_the_schema_and_a_second_schema_are_refused() {
    let all: Vec<Bytes> = messages(&[batch(int64())], EncodeOptions::default()).into_iter().map(wire).collect();
    assert_eq!(reason(read(&all[1], 100).unwrap_err()), Reason::InvalidArgument);
    let twice = Bytes::from([all[0].clone(), all[0].clone()].concat());
    assert_eq!(reason(read(&twice, 100).unwrap_err()), Reason::InvalidArgument);
}

#[test]
fn dictionaries_that_grow_over_the_limit_are_refused() {
    let words: Vec<String> = (0..100).map(|i| format!("{i:0100}")).collect();
    let column: arrow_array::DictionaryArray<arrow_array::types::Int32Type> =
        words.iter().map(|w| Some(w.as_str())).collect();
    let mut decoder = Decoder::new(5_000);
    let mut assembler = Assembler::new(MAX);
    for message in messages(&[batch(Arc::new(column))], EncodeOptions::default()) {
        assembler.push(wire(message));
    }
    decoder.decode(assembler.poll().unwrap().unwrap()).unwrap();
    let error = decoder.decode(assembler.poll().unwrap().unwrap()).unwrap_err();
    assert_eq!(reason(error), Reason::MessageTooLarge);
}
