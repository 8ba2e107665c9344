//! `lgw`: tables behind a lance-gateway, for people and scripts.

mod args;
mod commands;
mod console;
mod failure;
mod input;
mod names;
mod rows;
mod sql_type;

use std::process::ExitCode;

use clap::Parser;

use args::Args;
use console::Console;
use failure::Failure;

fn main() -> ExitCode {
    let args = Args::parse();
    let console = Console::new(args.global.output, args.global.quiet);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(e) => return Failure::from(e).report(&console),
    };
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = commands::run(&args, &console) => outcome,
            // What is half done is given up: dropping the command stops its streams and removes its files.
            interrupted = tokio::signal::ctrl_c() => match interrupted {
                Ok(()) => Err(Failure::Interrupted),
                Err(e) => Err(e.into()),
            },
        }
    });
    // A reader of a file that hangs must not keep the process.
    runtime.shutdown_background();
    match outcome.and_then(|()| Ok(console.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output, `head` for example, has enough.
        Err(_) if console.reader_is_gone() => ExitCode::SUCCESS,
        Err(failure) => failure.report(&console),
    }
}
