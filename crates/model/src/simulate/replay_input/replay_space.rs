//! One address space for all processes of a run. Addresses of the first process stay what they
//! are; those of process p lie p * 2^48 higher, beyond what user space has. Memory that is mapped
//! at several addresses, as processes that share it do, lies beyond all of them, once.
use hither_profile::bursts::NamedPages;
use hither_profile::{ProcessIx, RegionIx, PAGE_SIZE};
use std::collections::HashMap;

/// Pages of a process' user space, rounded up to a power of two: 2^48 bytes.
const PAGES_OF_PROCESS: u32 = 36;
/// Where shared memory begins.
const SHARED: u64 = 1 << 51;

fn private_page(process: ProcessIx, page: u64) -> u64 {
    (page & ((1 << PAGES_OF_PROCESS) - 1)) | (u64::from(process.0) << PAGES_OF_PROCESS)
}

/// Where regions lie that have several addresses.
#[derive(Clone, Debug, Default)]
pub struct ReplaySpace {
    /// The page of the one space at which they begin.
    shared: HashMap<RegionIx, u64>,
}

/// The mappings during a window.
#[derive(Clone, Debug, Default)]
pub struct WindowLayout {
    /// By page as the process has it, made unique: page, pages, page of the one space.
    moved: Vec<(u64, u64, u64)>,
    /// By page of the one space: page, pages, region, its first page there.
    known: Vec<(u64, u64, RegionIx, u64)>,
}

impl ReplaySpace {
    /// From the places of all windows.
    #[must_use]
    pub fn new<'a>(places: impl Iterator<Item = &'a NamedPages>) -> ReplaySpace {
        let mut begins: HashMap<RegionIx, u64> = HashMap::new();
        let mut sizes: HashMap<RegionIx, u64> = HashMap::new();
        let mut several: Vec<RegionIx> = Vec::new();
        for place in places {
            let first = u64::from(place.first.0);
            let begin = private_page(place.process, place.page).wrapping_sub(first);
            let known = *begins.entry(place.region).or_insert(begin);
            let size = sizes.entry(place.region).or_default();
            *size = (*size).max(first.saturating_add(place.pages));
            if known != begin {
                several.push(place.region);
            }
        }
        several.sort_unstable();
        several.dedup();
        let mut next = SHARED;
        let mut shared = HashMap::new();
        for region in several {
            shared.insert(region, next);
            next = next.saturating_add(sizes[&region]);
        }
        ReplaySpace { shared }
    }

    /// Of one window.
    #[must_use]
    pub fn layout(&self, places: &[NamedPages]) -> WindowLayout {
        let mut layout = WindowLayout::default();
        for place in places {
            let first = u64::from(place.first.0);
            let page = private_page(place.process, place.page);
            let to = match self.shared.get(&place.region) {
                Some(begin) => begin.saturating_add(first),
                None => page,
            };
            if to != page {
                layout.moved.push((page, place.pages, to));
            }
            layout.known.push((to, place.pages, place.region, first));
        }
        layout.moved.sort_unstable();
        layout.known.sort_unstable();
        layout
    }
}

impl WindowLayout {
    /// Whether addresses of a process stay what they are.
    #[must_use]
    pub fn is_plain(&self, process: ProcessIx) -> bool {
        process.0 == 0 && self.moved.is_empty()
    }

    /// Where an access of a process goes.
    #[must_use]
    pub fn replay_address(&self, process: ProcessIx, address: u64) -> u64 {
        let page = private_page(process, address / PAGE_SIZE);
        let behind = self.moved.partition_point(|(first, ..)| *first <= page);
        let found = behind.checked_sub(1).map(|at| self.moved[at]);
        let page = match found {
            Some((first, pages, to)) if page - first < pages => to.saturating_add(page - first),
            _ => page,
        };
        page.wrapping_mul(PAGE_SIZE) | (address % PAGE_SIZE)
    }

    /// What is mapped where in the one space: page, pages, region, its first page there.
    pub fn places(&self) -> impl Iterator<Item = (u64, u64, RegionIx, u64)> + '_ {
        self.known.iter().copied()
    }

    /// What a page of the one space is: its region, and its number there.
    #[must_use]
    pub fn region_of_page(&self, page: u64) -> Option<(RegionIx, u64)> {
        let behind = self.known.partition_point(|(first, ..)| *first <= page);
        let (first, pages, region, number) = self.known[behind.checked_sub(1)?];
        (page - first < pages).then(|| (region, number.saturating_add(page - first)))
    }
}
