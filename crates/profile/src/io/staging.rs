//! The folder in which a profile grows, of an unpredictable name beside its place and private to
//! its user. All is done by descriptors and only what a profile consists of is removed: another
//! user who may write there can neither lead us elsewhere nor have anything else deleted.
//!
//! ```text
//!   parent --- .hither-XXXXXX --- profile   what is written; exchanged with parent/NAME at the end
//!          |                  `-- old       what was at parent/NAME, where nothing can be exchanged
//!          `-- NAME
//! ```
//! What a writer that was killed has left there the next one removes.
use super::profile_json::PROFILE_JSON;
use super::read::{read_profile_json, TABLES};
use crate::bursts::BURSTS_FILE as BURSTS;
use crate::error::ProfileError;
use crate::files::{age, Folder, OutputPlace, CHANCE_LETTERS, TEMPORARY_PREFIX as PREFIX};
use crate::prediction::PREDICTION_JSON;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const GROWING: &str = "profile";
const REPLACED: &str = "old";
/// A folder not written to for so long was left behind.
const STALE_AFTER: Duration = Duration::from_secs(3600);

/// A folder beside the profile to be, in which files may grow before it is written. Removed
/// when dropped.
pub(crate) struct StagingFolder {
    target: FolderDestination,
    name: OsString,
    temporary: Folder,
    inner: Folder,
}

impl StagingFolder {
    pub fn create_beside(dir: &Path) -> Result<StagingFolder, ProfileError> {
        let target = FolderDestination::new(dir)?;
        remove_stale_folders(&target.parent);
        let made = target.parent.make_temporary().and_then(|(name, made)| {
            let inner = made.make(GROWING.as_ref())?;
            Ok((name, made, inner))
        });
        let shown = crate::files::parent_of(&target.path);
        let (name, temporary, inner) = made.map_err(ProfileError::io("make a folder in", shown))?;
        Ok(StagingFolder {
            target,
            name,
            temporary,
            inner,
        })
    }

    pub fn create(&self, name: &str) -> io::Result<File> {
        self.inner.create(name.as_ref())
    }

