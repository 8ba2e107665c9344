//! What a descriptor asks for: PATH names a table, CMD is a command as protobuf or JSON.

use arrow_flight::FlightDescriptor;
use arrow_flight::flight_descriptor::DescriptorType;
use lance_gateway_proto::flight::decode_command;
use lance_gateway_proto::v1::put_command::Kind;
use lance_gateway_proto::{Reason, v1};
use tonic::Status;

use crate::status::{from_flight, status};

/// The scan of a descriptor; a PATH is all rows of the table.
pub(super) fn scan_request(descriptor: &FlightDescriptor) -> Result<v1::ScanRequest, Status> {
    match descriptor.r#type() {
        DescriptorType::Path => Ok(v1::ScanRequest { table: Some(table(descriptor)), ..Default::default() }),
        DescriptorType::Cmd => decode_command("ScanRequest", &descriptor.cmd).map_err(from_flight),
        DescriptorType::Unknown => Err(neither()),
    }
}

/// The put of a descriptor; a PATH is an ad-hoc put that creates the table if it is missing.
pub(super) fn put_command(descriptor: &FlightDescriptor) -> Result<Kind, Status> {
    match descriptor.r#type() {
        DescriptorType::Path => Ok(Kind::Put(v1::PutRequest {
            table: Some(table(descriptor)),
            create: Some(v1::CreateOptions::default()),
            ..Default::default()
        })),
        DescriptorType::Cmd => decode_command::<v1::PutCommand>("PutCommand", &descriptor.cmd)
            .map_err(from_flight)?
            .kind
            .ok_or_else(|| status(Reason::InvalidArgument, "the command holds none of `stage`, `put` and `merge`")),
        DescriptorType::Unknown => Err(neither()),
    }
}

/// What a DoExchange is for, and whether its answers are JSON.
pub(super) fn exchange_command(descriptor: &FlightDescriptor) -> Result<(v1::exchange_command::Kind, bool), Status> {
    if descriptor.r#type() != DescriptorType::Cmd {
        return Err(status(Reason::InvalidArgument, "the descriptor of a DoExchange must be a CMD"));
    }
    let command: v1::ExchangeCommand = decode_command("ExchangeCommand", &descriptor.cmd).map_err(from_flight)?;
    match command.kind {
        Some(kind) => Ok((kind, is_json(&descriptor.cmd))),
        None => Err(status(Reason::InvalidArgument, "the command holds neither `search` nor `lookup`")),
    }
}

/// Whether a command was written by a person, who reads the answer too.
pub(super) fn is_json(command: &[u8]) -> bool {
    command.trim_ascii_start().first() == Some(&b'{')
}

fn table(descriptor: &FlightDescriptor) -> v1::Table {
    let name = v1::TableName { parts: descriptor.path.clone() };
    v1::Table { kind: Some(v1::table::Kind::Name(name)) }
}

fn neither() -> Status {
    status(Reason::InvalidArgument, "the descriptor must be a PATH (the parts of a table name) or a CMD")
}
