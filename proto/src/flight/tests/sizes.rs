use super::*;

use arrow_array::{Array, BinaryArray, Int32Array, StringArray, StringViewArray};

fn bodies(batch: &RecordBatch, options: EncodeOptions) -> Vec<usize> {
    messages(std::slice::from_ref(batch), options).iter().skip(1).map(|m| m.body_len).collect()
}

#[test]
fn a_large_batch_is_cut_to_about_the_target() {
    let batch = batch(Arc::new(arrow_array::Int64Array::from_iter((0..3_000_000).map(|i| (i % 9 > 0).then_some(i)))));
    let options = EncodeOptions::default();
    let bodies = bodies(&batch, options);
    assert!(bodies.len() >= 10, "{bodies:?}");
    assert!(bodies.iter().all(|b| *b <= options.target_bytes * 3 / 2), "{bodies:?}");
    assert_eq!(rows(read(&wires(std::slice::from_ref(&batch), options), 1 << 20).unwrap()), batch);
}

#[test]
fn a_batch_little_above_the_target_stays_whole() {
    let batch = batch(Arc::new(arrow_array::Int64Array::from_iter_values(0..300_000)));
    assert_eq!(bodies(&batch, EncodeOptions::default()).len(), 1);
}

#[test]
fn rows_of_very_different_size_stay_below_the_bound_unless_one_is_above() {
    let values: Vec<Vec<u8>> = (0..1000).map(|i| vec![7; if i == 500 { 20_000 } else { 10 }]).collect();
    let batch = batch(Arc::new(BinaryArray::from_iter_values(&values)));
    let options = EncodeOptions { target_bytes: 4_000, max_bytes: 8_000, max_row_bytes: 30_000 };
    let bodies = bodies(&batch, options);
    assert_eq!(bodies.iter().filter(|b| **b > options.max_bytes).count(), 1, "{bodies:?}");
    assert_eq!(rows(read(&wires(std::slice::from_ref(&batch), options), 5000).unwrap()), batch);
}

#[test]
fn a_row_above_the_limit_is_an_error_with_its_size_and_the_limit() {
    let wide = "x".repeat(50_000);
    let values: Vec<&str> = (0..100).map(|i| if i == 77 { wide.as_str() } else { "y" }).collect();
    let batch = batch(Arc::new(StringArray::from(values)));
    let options = EncodeOptions { target_bytes: 4_000, max_bytes: 8_000, max_row_bytes: 30_000 };
    let error = Encoder::new(&batch.schema(), options).encode(&batch, Bytes::new()).unwrap_err();
    let text = error.to_string();
    assert_eq!(reason(error), Reason::RowTooLarge);
    assert!(text.contains("row 77") && text.contains("50112") && text.contains("30000"), "{text}");
}

#[test]
fn every_type_that_is_cut_into_small_messages_comes_back() {
    let options = EncodeOptions { target_bytes: 2_000, max_bytes: 4_000, max_row_bytes: 30_000 };
    for (name, column) in samples::columns(5_000) {
        // Arrow's reader of run ends needs the same type in each piece, and its concat cannot join nested runs or views of lists.
        let batch = batch(column);
        let all = messages(std::slice::from_ref(&batch), options);
        for message in all.iter().skip(1) {
            assert!(message.body_len <= options.max_bytes, "{name}: {}", message.body_len);
        }
        let decoded = read(&wires(std::slice::from_ref(&batch), options), 4096).unwrap();
        let mut start = 0;
        for one in decoded {
            if let Item::Batch(piece) = one.item {
                assert_eq!(piece, batch.slice(start, piece.num_rows()), "{name} from row {start}");
                start += piece.num_rows();
            }
        }
        assert_eq!(start, 5_000, "{name}");
    }
}

#[test]
fn a_slice_of_views_leaves_behind_what_it_does_not_use() {
    let values: Vec<String> = (0..10_000).map(|i| format!("a string that is too long to be inlined {i}")).collect();
    let batch = batch(Arc::new(StringViewArray::from_iter_values(&values)));
    let whole = bodies(&batch, EncodeOptions::default())[0];
    let part = bodies(&batch.slice(100, 10), EncodeOptions::default())[0];
    assert!(part < whole / 100, "{part} of {whole}");
}

#[test]
fn an_empty_batch_is_one_message() {
    let batch = batch(Arc::new(Int32Array::from(Vec::<i32>::new())));
    assert_eq!(bodies(&batch, EncodeOptions::default()), [0]);
    assert_eq!(batch.column(0).len(), 0);
}
