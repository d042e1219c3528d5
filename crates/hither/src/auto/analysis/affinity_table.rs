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
//!
//! By hither's own rules a page is not divided: the same eight words hold the last eight threads that
//! used it. Of programs that nobody here wrote this shows more of who shares (docs/auto.md).
use std::ops::Range;

use hither_profile::{NodeIx, PAGE_SIZE};

use super::affinity_settings::{AffinityRules, AffinityTableConfig, MOST_SHARERS};
use super::sharing_matrix::SharingMatrix;
use super::DetectorFootprint;
use super::{
    age_ms, element, milliseconds, AccessObservation, FaultAccess, MemoryObject, ObjectPage,
    SharerId, SharingDetector,
};

const NOBODY: u16 = 0;
/// Faults on pages that a thread touched first, from which on it is known whether it uses
/// what it touches first, and after which those before count for less.
const KNOWN: u32 = 8;
const MANY: u32 = 1024;
/// Counters of the paper's table 2 have a byte; these hold what a page is used by
/// now: four faults from another node in a row, and it belongs there.
const FEW: u16 = 2;

/// Nor does one after so many turns of others on the page: of threads that take turns on it each comes again
/// before, and after a change of phase the former ones are soon forgotten.
///
/// Faults in a row of one thread are one turn. A fault shows who comes first after the page was taken, so a thread
/// is seen as often as the time is long in which it is the next to come. One that always comes right after
/// another, as at the ends of a pipeline, is seldom seen, though it shares as much: that nobody but the other is seen
/// does not tell that it is gone.
const MAX_TURNS_BETWEEN: u8 = 6;
/// Milliseconds in which threads may fault on a page that was taken before it is there again.
const TOGETHER_MS: u32 = 10;

/// A thread that accessed a sub-block. In the table, from the lowest bit: `who` 16,
/// `is_unused_touch` 8, `turn` 8, `at` 32.
#[derive(Clone, Copy, Debug, Default)]
struct Sharer {
    /// Counted from 1.
    who: u16,
    /// It was the first to touch the page, and was not seen to use it since.
    is_unused_touch: bool,
    /// Number of its last turn among those of the page, modulo 256.
    turn: u8,
    /// Millisecond of its last access.
    at: u32,
}

impl Sharer {
    fn packed(self) -> u64 {
        let touch = u64::from(self.is_unused_touch) << 16 | u64::from(self.turn) << 24;
        u64::from(self.at) << 32 | touch | u64::from(self.who)
    }

    fn unpacked(word: u64) -> Sharer {
        Sharer {
            who: word as u16,
            is_unused_touch: word & 1 << 16 != 0,
            turn: (word >> 24) as u8,
            at: (word >> 32) as u32,
        }
    }
}

/// Faults on the pages that a thread touched first, and how many of them are its own.
#[derive(Clone, Copy, Debug, Default)]
struct TouchedPageFaults {
    faults: u32,
    own: u32,
}

impl TouchedPageFaults {
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

/// Words of an entry: its object (counted from 1, 0 where it is free) with who touched the
/// page first (counted from 1) above it; its number; the sharers of each sub-block, or of the page, most
/// recently used first; then the NUMA vector, four counters to a word.
const OWNER: usize = 0;
const NUMBER: usize = 1;
const SHARER: usize = 2;
const COUNTERS: usize = 4;

/// The table. What was never used of it is all zeros and takes no memory; what is known of a
/// page lies side by side, so that a fault costs few misses.
#[derive(Debug)]
pub struct AffinityTable {
    settings: AffinityTableConfig,
    nodes: usize,
    elements: usize,
    /// Where the NUMA vector of an entry begins, and words of an entry.
    vector: usize,
    stride: usize,
    words: Vec<u64>,
    /// By thread, counted from 1.
    touches: Vec<TouchedPageFaults>,
    /// Elements that are in use.
    used: Vec<u32>,
    /// Most that were at a time.
    most: usize,
}

impl AffinityTable {
    /// For a machine of this many nodes.
    #[must_use]
    pub fn new(nodes: usize, settings: AffinityTableConfig) -> AffinityTable {
        let (nodes, elements) = (nodes.max(1), settings.elements.max(1));
        let vector = SHARER + settings.blocks() * settings.sharers_of_block();
        let stride = vector + nodes.div_ceil(COUNTERS);
        AffinityTable {
            settings,
            nodes,
            elements,
            vector,
            stride,
            words: vec![0; elements * stride],
            touches: Vec::new(),
            used: Vec::new(),
            most: 0,
        }
    }

    /// Accesses to a page by node, as far as ageing left them; `None` for a page that was
    /// not accessed.
    #[cfg(test)]
    pub fn numa_vector(&self, page: ObjectPage) -> Option<Vec<u16>> {
        let entry = self.find(page)?;
        Some(
            (0..self.nodes)
                .map(|node| self.counter(entry, node))
                .collect(),
        )
    }

    /// The first word of the entry of a page, be it its own or another's.
    fn place(&self, page: ObjectPage) -> usize {
        element(page.object, page.number, self.elements) * self.stride
    }

