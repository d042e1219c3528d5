//! A folder to a profile. The folder may come from anybody: every number that others
//! will index with is checked here, once, so that the rest of hither can rely on it.
use super::cell::Target;
use super::decode::{decode, Counts};
use super::error::Error;
use super::folder::{Stored, PROFILE_JSON};
use super::tables::{refers, Table};
use crate::meta::{Meta, FORMAT_VERSION};
use crate::Profile;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;

/// Largest `profile.json`, in bytes: most of it is the machine's topology.
const MAX_JSON: u64 = 64 << 20;

pub(crate) const TABLES: [&str; 13] = [
    "threads",
    "slices",
    "comm",
    "regions",
    "objects",
    "sites",
    "first_touch",
    "pages",
    "object_ranges",
    "members",
    "lines",
    "thread_moves",
    "page_moves",
];

/// Reads `profile.json` only.
///
/// # Errors
/// If it is missing, newer than this version knows, or damaged.
pub fn read_meta(dir: &Path) -> Result<Meta, Error> {
    stored(dir).map(|s| s.meta)
}

/// Reads a profile. Tables that could not be written (see `limits`) are empty.
///
/// # Errors
/// If it is not a profile, newer than this version knows, or damaged: the message
/// names the file and row.
pub fn read(dir: &Path) -> Result<Profile, Error> {
    let mut source = Source {
        dir,
        stored: stored(dir)?,
        counts: [None; Target::COUNT],
    };
    let processes = source.stored.meta.processes.len();
    source.counts[Target::Processes as usize] = Some(processes);
    Ok(Profile {
        threads: source.table()?,
        slices: source.table()?,
        comm: source.table()?,
        regions: source.table()?,
        objects: source.table()?,
        sites: source.table()?,
        first_touch: source.table()?,
        pages: source.table()?,
        object_ranges: source.table()?,
        members: source.table()?,
        lines: source.table()?,
        thread_moves: source.table()?,
        page_moves: source.table()?,
        meta: source.stored.meta,
    })
}

struct Source<'a> {
    dir: &'a Path,
    stored: Stored,
    counts: Counts,
}

impl Source<'_> {
    /// Rows of a table; none if `profile.json` does not list it, or it points into a
    /// table that is not listed.
    fn table<T: Table>(&mut self) -> Result<Vec<T>, Error> {
        let usable = refers::<T>()
            .iter()
            .all(|t| self.counts[*t as usize].is_some());
        let Some(info) = self.stored.tables.get(T::NAME).filter(|_| usable) else {
            return Ok(Vec::new());
        };
        let path = self.dir.join(T::file());
        let file = match open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Damaged {
                    path: self.dir.to_owned(),
                    what: format!("{} is missing, which {PROFILE_JSON} lists", T::file()),
                })
            }
            Err(e) => return Err(Error::io("read", path)(e)),
        };
        // parquet 60 has arithmetic that a damaged page makes panic (encodings/decoding.rs,
        // "attempt to subtract with overflow"): the last resort is to catch it.
        let (rows, counts) = (info.rows, &mut self.counts);
        catch_unwind(AssertUnwindSafe(|| decode(file, &path, rows, counts))).unwrap_or_else(|_| {
            Err(Error::Damaged {
                path: path.clone(),
                what: "its pages cannot be decoded".to_string(),
            })
        })
    }
}

/// Opens a regular file; a pipe in its place would make us wait for ever.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

/// Reads and checks `profile.json`.
pub(crate) fn stored(dir: &Path) -> Result<Stored, Error> {
    let path = dir.join(PROFILE_JSON);
    let not_a_profile = |why: String| Error::NotAProfile {
        path: dir.to_owned(),
        why,
    };
    let damaged = |what: String| Error::Damaged {
        path: path.clone(),
        what,
    };
    let file = match open(&path) {
        Ok(file) => file,
        Err(_) if dir.symlink_metadata().is_err() => {
            return Err(not_a_profile("it does not exist".to_string()))
        }
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            return Err(Error::io("read", path)(e))
        }
        Err(_) => return Err(not_a_profile(format!("no {PROFILE_JSON} in it"))),
    };
    let mut text = Vec::new();
    file.take(MAX_JSON + 1)
        .read_to_end(&mut text)
        .map_err(Error::io("read", &path))?;
    if text.len() as u64 > MAX_JSON {
        return Err(damaged(format!("it is larger than {MAX_JSON} bytes")));
    }
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    // The version first: the rest of a newer format may look different.
    let Version { format } =
        serde_json::from_slice(&text).map_err(|e| not_a_profile(format!("{PROFILE_JSON}: {e}")))?;
    if format > FORMAT_VERSION {
        return Err(Error::Newer {
            path: dir.to_owned(),
            format,
        });
    }
    if format == 0 {
        return Err(not_a_profile(format!("{PROFILE_JSON}: format 0")));
    }
    let stored: Stored = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    check(&stored.meta).map_err(damaged)?;
    Ok(stored)
}

fn check(meta: &Meta) -> Result<(), String> {
    for (ix, process) in meta.processes.iter().enumerate() {
        if let Some(parent) = process.parent.filter(|p| p.at() >= meta.processes.len()) {
            return Err(format!("process {ix}: parent {parent} is not a process"));
        }
    }
    for (what, value) in [
        ("slice", meta.options.slice),
        ("line", meta.options.line.into()),
    ] {
        if value == 0 || value >= super::tables::LARGEST {
            return Err(format!("options.{what} is {value}"));
        }
    }
    Ok(())
}
