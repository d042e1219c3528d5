//! kMAF's affinity table (Diener et al., PACT 2014, section 3.2 and 3.3): for each page how
//! often each node accessed it, and for each of its four sub-blocks which threads did last.
//!
//! ```text
//!  page -> | NUMA vector: a counter per node | 1 KiB: MRU LRU | MRU LRU | MRU LRU | MRU LRU |
//! ```
//! The kernel finds an entry by physical address >> 12 (eq. 5), so that its table grows with
//! the memory of the machine. Here a page is identified by its object and number, which is the
//! same for all threads that share it, too, and the table is of fixed size: where two pages fall on one
//! element the later overwrites the earlier, as in SPCD's (III.B.1).
use hither_profile::{Nanos, NodeIx};

use super::sharing_matrix::SharingMatrix;
use super::DetectorFootprint;
use super::{
    age_ms, element, forget_objects, marks, milliseconds, AccessObservation, FaultAccess,
    MemoryObject, ObjectPage, SharerId, SharingDetector, PAGE, SHARERS, SUB_BLOCK, TABLE_ENTRIES,
};

const SUB_BLOCKS: usize = (PAGE / SUB_BLOCK) as usize;
const NOBODY: u16 = 0;
/// After this time a thread that was not seen again does not count as a sharer any more
/// (SPCD III.C.2). It is longer than SPCD's, for at a small budget a page is taken every few
/// seconds only.
const WINDOW: Nanos = 30_000_000_000;
/// Faults on pages that a thread touched first, from which on it is known whether it uses
/// what it touches first, and after which those before count for less.
const KNOWN: u32 = 8;
const MANY: u32 = 1024;

/// A thread that accessed a sub-block.
#[derive(Clone, Copy, Debug, Default)]
struct Sharer {
    /// Counted from 1.
    who: u16,
    /// It was the first to touch the page, and was not seen to use it since.
    first_touch: bool,
    /// Millisecond of its last access.
    at: u32,
}

/// Faults on the pages that a thread touched first, and how many of them are its own.
#[derive(Clone, Copy, Debug, Default)]
struct FirstTouches {
    faults: u32,
    own: u32,
}

impl FirstTouches {
    /// It sets up data for others: less than half of what it touches first is for itself.
    fn are_for_others(self) -> bool {
        self.faults >= KNOWN && 2 * self.own < self.faults
    }

    fn count(&mut self, own: bool) {
        self.faults += 1;
        self.own += u32::from(own);
        if self.faults >= MANY {
            (self.faults, self.own) = (self.faults / 2, self.own / 2);
        }
    }
}

/// Of a sub-block, most recently used first.
type MruSharers = [Sharer; SHARERS];

/// The table. What was never used of it is all zeros and takes no memory.
#[derive(Debug)]
pub struct AffinityTable {
    nodes: usize,
    /// Objects, counted from 1; 0 where an element is free.
    objects: Vec<u32>,
    numbers: Vec<u64>,
    /// A NUMA vector for each element.
    counters: Vec<u16>,
    blocks: Vec<[MruSharers; SUB_BLOCKS]>,
    /// Who touched a page first, counted from 1.
    first: Vec<u16>,
    /// By thread, counted from 1.
    touches: Vec<FirstTouches>,
    /// Elements that are in use.
    used: Vec<u32>,
    /// Most that were at a time.
    most: usize,
}

impl AffinityTable {
    /// For a machine of this many nodes.
    #[must_use]
    pub fn new(nodes: usize) -> AffinityTable {
        AffinityTable::with_entries(nodes, TABLE_ENTRIES)
    }

    /// With room for this many pages.
    #[must_use]
    pub fn with_entries(nodes: usize, elements: usize) -> AffinityTable {
        let (nodes, elements) = (nodes.max(1), elements.max(1));
        AffinityTable {
            nodes,
            objects: vec![0; elements],
            numbers: vec![0; elements],
            counters: vec![0; elements * nodes],
            blocks: vec![[MruSharers::default(); SUB_BLOCKS]; elements],
            first: vec![NOBODY; elements],
            touches: Vec::new(),
            used: Vec::new(),
            most: 0,
        }
    }

    /// Accesses to a page by node, as far as ageing left them; `None` for a page that was
    /// not accessed.
    #[cfg(test)]
    pub fn numa_vector(&self, page: ObjectPage) -> Option<&[u16]> {
        let at = self.find(page)? * self.nodes;
        self.counters.get(at..at + self.nodes)
    }

    fn place(&self, page: ObjectPage) -> usize {
        element(page.object, page.number, self.objects.len())
    }

    fn is_at(&self, page: ObjectPage, at: usize) -> bool {
        (self.objects[at], self.numbers[at]) == (page.object.0.wrapping_add(1), page.number)
    }

    fn find(&self, page: ObjectPage) -> Option<usize> {
        let at = self.place(page);
        self.is_at(page, at).then_some(at)
    }

    /// Whether the entry is new, and which it is.
    fn entry(&mut self, page: ObjectPage) -> (bool, usize) {
        let at = self.place(page);
        if self.is_at(page, at) {
            return (false, at);
        }
        if self.objects[at] == 0 {
            self.used.push(at as u32);
            self.most = self.most.max(self.used.len());
        }
        self.objects[at] = page.object.0.wrapping_add(1);
        self.numbers[at] = page.number;
        self.vector(at).fill(0);
        self.blocks[at] = [MruSharers::default(); SUB_BLOCKS];
        (true, at)
    }

