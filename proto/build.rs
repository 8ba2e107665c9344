//! Generates the wire from the only copy of its definition.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let dir = PathBuf::from("lancegateway/v1");
    println!("cargo:rerun-if-changed={}", dir.display());
    let mut files = fs::read_dir(&dir)?.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?);
    tonic_prost_build::configure()
        .file_descriptor_set_path(out.join("lancegateway.bin"))
        .bytes(".")
        .compile_protos(&files, &[PathBuf::from(".")])
}
