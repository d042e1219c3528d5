//! A profile to its folder: readers see all of it or nothing, and as much as fits when
//! the disk is full.
//!
//! Everything is written into a [`StagingFolder`] and renamed over the target at the end.
//! `profile.json` comes first, with room to spare, so that it can still be completed when the
//! tables have filled the disk; the tables follow in the order of their worth.
use super::burst_writer::BurstWriter;
use super::cell::IndexedTable;
use super::columns::{referenced_tables, TableRow};
use super::disk_space;
use super::encode::{encode_table, TableRows};
use super::profile_json::{ProfileJson, TableInfo, PROFILE_JSON};
use super::staging::StagingFolder;
use super::visit_tables::{visit_tables, TableVisitor, JSON_RESERVE};
use crate::bursts::BURSTS_FILE as BURSTS;
use crate::error::ProfileError;
use crate::meta::FORMAT_VERSION;
use crate::Profile;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

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
    let (written, _) = write_tables(profile, dir, &growing)?;
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
    let growing = end_bursts(profile, bursts);
    fill_and_commit(profile, dir, growing, &GIVE_UP_BURSTS)
}

/// As [`write()`] or [`write_with_bursts`], where the profile of the run so far is in the place of that of
/// the whole: it is given up first where there is no room for both.
///
/// # Errors
/// As of [`write()`].
pub fn write_after_checkpoint(
    profile: &mut Profile,
    dir: &Path,
    bursts: Option<BurstWriter>,
) -> Result<WriteOutcome, ProfileError> {
    let has_bursts = bursts.is_some();
    let growing = match bursts {
        Some(bursts) => end_bursts(profile, bursts).replacing_what_is_there()?,
        None => StagingFolder::create_beside(dir)?,
    };
    let mut ways: Vec<MakeRoom> = vec![|_, growing| growing.remove_replaced()];
    if has_bursts {
        ways.extend(GIVE_UP_BURSTS);
    }
    fill_and_commit(profile, dir, growing, &ways)
}

/// Makes room on a full disk.
type MakeRoom = fn(&mut Profile, &StagingFolder);

const GIVE_UP_BURSTS: [MakeRoom; 2] = [disk_space::trim_bursts, disk_space::drop_bursts];

fn end_bursts(profile: &mut Profile, bursts: BurstWriter) -> StagingFolder {
    let (growing, unfinished) = bursts.finish();
    if let Some(why) = unfinished {
        let what = format!("The bursts end early, they could not be written ({why}): make room on the disk and trace again.");
        profile.meta.limits.push(what);
    }
    growing
}

/// Writes all but the bursts, which are there, making room in these ways in turn where there is none.
fn fill_and_commit(
    profile: &mut Profile,
    dir: &Path,
    growing: StagingFolder,
    ways: &[MakeRoom],
) -> Result<WriteOutcome, ProfileError> {
    let mut filled = write_tables(profile, dir, &growing);
    for make_room in ways {
        if !matches!(filled, Ok((_, DiskSpace::Enough))) {
            growing.remove_all_but_bursts();
            make_room(profile, &growing);
            filled = write_tables(profile, dir, &growing);
        }
    }
    let (mut written, _) = filled?;
    written.bytes += growing.size_of(BURSTS);
    growing.commit()?;
    Ok(written)
}

/// Whether all tables could be written that there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskSpace {
    Enough,
    Short,
}

/// Writes all but the bursts to `growing`, which `dir` will be.
pub(super) fn write_tables(
    profile: &Profile,
    dir: &Path,
    growing: &StagingFolder,
) -> Result<(WriteOutcome, DiskSpace), ProfileError> {
    let mut folder = FolderWriter::begin(profile, growing, dir.join(PROFILE_JSON))?;
    visit_tables(profile, &mut folder);
    let room = folder.room;
    Ok((folder.finish()?, room))
}

/// A folder being filled.
struct FolderWriter<'a> {
    folder: &'a StagingFolder,
    /// What to call `profile.json` in messages: not by its temporary name.
    shown: PathBuf,
    json: File,
    stored: ProfileJson,
    absent: Vec<IndexedTable>,
    written: WriteOutcome,
    room: DiskSpace,
}

impl FolderWriter<'_> {
    fn begin<'a>(
        profile: &Profile,
        folder: &'a StagingFolder,
        shown: PathBuf,
    ) -> Result<FolderWriter<'a>, ProfileError> {
        let json = folder.create(PROFILE_JSON);
        let json = json.map_err(ProfileError::io("write", &shown))?;
        let mut meta = profile.meta.clone();
        meta.format = FORMAT_VERSION;
        let mut writer = FolderWriter {
            json,
            folder,
            shown,
            stored: ProfileJson {
                meta,
                tables: BTreeMap::new(),
            },
            absent: Vec::new(),
            written: WriteOutcome::default(),
            room: DiskSpace::Enough,
        };
        writer
            .put_json(JSON_RESERVE)
            .map_err(ProfileError::io("write", &writer.shown))?;
        Ok(writer)
    }

    fn add_file<T: TableRow>(&self, rows: &dyn TableRows<T>) -> Result<u64, String> {
        let created = self.folder.create(&T::file());
        let result = created.map_err(|e| e.to_string()).and_then(|file| {
            encode_table(rows, &file).map_err(|e| match e {
                parquet::errors::ParquetError::External(e) => e.to_string(),
                e => e.to_string(),
            })?;
            // Some file systems notice only here that the disk is full.
            file.sync_all().map_err(|e| e.to_string())?;
            file.metadata().map(|m| m.len()).map_err(|e| e.to_string())
        });
        if result.is_err() {
            let _ = self.folder.remove(&T::file());
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

impl TableVisitor for FolderWriter<'_> {
    /// Adds a table, or notes why it is missing.
    fn add<T: TableRow>(&mut self, rows: &dyn TableRows<T>) {
        let lacking = referenced_tables::<T>()
            .into_iter()
            .find(|t| self.absent.contains(t));
        let outcome = match lacking {
            Some(target) => Err(format!("it needs {}, which is missing", target.name())),
            None if rows.count() > T::MAX_ROWS => {
                Err(format!("{} rows are too many", rows.count()))
            }
            None => self
                .add_file(rows)
                .inspect_err(|_| self.room = DiskSpace::Short),
        };
        match outcome {
            Ok(bytes) => {
                self.written.bytes += bytes;
                let info = TableInfo { rows: rows.count() };
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
