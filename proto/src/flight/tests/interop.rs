//! Against the encoder and decoder of arrow-flight.

use super::*;

use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, FlightDescriptor};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::DataType;
use futures::executor::block_on;
use futures::{StreamExt, TryStreamExt, stream};
use prost::Message as _;

fn stock_encoded(batch: &RecordBatch, dictionaries: DictionaryHandling, options: IpcWriteOptions) -> Bytes {
    let encoded = FlightDataEncoderBuilder::new()
        .with_schema(batch.schema())
        .with_dictionary_handling(dictionaries)
        .with_options(options)
        .with_flight_descriptor(Some(FlightDescriptor::new_cmd("x")))
        .build(stream::iter([Ok(batch.clone())]));
    let data: Vec<FlightData> = block_on(encoded.try_collect()).unwrap();
    let mut out = BytesMut::new();
    for one in data {
        let mut frames = Frames::of(&one);
        while let Some(part) = frames.pop() {
            out.extend_from_slice(&part);
        }
    }
    out.freeze()
}

fn stock_decoded(batch: &RecordBatch) -> Vec<RecordBatch> {
    let messages = messages(std::slice::from_ref(batch), EncodeOptions::default());
    // Through bytes, as the stock client gets them.
    let data: Vec<Result<FlightData, FlightError>> =
        messages.into_iter().map(|message| Ok(FlightData::decode(wire(message).slice(5..)).unwrap())).collect();
    block_on(FlightRecordBatchStream::new_from_flight_data(stream::iter(data)).try_collect()).unwrap()
}

#[test]
fn the_stock_client_reads_every_type_that_we_write() {
    for (name, column) in samples::columns(200) {
        for (part, batch) in slices(&batch(column)) {
            assert_eq!(stock_decoded(&batch), [batch], "{name}, {part}");
        }
    }
}

/// Faults of the stock encoder of arrow 58: a large list is announced as a list, a union below a list loses its offset, and
/// runs below a list are wrong when empty. A union also loses its nullability, so that columns are compared and not batches.
fn stock_encoder_is_wrong(data_type: &DataType) -> bool {
    match data_type {
        DataType::LargeList(_) => true,
        DataType::List(item) => matches!(item.data_type(), DataType::Union(_, _) | DataType::RunEndEncoded(_, _)),
        _ => false,
    }
}

#[test]
fn we_read_every_type_that_the_stock_client_writes() {
    for (name, column) in samples::columns(200) {
        for (part, batch) in slices(&batch(column)) {
            if stock_encoder_is_wrong(batch.column(0).data_type()) {
                continue;
            }
            let bytes = stock_encoded(&batch, DictionaryHandling::Resend, IpcWriteOptions::default());
            let decoded = read(&bytes, 1000).unwrap_or_else(|e| panic!("{name}, {part}: {e}"));
            assert_eq!(decoded[0].descriptor, Some(FlightDescriptor::new_cmd("x")));
            assert!(rows(decoded).columns() == batch.columns(), "{name}, {part}");
        }
    }
}

#[test]
fn we_read_hydrated_dictionaries() {
    let (_, column) = samples::columns(50).into_iter().find(|(name, _)| *name == "dictionary int8").unwrap();
    let bytes = stock_encoded(&batch(column), DictionaryHandling::Hydrate, IpcWriteOptions::default());
    let back = rows(read(&bytes, 1000).unwrap());
    assert_eq!(back.column(0).data_type(), &DataType::Utf8);
    assert_eq!(back.num_rows(), 50);
}

#[test]
fn we_read_compressed_bodies() {
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        for (name, column) in samples::columns(3_000) {
            let batch = batch(column);
            if stock_encoder_is_wrong(batch.column(0).data_type()) {
                continue;
            }
            let options = IpcWriteOptions::default().try_with_compression(Some(codec)).unwrap();
            let bytes = stock_encoded(&batch, DictionaryHandling::Resend, options);
            assert!(rows(read(&bytes, 5000).unwrap()).columns() == batch.columns(), "{name}, {codec:?}");
        }
    }
}

#[test]
fn bodies_cross_http_in_both_directions() {
    let batch = batch(Arc::new(arrow_array::Int64Array::from_iter_values(0..500_000)));
    let frames = || {
        stream::iter(messages(std::slice::from_ref(&batch), EncodeOptions::default()).into_iter().map(|m| Ok(m.into())))
    };
    let answer = http::Response::new(GrpcBody::response(frames()));
    let read = |reader: BatchReader<_>| block_on(reader.try_collect::<Vec<_>>()).unwrap();
    assert_eq!(rows(read(BatchReader::new(MessageReader::response(answer, MAX).unwrap()))), batch);
    let request = GrpcBody::request(frames());
    assert_eq!(rows(read(BatchReader::new(MessageReader::request(request, MAX)))), batch);
}

#[test]
fn an_error_in_the_middle_arrives_as_the_status_of_the_trailers() {
    let batch = batch(Arc::new(arrow_array::Int64Array::from_iter_values(0..10)));
    let mut frames: Vec<Result<Frames, tonic::Status>> =
        messages(&[batch], EncodeOptions::default()).into_iter().map(|m| Ok(m.into())).collect();
    frames.push(Err(tonic::Status::with_details(tonic::Code::NotFound, "gone", Bytes::from_static(b"why"))));
    let answer = http::Response::new(GrpcBody::response(stream::iter(frames)));
    let mut reader = BatchReader::new(MessageReader::response(answer, MAX).unwrap());
    let mut last = None;
    while let Some(item) = block_on(StreamExt::next(&mut reader)) {
        last = Some(item);
    }
    let Some(Err(Error::Status(status))) = last else { panic!("{last:?}") };
    assert_eq!((status.code(), status.message(), status.details()), (tonic::Code::NotFound, "gone", &b"why"[..]));
}

#[test]
fn an_answer_that_ends_without_a_status_is_an_error() {
    let batch = batch(Arc::new(arrow_array::Int64Array::from_iter_values(0..10)));
    let frames = messages(&[batch], EncodeOptions::default()).into_iter().map(|m| Ok(m.into()));
    let cut = http::Response::new(GrpcBody::request(stream::iter(frames)));
    let reader = BatchReader::new(MessageReader::response(cut, MAX).unwrap());
    let error = block_on(reader.try_collect::<Vec<_>>()).unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error}");
}

#[test]
fn small_messages_are_read_however_they_are_cut() {
    let tickets = ["a", "", "longer than the others"].map(|t| arrow_flight::Ticket::new(t.to_owned()));
    let frames = stream::iter(tickets.clone().map(|t| Ok(Frames::of(&t))));
    let reader = SmallMessages::<_, arrow_flight::Ticket>::request(GrpcBody::request(frames), 100);
    assert_eq!(block_on(reader.try_collect::<Vec<_>>()).unwrap(), tickets);
    let frames = stream::iter([Ok(Frames::of(&arrow_flight::Ticket::new("x".repeat(200))))]);
    let reader = SmallMessages::<_, arrow_flight::Ticket>::request(GrpcBody::request(frames), 100);
    assert_eq!(reason(block_on(reader.try_collect::<Vec<_>>()).unwrap_err()), Reason::MessageTooLarge);
}
