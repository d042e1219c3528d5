//! Where a file is to be written: its folder, held from then on, and its name there.
use super::folder::Folder;
use super::trust::check_output_path;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A place for output that is the same one later, whatever happens to names until then.
#[derive(Debug)]
pub struct OutputPlace {
    folder: Folder,
    name: OsString,
}

impl OutputPlace {
    /// Of `path`, or of the file that it links to.
    ///
    /// # Errors
    /// If its folder is missing, or we are root and another user could put something else in
    /// the place of it or of a folder on the way.
    pub fn new(path: &Path) -> io::Result<OutputPlace> {
        check_output_path(path)?;
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(OutputPlace {
            folder: Folder::open(&parent_of(&path))?,
            name: name.to_owned(),
        })
    }

    /// Writes a file that readers see whole or not at all, in place of one that is there: under
    /// another name, then renamed.
    ///
    /// # Errors
    /// If there is no room, or the folder may not be written; nothing is left behind then.
    pub fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let (temporary, mut file) = self.folder.create_temporary()?;
        let written = file
            .write_all(bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| self.folder.rename(&temporary, &self.folder, &self.name));
        written.inspect_err(|_| {
            // The first error is the one to report.
            let _ = self.folder.remove_file(&temporary);
        })
    }

    /// Writes a file that is not there yet.
    ///
    /// # Errors
    /// If it is there, or there is no room; nothing is left behind then.
    pub fn create(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.folder.create(&self.name)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.inspect_err(|_| {
            let _ = self.folder.remove_file(&self.name);
        })
    }

    /// Empties the file, or makes it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn truncate(&self) -> io::Result<File> {
        self.folder.truncate(&self.name)
    }

    pub(crate) fn into_parts(self) -> (Folder, OsString) {
        (self.folder, self.name)
    }
}

/// The folder in which the file is, or the one that it links to.
#[must_use]
pub fn output_folder(path: &Path) -> PathBuf {
    parent_of(&path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}

/// The folder in which `path` is.
#[must_use]
pub fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str() != OsStr::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
