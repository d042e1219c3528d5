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
use hither_profile::NodeIx;

use super::sharing_matrix::SharingMatrix;
use super::DetectorFootprint;
use super::{
    element, forget_objects, marks, AccessObservation, FaultAccess, MemoryObject, ObjectPage,
    SharerId, SharingDetector, PAGE, SHARERS, SUB_BLOCK, TABLE_ENTRIES,
};

const SUB_BLOCKS: usize = (PAGE / SUB_BLOCK) as usize;
const NOBODY: u16 = 0;

/// Of a sub-block, most recently used first: members, counted from 1.
type MruSharers = [u16; SHARERS];

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
            blocks: vec![[[NOBODY; SHARERS]; SUB_BLOCKS]; elements],
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
        self.blocks[at] = [[NOBODY; SHARERS]; SUB_BLOCKS];
        (true, at)
    }

    fn vector(&mut self, entry: usize) -> &mut [u16] {
        &mut self.counters[entry * self.nodes..(entry + 1) * self.nodes]
    }
}

impl SharingDetector for AffinityTable {
    fn access(&mut self, access: &FaultAccess, matrix: &mut SharingMatrix) -> AccessObservation {
        let (new, entry) = self.entry(access.page);
        let block = (u64::from(access.offset) / SUB_BLOCK) as usize % SUB_BLOCKS;
        hand_over(&mut self.blocks[entry][block], access.thread, matrix);
        let mixed = is_of_others(&self.blocks[entry], access.thread);
        let vector = self.vector(entry);
        if let Some(&full) = vector.get(access.node.at()) {
            if full == u16::MAX {
                halve(vector);
            }
            vector[access.node.at()] += 1;
        }
        AccessObservation {
            known: !new,
            mixed,
            belongs: belongs(vector),
        }
    }

    fn is_used_by_others(&self, page: ObjectPage, who: SharerId) -> bool {
        let entry = self.find(page);
        entry.is_some_and(|at| is_of_others(&self.blocks[at], who))
    }

    fn page_migrated(&mut self, page: ObjectPage) {
        if let Some(entry) = self.find(page) {
            halve(self.vector(entry));
        }
    }

    fn end_window(&mut self) {
        for &at in &self.used {
            for sharers in &mut self.blocks[at as usize] {
                sharers[1] = NOBODY;
            }
        }
    }

    fn forget_members(&mut self, gone: &[SharerId]) {
        let marks = marks(gone);
        let is_gone = |who: u16| who != NOBODY && marks.get(usize::from(who - 1)) == Some(&true);
        for &at in &self.used {
            for sharers in &mut self.blocks[at as usize] {
                if is_gone(sharers[1]) {
                    sharers[1] = NOBODY;
                }
                if is_gone(sharers[0]) {
                    *sharers = [sharers[1], NOBODY];
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

/// Whether others than this one are known to use some of it.
fn is_of_others(blocks: &[MruSharers], who: SharerId) -> bool {
    let mut sharers = blocks.iter().flatten();
    sharers.any(|sharer| ![NOBODY, who.0 + 1].contains(sharer))
}

/// A thread accesses a sub-block and is the most recent one now; if another was that, it
/// moves back. The two share, each time that one of them comes (3.2), until the one that
/// moved back was not seen for a window of time: else a page that one thread filled and
/// another one uses would count as shared for ever.
fn hand_over(sharers: &mut MruSharers, who: SharerId, matrix: &mut SharingMatrix) {
    let me = who.0 + 1;
    if sharers[0] != me {
        *sharers = [me, sharers[0]];
    }
    if sharers[1] != NOBODY {
        matrix.share(who, SharerId(sharers[1] - 1));
    }
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
