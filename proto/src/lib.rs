//! The wire of lance-gateway: generated messages and services, the table of errors, and the Flight codec.

pub mod flight;
pub mod reason;

/// Generated from `proto/lancegateway/v1`.
#[allow(missing_docs, clippy::all)]
pub mod v1 {
    tonic::include_proto!("lancegateway.v1");
}

/// Descriptors of the package, for reflection and for the JSON form of commands.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("lancegateway");

/// Metadata of a call: a [`v1::StorageOptions`].
pub const STORAGE_OPTIONS_HEADER: &str = "lance-gateway-storage-options-bin";

pub use reason::{ERROR_DOMAIN, Reason, Retry};
