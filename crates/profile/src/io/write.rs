//! A profile to its folder: readers see all of it or nothing, and as much as fits when
//! the disk is full.
//!
//! Everything is written into a folder of an unpredictable name beside the target and
//! renamed over it at the end. `profile.json` comes first, with room to spare, so that
//! it can still be completed when the tables have filled the disk; the tables follow
//! in the order of their worth. What a writer that was killed has left there the next one
//! removes.
use super::cell::IndexedTable;
use super::columns::{referenced_tables, TableRow};
use super::disk_space;
use super::encode::encode_table;
use super::error::ProfileError;
use super::profile_json::{ProfileJson, TableInfo, PROFILE_JSON};
use super::read::read_profile_json;
use crate::bursts::{BurstWriter, BURSTS_FILE as BURSTS};
use crate::meta::FORMAT_VERSION;
use crate::prediction::PREDICTION_JSON;
use crate::Profile;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Room in `profile.json` for the sentences about tables that did not fit.
pub(super) const JSON_RESERVE: usize = 4096;

/// What the folder being filled is called, before six letters of chance.
const PREFIX: &str = ".hither-";
/// A folder not written to for so long was left behind.
const STALE_AFTER: Duration = Duration::from_secs(3600);

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOutcome {
    /// Size of all files.
    pub bytes: u64,
    /// Tables that could not be written, each with the reason; also in the `limits` of
    /// the profile.
    pub missing: Vec<String>,
}

/// Writes the profile to the folder `dir`, replacing a profile that is there.
///
/// A full disk is no error as long as `profile.json` fits: then [`WriteOutcome::missing`]
/// says what did not.
///
/// # Errors
/// If something that is not a profile is at `dir`, or nothing can be written; then no
/// half-written folder is left.
pub fn write(profile: &Profile, dir: &Path) -> Result<WriteOutcome, ProfileError> {
    let growing = StagingFolder::create_beside(dir)?;
    let (written, _) = write_tables(profile, dir, &growing.inner)?;
    growing.commit()?;
    Ok(written)
}

/// As [`write()`], with the bursts recorded during the run. Where they leave no room for the
/// tables, as much of their end is given up for these, which the profile notes.
///
/// # Errors
/// As of [`write()`].
pub fn write_with_bursts(
    profile: &mut Profile,
    dir: &Path,
    bursts: BurstWriter,
) -> Result<WriteOutcome, ProfileError> {
    let (growing, unfinished) = bursts.finish();
    if let Some(why) = unfinished {
        let what = format!("The bursts end early, they could not be written ({why}): make room on the disk and trace again.");
        profile.meta.limits.push(what);
    }
    let mut filled = write_tables(profile, dir, &growing.inner);
    for shorten in [disk_space::trim_bursts, disk_space::drop_bursts] {
        if !matches!(filled, Ok((_, DiskSpace::Enough))) {
            growing.remove_all_but_bursts();
            shorten(profile, &growing.inner);
            filled = write_tables(profile, dir, &growing.inner);
        }
    }
    let (mut written, _) = filled?;
    let bursts = growing.inner.join(BURSTS).metadata();
    written.bytes += bursts.map_or(0, |file| file.len());
    growing.commit()?;
    Ok(written)
}

/// Whether all tables could be written that there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DiskSpace {
    Enough,
    Short,
}

/// A folder beside the profile to be, in which files may grow before it is written. Removed
/// when dropped.
pub(crate) struct StagingFolder {
    target: FolderDestination,
    temporary: tempfile::TempDir,
    inner: PathBuf,
}

impl StagingFolder {
    pub fn create_beside(dir: &Path) -> Result<StagingFolder, ProfileError> {
        let target = FolderDestination::new(dir)?;
        remove_stale_folders(&target.parent);
        let temporary = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&target.parent)
            .map_err(ProfileError::io("make a folder in", &target.parent))?;
        // The outer folder is private; the inner one gets the permissions that the user's
        // umask allows, but for writing by everybody.
        let inner = temporary.path().join("profile");
        DirBuilder::new()
            .mode(0o775)
            .create(&inner)
            .map_err(ProfileError::io("make the folder", &inner))?;
        Ok(StagingFolder {
            target,
            temporary,
            inner,
        })
    }

    pub fn create(&self, name: &str) -> io::Result<File> {
        create(&self.inner.join(name))
    }

    /// Removes all but the bursts.
    fn remove_all_but_bursts(&self) {
        let files = fs::read_dir(&self.inner).into_iter().flatten().flatten();
        for file in files.filter(|file| file.file_name() != BURSTS) {
            let _ = fs::remove_file(file.path());
        }
    }

    /// Puts the folder in the profile's place.
    fn commit(self) -> Result<(), ProfileError> {
        self.target.install(&self.inner, self.temporary.path())
    }
}

