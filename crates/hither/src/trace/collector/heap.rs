//! Heap blocks by the call stack that allocated them.
use super::regions::RegionMap;
use hither_sys::wire;
use std::collections::{BTreeMap, HashMap};

/// Ranges kept per allocation site, the largest.
pub const MAX_RANGES: usize = 10_000;

/// One call stack that allocates, in one process.
#[derive(Default)]
pub struct AllocationSite {
    pub process: u32,
    /// Thread of the first block.
    pub thread: u32,
    /// (module's region, ELF address) of each call, innermost first.
    pub frames: Vec<(u32, u64)>,
    pub count: u64,
    pub bytes: u64,
    /// (region, offset, length) of its blocks.
    pub ranges: Vec<(u32, u64, u64)>,
}

#[derive(Clone, Copy)]
struct HeapBlock {
    end: u64,
    site: u32,
}

#[derive(Default)]
pub struct HeapTracker {
    pub sites: Vec<AllocationSite>,
    by_stack: HashMap<(u32, [u64; 4]), u32>,
    live: HashMap<u32, BTreeMap<u64, HeapBlock>>,
    /// Freed since the last drain of samples: (process, start, block).
    freed: Vec<(u32, u64, HeapBlock)>,
}

impl HeapTracker {
    pub fn fork(&mut self, parent: u32, child: u32) {
        let copy = self.live.get(&parent).cloned().unwrap_or_default();
        self.live.insert(child, copy);
    }

    pub fn allocate(&mut self, event: &wire::SegmentEvent, regions: &mut RegionMap) {
        let process = u32::from(event.process);
        let [address, size, f0, f1, f2, f3] = event.a;
        let frames = [f0, f1, f2, f3];
        let site = match self.by_stack.get(&(process, frames)) {
            Some(&site) => site,
            None => self.new_site(event, frames, regions),
        };
        let entry = &mut self.sites[site as usize];
        entry.count = entry.count.saturating_add(1);
        entry.bytes = entry.bytes.saturating_add(size);
        if let Some((region, offset)) = regions.locate(process, address) {
            regions.all[region as usize].has_blocks = true;
            entry.ranges.push((region, offset, size));
            if entry.ranges.len() > 2 * MAX_RANGES {
                keep_largest_ranges(&mut entry.ranges);
            }
        }
        let block = HeapBlock {
            end: address.saturating_add(size),
            site,
        };
        self.live.entry(process).or_default().insert(address, block);
    }

    fn new_site(
        &mut self,
        event: &wire::SegmentEvent,
        frames: [u64; 4],
        regions: &mut RegionMap,
    ) -> u32 {
        let process = u32::from(event.process);
        let calls = frames.iter().take_while(|&&pc| pc != 0);
        let frames_found = calls
            .filter_map(|pc| regions.locate_code(process, pc - 1, None))
            .collect();
        let site = self.sites.len() as u32;
        self.sites.push(AllocationSite {
            process,
            thread: event.thread.into(),
            frames: frames_found,
            ..AllocationSite::default()
        });
        self.by_stack.insert((process, frames), site);
        site
    }

    pub fn free(&mut self, process: u32, address: u64) {
        let live = self.live.get_mut(&process);
        if let Some(block) = live.and_then(|blocks| blocks.remove(&address)) {
            self.freed.push((process, address, block));
        }
    }

    /// The allocation site of the block around an address, freed ones included until
    /// [`HeapTracker::forget_freed`]: a sample may be older than the block's end.
    pub fn site_at(&self, process: u32, line: u64, line_size: u64) -> Option<u32> {
        let end = line.saturating_add(line_size);
        let live = self.live.get(&process);
        let around = live.and_then(|blocks| blocks.range(..end).next_back());
        let found = around.filter(|(_, block)| block.end > line);
        found.map(|(_, block)| block.site).or_else(|| {
            let freed = self.freed.iter().rev();
            freed
                .filter(|(p, start, block)| *p == process && *start < end && block.end > line)
                .map(|(_, _, block)| block.site)
                .next()
        })
    }

    pub fn forget_freed(&mut self) {
        self.freed.clear();
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
