//! The caches of one level: which lines each holds, and which it evicts.
//!
//! All caches of a level lie in one array, set after set. An entry is a line's number and three
//! flags in 32 bits, so that a set of eight ways is half a line of the host. With LRU the order
//! within a set is the order of use, the latest first: there is nothing else to keep.
use super::simulated_machine::{CacheLevelParameters, ReplacementPolicy};
use hither_table::{equal_of_eight, prefetch, ZeroedMapping};

/// Its holder may write without a request: there is no copy outside this cache and those below it.
pub const WRITABLE: u32 = 1;
/// It differs from the copy in the next level or memory.
pub const DIRTY: u32 = 2;
/// Prefetched and not used yet.
pub const PREFETCHED: u32 = 4;
/// All flags.
pub const FLAGS: u32 = 7;
const FLAG_BITS: u32 = 3;
/// Entries in a line of this computer's caches.
const HOST_LINE: usize = 16;
/// Line numbers are below this.
pub const LINE_LIMIT: u32 = 1 << (32 - FLAG_BITS);

/// An entry: a line with its flags.
pub fn tag_entry(line: u32, flags: u32) -> u32 {
    (line << FLAG_BITS) | flags
}

/// The line of an entry.
pub fn line_of(entry: u32) -> u32 {
    entry >> FLAG_BITS
}

pub struct TagArray {
    /// 0 where nothing is: no line has the number 0.
    entries: ZeroedMapping<u32>,
    /// Tree pseudo-LRU only: a set's bits, 1 where the right half was used less lately. Node 1 is
    /// the root, node n has the children 2n and 2n + 1. Bit 0 says that no way is free, and from bit [`LATEST`] on is the way
    /// that was used last.
    trees: Vec<u64>,
    /// By way: what a use changes in the tree of its set.
    uses: Vec<TreeUpdate>,
    ways: usize,
    sets: FastRemainder,
}

/// Of a set without a free way.
const FULL: u64 = 1;
/// Where in a tree the way is that was used last: behind the nodes of at most 32 ways.
const LATEST: u32 = u32::BITS;

/// The bits of a tree that are cleared, and those that are set then.
#[derive(Clone, Copy)]
struct TreeUpdate {
    clear: u64,
    set: u64,
}

impl TreeUpdate {
    /// What a use of a way does: all bits on the way to its leaf point to its other side.
    fn of_way(way: usize, ways: usize) -> TreeUpdate {
        let leaves = ways.next_power_of_two();
        let mut update = TreeUpdate {
            clear: u64::MAX << LATEST,
            set: (way as u64) << LATEST,
        };
        let mut node = leaves + way;
        while node > 1 {
            let was_left = node & 1 == 0;
            node /= 2;
            update.clear |= 1 << node;
            update.set |= u64::from(was_left) << node;
        }
        update
    }
}

impl TagArray {
    /// Empty caches of a level. Sets and ways are above 0, and at most 32 ways with pseudo-LRU.
    pub fn new(level: &CacheLevelParameters, line: u32) -> Self {
        let sets = level.sets(line);
        let all = sets as usize * level.caches as usize;
        let ways = level.ways as usize;
        // With one way there is no order.
        let has_trees = level.replacement == ReplacementPolicy::PseudoLru && ways > 1;
        TagArray {
            entries: ZeroedMapping::new(all * ways, true),
            trees: vec![0; if has_trees { all } else { 0 }],
            uses: (0..if has_trees { ways } else { 0 })
                .map(|way| TreeUpdate::of_way(way, ways))
                .collect(),
            ways,
            sets: FastRemainder::new(sets),
        }
    }

    /// Where the line is that was used last of a set, if the set still has it.
    #[inline]
    fn latest(&self, set: usize) -> usize {
        let first = set * self.ways;
        match self.trees.get(set) {
            Some(tree) => first + (tree >> LATEST) as usize,
            None => first,
        }
    }

    /// The set of a line in a cache, one of those of all caches of the level.
    #[inline]
    pub fn set_of(&self, cache: usize, line: u32) -> usize {
        cache * self.sets.by as usize + self.sets.remainder(line)
    }

    /// The place of a line in its set, a position for [`TagArray::flags`] and its like.
    #[inline]
    pub fn find_way(&self, set: usize, line: u32) -> Option<usize> {
        let key = tag_entry(line, 0);
        let mut at = set * self.ways;
        let (eights, rest) = self.entries[at..at + self.ways].as_chunks::<8>();
        for eight in eights {
            let same = equal_of_eight(eight, key, FLAGS);
            if same != 0 {
                return Some(at + same.trailing_zeros() as usize);
            }
            at += 8;
        }
        Some(at + rest.iter().position(|e| e & !FLAGS == key)?)
    }

    /// Prefetches both ends of a set into the host's caches.
    #[inline]
    pub fn prefetch_set(&self, set: usize) {
        let first = set * self.ways;
        prefetch(&self.entries, first);
        if self.ways > HOST_LINE {
            prefetch(&self.entries, first + self.ways - 1);
        }
        prefetch(&self.trees, set);
    }

    /// Whether a line is the latest used of a set.
    #[inline]
    pub fn is_mru(&self, set: usize, line: u32) -> bool {
        line_of(self.entries[self.latest(set)]) == line
    }

    /// The line that goes next from a set in order, 0 if none.
    #[inline]
    pub fn lru_victim(&self, set: usize) -> u32 {
        if self.trees.is_empty() {
            line_of(self.entries[(set + 1) * self.ways - 1])
        } else {
            0
        }
    }

    /// Whether a line is the latest used of a set, so that another use changes no order, and the rest
    /// as in [`TagArray::plain_hit`].
    #[inline]
    pub fn is_plain_mru_hit(&mut self, set: usize, line: u32, write: bool) -> bool {
        self.plain_hit(self.latest(set), line, write)
    }

