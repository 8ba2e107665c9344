//! Commands of descriptors and tickets: protobuf for programs, JSON for people.

use std::sync::OnceLock;

use bytes::Bytes;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};

use super::error::{Error, Result};
use crate::{FILE_DESCRIPTOR_SET, Reason};

/// Decodes a command of the message `name` of this package. Bytes that begin with `{` are JSON; its keys may be written
/// `lowerCamel` or as in the definition. Both forms are refused when nested too deeply.
pub fn decode_command<M: prost::Message + Default>(name: &str, bytes: &[u8]) -> Result<M> {
    let invalid = |why: String| Error::codec(Reason::InvalidArgument, format!("the command is no {name}: {why}"));
    if bytes.first() == Some(&b'{') {
        return from_json(name, bytes).map_err(invalid);
    }
    // A newline begins many a protobuf as well, so leading space decides only what protobuf refuses.
    M::decode(bytes).or_else(|e| {
        if bytes.trim_ascii_start().first() == Some(&b'{') {
            from_json(name, bytes).map_err(invalid)
        } else {
            Err(invalid(e.to_string()))
        }
    })
}

fn from_json<M: prost::Message + Default>(name: &str, json: &[u8]) -> Result<M, String> {
    let descriptor = descriptor(name).ok_or_else(|| "there is no such message".to_owned())?;
    let mut input = serde_json::Deserializer::from_slice(json);
    let message = DynamicMessage::deserialize(descriptor, &mut input).map_err(|e| e.to_string())?;
    input.end().map_err(|e| e.to_string())?;
    message.transcode_to().map_err(|e| e.to_string())
}

/// The message `name` of this package as JSON, with names as in the definition and all numbers as numbers.
pub fn encode_json(name: &str, message: &impl prost::Message) -> Result<Bytes> {
    let failed = |why: String| Error::codec(Reason::Internal, format!("a {name} cannot be written as json: {why}"));
    let descriptor = descriptor(name).ok_or_else(|| failed("there is no such message".to_owned()))?;
    let dynamic =
        DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).map_err(|e| failed(e.to_string()))?;
    let options =
        SerializeOptions::new().stringify_64_bit_integers(false).use_proto_field_name(true).skip_default_fields(false);
    let mut json = Vec::new();
    let mut out = serde_json::Serializer::new(&mut json);
    dynamic.serialize_with_options(&mut out, &options).map_err(|e| failed(e.to_string()))?;
    Ok(json.into())
}

fn descriptor(name: &str) -> Option<MessageDescriptor> {
    static POOL: OnceLock<Option<DescriptorPool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET).ok());
    pool.as_ref()?.get_message_by_name(&format!("lancegateway.v1.{name}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::v1::{self, expression, filter, table};

    fn scan() -> v1::ScanRequest {
        let name = v1::TableName { parts: vec!["a".into(), "b".into()] };
        v1::ScanRequest {
            table: Some(v1::Table { kind: Some(table::Kind::Name(name)) }),
            limit: Some(10),
            split_bytes: 7,
            filter: Some(v1::Filter { kind: Some(filter::Kind::Sql("x > 1".into())) }),
            ..Default::default()
        }
    }

    fn nested(depth: usize) -> v1::ScanRequest {
        let mut expression = v1::Expression { kind: None };
        for _ in 0..depth {
            let call = v1::Call { operator: v1::Operator::Not as i32, arguments: vec![expression] };
            expression = v1::Expression { kind: Some(expression::Kind::Call(call)) };
        }
        let filter = v1::Filter { kind: Some(filter::Kind::Expression(expression)) };
        v1::ScanRequest { filter: Some(filter), ..scan() }
    }

    fn reason(error: Error) -> Reason {
        match error {
            Error::Codec { reason, .. } => reason,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn protobuf_and_both_spellings_of_json_are_the_same_command() {
        let camel = br#"{"table":{"name":{"parts":["a","b"]}},"limit":"10","splitBytes":7,"filter":{"sql":"x > 1"}}"#;
        let original =
            br#" {"table":{"name":{"parts":["a","b"]}},"limit":10,"split_bytes":"7","filter":{"sql":"x > 1"}}"#;
        for bytes in [scan().encode_to_vec(), camel.to_vec(), original.to_vec()] {
            assert_eq!(decode_command::<v1::ScanRequest>("ScanRequest", &bytes).unwrap(), scan());
        }
    }

    #[test]
    fn an_answer_for_people_has_plain_numbers_and_names() {
        let index = v1::IndexUse { indexes: vec!["a".into()], num_unindexed_rows: 0 };
        let metric = v1::Metric::Dot.into();
        let info = v1::SearchInfo { version: 7, num_rows: 1, metric, vector: Some(index), text: None };
        let json: serde_json::Value = serde_json::from_slice(&encode_json("SearchInfo", &info).unwrap()).unwrap();
        let expected = serde_json::json!({
            "version": 7, "num_rows": 1, "metric": "METRIC_DOT", "vector": {"indexes": ["a"], "num_unindexed_rows": 0}
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn what_is_no_command_is_invalid() {
        for bytes in [&b"{"[..], b"{\"tabel\":{}}", b"{} {}", b"\xff\xff", b"{\"limit\":-1}"] {
            let error = decode_command::<v1::ScanRequest>("ScanRequest", bytes).unwrap_err();
            assert_eq!(reason(error), Reason::InvalidArgument);
        }
    }

    #[test]
    fn a_filter_that_is_nested_too_deeply_is_invalid_in_both_forms() {
        assert!(decode_command::<v1::ScanRequest>("ScanRequest", &nested(40).encode_to_vec()).is_ok());
        let mut deep = nested(0);
        // Built from the outside by hand: encoding the real thing recurses.
        let mut bytes = v1::Expression { kind: None }.encode_to_vec();
        for _ in 0..10_000 {
            let mut call = vec![0x12];
            prost::encoding::encode_varint(bytes.len() as u64, &mut call);
            call.extend_from_slice(&bytes);
            bytes = vec![0x1a];
            prost::encoding::encode_varint(call.len() as u64, &mut bytes);
            bytes.extend_from_slice(&call);
        }
        deep.filter = None;
        let mut command = deep.encode_to_vec();
        for field in [0x0a_u8, 0x22] {
            let mut outer = vec![field];
            prost::encoding::encode_varint(bytes.len() as u64, &mut outer);
            outer.extend_from_slice(&bytes);
            bytes = outer;
        }
        command.extend_from_slice(&bytes);
        let error = decode_command::<v1::ScanRequest>("ScanRequest", &command).unwrap_err();
        assert_eq!(reason(error), Reason::InvalidArgument);

        let open = r#"{"call":{"operator":"OPERATOR_NOT","arguments":["#.repeat(10_000);
        let close = "]}}".repeat(10_000);
        let json = format!(r#"{{"table":{{"uri":"x"}},"filter":{{"expression":{open}{{}}{close}}}}}"#);
        let error = decode_command::<v1::ScanRequest>("ScanRequest", json.as_bytes()).unwrap_err();
        assert_eq!(reason(error), Reason::InvalidArgument);
    }
}
