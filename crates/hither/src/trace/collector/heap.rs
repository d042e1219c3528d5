//! Heap blocks, and mappings of the program's own, by the calls that allocated them.
use super::memory_budget::{BLOCK_BYTES, SITE_BYTES};
use super::regions::RegionMap;
use hither_profile::RegionKind;
use hither_sys::{wire, Segment};
use std::collections::HashMap;

/// Ranges kept per allocation site, the largest.
pub const MAX_RANGES: usize = 10_000;

/// One call path that allocates, in one process.
#[derive(Default)]
pub struct AllocationSite {
    pub process: u32,
    /// Its blocks are mappings, not the allocator's.
    pub maps: bool,
    /// Serial of the thread of the first block.
    pub thread: u32,
    /// (module's region, ELF address) of each call, innermost first.
    pub frames: Vec<(u32, u64)>,
    pub count: u64,
    /// Bytes of its blocks that lived at the same time, at most.
    pub peak: u64,
    /// Of all its blocks together, of the smallest and of the largest.
    pub allocated: u64,
    pub smallest: u64,
    pub largest: u64,
    /// Reads, writes and fetches of its blocks.
    pub counts: [u64; 3],
    /// (region, offset, length) of its large blocks.
    pub ranges: Vec<(u32, u64, u64)>,
}

impl AllocationSite {
    /// The blocks of one process.
    fn add(&mut self, object: &wire::TargetObject) {
        let rounding = object.bytes as f64 / object.granules.max(1) as f64;
        let peak = (object.peak as f64 * rounding).round() as u64;
        self.peak = self.peak.max(peak);
        self.count = self.count.saturating_add(object.blocks);
        self.allocated = self.allocated.saturating_add(object.bytes);
        self.smallest = smaller(self.smallest, object.smallest);
        self.largest = self.largest.max(object.largest);
    }
}

/// Allocation sites, by process and the record of the tracer's object.
#[derive(Default)]
pub struct HeapTracker {
    pub sites: Vec<AllocationSite>,
    /// Who mapped memory that processes share, by its region: the first of them.
    pub shared: HashMap<u32, AllocationSite>,
    by_record: HashMap<(u32, u32), u32>,
}

impl HeapTracker {
    /// A block that was reported, a large one, or memory that processes share, at the site of a process and
    /// record.
    pub fn allocate(
        &mut self,
        event: &wire::SegmentEvent,
        (process, record): (u32, u32),
        segment: &Segment,
        regions: &mut RegionMap,
    ) {
        let [address, size, ..] = event.a;
        if segment.target_object(record).kind == wire::OBJECT_THREAD_LOCAL {
            regions.add_thread_local_copy((process, record), (event.process.into(), address), size);
            return;
        }
        if segment.target_object(record).kind == wire::OBJECT_MAPPING {
            let block_process = event.process.into();
            let region = regions.locate(block_process, address).map(|place| place.0);
            let shared = region.filter(|&r| regions.kind(r) == Some(RegionKind::Shared));
            if let Some(region) = shared {
                if !self.shared.contains_key(&region) {
                    let site = allocation_site(process, record, segment, regions);
                    self.shared.extend(site.map(|site| (region, site)));
                }
                return;
            }
        }
        let Some(site) = self.site_of(process, record, segment, regions) else {
            return;
        };
        let entry = &mut self.sites[site as usize];
        if let Some((region, offset)) = mark_blocks(event.process.into(), address, regions) {
            entry.ranges.push((region, offset, size));
            regions.budget.spend(BLOCK_BYTES);
            if entry.ranges.len() > 2 * MAX_RANGES {
                let before = entry.ranges.len();
                keep_largest_ranges(&mut entry.ranges);
                let gone = (before - entry.ranges.len()) as u64;
                regions.budget.give_back(gone * BLOCK_BYTES);
            }
        }
    }

