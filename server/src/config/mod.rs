//! Configuration: flags over environment over one file over defaults. All problems are found at once, before anything starts.

mod check;
pub mod docs;
pub mod env;
mod flags;
mod load;
mod read;
mod table;
mod values;

pub use flags::Flags;
pub use load::{Loaded, load};
pub use read::Problem;
pub use table::{
    CacheConfig, CommitConfig, Config, ConnectionConfig, DrainConfig, GROUPS, GroupSpec, Http2Config, LogConfig,
    MaintenanceConfig, OptionSpec, RequestConfig, RuntimeConfig, ScanConfig, StorageConfig, TableConfig,
    TelemetryConfig, WriteConfig, all,
};
pub use values::{
    ByteSize, FileMode, HumanDuration, InstanceName, Listen, LogFormat, LogLevel, OptionValue, OtlpEndpoint, Ratio,
    Secret, SecretMap, StorageVersion, StoreMap, TextList, Warehouse,
};

/// Begin of our names in the environment.
pub const ENV_PREFIX: &str = "LANCE_GATEWAY_";

#[cfg(test)]
#[allow(clippy::expect_used)]
impl Default for Config {
    fn default() -> Self {
        load(&Flags::default(), &std::collections::BTreeMap::new()).expect("the defaults fit their own bounds").config
    }
}
