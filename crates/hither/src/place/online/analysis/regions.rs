//! SPCD's table of regions (Diener, Cruz, Navaux, IPDPS 2013, section III): a hash table of
//! fixed size from regions of memory to the threads that accessed them, and when. An access
//! within the time window of another thread's to the same region is communication of the two
//! (III.C.2). Where two regions fall on one element, the later overwrites the earlier.
use hither_profile::Nanos;

use super::matrix::SharingMatrix;
use super::storage::Storage;
use super::{Access, Detector, Member, Object, Page, Seen, PAGE};

/// Elements of the table (III.B.1): 1 GB of address space in regions of 4 KiB.
pub const ELEMENTS: usize = 256_000;
/// Threads that an element remembers; the one that accessed longest ago makes room.
pub const SHARERS: usize = 8;
const NOBODY: u16 = u16::MAX;
/// As the hash function of Linux: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x61C8_8646_80B5_83EB;

/// How regions are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub elements: usize,
    /// Bytes of a region; independent of the page size (III.C.1).
    pub granularity: u64,
    /// Two accesses that are further apart are no communication.
    pub window: Nanos,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            elements: ELEMENTS,
            granularity: PAGE,
            window: 1_000_000_000,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Sharer {
    who: u16,
    /// Milliseconds.
    at: u32,
}

#[derive(Clone, Copy, Debug)]
struct Element {
    object: u32,
    region: u64,
    sharers: [Sharer; SHARERS],
}

const EMPTY: Element = Element {
    object: u32::MAX,
    region: 0,
    sharers: [Sharer { who: NOBODY, at: 0 }; SHARERS],
};

/// The table.
#[derive(Debug)]
pub struct RegionTable {
    settings: Settings,
    elements: Vec<Element>,
    used: usize,
}

impl RegionTable {
    #[must_use]
    pub fn new(settings: Settings) -> RegionTable {
        RegionTable {
            settings,
            elements: vec![EMPTY; settings.elements.max(1)],
            used: 0,
        }
    }

    /// The element of a region.
    fn place(&self, object: u32, region: u64) -> usize {
        let key = (region ^ u64::from(object).rotate_right(20)).wrapping_mul(GOLDEN);
        ((u128::from(key) * self.elements.len() as u128) >> 64) as usize
    }
}

impl Detector for RegionTable {
    fn access(&mut self, access: &Access, matrix: &mut SharingMatrix) -> Seen {
        let byte = access.page.number * PAGE + u64::from(access.offset);
        let (object, region) = (
            access.page.object.0,
            byte / self.settings.granularity.max(1),
        );
        let place = self.place(object, region);
        let element = &mut self.elements[place];
        let known = (element.object, element.region) == (object, region);
        if !known {
            self.used += usize::from(element.object == EMPTY.object);
            *element = Element {
                object,
                region,
                ..EMPTY
            };
        }
        let now = u32::try_from(access.at / 1_000_000).unwrap_or(u32::MAX);
        let window = self.settings.window / 1_000_000;
        for sharer in element.sharers.iter().filter(|s| s.who != NOBODY) {
            if sharer.who != access.who.0 && u64::from(now.saturating_sub(sharer.at)) <= window {
                matrix.share(access.who, Member(sharer.who));
            }
        }
        remember(&mut element.sharers, access.who, now);
        Seen {
            known,
            belongs: None,
        }
    }

    /// SPCD places threads only.
    fn migrated(&mut self, _page: Page) {}

    fn forget_members(&mut self, gone: &[Member]) {
        for sharer in self.elements.iter_mut().flat_map(|e| &mut e.sharers) {
            if gone.contains(&Member(sharer.who)) {
                sharer.who = NOBODY;
            }
        }
    }

    fn forget_objects(&mut self, gone: &[Object]) {
        for element in &mut self.elements {
            if gone.contains(&Object(element.object)) {
                *element = EMPTY;
                self.used -= 1;
            }
        }
    }

    fn storage(&self) -> Storage {
        Storage {
            entries: self.used,
            entry_bytes: size_of::<Element>(),
            table_bytes: self.elements.len() * size_of::<Element>(),
        }
    }
}

fn remember(sharers: &mut [Sharer; SHARERS], who: Member, at: u32) {
    let known = sharers.iter().position(|s| s.who == who.0);
    let place = known.unwrap_or_else(|| {
        let oldest = (0..SHARERS).min_by_key(|&i| (sharers[i].who != NOBODY, sharers[i].at));
        oldest.unwrap_or(0)
    });
    sharers[place] = Sharer { who: who.0, at };
}
