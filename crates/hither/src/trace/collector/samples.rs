//! Samples of evicted lines -> how often which code touched which data.
//!
//! Symbols are read only at the end, so lines of program files stay numbers until then;
//! everything else is known when the sample is drained.
use super::heap::HeapTracker;
use super::regions::{RegionMap, PAGE_BITS};
use hither_profile::{RegionKind, SourceSite};
use hither_sys::{wire, Segment};
use std::collections::HashMap;

/// Bytes per unit of a program file's data.
pub const DATA_UNIT_BYTES: u64 = 64;
/// Distinct keys kept; samples of new ones are dropped after that.
const MAX_KEYS: usize = 1 << 20;

/// What data a sample touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SampleTarget {
    /// A block of an allocation site.
    Heap(u32),
    /// A 64-byte unit of a program file's region.
    File {
        region: u32,
        unit: u64,
    },
    /// Somewhere in another region.
    Region(u32),
    Unknown,
}

/// Code by (region of its file, ELF address).
pub type SampleCode = Option<(u32, u64)>;

#[derive(Default)]
pub struct SampleTally {
    /// Weighted reads and writes.
    pub lines: HashMap<(SampleTarget, SampleCode), [u64; 2]>,
    /// The same of heap blocks, by page: (region, page, allocation site).
    pub heap_pages: HashMap<(u32, u64, u32), [u64; 2]>,
    codes: HashMap<u32, SampleCode>,
    pub overwritten: u64,
    pub dropped: u64,
}

impl SampleTally {
    pub fn drain(
        &mut self,
        segment: &Segment,
        thread: u32,
        process: u32,
        heap: &HeapTracker,
        regions: &mut RegionMap,
    ) {
        let mut overwritten = 0;
        overwritten += segment.drain_samples(thread, |sample| {
            self.add(segment, process, &sample, heap, regions);
        });
        self.overwritten = self.overwritten.saturating_add(overwritten);
    }

    fn add(
        &mut self,
        segment: &Segment,
        process: u32,
        sample: &wire::EvictionSample,
        heap: &HeapTracker,
        regions: &mut RegionMap,
    ) {
        let weight = u64::from(sample.weight);
        let counts = [sample.reads, sample.writes].map(|c| u64::from(c) * weight);
        let place = regions.locate(process, sample.address);
        let target = match (
            heap.site_at(process, sample.address, DATA_UNIT_BYTES),
            place,
        ) {
            (Some(site), _) => SampleTarget::Heap(site),
            (None, None) => SampleTarget::Unknown,
            (None, Some((region, offset))) => {
                let kind = regions.all[region as usize].region.kind;
                let unit = offset / DATA_UNIT_BYTES;
                if kind == RegionKind::Elf {
                    SampleTarget::File { region, unit }
                } else {
                    SampleTarget::Region(region)
                }
            }
        };
        let code = self.code(segment, sample.site, regions);
        let kept = add_if_room(&mut self.lines, (target, code), counts);
        self.dropped += u64::from(!kept);
        if let (SampleTarget::Heap(site), Some((region, offset))) = (target, place) {
            add_if_room(
                &mut self.heap_pages,
                (region, offset >> PAGE_BITS, site),
                counts,
            );
        }
    }

    fn code(&mut self, segment: &Segment, site: u32, regions: &mut RegionMap) -> SampleCode {
        if let Some(&known) = self.codes.get(&site) {
            return known;
        }
        let record = segment.site(site);
        let code = regions.locate_code(record.process, record.pc, Some(record.generation));
        self.codes.insert(site, code);
        code
    }
}

/// Adds to a key, if there is room for it.
fn add_if_room<K: std::hash::Hash + Eq>(
    map: &mut HashMap<K, [u64; 2]>,
    key: K,
    counts: [u64; 2],
) -> bool {
    if map.len() >= MAX_KEYS && !map.contains_key(&key) {
        return false;
    }
    let sum = map.entry(key).or_insert([0; 2]);
    sum[0] = sum[0].saturating_add(counts[0]);
    sum[1] = sum[1].saturating_add(counts[1]);
    true
}

/// Keeps the site rows that make up most of the accesses.
pub fn keep_most_accessed(mut sites: Vec<SourceSite>, share: f64) -> Vec<SourceSite> {
    let accesses = |s: &SourceSite| s.reads.saturating_add(s.writes);
    let key = |s: &SourceSite| {
        (
            std::cmp::Reverse(accesses(s)),
            s.object,
            s.file.clone(),
            s.line,
            s.function.clone(),
        )
    };
    sites.sort_by_cached_key(key);
    let total: f64 = sites.iter().map(|s| accesses(s) as f64).sum();
    let mut sum = 0.0;
    let needed = sites.iter().take_while(|s| {
        let wanted = sum < total * share;
        sum += accesses(s) as f64;
        wanted
    });
    let needed = needed.count();
    sites.truncate(needed);
    sites
}