    /// Opens a file to change it.
    pub fn open(&self, name: &str) -> io::Result<File> {
        self.inner.open_file(name.as_ref())
    }

    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove_file(name.as_ref())
    }

    /// Bytes of a file, 0 where there is none.
    pub fn size_of(&self, name: &str) -> u64 {
        let look = self.inner.look(name.as_ref());
        look.map_or(0, |(_, stat)| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Removes all but the bursts.
    pub fn remove_all_but_bursts(&self) {
        remove_files(&self.inner, |name| name != BURSTS);
    }

    /// For a profile that was not there when the folder was made.
    ///
    /// # Errors
    /// If something that is not a profile is there.
    pub fn replacing_what_is_there(mut self) -> Result<StagingFolder, ProfileError> {
        self.target.look_again()?;
        Ok(self)
    }

    /// Removes the profile that is to be replaced.
    pub fn remove_replaced(&self) {
        let FolderDestination { parent, name, .. } = &self.target;
        let old: &OsStr = REPLACED.as_ref();
        if self.target.exists && parent.rename(name, &self.temporary, old).is_ok() {
            remove_profile(&self.temporary, old);
        }
    }

    /// Puts the folder in the profile's place.
    pub fn commit(self) -> Result<(), ProfileError> {
        let FolderDestination {
            parent,
            name,
            path,
            exists,
        } = &self.target;
        let (new, old): (&OsStr, &OsStr) = (GROWING.as_ref(), REPLACED.as_ref());
        let exists = *exists && parent.look(name).is_ok();
        if exists && self.temporary.exchange(new, parent, name).is_ok() {
            return Ok(());
        }
        if exists {
            let moved = parent.rename(name, &self.temporary, old);
            moved.map_err(ProfileError::io("replace", path))?;
        }
        self.temporary.rename(new, parent, name).map_err(|e| {
            if exists {
                let _ = self.temporary.rename(old, parent, name);
            }
            ProfileError::io("write", path)(e)
        })
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        for name in [GROWING, REPLACED] {
            remove_profile(&self.temporary, name.as_ref());
        }
        let _ = self.target.parent.remove_folder(&self.name);
    }
}

/// Removes a profile in a folder of ours; where it holds something else, not that.
fn remove_profile(folder: &Folder, name: &OsStr) {
    if let Ok(profile) = folder.open_in(name) {
        remove_files(&profile, |_| true);
        let _ = folder.remove_folder(name);
    }
}

fn remove_files(profile: &Folder, which: impl Fn(&str) -> bool) {
    for name in profile.names().unwrap_or_default() {
        let known = name.to_str().filter(|name| is_profile_file(name));
        if known.is_some_and(&which) {
            let _ = profile.remove_file(&name);
        }
    }
}

/// Whether a profile has a file of this name.
fn is_profile_file(name: &str) -> bool {
    let table = name.strip_suffix(".parquet");
    [PROFILE_JSON, BURSTS, PREDICTION_JSON].contains(&name)
        || table.is_some_and(|table| TABLES.contains(&table))
}

/// Whether [`write()`](super::write()) would accept `dir`, to be asked before a long run.
///
/// # Errors
/// If something that is not a profile is at `dir`, or we are root and another user could put
/// something else there.
pub fn check_destination(dir: &Path) -> Result<(), ProfileError> {
    FolderDestination::new(dir).map(drop)
}

/// Removes folders of ours left by writers that were killed. One that holds what was to be
/// replaced is left for the user to look at.
fn remove_stale_folders(parent: &Folder) {
    for name in parent.names().unwrap_or_default() {
        let chance = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if chance.is_none_or(|chance| chance.len() != CHANCE_LETTERS) {
            continue;
        }
        let Ok(left) = parent.open_in(&name) else {
            continue;
        };
        if is_stale(&left).unwrap_or(false) {
            remove_profile(&left, GROWING.as_ref());
            let _ = parent.remove_folder(&name);
        }
    }
}

fn is_stale(left: &Folder) -> io::Result<bool> {
    let names = left.names()?;
    if !left.is_ours()? || left.age()? < STALE_AFTER || names.iter().any(|n| n != GROWING) {
        return Ok(false);
    }
    if names.is_empty() {
        return Ok(true);
    }
    let inner = left.open_in(GROWING.as_ref())?;
    let bursts = inner.look(BURSTS.as_ref());
    let grows = bursts.is_ok_and(|(_, stat)| age(&stat) < STALE_AFTER);
    Ok(inner.age()? >= STALE_AFTER && !grows)
}

/// Where the profile goes.
struct FolderDestination {
    parent: Folder,
    name: OsString,
    path: PathBuf,
    exists: bool,
}

impl FolderDestination {
    fn new(dir: &Path) -> Result<FolderDestination, ProfileError> {
        let exists = dir.symlink_metadata().is_ok();
        let refused = |why: &str| refused(dir, why);
        // A link to a profile stays a link.
        let path = match dir.canonicalize() {
            Ok(path) => path,
            Err(_) if exists => return Err(refused("a broken link")),
            Err(_) => dir.to_owned(),
        };
        if path.file_name().is_none() {
            return Err(refused("it has no name"));
        }
        let place = OutputPlace::new(dir).map_err(ProfileError::io("write", dir))?;
        if exists {
            check_replaceable(&path).map_err(|why| refused(&why))?;
        }
        let (parent, name) = place.into_parts();
        Ok(FolderDestination {
            parent,
            name,
            path,
            exists,
        })
    }

    /// Whether there is something by now, which may be replaced.
    fn look_again(&mut self) -> Result<(), ProfileError> {
        let held = self.parent.path_of(&self.name);
        self.exists = held.symlink_metadata().is_ok();
        if self.exists {
            check_replaceable(&held).map_err(|why| refused(&self.path, &why))?;
        }
        Ok(())
    }
}

fn refused(dir: &Path, why: &str) -> ProfileError {
    ProfileError::Refused {
        path: dir.to_owned(),
        why: why.to_string(),
    }
}

/// Whether a folder may be replaced: it is empty, or it holds a profile and nothing else.
fn check_replaceable(path: &Path) -> Result<(), String> {
    if !path.is_dir() {
        return Err("it is not a folder".to_string());
    }
    let names: Result<Vec<_>, _> = fs::read_dir(path)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(|e| e.to_string());
    let names: Vec<OsString> = names?.iter().map(fs::DirEntry::file_name).collect();
    if names.is_empty() {
        return Ok(());
    }
    if let Err(e @ (ProfileError::NotAProfile { .. } | ProfileError::Io { .. })) =
        read_profile_json(path)
    {
        return Err(match e {
            ProfileError::NotAProfile { why, .. } => why,
            e => e.to_string(),
        });
    }
    let names = names.iter().map(|name| name.to_string_lossy());
    match names.into_iter().find(|name| !is_profile_file(name)) {
        Some(name) => Err(format!("it also holds {name}")),
        None => Ok(()),
    }
}
