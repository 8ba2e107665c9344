//! Everything lance-gateway knows about Lance.

mod commit;
mod error;
mod options;
mod types;

pub use error::*;
pub use options::*;
pub use types::*;