/// Writes all but the bursts to the folder `inner`, which `dir` will be.
fn write_tables(
    profile: &Profile,
    dir: &Path,
    inner: &Path,
) -> Result<(WriteOutcome, DiskSpace), ProfileError> {
    let mut folder = FolderWriter::begin(profile, inner.to_owned(), dir.join(PROFILE_JSON))?;
    visit_tables(profile, &mut folder);
    let room = folder.room;
    Ok((folder.finish()?, room))
}

/// What is done with each table.
pub(super) trait TableVisitor {
    fn add<T: TableRow>(&mut self, rows: &[T]);
}

/// In the order of their worth.
pub(super) fn visit_tables(profile: &Profile, folder: &mut impl TableVisitor) {
    folder.add(&profile.threads);
    folder.add(&profile.slices);
    folder.add(&profile.comm);
    folder.add(&profile.regions);
    folder.add(&profile.objects);
    folder.add(&profile.sites);
    folder.add(&profile.first_touch_lines);
    folder.add(&profile.allocation_paths);
    folder.add(&profile.first_touch);
    folder.add(&profile.pages);
    folder.add(&profile.object_ranges);
    folder.add(&profile.members);
    folder.add(&profile.lines);
    folder.add(&profile.source_text);
    if profile.meta.online.is_some() {
        folder.add(&profile.thread_moves);
        folder.add(&profile.page_moves);
    }
}

/// Whether [`write()`] would accept `dir`, to be asked before a long run.
///
/// # Errors
/// If something that is not a profile is at `dir`.
pub fn check_destination(dir: &Path) -> Result<(), ProfileError> {
    FolderDestination::new(dir).map(drop)
}

/// Removes folders left by writers that were killed. One that holds what was to be replaced
/// is left for the user to look at.
fn remove_stale_folders(parent: &Path) {
    let is_old = |path: &Path| {
        let changed = path.symlink_metadata().and_then(|now| now.modified());
        changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE_AFTER))
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let chance = name.strip_prefix(PREFIX).is_some_and(|c| c.len() == 6);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !chance || !is_folder || !is_old(&path) || path.join("old").exists() {
            continue;
        }
        let inside = fs::read_dir(&path).into_iter().flatten().flatten();
        let inner = path.join("profile");
        let growing = inner.join(BURSTS);
        let old = |path: &Path| !path.exists() || is_old(path);
        if inside.into_iter().all(|e| e.path() == inner) && old(&inner) && old(&growing) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// A folder being filled.
struct FolderWriter {
    path: PathBuf,
    /// What to call `profile.json` in messages: not by its temporary name.
    shown: PathBuf,
    json: File,
    stored: ProfileJson,
    absent: Vec<IndexedTable>,
    written: WriteOutcome,
    room: DiskSpace,
}

impl FolderWriter {
    fn begin(
        profile: &Profile,
        path: PathBuf,
        shown: PathBuf,
    ) -> Result<FolderWriter, ProfileError> {
        let json = create(&path.join(PROFILE_JSON)).map_err(ProfileError::io("write", &shown))?;
        let mut meta = profile.meta.clone();
        meta.format = FORMAT_VERSION;
        let mut folder = FolderWriter {
            json,
            path,
            shown,
            stored: ProfileJson {
                meta,
                tables: BTreeMap::new(),
            },
            absent: Vec::new(),
            written: WriteOutcome::default(),
            room: DiskSpace::Enough,
        };
        folder
            .put_json(JSON_RESERVE)
            .map_err(ProfileError::io("write", &folder.shown))?;
        Ok(folder)
    }

    fn add_file<T: TableRow>(&self, rows: &[T]) -> Result<u64, String> {
        let path = self.path.join(T::file());
        let result = create(&path).map_err(|e| e.to_string()).and_then(|file| {
            encode_table(rows, &file).map_err(|e| match e {
                parquet::errors::ParquetError::External(e) => e.to_string(),
                e => e.to_string(),
            })?;
            // Some file systems notice only here that the disk is full.
            file.sync_all().map_err(|e| e.to_string())?;
            file.metadata().map(|m| m.len()).map_err(|e| e.to_string())
        });
        if result.is_err() {
            let _ = fs::remove_file(&path);
        }
        result
    }