    /// The site of a process whose blocks are this object; `None` if it is none of a site.
    pub fn site_of(
        &mut self,
        process: u32,
        record: u32,
        segment: &Segment,
        regions: &mut RegionMap,
    ) -> Option<u32> {
        if let Some(&site) = self.by_record.get(&(process, record)) {
            return Some(site);
        }
        let new = allocation_site(process, record, segment, regions)?;
        let site = self.sites.len() as u32;
        self.sites.push(new);
        self.by_record.insert((process, record), site);
        Some(site)
    }

    /// Whether an object of this kind is what an allocation site allocates.
    pub fn has_sites(kind: u32) -> bool {
        [wire::OBJECT_SITE, wire::OBJECT_MAPPING].contains(&kind)
    }

    /// Where the calls are that allocate an object.
    pub fn frames(object: &wire::TargetObject, regions: &mut RegionMap) -> Vec<(u32, u64)> {
        let calls = object.frames.iter().take_while(|&&pc| pc != 0);
        let generation = Some(object.generation);
        calls
            .filter_map(|pc| regions.locate_code(object.process, pc - 1, generation))
            .collect()
    }

    /// Whether blocks of an object were reported one by one, which large ones are.
    pub fn reports_blocks(&self, process: u32, record: u32) -> bool {
        let site = self.by_record.get(&(process, record));
        site.is_some_and(|&site| !self.sites[site as usize].ranges.is_empty())
    }

    /// A process has ended that allocated this at the site of another process and record.
    pub fn add_left(
        &mut self,
        record: u32,
        known: (u32, u32),
        segment: &Segment,
        regions: &mut RegionMap,
    ) {
        let object = segment.target_object(record);
        if HeapTracker::has_sites(object.kind) {
            if let Some(site) = self.site_of(known.0, known.1, segment, regions) {
                self.sites[site as usize].add(&object);
            }
        }
    }

    /// Takes over how much was allocated at each site. A forked child's blocks count for the
    /// parent's site, as both have the same record.
    pub fn read_totals(&mut self, segment: &Segment) {
        for (&(process, record), &site) in &self.by_record {
            let object = segment.target_object(record);
            let site = &mut self.sites[site as usize];
            if object.process == process {
                site.add(&object);
            }
            let reported: u64 = site.ranges.iter().map(|r| r.2).max().unwrap_or(0);
            site.count = site.count.max(1);
            site.peak = site.peak.max(reported);
        }
    }
}

/// What the record of an object says, if it is one of a site.
fn allocation_site(
    process: u32,
    record: u32,
    segment: &Segment,
    regions: &mut RegionMap,
) -> Option<AllocationSite> {
    let object = segment.target_object(record);
    if !HeapTracker::has_sites(object.kind) {
        return None;
    }
    let frames = HeapTracker::frames(&object, regions);
    regions.budget.spend(SITE_BYTES);
    Some(AllocationSite {
        process,
        maps: object.kind == wire::OBJECT_MAPPING,
        thread: object.thread,
        frames,
        ..AllocationSite::default()
    })
}

/// Heap blocks lie in the mapping around an address: (its region, offset there).
pub fn mark_blocks(process: u32, address: u64, regions: &mut RegionMap) -> Option<(u32, u64)> {
    let place = regions.locate(process, address)?;
    regions.all[place.0 as usize].has_blocks = true;
    Some(place)
}

/// Of two sizes, of which 0 is none.
pub fn smaller(a: u64, b: u64) -> u64 {
    match (a, b) {
        (0, n) | (n, 0) => n,
        (a, b) => a.min(b),
    }
}

/// Same block again and again counts once; then the largest stay.
pub fn keep_largest_ranges(ranges: &mut Vec<(u32, u64, u64)>) {
    ranges.sort_unstable();
    ranges.dedup();
    if ranges.len() > MAX_RANGES {
        ranges.sort_unstable_by_key(|range| std::cmp::Reverse(range.2));
        ranges.truncate(MAX_RANGES);
    }
}
