//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Serves Lance tables over Arrow Flight and gRPC.
///
/// Every option has a key in the configuration file and a name in the environment: see docs/configuration.md.
#[derive(Debug, Clone, Default, Parser)]
#[command(
    name = "lance-gateway",
    version = crate::VERSION_LINE,
    after_help = "Exit codes: 0 clean, 1 runtime failure, 2 bad configuration."
)]
pub struct Flags {
    /// Configuration file, YAML [env: LANCE_GATEWAY_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to listen, repeatable: HOST:PORT or unix:/PATH [default: 127.0.0.1:8815]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Where to answer /live, /ready and /metrics [default: 127.0.0.1:8816]
    #[arg(long, value_name = "ADDR")]
    pub admin_listen: Option<String>,
    /// Root of the tables: a folder or a URI [default: ./lance-warehouse]
    #[arg(long, value_name = "URI")]
    pub warehouse: Option<String>,
    /// Check the configuration and leave
    #[arg(long)]
    pub check_config: bool,
    /// Print docs/configuration.md and leave
    #[arg(long, hide = true)]
    pub print_config_docs: bool,
    /// Answer PUT and GET of /faults/POINT on the admin port
    #[cfg(feature = "faults")]
    #[arg(long, hide = true)]
    pub faults: bool,
}