    fn is_at(&self, page: ObjectPage, entry: usize) -> bool {
        let object = self.words[entry + OWNER] as u32;
        (object, self.words[entry + NUMBER]) == (page.object.0.wrapping_add(1), page.number)
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
        if self.words[at + OWNER] as u32 == 0 {
            self.used.push((at / self.stride) as u32);
            self.most = self.most.max(self.used.len());
        }
        self.words[at..at + self.stride].fill(0);
        self.words[at + OWNER] = page.object.0.wrapping_add(1).into();
        self.words[at + NUMBER] = page.number;
        (true, at)
    }

    /// Who touched a page first, counted from 1.
    fn first(&self, entry: usize) -> u16 {
        (self.words[entry + OWNER] >> 32) as u16
    }

    fn set_first(&mut self, entry: usize, who: u16) {
        let word = &mut self.words[entry + OWNER];
        *word = *word & 0xffff_ffff | u64::from(who) << 32;
    }

    fn sharers(&self, entry: usize) -> impl Iterator<Item = Sharer> + '_ {
        let words = &self.words[entry + SHARER..entry + self.vector];
        words.iter().map(|&word| Sharer::unpacked(word))
    }

    /// Learns from each fault whether who touched the page first uses it.
    fn count_first_touch(&mut self, new: bool, entry: usize, thread: SharerId) {
        let who = thread.0 + 1;
        if new {
            self.set_first(entry, who);
            return;
        }
        let first = self.first(entry);
        let at = usize::from(first);
        if at >= self.touches.len() {
            self.touches.resize(at + 1, TouchedPageFaults::default());
        }
        self.touches[at].count(first == who);
    }

    /// Whether it is known to use what it accessed. One thread often fills memory for all:
    /// that is not sharing, while threads that fill their own memory show with it what is theirs.
    fn counts(&self, sharer: Sharer) -> bool {
        let touches = self.touches.get(usize::from(sharer.who));
        let for_others = touches.is_some_and(|touches| touches.are_for_others());
        let is_filler =
            sharer.is_unused_touch && for_others && self.settings.rules == AffinityRules::Adaptive;
        sharer.who != NOBODY && !is_filler
    }

    /// How many are known to use a page.
    fn users(&self, entry: usize) -> usize {
        let is_new = |(at, sharer): &(usize, Sharer)| {
            let mut before = self.sharers(entry).take(*at);
            self.counts(*sharer) && !before.any(|other| other.who == sharer.who)
        };
        self.sharers(entry).enumerate().filter(is_new).count()
    }

    /// The words of those whom an access at this byte of the page may share with: by kMAF those of its
    /// sub-block, else of the page. A fault shows only the first access after the page was taken, so
    /// that sub-blocks miss threads that meet elsewhere in it.
    fn sharers_at(&self, entry: usize, offset: u16) -> Range<usize> {
        let (blocks, sharers) = (self.settings.blocks(), self.settings.sharers_of_block());
        let block = usize::from(offset) * blocks / PAGE_SIZE as usize;
        let first = entry + SHARER + block * sharers;
        first..first + sharers
    }

    /// Puts a thread before the other sharers of these words, of which the least recent one makes room.
    /// Returns the others, with each of whom it shares each time that it comes (3.2).
    ///
    /// By kMAF for ever; else until one was not seen for a window of time or for some faults, for a page
    /// that one thread filled and another one uses would count as shared for ever.
    fn record_sharer(&mut self, sharers: Range<usize>, mut me: Sharer) -> [Sharer; MOST_SHARERS] {
        let window = self.settings.window / 1_000_000;
        let words = &mut self.words[sharers];
        let last = Sharer::unpacked(words[0]);
        me.turn = last.turn.wrapping_add(u8::from(last.who != me.who));
        let position_of = |who| words.iter().position(|&word| word as u16 == who);
        let own = position_of(me.who).or_else(|| position_of(NOBODY));
        let last = own.unwrap_or(words.len() - 1);
        words[..=last].rotate_right(1);
        words[0] = me.packed();
        let mut others = [Sharer::default(); MOST_SHARERS];
        for (other, word) in others.iter_mut().zip(&mut words[1..]) {
            let sharer = Sharer::unpacked(*word);
            let is_old = u64::from(age_ms(sharer.at, me.at)) > window;
            let is_passed = me.turn.wrapping_sub(sharer.turn) > MAX_TURNS_BETWEEN;
            match self.settings.rules {
                AffinityRules::Adaptive if is_old => *word = 0,
                AffinityRules::Adaptive if is_passed => {}
                _ => *other = sharer,
            }
        }
        others
    }

    /// Nobody had taken the page, and it is not that several threads waited for it when it was.
    fn is_new_memory(&self, entry: usize, access: &FaultAccess) -> bool {
        let last = Sharer::unpacked(self.words[entry + SHARER]);
        let age = age_ms(last.at, milliseconds(access.at));
        let waited = !last.is_unused_touch && age < TOGETHER_MS;
        self.settings.rules == AffinityRules::Adaptive && !access.was_taken && !waited
    }

