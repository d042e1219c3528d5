//! Which memory lay where while a window was recorded, kept until the regions have their
//! numbers.
use super::regions::Regions;
use super::space::{Interval, Space};
use hither_profile::bursts::Place;
use hither_profile::{PageNo, ProcessIx, RegionIx, RegionKind};
use hither_sys::{wire, Segment};
use std::collections::HashMap;
use std::sync::Arc;

/// The intervals of each process; what was unmapped before what is there.
pub type Snapshot = Arc<Vec<(u32, Vec<Interval>)>>;

/// Snapshots by window; windows in which nothing changed share one.
#[derive(Default)]
pub struct Places {
    kept: Vec<(u32, Snapshot)>,
}

impl Places {
    pub fn keep(&mut self, window: u32, snapshot: Snapshot) {
        let last = self.kept.last().map(|(_, last)| last);
        let same = last.filter(|last| **last == snapshot).cloned();
        self.kept.push((window, same.unwrap_or(snapshot)));
    }

    pub fn of_windows(&self) -> Vec<(u32, &Snapshot)> {
        self.kept.iter().map(|(window, s)| (*window, s)).collect()
    }
}

/// Where processes map chunks of shared objects: (first page there, chunk), sorted.
pub struct Aliases(HashMap<u32, Vec<(u64, wire::Chunk)>>);

impl Aliases {
    pub fn read(segment: &Segment) -> Aliases {
        let mut found: HashMap<u32, Vec<(u64, wire::Chunk)>> = HashMap::new();
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
        Aliases(found)
    }
}

/// The rows of a snapshot: sorted by process and page, without overlap. `number` gives the
/// profile's number of a region, if it has one.
pub fn rows(
    snapshot: &Snapshot,
    regions: &Regions,
    aliases: &Aliases,
    number: impl Fn(u32) -> Option<RegionIx>,
) -> Vec<Place> {
    let mut found = Vec::new();
    for (process, intervals) in snapshot.iter() {
        let mut space = Space::default();
        intervals.iter().for_each(|i| space.map(*i));
        let shared = aliases.0.get(process).map_or(&[][..], |a| a);
        for interval in space.live_in(0, u64::MAX) {
            let region = regions.owned_by(*process, interval.region);
            let Some(ix) = number(region) else { continue };
            let mut add = |start: u64, end: u64, first: u64| {
                let fits = start < end && first + (end - start) <= u64::from(u32::MAX);
                if fits {
                    found.push(Place {
                        process: ProcessIx(process.saturating_sub(1)),
                        page: start,
                        pages: end - start,
                        region: ix,
                        first: PageNo(first as u32),
                    });
                }
            };
            if regions.kind(region) != Some(RegionKind::Shared) {
                add(interval.start, interval.end, interval.offset);
                continue;
            }
            let mut next = interval.start;
            for (va, chunk) in shared {
                let end = va.saturating_add(wire::CHUNK_PAGES.into());
                let (start, end) = ((*va).max(next), end.min(interval.end));
                if start < end && regions.is_shared(region, chunk.dev, chunk.ino) {
                    let number = chunk.chunk.saturating_mul(wire::CHUNK_PAGES.into());
                    add(start, end, number.saturating_add(start - va));
                    next = end;
                }
            }
        }
    }
    found.sort_unstable_by_key(|p: &Place| (p.process, p.page));
    found
}
