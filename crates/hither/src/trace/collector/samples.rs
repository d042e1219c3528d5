//! Samples of accesses and fetches -> how often which code touched which data.
//!
//! Symbols are read only at the end, so lines of program files stay numbers until then;
//! everything else is known when the sample is drained.
use super::code_lines::CodePlace;
use super::events::TargetState;
use super::object_rows::ObjectKey;
use super::regions::RegionMap;
use super::small_blocks::SmallBlockPlaces;
use hither_profile::{RegionKind, SourceSite};
use hither_sys::{wire, Segment};
use std::collections::HashMap;

/// Variables of program files are told apart by this many bytes.
pub const LINE_BYTES: u64 = 64;
/// Distinct keys kept; samples of new ones are dropped after that.
const MAX_KEYS: usize = 1 << 20;

/// What data a sample touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SampleTarget {
    /// A data structure that the tracer knows: process, id there.
    Object(u32, u32),
    /// The same in a program file: what the tracer takes for one may be several variables.
    Variable {
        process: u32,
        id: u32,
        region: u32,
        line: u64,
    },
    /// Somewhere in a region, in no such structure.
    Region(u32),
    Unknown,
}

#[derive(Default)]
pub struct SampleTally {
    /// Weighted reads, writes and fetches.
    pub lines: HashMap<(SampleTarget, CodePlace), [u64; 3]>,
    pub small_blocks: SmallBlockPlaces,
    codes: HashMap<(u32, i16), CodePlace>,
    /// Samples that were added.
    pub taken: u64,
    pub overwritten: u64,
    pub dropped: u64,
}

impl SampleTally {
    pub fn drain(
        &mut self,
        segment: &Segment,
        thread: u32,
        process: u32,
        target: &mut TargetState,
    ) {
        let overwritten = segment.drain_samples(thread, |sample| {
            self.add(&sample, segment, process, target);
        });
        self.overwritten = self.overwritten.saturating_add(overwritten);
    }

    /// Adds what a thread of a process left.
    pub fn add(
        &mut self,
        sample: &wire::AccessSample,
        segment: &Segment,
        process: u32,
        target: &mut TargetState,
    ) {
        self.taken += 1;
        let id = u32::from(sample.object);
        let object = (id != 0).then(|| target.object_counted_as((process, id), segment));
        let place = target.regions.locate(process, sample.address);
        self.count(segment, sample, (object, place), &mut target.regions);
        if let (Some(object), Some(place)) = (object, place) {
            self.small_blocks.add(object, place, segment, target);
        }
    }

    fn count(
        &mut self,
        segment: &Segment,
        sample: &wire::AccessSample,
        (object, place): (Option<ObjectKey>, Option<(u32, u64)>),
        regions: &mut RegionMap,
    ) {
        let counts = match [sample.reads, sample.writes].map(u64::from) {
            [0, 0] => [0, 0, wire::SAMPLE_PERIOD.into()],
            [reads, writes] => [reads, writes, 0],
        };
        let target = match (object, place) {
            (None, None) => SampleTarget::Unknown,
            (None, Some((region, _))) => SampleTarget::Region(region),
            (Some((process, id)), Some((region, offset)))
                if regions.all[region as usize].region.kind == RegionKind::Elf =>
            {
                SampleTarget::Variable {
                    process,
                    id,
                    region,
                    line: offset / LINE_BYTES,
                }
            }
            (Some((process, id)), _) => SampleTarget::Object(process, id),
        };
        let code = self.code(segment, (sample.site, sample.after), regions);
        let kept = add_if_room(&mut self.lines, (target, code), counts);
        self.dropped += u64::from(!kept);
    }

    fn code(
        &mut self,
        segment: &Segment,
        (site, after): (u32, i16),
        regions: &mut RegionMap,
    ) -> CodePlace {
        if let Some(&known) = self.codes.get(&(site, after)) {
            return known;
        }
        let code = CodePlace::of_access(site, after, segment, regions);
        if site < wire::MAX_SITES {
            self.codes.insert((site, after), code);
        }
        code
    }
}

/// Adds to a key, if there is room for it.
fn add_if_room<K: std::hash::Hash + Eq>(
    map: &mut HashMap<K, [u64; 3]>,
    key: K,
    counts: [u64; 3],
) -> bool {
    if map.len() >= MAX_KEYS && !map.contains_key(&key) {
        return false;
    }
    let sum = map.entry(key).or_insert([0; 3]);
    for (sum, count) in sum.iter_mut().zip(counts) {
        *sum = sum.saturating_add(count);
    }
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
            s.callee.clone(),
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
