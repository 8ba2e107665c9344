//! The only place that reads the environment of the process.

use std::collections::BTreeMap;

/// The environment, as far as it is text.
pub fn of_process() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Names that Lance itself reads: they change its behaviour beside our options, so that the log tells them (never the values).
pub fn foreign_names(environment: &BTreeMap<String, String>) -> Vec<String> {
    environment
        .keys()
        .filter(|name| name.starts_with("LANCE_") && !name.starts_with(super::ENV_PREFIX))
        .cloned()
        .collect()
}
