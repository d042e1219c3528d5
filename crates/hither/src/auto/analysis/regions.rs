//! SPCD's table of regions (Diener, Cruz, Navaux, IPDPS 2013, section III): a hash table of
//! fixed size from regions of memory to the threads that accessed them, and when. An access
//! within the time window of another thread's to the same region is communication of the two
//! (III.C.2). Where two regions fall on one element, the later overwrites the earlier.
use hither_profile::Nanos;

use super::matrix::SharingMatrix;
use super::Storage;
use super::{
    element, forget_objects, marks, Access, Detector, Member, Object, Page, Seen, ELEMENTS, PAGE,
};

/// Threads that an element remembers; the one that accessed longest ago makes room.
pub const SHARERS: usize = 8;
const NOBODY: u64 = 0;
/// Milliseconds by which a record may come after later ones.
const LATE: u32 = 10_000;
/// Bytes of an element: object, region, threads and times.
const ENTRY: usize = 4 + 8 + 8 * SHARERS;

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

/// Threads, counted from 1, each with the millisecond of its last access in the lower half.
type Sharers = [u64; SHARERS];

fn who(sharer: u64) -> Option<Member> {
    Some(Member((sharer >> 32).checked_sub(1)? as u16))
}

/// Milliseconds since its last access; what comes a little out of order is of now.
fn since(sharer: u64, now: u32) -> u32 {
    match now.wrapping_sub(sharer as u32) {
        before if before > u32::MAX - LATE => 0,
        since => since,
    }
}

/// The table. What was never used of it is all zeros and takes no memory.
#[derive(Debug)]
pub struct RegionTable {
    settings: Settings,
    /// Objects, counted from 1; 0 where an element is free.
    objects: Vec<u32>,
    regions: Vec<u64>,
    sharers: Vec<Sharers>,
    /// Elements that are in use.
    used: Vec<u32>,
    /// Most that were at a time.
    most: usize,
}

impl RegionTable {
    #[must_use]
    pub fn new(settings: Settings) -> RegionTable {
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

    fn is_at(&self, object: Object, region: u64, at: usize) -> bool {
        (self.objects[at], self.regions[at]) == (object.0.wrapping_add(1), region)
    }

    fn find(&self, object: Object, region: u64) -> Option<usize> {
        let at = element(object, region, self.objects.len());
        self.is_at(object, region, at).then_some(at)
    }

    /// Whether the element of the region was its own already, and which it is.
    fn entry(&mut self, object: Object, region: u64) -> (bool, usize) {
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

impl Detector for RegionTable {
    fn access(&mut self, access: &Access, matrix: &mut SharingMatrix) -> Seen {
        let byte = access.page.number * PAGE + u64::from(access.offset);
        let region = byte / self.settings.granularity.max(1);
        let (known, at) = self.entry(access.page.object, region);
        let sharers = &mut self.sharers[at];
        // After 49 days it begins anew, as what it is compared with does.
        let now = (access.at / 1_000_000) as u32;
        let window = self.settings.window / 1_000_000;
        let mut mixed = false;
        for &sharer in sharers.iter() {
            let Some(other) = who(sharer).filter(|other| *other != access.who) else {
                continue;
            };
            mixed = true;
            if u64::from(since(sharer, now)) <= window {
                matrix.share(access.who, other);
            }
        }
        remember(sharers, access.who, now);
        Seen {
            known,
            mixed,
            belongs: None,
        }
    }

    fn is_of_others(&self, page: Page, me: Member) -> bool {
        let region = page.number * PAGE / self.settings.granularity.max(1);
        self.find(page.object, region).is_some_and(|at| {
            let mut sharers = self.sharers[at].iter().copied().filter_map(who);
            sharers.any(|other| other != me)
        })
    }

    /// SPCD places threads only.
    fn migrated(&mut self, _page: Page) {}

    /// Accesses have their own times here.
    fn window(&mut self) {}

    fn forget_members(&mut self, gone: &[Member]) {
        let marks = marks(gone);
        let is_gone = |who: Member| marks.get(who.at()) == Some(&true);
        for &at in &self.used {
            for sharer in &mut self.sharers[at as usize] {
                if who(*sharer).is_some_and(is_gone) {
                    *sharer = NOBODY;
                }
            }
        }
    }

    fn forget_objects(&mut self, gone: &[Object]) {
        forget_objects(&mut self.objects, &mut self.used, gone);
    }

    fn storage(&self) -> Storage {
        Storage {
            entries: self.most,
            entry_bytes: ENTRY,
            table_bytes: self.objects.len() * ENTRY,
        }
    }
}

/// In its own place, else in one that is free, else in that of who came longest ago.
fn remember(sharers: &mut Sharers, me: Member, now: u32) {
    let known = sharers.iter().position(|&s| who(s) == Some(me));
    let place = known.unwrap_or_else(|| {
        let free = sharers.iter().position(|&s| s == NOBODY);
        let oldest = || (0..SHARERS).max_by_key(|&i| since(sharers[i], now));
        free.or_else(oldest).unwrap_or(0)
    });
    sharers[place] = (u64::from(me.0) + 1) << 32 | u64::from(now);
}
