//! Tells the program which Lance it is built with: the lock file knows, and nobody has to keep a copy.

use std::{fs, io};

fn main() -> io::Result<()> {
    let lock = "../Cargo.lock";
    println!("cargo:rerun-if-changed={lock}");
    let text = fs::read_to_string(lock)?;
    let version = text
        .split("[[package]]")
        .find(|package| package.contains("\nname = \"lance\"\n"))
        .and_then(|package| package.lines().find_map(|line| line.strip_prefix("version = ")))
        .ok_or_else(|| io::Error::other("Cargo.lock has no lance"))?;
    println!("cargo:rustc-env=LANCE_VERSION={}", version.trim_matches('"'));
    Ok(())
}