    fn finish(mut self) -> Result<WriteOutcome, ProfileError> {
        let bytes = self
            .put_json(0)
            .map_err(ProfileError::io("write", &self.shown))?;
        self.written.bytes += bytes;
        Ok(self.written)
    }

    /// Writes `profile.json` over what is there, so that a full disk has no say, and
    /// pads it with blanks.
    fn put_json(&mut self, padding: usize) -> io::Result<u64> {
        let mut text = serde_json::to_vec_pretty(&self.stored)?;
        text.push(b'\n');
        text.resize(text.len() + padding, b' ');
        self.json.rewind()?;
        self.json.write_all(&text)?;
        self.json.set_len(text.len() as u64)?;
        self.json.sync_all()?;
        Ok(text.len() as u64)
    }
}

impl TableVisitor for FolderWriter {
    /// Adds a table, or notes why it is missing.
    fn add<T: TableRow>(&mut self, rows: &[T]) {
        let lacking = referenced_tables::<T>()
            .into_iter()
            .find(|t| self.absent.contains(t));
        let outcome = match lacking {
            Some(target) => Err(format!("it needs {}, which is missing", target.name())),
            None if rows.len() > T::MAX_ROWS => Err(format!("{} rows are too many", rows.len())),
            None => self
                .add_file(rows)
                .inspect_err(|_| self.room = DiskSpace::Short),
        };
        match outcome {
            Ok(bytes) => {
                self.written.bytes += bytes;
                let info = TableInfo { rows: rows.len() };
                self.stored.tables.insert(T::NAME.to_string(), info);
            }
            Err(why) => {
                self.absent.extend(T::DEFINES);
                let what = format!("the table {} could not be written: {why}", T::NAME);
                self.stored.meta.limits.push(what);
                self.written.missing.push(format!("{} ({why})", T::NAME));
            }
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o664)
        .open(path)
}

/// Where the profile goes.
struct FolderDestination {
    parent: PathBuf,
    path: PathBuf,
    exists: bool,
}

impl FolderDestination {
    fn new(dir: &Path) -> Result<FolderDestination, ProfileError> {
        let refused = |why: &str| ProfileError::Refused {
            path: dir.to_owned(),
            why: why.to_string(),
        };
        let exists = dir.symlink_metadata().is_ok();
        // A link to a profile stays a link.
        let path = match dir.canonicalize() {
            Ok(path) => path,
            Err(_) if exists => return Err(refused("a broken link")),
            Err(_) => dir.to_owned(),
        };
        if exists {
            check_replaceable(&path).map_err(|why| refused(&why))?;
        }
        if path.file_name().is_none() {
            return Err(refused("it has no name"));
        }
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(FolderDestination {
            parent,
            path,
            exists,
        })
    }

    /// Puts `new` in place; what was there goes into the folder `bin`.
    fn install(&self, new: &Path, bin: &Path) -> Result<(), ProfileError> {
        let old = bin.join("old");
        if self.exists {
            fs::rename(&self.path, &old).map_err(ProfileError::io("replace", &self.path))?;
        }
        fs::rename(new, &self.path).map_err(|e| {
            if self.exists {
                let _ = fs::rename(&old, &self.path);
            }
            ProfileError::io("write", &self.path)(e)
        })
    }
}

/// Whether a folder may be replaced: it is empty, or it holds a profile and nothing else.
fn check_replaceable(path: &Path) -> Result<(), String> {
    if !path.is_dir() {
        return Err("it is not a folder".to_string());
    }
    let names: Result<Vec<_>, _> = fs::read_dir(path)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map(|entries| {
            entries
                .iter()
                .map(fs::DirEntry::file_name)
                .collect::<Vec<_>>()
        })
        .map_err(|e| e.to_string());
    let names = names?;
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
    let foreign = names.iter().map(|n| n.to_string_lossy()).find(|n| {
        let table = n.strip_suffix(".parquet");
        let ours = [PROFILE_JSON, BURSTS, PREDICTION_JSON].contains(&n.as_ref());
        !ours && !table.is_some_and(|t| super::read::TABLES.contains(&t))
    });
    match foreign {
        Some(name) => Err(format!("it also holds {name}")),
        None => Ok(()),
    }
}
