//! What lay where in the memory of each process, from /proc/PID/maps as it was read now and
//! then. Mappings that lie side by side are one there, so an area may be several of those
//! that the program made.
use std::collections::HashMap;
use std::time::Instant;

use hither_profile::{ProcessIx, RegionKind, PAGE_SIZE};
use nix::libc;

use crate::follow::proc_maps::MemoryMapping;

/// Unknown pages that are less than this apart, in bytes, are taken for one mapping.
const GAP: u64 = 64 << 10;
/// Areas of a process; of more, the rest is unknown memory.
const MAX_AREAS: usize = 1 << 16;

/// A part of an address space that is one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedArea {
    pub kind: RegionKind,
    pub start: u64,
    pub end: u64,
    pub file: String,
}

/// A file or piece of memory that is mapped shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedFile {
    pub path: String,
    /// Bytes of it that are mapped anywhere, from its start.
    pub size: u64,
    /// Where the first process has its start.
    pub process: ProcessIx,
    pub address: u64,
}

#[derive(Debug, Default)]
pub struct MappedAreas {
    of: HashMap<ProcessIx, (Option<Instant>, Vec<MappedArea>)>,
    pub shared: HashMap<(u64, u64), SharedFile>,
}

impl MappedAreas {
    /// Takes in what is mapped in a process, as it was read at a moment.
    pub fn update_mappings(
        &mut self,
        process: ProcessIx,
        read: Option<Instant>,
        mappings: &[MemoryMapping],
    ) {
        let entry = self.of.entry(process).or_default();
        if read.is_none() || entry.0 == read {
            return;
        }
        entry.0 = read;
        let code = mappings.iter().filter(|m| m.prot & libc::PROT_EXEC != 0);
        let code: Vec<&str> = code.filter_map(path).collect();
        // The last segment of a module and its end: variables without a value follow it.
        let mut module: Option<(u64, String)> = None;
        for mapping in mappings {
            let end = mapping.address + mapping.length;
            if mapping.flags & libc::MAP_SHARED != 0 {
                note_shared(&mut self.shared, process, mapping);
                continue;
            }
            let path = path(mapping);
            let after = module.take().filter(|m| m.0 == mapping.address);
            let (kind, file) = match (path, after) {
                (Some("[heap]"), _) => (RegionKind::Brk, String::new()),
                (Some("[stack]"), _) => (RegionKind::Stack, String::new()),
                (Some(path), _) if path.starts_with("[anon") => (RegionKind::Mmap, String::new()),
                (Some(path), _) if path.starts_with('[') => continue,
                (Some(path), _) if code.contains(&path) => {
                    module = Some((end, path.to_owned()));
                    (RegionKind::Elf, path.to_owned())
                }
                (Some(path), _) => (RegionKind::Mmap, path.to_owned()),
                (None, Some((_, file))) => (RegionKind::Elf, file),
                (None, None) => (RegionKind::Mmap, String::new()),
            };
            if mapping.prot != 0 || kind == RegionKind::Elf {
                let start = mapping.address;
                insert_area(
                    &mut entry.1,
                    MappedArea {
                        kind,
                        start,
                        end,
                        file,
                    },
                );
            }
        }
    }

    /// The areas of a process that hold these pages (addresses, in order), each with the
    /// positions of its first page and the one behind its last. Pages that were never seen
    /// mapped are areas of their own, with what is near.
    pub fn areas_with_pages(
        &self,
        process: ProcessIx,
        pages: &[u64],
    ) -> Vec<(MappedArea, usize, usize)> {
        let known = self.of.get(&process).map_or(&[][..], |of| &of.1);
        let mut found: Vec<(MappedArea, usize, usize)> = Vec::new();
        let mut is_known = true;
        for (at, &page) in pages.iter().enumerate() {
            let next = known.partition_point(|a| a.start <= page);
            let here = next.checked_sub(1).map(|n| &known[n]);
            let here = here.filter(|a| page < a.end);
            match (here, found.last_mut()) {
                (Some(area), Some((last, _, end))) if is_known && *area == *last => *end = at + 1,
                (None, Some((last, _, end))) if !is_known && page < last.end + GAP => {
                    last.end = page + PAGE_SIZE;
                    *end = at + 1;
                }
                (Some(area), _) => found.push((area.clone(), at, at + 1)),
                (None, _) => {
                    let area = MappedArea {
                        start: page,
                        end: page + PAGE_SIZE,
                        ..MappedArea::default()
                    };
                    found.push((area, at, at + 1));
                }
            }
            is_known = here.is_some();
        }
        found
    }
}

fn path(mapping: &MemoryMapping) -> Option<&str> {
    mapping.file.as_ref().map(|file| file.path.as_str())
}

fn note_shared(
    shared: &mut HashMap<(u64, u64), SharedFile>,
    process: ProcessIx,
    mapping: &MemoryMapping,
) {
    let Some(file) = mapping.file.as_ref().filter(|file| file.ino != 0) else {
        return;
    };
    let known = shared
        .entry((file.dev, file.ino))
        .or_insert_with(|| SharedFile {
            path: file.path.clone(),
            size: 0,
            process,
            address: mapping.address.saturating_sub(file.offset),
        });
    known.size = known.size.max(file.offset.saturating_add(mapping.length));
}

/// Adds an area to those in order of address; what it overlaps and is the same thing
/// becomes one with it, what is another thing is cut where the newer one lies.
fn insert_area(areas: &mut Vec<MappedArea>, mut new: MappedArea) {
    let same = |a: &MappedArea, b: &MappedArea| a.kind == b.kind && a.file == b.file;
    let spans = !matches!(new.kind, RegionKind::Mmap);
    if spans {
        // Segments of a module, a heap or stack that grew.
        if let Some(at) = areas.iter().position(|a| same(a, &new)) {
            let old = areas.remove(at);
            new.start = new.start.min(old.start);
            new.end = new.end.max(old.end);
        }
    }
    let first = areas.partition_point(|a| a.end <= new.start);
    let mut rest = Vec::new();
    let mut last = first;
    while let Some(old) = areas.get(last).filter(|a| a.start < new.end) {
        if same(old, &new) {
            new.start = new.start.min(old.start);
            new.end = new.end.max(old.end);
        } else {
            rest.push(old.clone());
        }
        last += 1;
    }
    let mut pieces = Vec::new();
    for old in rest {
        if old.start < new.start {
            pieces.push(MappedArea {
                end: new.start,
                ..old.clone()
            });
        }
        if old.end > new.end {
            pieces.push(MappedArea {
                start: new.end,
                ..old
            });
        }
    }
    if areas.len() + pieces.len() >= MAX_AREAS + (last - first) {
        return;
    }
    pieces.push(new);
    pieces.sort_by_key(|a| a.start);
    areas.splice(first..last, pieces);
}
