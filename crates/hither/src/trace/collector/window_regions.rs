//! Which memory lay where while a window was recorded, kept until the regions have their
//! numbers.
use super::address_space::AddressSpaceHistory;
use super::late_modules::RegionSpan;
use super::region_interval::RegionInterval;
use super::regions::RegionMap;
use hither_profile::bursts::NamedPages;
use hither_profile::{PageNo, ProcessIx, RegionIx, RegionKind};
use hither_sys::{wire, Segment};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The intervals of each process; what was unmapped before what is there.
pub type RegionSnapshot = Vec<(u32, Arc<Vec<RegionInterval>>)>;

/// Snapshots by window; what did not change from one to the next is there once.
#[derive(Default)]
pub struct WindowSnapshots {
    kept: BTreeMap<u32, Arc<RegionSnapshot>>,
}

impl WindowSnapshots {
    pub fn add_window(&mut self, window: u32, pictures: HashMap<u32, Vec<RegionInterval>>) {
        let last = self.kept.last_key_value().map(|(_, last)| Arc::clone(last));
        let before: HashMap<u32, &Arc<Vec<RegionInterval>>> = last
            .iter()
            .flat_map(|l| l.iter().map(|(p, i)| (*p, i)))
            .collect();
        let mut snapshot: RegionSnapshot = Vec::new();
        for (process, picture) in pictures {
            let same = before
                .get(&process)
                .filter(|before| *before.as_ref() == picture);
            let picture = same.map_or_else(|| Arc::new(picture), |same| Arc::clone(same));
            snapshot.push((process, picture));
        }
        snapshot.sort_unstable_by_key(|(process, _)| *process);
        let same = last.filter(|last| **last == snapshot);
        self.kept
            .insert(window, same.unwrap_or_else(|| Arc::new(snapshot)));
    }

    /// Adds to a window what its processes have by now, where nothing was before.
    pub fn extend_window(&mut self, window: u32, picture: impl Fn(u32) -> Vec<RegionInterval>) {
        let Some(snapshot) = self.kept.get_mut(&window) else {
            return;
        };
        for n in 0..snapshot.len() {
            let (process, before) = &snapshot[n];
            let old: HashSet<_> = before.iter().map(|i| (i.start, i.end, i.region)).collect();
            let mut all = picture(*process);
            all.retain(|i| !old.contains(&(i.start, i.end, i.region)));
            if !all.is_empty() {
                all.extend_from_slice(before);
                Arc::make_mut(snapshot)[n].1 = Arc::new(all);
            }
        }
    }

    /// Intervals that are kept for a window.
    pub fn interval_count(&self, window: u32) -> u64 {
        let snapshot = self.kept.get(&window).map_or(&[][..], |s| s);
        snapshot.iter().map(|(_, i)| i.len() as u64).sum()
    }

    pub fn snapshots(&self) -> impl Iterator<Item = (u32, &RegionSnapshot)> {
        self.kept.iter().map(|(window, s)| (*window, &**s))
    }
}

/// Where processes map chunks of shared objects: (first page there, chunk), sorted.
pub struct ChunkAliasMap(HashMap<u32, Vec<(u64, wire::SharedChunk)>>);

impl ChunkAliasMap {
    pub fn read(segment: &Segment) -> ChunkAliasMap {
        let mut found: HashMap<u32, Vec<(u64, wire::SharedChunk)>> = HashMap::new();
        for n in 0..wire::ALIASES {
            let alias = segment.alias(n);
            let Some(key) = alias.key.checked_sub(1) else {
                continue;
            };
            let chunk = segment.chunk(key as u32);
            if chunk.state == 2 {
                let process = found.entry((key >> 32) as u32).or_default();
                process.push((alias.va, chunk));
            }
        }
        found.values_mut().for_each(|a| a.sort_by_key(|a| a.0));
        ChunkAliasMap(found)
    }
}

/// The rows of a snapshot: sorted by process and page, without overlap. `number` gives the
/// profile's number of a region, if it has one.
pub fn named_pages(
    snapshot: &RegionSnapshot,
    regions: &RegionMap,
    aliases: &ChunkAliasMap,
    number: impl Fn(u32) -> Option<RegionIx>,
) -> Vec<NamedPages> {
    let mut found = Vec::new();
    for (process, intervals) in snapshot.iter() {
        let mut space = AddressSpaceHistory::default();
        for interval in intervals.iter() {
            space.map(*interval);
        }
        let shared = aliases.0.get(process).map_or(&[][..], |a| a);
        for interval in space.live_in(0, u64::MAX) {
            let mut add = |start: u64, run: RegionSpan| {
                let end = run.first.checked_add(run.pages);
                let fits = run.pages > 0 && end.is_some_and(|end| end <= u64::from(u32::MAX));
                let region = regions.owned_by(*process, run.region);
                if let Some(region) = number(region).filter(|_| fits) {
                    found.push(NamedPages {
                        process: ProcessIx(process.saturating_sub(1)),
                        page: start,
                        pages: run.pages,
                        region,
                        first: PageNo(run.first as u32),
                    });
                }
            };
            let region = regions.owned_by(*process, interval.region);
            if regions.kind(region) != Some(RegionKind::Shared) {
                // What was not known to be a module's when the snapshot was made.
                let mut start = interval.start;
                for run in regions.late_modules.resolve_span(RegionSpan {
                    region: interval.region,
                    first: interval.offset,
                    pages: interval.pages(),
                }) {
                    add(start, run);
                    start += run.pages;
                }
                continue;
            }
            let mut next = interval.start;
            for (va, chunk) in shared {
                let end = va.saturating_add(wire::CHUNK_PAGES.into());
                let (start, end) = ((*va).max(next), end.min(interval.end));
                if start < end && regions.is_shared(region, chunk.dev, chunk.ino) {
                    let number = chunk.chunk.saturating_mul(wire::CHUNK_PAGES.into());
                    let first = number.saturating_add(start - va);
                    let pages = end - start;
                    add(
                        start,
                        RegionSpan {
                            region,
                            first,
                            pages,
                        },
                    );
                    next = end;
                }
            }
        }
    }
    found.sort_unstable_by_key(|p: &NamedPages| (p.process, p.page));
    found
}