    /// Whether an entry, the latest used of its set, is a line that was used before and that is
    /// writable if it is written: then a hit changes nothing but that a write makes it dirty.
    #[inline]
    pub fn plain_hit(&mut self, at: usize, line: u32, write: bool) -> bool {
        let first = &mut self.entries[at];
        let need = u32::from(write) * WRITABLE;
        // Neither the line's bits nor AHEAD may differ, nor may a flag that is needed be missing.
        let wrong = (*first ^ tag_entry(line, need)) & (!FLAGS | PREFETCHED | need);
        if wrong == 0 {
            *first |= u32::from(write) * DIRTY;
            return true;
        }
        false
    }

    pub fn flags(&self, at: usize) -> u32 {
        self.entries[at] & FLAGS
    }

    pub fn set_flags(&mut self, at: usize, flags: u32) {
        self.entries[at] |= flags;
    }

    pub fn clear_flags(&mut self, at: usize, flags: u32) {
        self.entries[at] &= !flags;
    }

    /// Notes a use; the line's new place.
    #[inline]
    pub fn touch_way(&mut self, set: usize, at: usize) -> usize {
        let first = set * self.ways;
        if !self.trees.is_empty() {
            self.plru_touch(set, at - first);
            return at;
        }
        self.move_to_front(first, at)
    }

    #[inline]
    fn move_to_front(&mut self, first: usize, at: usize) -> usize {
        let moved = self.entries[at];
        self.entries.copy_within(first..at, first + 1);
        self.entries[first] = moved;
        first
    }

    /// Inserts an entry as the latest used. Returns the evicted one, 0 if none.
    #[inline]
    pub fn insert(&mut self, set: usize, entry: u32) -> u32 {
        let first = set * self.ways;
        if self.trees.is_empty() {
            return match self.ways {
                4 => self.push_front::<4>(first, entry),
                8 => self.push_front::<8>(first, entry),
                16 => self.push_front::<16>(first, entry),
                24 => self.push_front::<24>(first, entry),
                ways => {
                    let set = &mut self.entries[first..first + ways];
                    set.rotate_right(1);
                    std::mem::replace(&mut set[0], entry)
                }
            };
        }
        let way = match self.free_way(set) {
            Some(way) => way,
            None => self.plru_victim(set),
        };
        self.plru_touch(set, way);
        std::mem::replace(&mut self.entries[first + way], entry)
    }

    /// Tree pseudo-LRU: the first way of a set with nothing in it.
    #[inline]
    fn free_way(&mut self, set: usize) -> Option<usize> {
        if self.trees[set] & FULL != 0 {
            return None;
        }
        // No line has the number 0.
        let found = self.find_way(set, 0);
        if found.is_none() {
            self.trees[set] |= FULL;
        }
        Some(found? - set * self.ways)
    }

    /// Puts an entry first in a set in order; the last.
    #[inline]
    fn push_front<const WAYS: usize>(&mut self, first: usize, entry: u32) -> u32 {
        let Some(ways) = self.entries[first..].first_chunk_mut::<WAYS>() else {
            return 0;
        };
        let before = *ways;
        ways[1..].copy_from_slice(&before[..WAYS - 1]);
        ways[0] = entry;
        before[WAYS - 1]
    }

    /// Takes an entry out.
    pub fn remove(&mut self, set: usize, at: usize) -> u32 {
        let out = self.entries[at];
        if self.trees.is_empty() {
            let last = (set + 1) * self.ways - 1;
            self.entries.copy_within(at + 1..=last, at);
            self.entries[last] = 0;
        } else {
            self.entries[at] = 0;
            self.trees[set] &= !FULL;
        }
        out
    }

    /// Tree pseudo-LRU: the way that the bits lead to.
    fn plru_victim(&self, set: usize) -> usize {
        let bits = self.trees[set];
        let leaves = self.ways.next_power_of_two();
        let (mut node, mut first, mut width) = (1, 0, leaves);
        while width > 1 {
            width /= 2;
            let right = (bits >> node) & 1 == 1 && first + width < self.ways;
            node = 2 * node + usize::from(right);
            first += usize::from(right) * width;
        }
        first
    }

    /// Tree pseudo-LRU: notes a use.
    #[inline]
    fn plru_touch(&mut self, set: usize, way: usize) {
        let (tree, update) = (&mut self.trees[set], self.uses[way]);
        *tree = (*tree & !update.clear) | update.set;
    }

    /// Number of caches, for tests.
    #[cfg(test)]
    pub fn number(&self) -> usize {
        self.entries.len() / self.ways / self.sets.by as usize
    }

    /// What a cache holds, for tests.
    #[cfg(test)]
    pub fn entries(&self, cache: usize) -> impl Iterator<Item = u32> + '_ {
        let length = self.sets.by as usize * self.ways;
        let all = &self.entries[cache * length..(cache + 1) * length];
        all.iter().copied().filter(|&e| e != 0)
    }
}

/// Division's remainder by a number that stays, without a division: Lemire, Kaser, Kurz, "Faster
/// remainder by direct computation" (2019).
struct FastRemainder {
    by: u32,
    /// 2^64 / by, rounded up; 0 for 2^64.
    magic: u64,
}

impl FastRemainder {
    fn new(by: u32) -> Self {
        let magic = (u64::MAX / u64::from(by)).wrapping_add(1);
        FastRemainder { by, magic }
    }

    #[inline]
    fn remainder(&self, n: u32) -> usize {
        let fraction = self.magic.wrapping_mul(u64::from(n));
        ((u128::from(fraction) * u128::from(self.by)) >> 64) as usize
    }
}
