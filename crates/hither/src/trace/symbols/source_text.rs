//! The lines of the program's source that a report quotes, kept in the profile so that the report
//! needs no source tree: a few around each declaration, allocation, first touch and line that
//! accesses much.
//!
//! Paths come from debug information and may name anything: only regular files are read. What was
//! changed since the program was built is left out.
use super::elf::open_regular;
use super::frame_filter;
use crate::trace::symbolizer::{SourceTextAnswer, SourceTextRequest, Symbolizer};
use hither_profile::{Profile, RegionKind, SourceText};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Lines before and after the one that is meant.
const AROUND: u32 = 2;
/// Bytes of all lines together. Those of the places with most accesses are kept.
const MAX_BYTES: usize = 64 << 10;
/// Characters of a line.
const MAX_LINE: usize = 160;
/// Larger files are not read; people write none. And bytes that are read of all.
const MAX_FILE: u64 = 4 << 20;
const MAX_READ: u64 = 32 << 20;
/// Places that are looked at.
const MAX_PLACES: usize = 4096;
const TAB: &str = "    ";

/// Adds the table; and to the limits what was changed since. The profile may be read by others
/// than who traces it, and a program says which files are its source: so root quotes only what
/// others can read.
pub fn keep_source_text(profile: &mut Profile, symbols: &mut dyn Symbolizer) {
    let answer = symbols.source_text(&SourceTextRequest {
        places: quoted_places(profile),
        programs: own_programs(profile),
        only_public: nix::unistd::geteuid().is_root(),
    });
    let rows = answer.lines.into_iter();
    let rows = rows.map(|(file, line, text)| SourceText { file, line, text });
    profile.source_text = rows.collect();
    profile.meta.limits.extend(answer.limit);
}

/// Reads them.
pub fn read_source_text(request: &SourceTextRequest) -> SourceTextAnswer {
    let mut files = QuotedFiles {
        built: build_time(&request.programs),
        only_public: request.only_public,
        unread: MAX_READ,
        ..QuotedFiles::default()
    };
    let mut kept: BTreeMap<(&str, u32), String> = BTreeMap::new();
    let mut left = MAX_BYTES;
    for (file, line) in &request.places {
        let Some(text) = files.lines(file).filter(|t| *line as usize <= t.len()) else {
            continue;
        };
        let first = line.saturating_sub(AROUND).max(1);
        let last = line.saturating_add(AROUND).min(text.len() as u32);
        let wanted = (first..=last).filter(|l| !kept.contains_key(&(file.as_str(), *l)));
        let wanted: Vec<u32> = wanted.collect();
        let bytes: usize = wanted.iter().map(|l| text[*l as usize - 1].len()).sum();
        if bytes > left {
            break;
        }
        left -= bytes;
        kept.extend(
            wanted
                .into_iter()
                .map(|l| ((file.as_str(), l), text[l as usize - 1].clone())),
        );
    }
    let lines = kept.into_iter();
    SourceTextAnswer {
        lines: lines
            .map(|((file, line), text)| (file.to_owned(), line, text))
            .collect(),
        limit: files.limit(),
    }
}

/// Each place that a report may name, most accesses first.
fn quoted_places(profile: &Profile) -> Vec<(String, u32)> {
    let mut weights: HashMap<(&str, u32), u64> = HashMap::new();
    let mut add = |file, line, weight: u64| {
        let sum: &mut u64 = weights.entry((file, line)).or_default();
        *sum = sum.saturating_add(weight);
    };
    let accesses = |object: usize| {
        let object = profile.objects.get(object);
        object.map_or(0, |o| o.reads.saturating_add(o.writes))
    };
    for (number, o) in profile.objects.iter().enumerate() {
        add(&o.file, o.line, accesses(number));
    }
    for s in &profile.sites {
        add(&s.file, s.line, s.reads.saturating_add(s.writes));
    }
    // The line that touched most of an object comes first.
    let mut seen = HashSet::new();
    for l in &profile.first_touch_lines {
        if seen.insert(l.object) {
            add(&l.file, l.line, accesses(l.object.at()));
        }
    }
    let named = |((file, line), weight): (&(&str, u32), &u64)| {
        let is_named = *line > 0 && file.starts_with('/') && *weight > 0;
        is_named.then(|| (Reverse(*weight), (*file).to_owned(), *line))
    };
    let mut places: Vec<_> = weights.iter().filter_map(named).collect();
    places.sort_unstable();
    places
        .into_iter()
        .take(MAX_PLACES)
        .map(|(_, file, line)| (file, line))
        .collect()
}

/// The program's own files.
fn own_programs(profile: &Profile) -> Vec<PathBuf> {
    let regions = profile.regions.iter();
    let mapped = regions
        .filter(|r| r.kind == RegionKind::Elf)
        .map(|r| &r.file);
    let processes = profile.meta.processes.iter().map(|p| &p.executable);
    let files: BTreeSet<&Path> = mapped.chain(processes).map(Path::new).collect();
    let own = files.into_iter().filter(|f| !frame_filter::is_system(f));
    own.map(Path::to_owned).collect()
}

/// When the newest of them was written, where that is known.
fn build_time(programs: &[PathBuf]) -> Option<SystemTime> {
    let changed = programs.iter();
    let changed = changed.filter_map(|f| f.metadata().ok()?.modified().ok());
    changed.max()
}

/// Files by name, read once.
#[derive(Default)]
struct QuotedFiles {
    built: Option<SystemTime>,
    only_public: bool,
    /// Bytes that may still be read.
    unread: u64,
    read: HashMap<String, Option<Vec<String>>>,
    /// Those that were changed since.
    changed: Vec<String>,
}

impl QuotedFiles {
    /// `None` when it cannot be read or is not what the program was built from.
    fn lines(&mut self, file: &str) -> Option<&Vec<String>> {
        if !self.read.contains_key(file) {
            let lines = self.read_lines(file);
            self.read.insert(file.to_owned(), lines);
        }
        self.read.get(file)?.as_ref()
    }

    fn read_lines(&mut self, name: &str) -> Option<Vec<String>> {
        let (file, _) = open_regular(Path::new(name), MAX_FILE.min(self.unread)).ok()?;
        let about = file.metadata().ok()?;
        if self.only_public && about.mode() & 0o004 == 0 {
            return None;
        }
        if self
            .built
            .is_some_and(|built| about.modified().is_ok_and(|at| at > built))
        {
            // A header of the system is newer than what was built elsewhere, whether it changed or not.
            let of_system = ["/usr/include", "/usr/lib"];
            if !of_system.iter().any(|d| Path::new(name).starts_with(d)) {
                self.changed.push(name.to_owned());
            }
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
        self.unread = self.unread.saturating_sub(bytes.len() as u64);
        let text = String::from_utf8_lossy(&bytes);
        let line = |line: &str| line.replace('\t', TAB).chars().take(MAX_LINE).collect();
        Some(text.lines().map(line).collect())
    }

    fn limit(&self) -> Option<String> {
        let first = self.changed.first()?;
        let others = match self.changed.len() - 1 {
            0 => String::new(),
            1 => " and another file".to_owned(),
            n => format!(" and {n} other files"),
        };
        Some(format!(
            "{first}{others} changed after the program was built: their lines are not quoted."
        ))
    }
}
