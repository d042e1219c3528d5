//! A folder held by a descriptor: whoever renames it in the meantime, or puts another in its
//! place, changes neither where we write nor what we remove.
use rustix::fs::{
    fstat, mkdirat, open, openat, renameat, renameat_with, statat, unlinkat, AtFlags, Dir,
    FileType, Mode, OFlags, RenameFlags, Stat,
};
use rustix::process::geteuid;
use rustix::rand::{getrandom, GetRandomFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What is written is for its user alone.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const FOLDER_MODE: Mode = Mode::RWXU;
const OPEN_FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// What temporary files and folders are called, before letters of chance.
pub const TEMPORARY_PREFIX: &str = ".hither-";
pub const CHANCE_LETTERS: usize = 6;
/// Names tried until one is free.
const ATTEMPTS: u32 = 100;

#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Follows links, so where root writes the path is checked first.
    pub fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder(open(path, OPEN_FOLDER, Mode::empty())?))
    }

    /// A folder in this one, no link to one.
    pub fn open_in(&self, name: &OsStr) -> io::Result<Folder> {
        let flags = OPEN_FOLDER | OFlags::NOFOLLOW;
        Ok(Folder(openat(&self.0, name, flags, Mode::empty())?))
    }

    /// A path to what is in this folder, whatever the folder is called by now.
    pub fn path_of(&self, name: &OsStr) -> PathBuf {
        Path::new("/proc/self/fd")
            .join(self.0.as_raw_fd().to_string())
            .join(name)
    }

    pub fn make(&self, name: &OsStr) -> io::Result<Folder> {
        mkdirat(&self.0, name, FOLDER_MODE)?;
        let made = self.open_in(name)?;
        // Another one may have its name by now, of somebody who may write here.
        if !made.is_ours()? || !made.names()?.is_empty() {
            return Err(io::Error::other("somebody replaced a folder just made"));
        }
        Ok(made)
    }

    /// Makes a folder of an unpredictable name.
    pub fn make_temporary(&self) -> io::Result<(OsString, Folder)> {
        with_free_name(|name| self.make(name))
    }

    /// Makes a file that was not there.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, FILE_MODE)?.into())
    }

    pub fn create_temporary(&self) -> io::Result<(OsString, File)> {
        with_free_name(|name| self.create(name))
    }

    /// Opens a file of ours to change it; no link.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, Mode::empty())?.into())
    }

    /// Opens a file to write it anew, or makes it; no link.
    pub fn truncate(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.0, name, flags, FILE_MODE)?.into())
    }

    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    pub fn rename(&self, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, name, &to.0, new)?)
    }

    /// Puts what has one name in the place of what has the other, which must be there, and that in its
    /// place: at no time is there nothing. Not every file system can.
    pub fn exchange(&self, name: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
        Ok(renameat_with(
            &self.0,
            name,
            &to.0,
            new,
            RenameFlags::EXCHANGE,
        )?)
    }

    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    pub fn is_ours(&self) -> io::Result<bool> {
        Ok(fstat(&self.0)?.st_uid == geteuid().as_raw())
    }

    /// What has this name, itself where it is a link.
    pub fn look(&self, name: &OsStr) -> io::Result<(FileType, Stat)> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((FileType::from_raw_mode(stat.st_mode), stat))
    }

    /// How long nothing was added or removed.
    pub fn age(&self) -> io::Result<Duration> {
        Ok(age(&fstat(&self.0)?))
    }
}

/// How long it was not written to; none where that is in the future.
pub fn age(stat: &Stat) -> Duration {
    let at = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
    let at = SystemTime::UNIX_EPOCH + at;
    at.elapsed().unwrap_or_default()
}

/// Tries names of chance until `make` does not find one taken.
fn with_free_name<T>(make: impl Fn(&OsStr) -> io::Result<T>) -> io::Result<(OsString, T)> {
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let name = temporary_name()?;
        match make(&name) {
            Ok(made) => return Ok((name, made)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

fn temporary_name() -> io::Result<OsString> {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut chance = [0; CHANCE_LETTERS * 2];
    getrandom(&mut chance, GetRandomFlags::empty())?;
    let letters = chance.chunks_exact(2).map(|two| {
        let number = usize::from(u16::from_ne_bytes([two[0], two[1]]));
        char::from(LETTERS[number % LETTERS.len()])
    });
    let letters: String = letters.collect();
    Ok(format!("{TEMPORARY_PREFIX}{letters}").into())
}
