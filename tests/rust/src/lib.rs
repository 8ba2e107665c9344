//! Scenarios from Rust against a real gateway are in `tests/`; `gateway-bench` measures it beside Lance in process.
