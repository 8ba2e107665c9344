//! A file that appears whole or not at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// Written beside its place and moved there at the end.
pub struct NewFile {
    place: PathBuf,
    /// None: written in place, because the place is no ordinary file.
    beside: Option<PathBuf>,
    file: File,
}

impl NewFile {
    pub fn create(place: &Path) -> Result<Self> {
        let failed = |e| Failure::local(format!("{}: {e}", place.display()));
        // A pipe or a device cannot be replaced, and needs not be.
        if fs::metadata(place).is_ok_and(|found| !found.is_file()) {
            let file = File::options().write(true).open(place).map_err(failed)?;
            return Ok(Self { place: place.to_owned(), beside: None, file });
        }
        let name = place.file_name().ok_or_else(|| Failure::Usage(format!("{} is no file", place.display())))?;
        let mut beside = name.to_owned();
        beside.push(format!(".{}.partial", std::process::id()));
        let beside = place.with_file_name(beside);
        let file = File::create(&beside).map_err(failed)?;
        Ok(Self { place: place.to_owned(), beside: Some(beside), file })
    }

    pub fn writer(&self) -> Result<File> {
        Ok(self.file.try_clone()?)
    }

    pub fn keep(mut self) -> Result<()> {
        match self.beside.take() {
            Some(beside) => {
                fs::rename(&beside, &self.place).map_err(|e| Failure::local(format!("{}: {e}", self.place.display())))
            }
            None => Ok(()),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // The command failed already, and with a better reason than this could be.
            fs::remove_file(beside).ok();
        }
    }
}
