//! SPCD's table of regions (Diener, Cruz, Navaux, IPDPS 2013, section III): a hash table of
//! fixed size from regions of memory to the threads that accessed them, and when. An access
//! within the time window of another thread's to the same region is communication of the two
//! (III.C.2). Where two regions fall on one element, the later overwrites the earlier.
use hither_profile::Nanos;

use super::matrix::SharingMatrix;
use super::storage::Storage;
use super::{element, Access, Detector, Member, Object, Page, Seen, ELEMENTS, PAGE};

/// Threads that an element remembers; the one that accessed longest ago makes room.
pub const SHARERS: usize = 8;
const NOBODY: u64 = 0;
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

fn when(sharer: u64) -> u32 {
    sharer as u32
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
        let now = u32::try_from(access.at / 1_000_000).unwrap_or(u32::MAX);
        let window = self.settings.window / 1_000_000;
        let mut mixed = false;
        for &sharer in sharers.iter() {
            let Some(other) = who(sharer).filter(|other| *other != access.who) else {
                continue;
            };
            mixed = true;
            if u64::from(now.saturating_sub(when(sharer))) <= window {
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
        for &at in &self.used {
            for sharer in &mut self.sharers[at as usize] {
                if who(*sharer).is_some_and(|who| gone.contains(&who)) {
                    *sharer = NOBODY;
                }
            }
        }
    }

    fn forget_objects(&mut self, gone: &[Object]) {
        let objects = &mut self.objects;
        self.used.retain(|&at| {
            let object = &mut objects[at as usize];
            let is_gone = gone.contains(&Object(*object - 1));
            if is_gone {
                *object = 0;
            }
            !is_gone
        });
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
fn remember(sharers: &mut Sharers, me: Member, at: u32) {
    let known = sharers.iter().position(|&s| who(s) == Some(me));
    let place = known.unwrap_or_else(|| {
        let oldest = (0..SHARERS).min_by_key(|&i| (sharers[i] != NOBODY, when(sharers[i])));
        oldest.unwrap_or(0)
    });
    sharers[place] = (u64::from(me.0) + 1) << 32 | u64::from(at);
}
