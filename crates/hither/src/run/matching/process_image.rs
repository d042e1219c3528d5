//! What was found in one process' memory so far, and which regions of the profile it is.
use super::file_names::{file_name, format_size};
use super::interval_map::{BindEffect, IntervalMap, SpaceInterval};
use super::memory_areas::{BrkHeap, LoadedModule, MemoryArea, MemoryAreas, RegionMatch};
use super::page_runs::{append_binds, majority_runs, GapRule, NodeRun, RegionFit, PAGE_BITS};
use super::placement_index::PlacementIndex;
use crate::run::guide::{PageBind, RecognisedRegion};
use hither_profile::{ProcessIx, RegionIx, RegionKind};
use hither_sys::Pid;
use std::collections::{BTreeMap, HashMap, HashSet};

/// One process image.
#[derive(Clone, Debug, Default)]
pub struct ProcessImage {
    pub process: Option<ProcessIx>,
    /// It is that process by its place only.
    pub soft: bool,
    pub forked: bool,
    pub executable: String,
    pub space: IntervalMap,
    pub areas: MemoryAreas,
    pub taken: HashMap<RegionIx, usize>,
    pub modules: Vec<LoadedModule>,
    pub heap: Option<BrkHeap>,
    /// Threads made in it so far, besides the first.
    pub made: usize,
    /// Mappings that several regions are equally near to.
    pub ambiguous: u64,
}

impl ProcessImage {
    pub fn add(&mut self, area: MemoryArea) -> usize {
        if self.areas.is_crowded() {
            let mut live: HashSet<usize> = self.space.iter().map(|i| i.area).collect();
            live.extend(self.modules.iter().map(|m| m.area));
            self.areas.drop_unused(&live);
        }
        self.areas.add(area)
    }

    /// It is no process of the profile after all.
    pub fn drop_process_match(&mut self) {
        self.process = None;
        self.soft = false;
        self.taken.clear();
        self.areas
            .iter_mut()
            .for_each(|(_, area)| area.claim = None);
    }

    /// From here on `area` is the region of the claim, and nothing else is.
    pub fn set_match(&mut self, area: usize, claim: RegionMatch) {
        self.remove_match(area);
        if let Some(other) = self.taken.insert(claim.region, area) {
            self.areas[other].claim = None;
        }
        self.areas[area].claim = Some(claim);
    }

    fn remove_match(&mut self, area: usize) {
        if let Some(claim) = self.areas[area].claim.take() {
            self.taken.remove(&claim.region);
        }
    }

    /// The region is not matched, or only by something less like it.
    pub fn is_free(&self, region: RegionIx) -> bool {
        !self.taken.contains_key(&region)
    }

    /// Where the pages of an interval belong.
    pub fn binds_for(
        &self,
        plan: &PlacementIndex,
        interval: &SpaceInterval,
        gaps: GapRule,
    ) -> Vec<PageBind> {
        let area = &self.areas[interval.area];
        let Some(claim) = area.claim else {
            return Vec::new();
        };
        self.bind_runs(plan.runs(claim.region), claim.fit, interval, gaps)
    }

    /// The same for given pages of the region.
    pub fn bind_runs(
        &self,
        runs: &[NodeRun],
        fit: RegionFit,
        interval: &SpaceInterval,
        gaps: GapRule,
    ) -> Vec<PageBind> {
        let mut binds = Vec::new();
        append_binds(runs, fit, interval.piece(), gaps, &mut binds);
        match self.areas[interval.area].huge {
            0 => binds,
            huge => in_blocks(&binds, 1 << huge, interval),
        }
    }

    /// Everything of one area that can be bound now.
    pub fn bind_thing(&self, plan: &PlacementIndex, area: usize) -> Vec<PageBind> {
        let intervals = self.space.intervals_of(area);
        let bindable = intervals.filter(|i| i.memory == BindEffect::Bindable);
        let binds = bindable.flat_map(|i| self.binds_for(plan, i, GapRule::Fill));
        binds.collect()
    }

    /// Page ranges of the changed regions to bind again; by region, in order.
    pub fn changed_binds(&self, changed: &[(RegionIx, Vec<NodeRun>)]) -> Vec<PageBind> {
        let mut binds = Vec::new();
        for interval in self
            .space
            .iter()
            .filter(|i| i.memory == BindEffect::Bindable)
        {
            let area = &self.areas[interval.area];
            let Some(claim) = area.claim.filter(|_| !area.guest) else {
                continue;
            };
            let at = changed.binary_search_by_key(&claim.region, |(region, _)| *region);
            if let Ok(at) = at {
                binds.extend(self.bind_runs(&changed[at].1, claim.fit, interval, GapRule::Skip));
            }
        }
        binds
    }

