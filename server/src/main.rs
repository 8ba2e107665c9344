//! The binary: flags, configuration, runtime, exit code.

use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::Parser as _;
use lance_gateway::config::{self, Flags, RuntimeConfig};
use lance_gateway::lifecycle;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// More threads only wait for each other: the work of a scan runs on Lance's own.
const MOST_DEFAULT_WORKERS: usize = 8;

const RUNTIME_FAILURE: u8 = 1;
const BAD_CONFIGURATION: u8 = 2;

fn main() -> ExitCode {
    let flags = Flags::parse();
    if flags.print_config_docs {
        print!("{}", config::docs::page());
        return ExitCode::SUCCESS;
    }
    #[cfg(feature = "faults")]
    if flags.faults {
        lance_gateway_lake::faults::enable();
    }
    let environment = config::env::of_process();
    let loaded = match config::load(&flags, &environment) {
        Ok(loaded) => loaded,
        Err(problems) => {
            for problem in &problems {
                eprintln!("lance-gateway: {problem}");
            }
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    if flags.check_config {
        println!("the configuration is valid");
        for (key, place) in &loaded.set {
            println!("{key} from {place}");
        }
        return ExitCode::SUCCESS;
    }
    let runtime = match runtime(&loaded.config.runtime) {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("lance-gateway: cannot start threads: {error}");
            return ExitCode::from(RUNTIME_FAILURE);
        }
    };
    let code = runtime.block_on(lifecycle::run(loaded, config::env::foreign_names(&environment)));
    // What still runs in threads is left to end with the process.
    runtime.shutdown_background();
    code
}

fn runtime(config: &RuntimeConfig) -> std::io::Result<tokio::runtime::Runtime> {
    let workers = match config.worker_threads {
        0 => available_parallelism().map_or(1, usize::from).min(MOST_DEFAULT_WORKERS),
        workers => lance_gateway::convert::saturating(workers),
    };
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(workers)
        .max_blocking_threads(lance_gateway::convert::saturating(config.blocking_threads))
        .thread_name("gateway")
        .build()
}
