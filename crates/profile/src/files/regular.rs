//! Opening what must be a regular file.
use rustix::fs::{fstat, open, FileType, Mode, OFlags, Stat};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Opens a regular file for reading, and nothing else: a pipe would make us wait for ever, and
/// opening some devices does something. What is looked at is what is opened, whatever the name
/// stands for by then.
///
/// # Errors
/// If it is no regular file or cannot be read.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    let (named, stat) = look(path)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    let again = format!("/proc/self/fd/{}", named.as_raw_fd());
    let file = open(again, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(File::from(file))
}

/// A descriptor that only names the file: neither a pipe nor a device notices.
fn look(path: &Path) -> io::Result<(OwnedFd, Stat)> {
    let named = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let stat = fstat(&named)?;
    Ok((named, stat))
}
