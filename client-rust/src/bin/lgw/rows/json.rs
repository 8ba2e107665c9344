//! Rows as JSON lines, without losing what JSON has no word for.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, MapArray, PrimitiveArray, RecordBatch};
use arrow_json::writer::{Encoder, EncoderFactory, EncoderOptions, LineDelimited, NullableEncoder, make_encoder};
use arrow_json::{Writer, WriterBuilder};
use arrow_schema::{ArrowError, DataType, FieldRef};

use super::Rows;
use crate::failure::Result;

/// One object a line.
pub struct JsonRows<W: Write>(Writer<W, LineDelimited>);

impl<W: Write> JsonRows<W> {
    pub fn new(out: W) -> Self {
        let builder = WriterBuilder::new().with_explicit_nulls(true).with_encoder_factory(std::sync::Arc::new(Values));
        Self(builder.build(out))
    }
}

impl<W: Write + Send> Rows for JsonRows<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Ok(self.0.write(batch)?)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.0.finish()?;
        Ok(self.0.into_inner().flush()?)
    }
}

/// Options under which a single value is the same as in a line of [`JsonRows`].
pub fn value_options() -> EncoderOptions {
    EncoderOptions::default().with_explicit_nulls(true).with_encoder_factory(std::sync::Arc::new(Values))
}

/// Numbers that are none are the strings `NaN`, `Infinity` and `-Infinity`; keys of maps become strings.
#[derive(Debug)]
struct Values;

impl EncoderFactory for Values {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::Float16 => Box::new(Floats(array.as_primitive::<Float16Type>(), f32::from)),
            DataType::Float32 => Box::new(Floats(array.as_primitive::<Float32Type>(), |value| value)),
            DataType::Float64 => Box::new(Floats(array.as_primitive::<Float64Type>(), |value| value)),
            DataType::Map(_, _) if !is_text(array.as_map().keys().data_type()) => {
                Box::new(Map::new(field, array.as_map(), options)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// What is written for a float; serde_json finds the shortest text that reads back the same.
trait Real: serde::Serialize + Copy {
    fn special(self) -> Option<&'static str>;
}

macro_rules! real {
    ($($float:ty)*) => {$(
        impl Real for $float {
            fn special(self) -> Option<&'static str> {
                match self {
                    _ if self.is_nan() => Some("\"NaN\""),
                    <$float>::INFINITY => Some("\"Infinity\""),
                    <$float>::NEG_INFINITY => Some("\"-Infinity\""),
                    _ => None,
                }
            }
        }
    )*};
}
real!(f32 f64);

struct Floats<'a, T: ArrowPrimitiveType, R>(&'a PrimitiveArray<T>, fn(T::Native) -> R);

impl<T: ArrowPrimitiveType, R: Real> Encoder for Floats<'_, T, R> {
    fn encode(&mut self, idx: usize, out: &mut Vec<u8>) {
        let value = (self.1)(self.0.value(idx));
        match value.special() {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            // Writing a finite number to memory cannot fail.
            None => serde_json::to_writer(out, &value).unwrap_or_default(),
        }
    }
}

struct Map<'a> {
    array: &'a MapArray,
    keys: NullableEncoder<'a>,
    values: NullableEncoder<'a>,
    key: Vec<u8>,
}

impl<'a> Map<'a> {
    fn new(field: &'a FieldRef, array: &'a MapArray, options: &'a EncoderOptions) -> Result<Self, ArrowError> {
        let keys = make_encoder(field, array.keys(), options)?;
        let values = make_encoder(field, array.values(), options)?;
        Ok(Self { array, keys, values, key: Vec::new() })
    }
}

impl Encoder for Map<'_> {
    fn encode(&mut self, idx: usize, out: &mut Vec<u8>) {
        let offsets = self.array.value_offsets();
        let range = offsets[idx] as usize..offsets[idx + 1] as usize;
        out.push(b'{');
        for (n, entry) in range.enumerate() {
            if n > 0 {
                out.push(b',');
            }
            self.key.clear();
            self.keys.encode(entry, &mut self.key);
            match self.key.first() {
                Some(b'"') => out.extend_from_slice(&self.key),
                // Writing text to memory cannot fail.
                _ => serde_json::to_writer(&mut *out, &String::from_utf8_lossy(&self.key)).unwrap_or_default(),
            }
            out.push(b':');
            match self.values.is_null(entry) {
                true => out.extend_from_slice(b"null"),
                false => self.values.encode(entry, out),
            }
        }
        out.push(b'}');
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Float32Builder, Int32Builder, MapBuilder, StringBuilder};
    use arrow_array::{ArrayRef, BinaryArray, Float32Array, Float64Array, StructArray};
    use arrow_schema::{Field, Fields};

    use super::*;

    fn json(columns: Vec<(&str, ArrayRef)>) -> Vec<String> {
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
        let mut out = Vec::new();
        let mut rows = Box::new(JsonRows::new(&mut out));
        rows.write(&batch).unwrap();
        rows.finish().unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn numbers_that_are_none_are_named_and_null_stays_null() {
        let x = Float64Array::from(vec![Some(f64::NAN), Some(f64::NEG_INFINITY), None, Some(-0.1)]);
        let y = Float32Array::from(vec![f32::INFINITY, 0.1, 1.0, 2.5]);
        assert_eq!(
            json(vec![("x", Arc::new(x)), ("y", Arc::new(y))]),
            [
                r#"{"x":"NaN","y":"Infinity"}"#,
                r#"{"x":"-Infinity","y":0.1}"#,
                r#"{"x":null,"y":1.0}"#,
                r#"{"x":-0.1,"y":2.5}"#
            ]
        );
    }

    #[test]
    fn bytes_are_hexadecimal() {
        let bytes = BinaryArray::from(vec![Some(&b"\x00\xff"[..]), None]);
        assert_eq!(json(vec![("b", Arc::new(bytes))]), [r#"{"b":"00ff"}"#, r#"{"b":null}"#]);
    }

    #[test]
    fn keys_of_maps_are_strings_whatever_they_are() {
        let mut map = MapBuilder::new(None, Int32Builder::new(), Float32Builder::new());
        map.keys().append_value(-7);
        map.values().append_value(f32::NAN);
        map.keys().append_value(8);
        map.values().append_null();
        map.append(true).unwrap();
        map.append(false).unwrap();
        let mut text = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        text.keys().append_value("a\"b");
        text.values().append_value(1);
        text.append(true).unwrap();
        text.append(true).unwrap();
        assert_eq!(
            json(vec![("m", Arc::new(map.finish())), ("t", Arc::new(text.finish()))]),
            [r#"{"m":{"-7":"NaN","8":null},"t":{"a\"b":1}}"#, r#"{"m":null,"t":{}}"#]
        );
    }

    #[test]
    fn a_struct_of_nulls_differs_from_a_null_struct() {
        let fields = Fields::from(vec![Field::new("a", DataType::Float32, true)]);
        let values: ArrayRef = Arc::new(Float32Array::from(vec![None, None]));
        let structs = StructArray::new(fields, vec![values], Some(vec![true, false].into()));
        assert_eq!(json(vec![("s", Arc::new(structs))]), [r#"{"s":{"a":null}}"#, r#"{"s":null}"#]);
    }
}
