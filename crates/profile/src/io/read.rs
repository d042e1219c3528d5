//! A folder to a profile. The folder may come from anybody: every number that others
//! will index with is checked here, once, so that the rest of hither can rely on it.
use super::cell::IndexedTable;
use super::columns::{referenced_tables, TableRow};
use super::decode::{decode_table, RowCounts, TableList};
use super::profile_json::{ProfileJson, PROFILE_JSON};
use crate::error::ProfileError;
use crate::files::open_regular_file;
use crate::meta::{ProfileMeta, FORMAT_VERSION};
use crate::Profile;
use serde::Deserialize;
use std::cell::Cell;
use std::io::{self, Read};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

/// Largest `profile.json`, in bytes: most of it is the machine's topology.
const MAX_JSON: u64 = 64 << 20;

pub(crate) const TABLES: [&str; 17] = [
    "threads",
    "slices",
    "comm",
    "regions",
    "objects",
    "sites",
    "first_touch_lines",
    "object_threads",
    "allocation_paths",
    "first_touch",
    "pages",
    "object_ranges",
    "members",
    "lines",
    "source_text",
    "thread_moves",
    "page_moves",
];

/// Reads `profile.json` only.
///
/// # Errors
/// If it is missing, newer than this version knows, or damaged.
pub fn read_meta(dir: &Path) -> Result<ProfileMeta, ProfileError> {
    read_profile_json(dir).map(|s| s.meta)
}

/// Reads a profile. Tables that could not be written (see `limits`) are empty.
///
/// # Errors
/// If it is not a profile, newer than this version knows, or damaged: the message
/// names the file and row.
pub fn read(dir: &Path) -> Result<Profile, ProfileError> {
    let mut source = ProfileFolderReader {
        dir,
        stored: read_profile_json(dir)?,
        counts: [None; IndexedTable::COUNT],
    };
    let processes = source.stored.meta.processes.len();
    source.counts[IndexedTable::Processes as usize] = Some(processes);
    let mut profile = Profile {
        threads: source.table()?,
        slices: source.table()?,
        comm: source.table()?,
        regions: source.table()?,
        objects: source.table()?,
        sites: source.table()?,
        first_touch_lines: source.table()?,
        object_threads: source.table()?,
        allocation_paths: source.table()?,
        first_touch: source.table()?,
        pages: source.table()?,
        object_ranges: source.table()?,
        members: source.table()?,
        lines: source.table()?,
        source_text: source.table()?,
        thread_moves: source.table()?,
        page_moves: source.table()?,
        meta: source.stored.meta,
        roles: Vec::new(),
    };
    let grain = profile.pages.grain().max(profile.first_touch.grain());
    if grain > 1 {
        profile.meta.limits.push(format!(
            "There are too many pages to be looked at one by one: {grain} neighbours are seen as one."
        ));
    }
    Ok(profile)
}

struct ProfileFolderReader<'a> {
    dir: &'a Path,
    stored: ProfileJson,
    counts: RowCounts,
}

impl ProfileFolderReader<'_> {
    /// Rows of a table; none if `profile.json` does not list it, or it points into a
    /// table that is not listed.
    fn table<L: TableList>(&mut self) -> Result<L, ProfileError> {
        let name = <L::Row as TableRow>::NAME;
        let usable = referenced_tables::<L::Row>()
            .iter()
            .all(|t| self.counts[*t as usize].is_some());
        let Some(info) = self.stored.tables.get(name).filter(|_| usable) else {
            return Ok(L::default());
        };
        let file_name = <L::Row as TableRow>::file();
        let path = self.dir.join(&file_name);
        let file = match open_regular_file(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(ProfileError::Damaged {
                    path: self.dir.to_owned(),
                    what: format!("{file_name} is missing, which {PROFILE_JSON} lists"),
                })
            }
            Err(e) => return Err(ProfileError::io("read", path)(e)),
        };
        // parquet 60 has arithmetic that a damaged page makes panic (in its encodings::decoding,
        // "attempt to subtract with overflow"): the last resort is to catch it.
        let (rows, counts) = (info.rows, &mut self.counts);
        let before = DECODING.replace(true);
        let decoded = catch_unwind(AssertUnwindSafe(|| decode_table(file, &path, rows, counts)));
        DECODING.set(before);
        decoded.unwrap_or_else(|_| {
            Err(ProfileError::Damaged {
                path: path.clone(),
                what: "its pages cannot be decoded".to_string(),
            })
        })
    }
}

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is decoding pages of a table, where a panic becomes a [`ProfileError`]: a program's panic
/// hook need not show it.
#[must_use]
pub fn is_decoding() -> bool {
    DECODING.get()
}

/// Reads and checks `profile.json`.
pub(crate) fn read_profile_json(dir: &Path) -> Result<ProfileJson, ProfileError> {
    let path = dir.join(PROFILE_JSON);
    let not_a_profile = |why: String| ProfileError::NotAProfile {
        path: dir.to_owned(),
        why,
    };
    let damaged = |what: String| ProfileError::Damaged {
        path: path.clone(),
        what,
    };
    let file = match open_regular_file(&path) {
        Ok(file) => file,
        Err(_) if dir.symlink_metadata().is_err() => {
            return Err(not_a_profile("it does not exist".to_string()))
        }
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            return Err(ProfileError::io("read", path)(e))
        }
        Err(_) => return Err(not_a_profile(format!("no {PROFILE_JSON} in it"))),
    };
    let mut text = Vec::new();
    file.take(MAX_JSON + 1)
        .read_to_end(&mut text)
        .map_err(ProfileError::io("read", &path))?;
    if text.len() as u64 > MAX_JSON {
        return Err(damaged(format!("it is larger than {MAX_JSON} bytes")));
    }
    #[derive(Deserialize)]
    struct ProfileVersion {
        format: u32,
    }
    // The version first: the rest of a newer format may look different.
    let ProfileVersion { format } =
        serde_json::from_slice(&text).map_err(|e| not_a_profile(format!("{PROFILE_JSON}: {e}")))?;
    if format > FORMAT_VERSION {
        return Err(ProfileError::Newer {
            path: dir.to_owned(),
            format,
        });
    }
    if format == 0 {
        return Err(not_a_profile(format!("{PROFILE_JSON}: format 0")));
    }
    let stored: ProfileJson = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    check_meta(&stored.meta).map_err(damaged)?;
    Ok(stored)
}

fn check_meta(meta: &ProfileMeta) -> Result<(), String> {
    for (ix, process) in meta.processes.iter().enumerate() {
        if let Some(parent) = process.parent.filter(|p| p.at() >= meta.processes.len()) {
            return Err(format!("process {ix}: parent {parent} is not a process"));
        }
    }
    for (what, value) in [
        ("slice", meta.options.slice),
        ("line", meta.options.line.into()),
    ] {
        if value == 0 || value >= super::columns::MAX_NUMBER {
            return Err(format!("options.{what} is {value}"));
        }
    }
    Ok(())
}
