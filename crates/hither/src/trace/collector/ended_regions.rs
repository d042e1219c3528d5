//! Mappings that have ended, whose regions others take: a program that maps the same again and
//! again would have regions, and pages in them, without end.
use hither_profile::ThreadIx;
use std::collections::{HashMap, VecDeque};

/// As long as no more have ended, each mapping has a region of its own.
const KEPT_REGIONS: usize = 1024;
const KEPT_BYTES: u64 = 256 << 20;

/// What mappings must have in common to follow one another in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MappingKind {
    /// Row of the process.
    pub process: u32,
    pub thread: Option<ThreadIx>,
    pub size: u64,
}

#[derive(Default)]
pub struct EndedRegions {
    /// In the order of their ends.
    regions: HashMap<MappingKind, VecDeque<u32>>,
    count: usize,
    bytes: u64,
    /// Mappings so far that took the region of another.
    pub reused: u64,
}

impl EndedRegions {
    pub fn add(&mut self, kind: MappingKind, region: u32) {
        self.regions.entry(kind).or_default().push_back(region);
        self.count += 1;
        self.bytes = self.bytes.saturating_add(kind.size);
    }

    /// The region of a mapping that ended, for a new one of its kind, if enough have ended.
    pub fn take(&mut self, kind: MappingKind) -> Option<u32> {
        if self.count <= KEPT_REGIONS && self.bytes <= KEPT_BYTES {
            return None;
        }
        let region = self.regions.get_mut(&kind)?.pop_front()?;
        self.count -= 1;
        self.bytes = self.bytes.saturating_sub(kind.size);
        self.reused += 1;
        Some(region)
    }
}