    /// Learns from each fault whether who touched the page first uses it.
    fn count_first_touch(&mut self, new: bool, entry: usize, thread: SharerId) {
        let who = thread.0 + 1;
        if new {
            self.first[entry] = who;
            return;
        }
        let first = usize::from(self.first[entry]);
        if first >= self.touches.len() {
            self.touches.resize(first + 1, FirstTouches::default());
        }
        self.touches[first].count(first == usize::from(who));
    }

    /// Whether it is known to use what it accessed. One thread often fills memory for all:
    /// that is not sharing, while threads that fill their own memory show with it what is theirs.
    fn counts(&self, sharer: &Sharer) -> bool {
        let touches = self.touches.get(usize::from(sharer.who));
        let for_others = touches.is_some_and(|touches| touches.are_for_others());
        sharer.who != NOBODY && !(sharer.first_touch && for_others)
    }

    /// How many are known to use a page.
    fn users(&self, entry: usize) -> usize {
        let mut users = [NOBODY; SHARERS * SUB_BLOCKS];
        let mut count = 0;
        for sharer in self.blocks[entry].iter().flatten() {
            if self.counts(sharer) && !users[..count].contains(&sharer.who) {
                users[count] = sharer.who;
                count += 1;
            }
        }
        count
    }

    fn vector(&mut self, entry: usize) -> &mut [u16] {
        &mut self.counters[entry * self.nodes..(entry + 1) * self.nodes]
    }
}

impl SharingDetector for AffinityTable {
    fn access(&mut self, access: &FaultAccess, matrix: &mut SharingMatrix) -> AccessObservation {
        let (new, entry) = self.entry(access.page);
        self.count_first_touch(new, entry, access.thread);
        let me = Sharer {
            who: access.thread.0 + 1,
            first_touch: new,
            at: milliseconds(access.at),
        };
        let block = (u64::from(access.offset) / SUB_BLOCK) as usize % SUB_BLOCKS;
        let other = hand_over(&mut self.blocks[entry][block], me);
        if let Some(other) = other.filter(|other| self.counts(other)) {
            matrix.share(access.thread, SharerId(other.who - 1));
        }
        let users = self.users(entry);
        let vector = self.vector(entry);
        if let Some(&full) = vector.get(access.node.at()) {
            if full == u16::MAX {
                halve(vector);
            }
            vector[access.node.at()] += 1;
        }
        AccessObservation {
            known: !new,
            users,
            belongs: belongs(vector),
        }
    }

    fn is_used_by_others(&self, page: ObjectPage, who: SharerId) -> bool {
        self.find(page).is_some_and(|at| {
            let mut sharers = self.blocks[at].iter().flatten();
            sharers.any(|sharer| self.counts(sharer) && sharer.who != who.0 + 1)
        })
    }

    fn page_migrated(&mut self, page: ObjectPage) {
        if let Some(entry) = self.find(page) {
            halve(self.vector(entry));
        }
    }

    fn forget_members(&mut self, gone: &[SharerId]) {
        let marks = marks(gone);
        let is_gone = |who: u16| who != NOBODY && marks.get(usize::from(who - 1)) == Some(&true);
        for member in gone {
            if let Some(touches) = self.touches.get_mut(member.at() + 1) {
                *touches = FirstTouches::default();
            }
        }
        for &at in &self.used {
            if is_gone(self.first[at as usize]) {
                self.first[at as usize] = NOBODY;
            }
            for sharers in &mut self.blocks[at as usize] {
                if is_gone(sharers[1].who) {
                    sharers[1] = Sharer::default();
                }
                if is_gone(sharers[0].who) {
                    *sharers = [sharers[1], Sharer::default()];
                }
            }
        }
    }

    fn forget_objects(&mut self, gone: &[MemoryObject]) {
        forget_objects(&mut self.objects, &mut self.used, gone);
    }

    fn footprint(&self) -> DetectorFootprint {
        DetectorFootprint::of_affinity_table(self.most, self.nodes)
    }
}

/// A thread accesses a sub-block and is the most recent one now; if another was that, it
/// moves back. The two share, each time that one of them comes (3.2), until the one that
/// moved back was not seen for a window of time: else a page that one thread filled and
/// another one uses would count as shared for ever. Returns that one.
fn hand_over(sharers: &mut MruSharers, me: Sharer) -> Option<Sharer> {
    if sharers[0].who != me.who {
        sharers[1] = sharers[0];
    }
    sharers[0] = me;
    if u64::from(age_ms(sharers[1].at, me.at)) > WINDOW / 1_000_000 {
        sharers[1] = Sharer::default();
    }
    (sharers[1].who != NOBODY).then_some(sharers[1])
}

/// Equation 6: a page belongs on the node with the most accesses if these are more than
/// twice those of the second node and one more.
fn belongs(vector: &[u16]) -> Option<NodeIx> {
    let (mut most, mut first, mut second) = (0, 0, 0);
    for (node, &accesses) in (0..).zip(vector) {
        if accesses > first {
            (most, second, first) = (node, first, accesses);
        } else {
            second = second.max(accesses);
        }
    }
    (u32::from(first) > 2 * u32::from(second) + 1).then_some(NodeIx(most))
}

fn halve(vector: &mut [u16]) {
    vector.iter_mut().for_each(|n| *n /= 2);
}
