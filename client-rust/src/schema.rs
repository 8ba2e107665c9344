//! Schemas on the wire.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use lance_gateway_proto::flight::{ipc_to_schema, schema_to_ipc};

use crate::{Error, Result};

pub(crate) fn to_wire(schema: &Schema) -> Bytes {
    schema_to_ipc(schema)
}

pub(crate) fn from_wire(bytes: &[u8]) -> Result<SchemaRef> {
    ipc_to_schema(bytes).map(Arc::new).map_err(|e| Error::protocol(format!("the gateway sent no schema: {e}")))
}
