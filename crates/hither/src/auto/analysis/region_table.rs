//! SPCD's table of regions (Diener, Cruz, Navaux, IPDPS 2013, section III): a hash table of
//! fixed size from regions of memory to the threads that accessed them, and when. An access
//! within the time window of another thread's to the same region is communication of the two
//! (III.C.2). Where two regions fall on one element, the later overwrites the earlier.
use hither_profile::{Nanos, PAGE_SIZE};

use super::sharing_matrix::SharingMatrix;
use super::DetectorFootprint;
use super::{
    age_ms, element, marks, milliseconds, AccessObservation, FaultAccess, MemoryObject, ObjectPage,
    SharerId, SharingDetector, TABLE_ENTRIES,
};

/// Threads that an element remembers; the one that accessed longest ago makes room.
pub const SHARERS: usize = 8;
const NOBODY: u64 = 0;
/// Bytes of an element: object, region, threads and times.
const ENTRY: usize = 4 + 8 + 8 * SHARERS;

/// Size of a region and of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionTableConfig {
    pub elements: usize,
    /// Bytes of a region; independent of the page size (III.C.1).
    pub granularity: u64,
    /// Two accesses that are further apart are no communication.
    pub window: Nanos,
}

impl Default for RegionTableConfig {
    fn default() -> RegionTableConfig {
        RegionTableConfig {
            elements: TABLE_ENTRIES,
            granularity: PAGE_SIZE,
            window: 1_000_000_000,
        }
    }
}

/// Threads, counted from 1, each with the millisecond of its last access in the lower half.
type TimestampedSharers = [u64; SHARERS];

fn thread_of(sharer: u64) -> Option<SharerId> {
    Some(SharerId((sharer >> 32).checked_sub(1)? as u16))
}

/// The table. What was never used of it is all zeros and takes no memory.
#[derive(Debug)]
pub struct RegionTable {
    settings: RegionTableConfig,
    /// Objects, counted from 1; 0 where an element is free.
    objects: Vec<u32>,
    regions: Vec<u64>,
    sharers: Vec<TimestampedSharers>,
    /// Elements that are in use.
    used: Vec<u32>,
    /// Most that were at a time.
    most: usize,
}

impl RegionTable {
    #[must_use]
    pub fn new(settings: RegionTableConfig) -> RegionTable {
        let elements = settings.elements.max(1);
        RegionTable {
            settings,
            objects: vec![0; elements],
            regions: vec![0; elements],
            sharers: vec![[NOBODY; SHARERS]; elements],
            used: Vec::new(),
            most: 0,
        }
    }

    fn is_at(&self, object: MemoryObject, region: u64, at: usize) -> bool {
        (self.objects[at], self.regions[at]) == (object.0.wrapping_add(1), region)
    }

    fn find_entry(&self, object: MemoryObject, region: u64) -> Option<usize> {
        let at = element(object, region, self.objects.len());
        self.is_at(object, region, at).then_some(at)
    }

    /// Whether the element of the region was its own already, and which it is.
    fn claim_entry(&mut self, object: MemoryObject, region: u64) -> (bool, usize) {
        let at = element(object, region, self.objects.len());
        let known = self.is_at(object, region, at);
        if !known {
            if self.objects[at] == 0 {
                self.used.push(at as u32);
                self.most = self.most.max(self.used.len());
            }
            (self.objects[at], self.regions[at]) = (object.0.wrapping_add(1), region);
            self.sharers[at] = [NOBODY; SHARERS];
        }
        (known, at)
    }
}

impl SharingDetector for RegionTable {
    fn access(&mut self, access: &FaultAccess, matrix: &mut SharingMatrix) -> AccessObservation {
        let byte = access.page.number * PAGE_SIZE + u64::from(access.offset);
        let region = byte / self.settings.granularity.max(1);
        let (known, at) = self.claim_entry(access.page.object, region);
        let sharers = &mut self.sharers[at];
        let now = milliseconds(access.at);
        let window = self.settings.window / 1_000_000;
        let mut users = 1;
        for &sharer in sharers.iter() {
            let Some(other) = thread_of(sharer).filter(|other| *other != access.thread) else {
                continue;
            };
            users += 1;
            if u64::from(age_ms(sharer as u32, now)) <= window {
                matrix.share(access.thread, other);
            }
        }
        insert_sharer(sharers, access.thread, now);
        AccessObservation {
            known,
            is_new_memory: false,
            users,
            belongs: None,
        }
    }

    fn is_used_by_others(&self, page: ObjectPage, me: SharerId) -> bool {
        let region = page.number * PAGE_SIZE / self.settings.granularity.max(1);
        self.find_entry(page.object, region).is_some_and(|at| {
            let mut sharers = self.sharers[at].iter().copied().filter_map(thread_of);
            sharers.any(|other| other != me)
        })
    }

    /// SPCD places threads only.
    fn page_migrated(&mut self, _page: ObjectPage) {}

    fn forget_sharers(&mut self, gone: &[SharerId]) {
        let marks = marks(gone);
        let is_gone = |who: SharerId| marks.get(who.at()) == Some(&true);
        for &at in &self.used {
            for sharer in &mut self.sharers[at as usize] {
                if thread_of(*sharer).is_some_and(is_gone) {
                    *sharer = NOBODY;
                }
            }
        }
    }

    fn forget_objects(&mut self, gone: &[MemoryObject]) {
        let gone = super::object_numbers(gone);
        let objects = &mut self.objects;
        self.used.retain(|&at| {
            let object = &mut objects[at as usize];
            let is_gone = gone.contains(object);
            if is_gone {
                *object = 0;
            }
            !is_gone
        });
    }

    fn footprint(&self) -> DetectorFootprint {
        DetectorFootprint {
            entries: self.most,
            entry_bytes: ENTRY,
            table_bytes: self.objects.len() * ENTRY,
        }
    }
}

/// In its own place, else in a free one, else in that of the least recent sharer.
fn insert_sharer(sharers: &mut TimestampedSharers, me: SharerId, now: u32) {
    let known = sharers.iter().position(|&s| thread_of(s) == Some(me));
    let place = known.unwrap_or_else(|| {
        let free = sharers.iter().position(|&s| s == NOBODY);
        let oldest = || (0..SHARERS).max_by_key(|&i| age_ms(sharers[i] as u32, now));
        free.or_else(oldest).unwrap_or(0)
    });
    sharers[place] = (u64::from(me.0) + 1) << 32 | u64::from(now);
}
