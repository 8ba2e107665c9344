//! One Flight message, between the arrays and a transport.

use arrow_flight::FlightData;
use bytes::{Bytes, BytesMut};

/// One message: small parts made by the encoder, and a body that is still the memory of the batch.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// Encoded `FlightDescriptor`; empty except in the first message of a DoPut.
    pub descriptor: Bytes,
    /// Arrow IPC header, a flatbuffer.
    pub header: Bytes,
    /// For the application.
    pub app_metadata: Bytes,
    /// The body in order, padding included.
    pub body: Vec<Bytes>,
    /// Sum of the parts of the body.
    pub body_len: usize,
}

impl Message {
    /// A message without rows.
    pub fn metadata(app_metadata: Bytes) -> Self {
        Self { app_metadata, ..Self::default() }
    }

    /// The message of the generated code, for transports that want it; this copies the body.
    pub fn into_flight_data(self) -> FlightData {
        let mut body = BytesMut::with_capacity(self.body_len);
        for part in &self.body {
            body.extend_from_slice(part);
        }
        FlightData {
            flight_descriptor: None,
            data_header: self.header,
            app_metadata: self.app_metadata,
            data_body: body.freeze(),
        }
    }
}