    /// Areas that are regions of the placement, with their pages.
    pub fn recognised_regions(&self, plan: &PlacementIndex, pid: Pid) -> Vec<RecognisedRegion> {
        let mut binds: HashMap<usize, Vec<PageBind>> = HashMap::new();
        let mut told: HashMap<usize, BTreeMap<u64, u64>> = HashMap::new();
        for interval in self.space.iter().filter(|i| i.memory != BindEffect::Cached) {
            let area = &self.areas[interval.area];
            let range = (
                interval.offset,
                interval.offset + interval.end - interval.start,
            );
            let told = told.entry(interval.area).or_default();
            let before = told.range(..range.1).next_back();
            // The same shared pages at a second address count once.
            if area.guest || before.is_some_and(|(_, end)| range.0 < *end) {
                continue;
            }
            told.insert(range.0, range.1);
            let here = self.binds_for(plan, interval, GapRule::Skip);
            binds.entry(interval.area).or_default().extend(here);
        }
        let mut found: Vec<(RegionIx, RecognisedRegion)> = Vec::new();
        for (at, binds) in binds {
            let area = &self.areas[at];
            let Some(claim) = area.claim.filter(|_| !binds.is_empty()) else {
                continue;
            };
            let mut binds = binds;
            merge_adjacent(&mut binds);
            let one = RecognisedRegion {
                pid,
                region: Some(claim.region),
                name: self.name(area, plan, claim.region),
                nearest: claim.nearest,
                copied: area.copied,
                binds,
            };
            found.push((claim.region, one));
        }
        found.sort_by_key(|(region, _)| *region);
        found.into_iter().map(|(_, found)| found).collect()
    }

    fn name(&self, area: &MemoryArea, plan: &PlacementIndex, region: RegionIx) -> String {
        let length = area.pages << PAGE_BITS;
        let stack = plan.region(region).kind == RegionKind::Stack;
        match (area.kind, area.mapper) {
            (RegionKind::Elf, _) => format!("{} data", file_name(&area.file)),
            (RegionKind::Brk, _) => "heap".to_owned(),
            (RegionKind::Stack, _) => "main stack".to_owned(),
            (RegionKind::Shared, _) if area.file.is_empty() => {
                format!("shared memory of {}", format_size(length))
            }
            (RegionKind::Shared, _) => file_name(&area.file).to_owned(),
            _ if stack => match plan.region(region).thread {
                Some(thread) => format!("stack of thread {thread}"),
                None => format!("stack of {}", format_size(length)),
            },
            (_, Some(mapper)) => {
                format!(
                    "mapping {} of {} by thread {mapper}",
                    area.ordinal,
                    format_size(length)
                )
            }
            (_, None) => format!("mapping {} of {}", area.ordinal, format_size(length)),
        }
    }
}

/// Whether a module's name is that of a region's file; the program itself may have been
/// renamed since the profile.
pub fn is_file_of(image: &ProcessImage, plan: &PlacementIndex, path: &str, file: &str) -> bool {
    let program = image.process.map(|p| &plan.processes[p.at()].executable);
    file_name(path) == file_name(file)
        || (path == image.executable && program.is_some_and(|p| file_name(p) == file_name(file)))
}

/// Makes one of binds side by side on a node.
pub fn merge_adjacent(binds: &mut Vec<PageBind>) {
    binds.dedup_by(|next, bind| {
        let joined = bind.node == next.node && bind.start + bind.length == next.start;
        if joined {
            bind.length += next.length;
        }
        joined
    });
}

/// Pages that can only be bound in blocks: each on the node of most of it.
fn in_blocks(binds: &[PageBind], block: u64, interval: &SpaceInterval) -> Vec<PageBind> {
    let runs: Vec<NodeRun> = binds.iter().map(NodeRun::from).collect();
    let blocks = majority_runs(&runs, block).into_iter();
    let inside = blocks.map(|b| (b.first.max(interval.start), b.end.min(interval.end), b.node));
    let inside = inside.filter(|(first, end, _)| first < end);
    let bind = |(first, end, node): (u64, u64, _)| PageBind {
        start: first << PAGE_BITS,
        length: (end - first) << PAGE_BITS,
        node,
    };
    inside.map(bind).collect()
}
