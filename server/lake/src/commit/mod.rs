//! Writing once. (The ledger lives here; see `docs/architecture.md`.)

pub(crate) mod envelope;
pub(crate) mod messages;
