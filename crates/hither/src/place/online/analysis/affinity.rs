//! kMAF's affinity table (Diener et al., PACT 2014, section 3.2 and 3.3): for each page how
//! often each node accessed it, and for each of its four sub-blocks which threads did last.
//!
//! ```text
//!  page -> | NUMA vector: a counter per node | 1 KiB: MRU LRU | MRU LRU | MRU LRU | MRU LRU |
//! ```
//! The kernel finds an entry by physical address >> 12 (eq. 5); here a page is known by its
//! object and number, which is the same for all who share it too.
use std::collections::HashMap;

use hither_profile::NodeIx;

use super::matrix::SharingMatrix;
use super::storage::Storage;
use super::{Access, Detector, Member, Object, Page, Seen, PAGE};

/// Bytes of a sub-block.
pub const SUB_BLOCK: u64 = 1024;
/// Threads that are kept of each sub-block: the most recent one and the one before.
pub const SHARERS: usize = 2;
const SUB_BLOCKS: usize = (PAGE / SUB_BLOCK) as usize;
const NOBODY: u16 = u16::MAX;

/// Of a sub-block: most recently used first.
type Sharers = [u16; SHARERS];

/// The table.
#[derive(Debug)]
pub struct AffinityTable {
    nodes: usize,
    index: HashMap<Page, u32>,
    /// A NUMA vector for each entry.
    counters: Vec<u16>,
    blocks: Vec<[Sharers; SUB_BLOCKS]>,
}

impl AffinityTable {
    /// For a machine of so many nodes.
    #[must_use]
    pub fn new(nodes: usize) -> AffinityTable {
        AffinityTable {
            nodes: nodes.max(1),
            index: HashMap::new(),
            counters: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Accesses to a page by node, as far as ageing left them; `None` of a page that nobody
    /// accessed.
    #[cfg(test)]
    pub fn numa_vector(&self, page: Page) -> Option<&[u16]> {
        let at = *self.index.get(&page)? as usize * self.nodes;
        self.counters.get(at..at + self.nodes)
    }

    /// Whether the entry is new, and which it is.
    fn entry(&mut self, page: Page) -> (bool, usize) {
        let next = self.blocks.len();
        let at = self.index.entry(page);
        let at = *at.or_insert(u32::try_from(next).unwrap_or(u32::MAX)) as usize;
        if at == next {
            self.counters.resize((next + 1) * self.nodes, 0);
            self.blocks.push([[NOBODY; SHARERS]; SUB_BLOCKS]);
        }
        (at == next, at)
    }

    fn vector(&mut self, entry: usize) -> &mut [u16] {
        &mut self.counters[entry * self.nodes..(entry + 1) * self.nodes]
    }
}

impl Detector for AffinityTable {
    fn access(&mut self, access: &Access, matrix: &mut SharingMatrix) -> Seen {
        let (new, entry) = self.entry(access.page);
        let block = (u64::from(access.offset) / SUB_BLOCK) as usize % SUB_BLOCKS;
        hand_over(&mut self.blocks[entry][block], access.who, matrix);
        let vector = self.vector(entry);
        if let Some(&full) = vector.get(access.node.at()) {
            if full == u16::MAX {
                halve(vector);
            }
            vector[access.node.at()] += 1;
        }
        Seen {
            known: !new,
            belongs: belongs(vector),
        }
    }

    fn migrated(&mut self, page: Page) {
        if let Some(&entry) = self.index.get(&page) {
            halve(self.vector(entry as usize));
        }
    }

    fn forget_members(&mut self, gone: &[Member]) {
        let is_gone = |who: u16| gone.contains(&Member(who));
        for sharers in self.blocks.iter_mut().flatten() {
            if is_gone(sharers[1]) {
                sharers[1] = NOBODY;
            }
            if is_gone(sharers[0]) {
                *sharers = [sharers[1], NOBODY];
            }
        }
    }

    fn forget_objects(&mut self, gone: &[Object]) {
        let mut kept = AffinityTable::new(self.nodes);
        let stays = self.index.iter().filter(|(p, _)| !gone.contains(&p.object));
        let mut stays: Vec<(Page, usize)> = stays.map(|(&p, &e)| (p, e as usize)).collect();
        stays.sort_unstable_by_key(|&(_, entry)| entry);
        for (page, old) in stays {
            let (_, new) = kept.entry(page);
            kept.blocks[new] = self.blocks[old];
            kept.vector(new).copy_from_slice(self.vector(old));
        }
        *self = kept;
    }

    fn storage(&self) -> Storage {
        Storage::of_affinity_table(self.blocks.len(), self.nodes)
    }
}

/// A thread accesses a sub-block. If another was there last, they share: the newcomer is the
/// most recent one now and the other moves back. Who was there last already shares nothing
/// new by coming again: else a page that one thread filled and another one uses would count
/// as shared for ever.
fn hand_over(sharers: &mut Sharers, who: Member, matrix: &mut SharingMatrix) {
    if sharers[0] == who.0 {
        return;
    }
    *sharers = [who.0, sharers[0]];
    if sharers[1] != NOBODY {
        matrix.share(who, Member(sharers[1]));
    }
}

/// Equation 6: a page belongs on the node with the most accesses if these are more than
/// twice those of the second node and one more.
fn belongs(vector: &[u16]) -> Option<NodeIx> {
    let most = (0..vector.len()).max_by_key(|&n| (vector[n], std::cmp::Reverse(n)))?;
    let others = (0..vector.len()).filter(|&n| n != most);
    let second = others.map(|n| vector[n]).max().unwrap_or(0);
    let clear = u32::from(vector[most]) > 2 * u32::from(second) + 1;
    clear.then(|| NodeIx(u32::try_from(most).unwrap_or(u32::MAX)))
}

fn halve(vector: &mut [u16]) {
    vector.iter_mut().for_each(|n| *n /= 2);
}
