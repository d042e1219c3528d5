//! Mappings, modules, heaps and stacks by number; only those that can still be asked for are kept.
use super::page_runs::RegionFit;
use hither_profile::{RegionIx, RegionKind, ThreadIx};
use std::collections::{BTreeMap, HashSet};
use std::ops::{Index, IndexMut};

/// Entries above which those that cannot be asked for any more are dropped.
const CROWD: usize = 1024;

/// The region of the profile that something found is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionMatch {
    pub region: RegionIx,
    pub fit: RegionFit,
    pub nearest: bool,
}

impl RegionMatch {
    /// The very region of the profile.
    pub fn same(region: RegionIx) -> RegionMatch {
        RegionMatch {
            region,
            fit: RegionFit::SAME,
            nearest: false,
        }
    }
}

/// A mapping, module, heap or stack, known by what the profile knows it by.
#[derive(Clone, Debug, Default)]
pub struct MemoryArea {
    pub kind: RegionKind,
    pub mapper: Option<ThreadIx>,
    pub ordinal: u32,
    /// Most pages it has had.
    pub pages: u64,
    pub file: String,
    pub claim: Option<RegionMatch>,
    /// Inherited by fork.
    pub copied: bool,
    /// Shared memory that another process tells of.
    pub guest: bool,
    /// Pages that can only be bound together, log2; 0 for plain pages.
    pub huge: u32,
}

/// A program or library in memory: pages [start, end).
#[derive(Clone, Debug)]
pub struct LoadedModule {
    pub start: u64,
    pub end: u64,
    pub path: String,
    pub area: usize,
}

/// The heap grown by brk: pages [first, end).
#[derive(Clone, Copy, Debug)]
pub struct BrkHeap {
    pub first: u64,
    pub end: u64,
    pub area: usize,
}

#[derive(Clone, Debug, Default)]
pub struct MemoryAreas {
    all: BTreeMap<usize, MemoryArea>,
    next: usize,
    kept: usize,
}

impl MemoryAreas {
    pub fn add(&mut self, area: MemoryArea) -> usize {
        let number = self.next;
        self.next += 1;
        self.all.insert(number, area);
        number
    }

    pub fn remove(&mut self, number: usize) {
        self.all.remove(&number);
    }

    /// Twice as many as after the last sweep.
    pub fn is_crowded(&self) -> bool {
        self.all.len() > CROWD.max(2 * self.kept)
    }

    /// Drops what is neither live nor of the placement. Shared memory may come back.
    pub fn drop_unused(&mut self, live: &HashSet<usize>) {
        self.all.retain(|number, area| {
            let comes_back = matches!(area.kind, RegionKind::Shared | RegionKind::Brk);
            comes_back || area.claim.is_some() || live.contains(number)
        });
        self.kept = self.all.len();
    }

    pub fn get_mut(&mut self, number: usize) -> Option<&mut MemoryArea> {
        self.all.get_mut(&number)
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &MemoryArea)> {
        self.all.iter().map(|(number, area)| (*number, area))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut MemoryArea)> {
        self.all.iter_mut().map(|(number, area)| (*number, area))
    }
}

impl Index<usize> for MemoryAreas {
    type Output = MemoryArea;
    fn index(&self, number: usize) -> &MemoryArea {
        &self.all[&number]
    }
}

impl IndexMut<usize> for MemoryAreas {
    #[expect(clippy::expect_used, reason = "numbers come from `add`")]
    fn index_mut(&mut self, number: usize) -> &mut MemoryArea {
        self.all.get_mut(&number).expect("an area's number")
    }
}