    fn counter(&self, entry: usize, node: usize) -> u16 {
        let word = self.words[entry + self.vector + node / COUNTERS];
        (word >> (16 * (node % COUNTERS))) as u16
    }

    fn set_counter(&mut self, entry: usize, node: usize, value: u16) {
        let word = &mut self.words[entry + self.vector + node / COUNTERS];
        let shift = 16 * (node % COUNTERS);
        *word = *word & !(0xffff << shift) | u64::from(value) << shift;
    }

    fn halve(&mut self, entry: usize) {
        for word in &mut self.words[entry + self.vector..entry + self.stride] {
            *word = *word >> 1 & 0x7fff_7fff_7fff_7fff;
        }
    }

    /// Counts an access from a node; of a counter that is full all are halved first.
    fn count_node(&mut self, entry: usize, node: usize) {
        if node >= self.nodes {
            return;
        }
        let most = match self.settings.rules {
            AffinityRules::Paper => ((1u32 << self.settings.counter_bits) - 1) as u16,
            AffinityRules::Adaptive => FEW,
        };
        if self.counter(entry, node) >= most {
            self.halve(entry);
        }
        self.set_counter(entry, node, self.counter(entry, node) + 1);
    }

    /// Equation 6: a page belongs on the node with the most accesses if these are more than
    /// twice those of the second node and one more.
    fn belongs(&self, entry: usize) -> Option<NodeIx> {
        let (mut most, mut first, mut second) = (0, 0, 0);
        for (node, at) in (0..).zip(0..self.nodes) {
            let accesses = self.counter(entry, at);
            if accesses > first {
                (most, second, first) = (node, first, accesses);
            } else {
                second = second.max(accesses);
            }
        }
        (u32::from(first) > 2 * u32::from(second) + 1).then_some(NodeIx(most))
    }
}

impl SharingDetector for AffinityTable {
    fn access(&mut self, access: &FaultAccess, matrix: &mut SharingMatrix) -> AccessObservation {
        let (new, entry) = self.entry(access.page);
        let is_new_memory = !new && self.is_new_memory(entry, access);
        if is_new_memory {
            self.words[entry + SHARER..entry + self.stride].fill(0);
        }
        let new = new || is_new_memory;
        self.count_first_touch(new, entry, access.thread);
        let me = Sharer {
            who: access.thread.0 + 1,
            is_unused_touch: new,
            turn: 0,
            at: milliseconds(access.at),
        };
        let sharers = self.sharers_at(entry, access.offset);
        for other in self.record_sharer(sharers, me) {
            if self.counts(other) {
                matrix.share(access.thread, SharerId(other.who - 1));
            }
        }
        // The kernel put the page on the node of its first touch.
        if !new || self.settings.rules == AffinityRules::Paper {
            self.count_node(entry, access.node.at());
        }
        AccessObservation {
            known: !new,
            is_new_memory,
            users: self.users(entry),
            belongs: self.belongs(entry),
        }
    }

    fn is_used_by_others(&self, page: ObjectPage, who: SharerId) -> bool {
        self.find(page).is_some_and(|entry| {
            let mut sharers = self.sharers(entry);
            sharers.any(|sharer| self.counts(sharer) && sharer.who != who.0 + 1)
        })
    }

    fn page_migrated(&mut self, page: ObjectPage) {
        if let Some(entry) = self.find(page) {
            self.halve(entry);
        }
    }

    fn forget_sharers(&mut self, gone: &[SharerId]) {
        let marks = super::marks(gone);
        let is_gone = |who: u16| who != NOBODY && marks.get(usize::from(who - 1)) == Some(&true);
        for sharer in gone {
            if let Some(touches) = self.touches.get_mut(sharer.at() + 1) {
                *touches = TouchedPageFaults::default();
            }
        }
        for entry in self.used.iter().map(|&at| at as usize * self.stride) {
            let owner = &mut self.words[entry + OWNER];
            if is_gone((*owner >> 32) as u16) {
                *owner &= 0xffff_ffff;
            }
            for sharers in self.words[entry + SHARER..entry + self.vector]
                .chunks_exact_mut(self.settings.sharers_of_block())
            {
                let mut kept = 0;
                for at in 0..sharers.len() {
                    if !is_gone(sharers[at] as u16) {
                        sharers[kept] = sharers[at];
                        kept += 1;
                    }
                }
                sharers[kept..].fill(0);
            }
        }
    }

    fn forget_objects(&mut self, gone: &[MemoryObject]) {
        let gone = super::object_numbers(gone);
        let (words, stride) = (&mut self.words, self.stride);
        self.used.retain(|&at| {
            let owner = &mut words[at as usize * stride + OWNER];
            let is_gone = gone.contains(&(*owner as u32));
            if is_gone {
                *owner = 0;
            }
            !is_gone
        });
    }

    fn footprint(&self) -> DetectorFootprint {
        let sharers = self.settings.blocks() * self.settings.sharers_of_block();
        DetectorFootprint::of_affinity_table(self.most, self.nodes, sharers)
    }
}
