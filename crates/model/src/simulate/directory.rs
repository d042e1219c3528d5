//! The directory: which caches have a line, or had it.
//!
//! A *private hierarchy* is a first-level cache (L1), whose number it has, with all caches above it that no other L1
//! shares: what one core has for itself. The caches that private hierarchies share follow, up to the last
//! level, whose caches divide the machine into *domains*.
//!
//! For each line the directory keeps which private hierarchies fetched it since the last write by another,
//! which lost it to that or an earlier write, which caches of each level hold it read-only, and the
//! owner: the private hierarchy that last had exclusive access. All writable and dirty copies lie in the
//! owner's private hierarchy or in the shared caches above it; so a cache that is neither on the owner's path
//! nor among those that hold it read-only does not have it. Caches evict clean lines silently, so
//! an owner may turn out not to hold the line.
use super::cache_tree::CacheTree;
use super::sharer_sets::{room_for, PackedSharerSets, INITIAL_LINES};
use super::simulated_machine::SimulatedMachine;
use hither_table::{prefetch, ZeroedMapping};

/// Private hierarchies and levels at most of machines whose lines need no more than [`DirectoryEntry`].
const MAX_ENTRY_BITS: usize = u32::BITS as usize;
const MAX_ENTRY_LEVELS: usize = 4;

/// The state of a line, which fits in one cache line of the host: the private hierarchies that fetched it
/// since it was last written by another; those that lost it to such a write; the owner, which is 0
/// or L1 + 1 and, in the lowest bit, whether it may hold the line writable or dirty below the
/// last level; by level, the caches that hold it without [`super::tag_array::WRITABLE`].
type DirectoryEntry = [u32; 8];
const HELD: usize = 0;
const INVALIDATED: usize = 1;
const OWNER: usize = 2;
const SHARERS: usize = 4;

/// The state of all lines, by number.
pub struct Directory {
    few: ZeroedMapping<DirectoryEntry>,
    /// In its place on larger machines.
    many: Option<Box<PackedSharerSets>>,
}

impl Directory {
    /// For a checked machine.
    pub fn new(machine: &SimulatedMachine) -> Self {
        let caches: Vec<usize> = machine.levels.iter().map(|l| l.caches as usize).collect();
        let few = caches.len() <= MAX_ENTRY_LEVELS && caches.iter().all(|&n| n <= MAX_ENTRY_BITS);
        let mut lines = Directory {
            few: ZeroedMapping::new(0, false),
            many: (!few).then(|| Box::new(PackedSharerSets::new(&caches, caches[0]))),
        };
        lines.reserve(0);
        lines
    }

    /// Makes room for a line. Has to be called before any other method is given that line.
    #[inline]
    pub fn reserve(&mut self, line: u32) {
        if let Some(many) = &mut self.many {
            many.reserve(line);
        } else if line as usize >= self.few.len() {
            self.few = self.few.grown(room_for(line), true);
        }
    }

    /// Whether there are so many lines that an entry is probably not in the host's caches.
    #[inline]
    pub fn exceeds_host_cache(&self) -> bool {
        match &self.many {
            Some(many) => many.lines() > INITIAL_LINES,
            None => self.few.len() > INITIAL_LINES,
        }
    }

    /// Prefetches the state of a line into the host's caches.
    #[inline]
    pub fn prefetch_entry(&self, line: u32) {
        match &self.many {
            Some(many) => many.prefetch_entry(line),
            None => prefetch(&self.few, line as usize),
        }
    }

    /// The owner of a line, for which there may be no room yet.
    #[inline]
    pub fn owner_if_any(&self, line: u32) -> Option<usize> {
        if let Some(many) = &self.many {
            let there = (line as usize) < many.lines();
            return there.then(|| many.owner(line)).flatten();
        }
        let known = self.few.get(line as usize)?;
        (known[OWNER] as usize >> 1).checked_sub(1)
    }

    #[inline]
    fn at(&self, line: u32) -> &DirectoryEntry {
        &self.few[line as usize]
    }

    #[inline]
    fn at_mut(&mut self, line: u32) -> &mut DirectoryEntry {
        &mut self.few[line as usize]
    }

    /// The private hierarchy whose path has all writable and dirty copies.
    #[inline]
    pub fn owner(&self, line: u32) -> Option<usize> {
        if let Some(many) = &self.many {
            return many.owner(line);
        }
        (self.at(line)[OWNER] as usize >> 1).checked_sub(1)
    }

    /// The owner, where it may have the line writable or dirty below the last level, or in a last
    /// level of its own.
    #[inline]
    pub fn private_owner(&self, line: u32) -> Option<usize> {
        if let Some(many) = &self.many {
            return many.private_owner(line);
        }
        let owner = self.at(line)[OWNER] as usize;
        (owner & 1 == 1).then(|| (owner >> 1) - 1)
    }

    /// Makes a private hierarchy the owner, writable within the private hierarchy.
    #[inline]
    pub fn own_writable(&mut self, line: u32, l1: usize) {
        if let Some(many) = &mut self.many {
            return many.own_writable(line, l1);
        }
        self.at_mut(line)[OWNER] = ((l1 as u32 + 1) << 1) | 1;
    }

    /// The owner keeps no writable or dirty copy below the last level.
    #[inline]
    pub fn downgrade_owner(&mut self, line: u32) {
        if let Some(many) = &mut self.many {
            return many.downgrade_owner(line);
        }
        self.at_mut(line)[OWNER] &= !1;
    }

    /// There is no owner any more.
    #[inline]
    pub fn clear_owner(&mut self, line: u32) {
        if let Some(many) = &mut self.many {
            return many.clear_owner(line);
        }
        self.at_mut(line)[OWNER] = 0;
    }

    /// Whether a cache holds a line read-only.
    #[inline]
    pub fn is_sharer(&self, line: u32, level: usize, cache: usize) -> bool {
        if let Some(many) = &self.many {
            return many.is_sharer(line, level, cache);
        }
        self.at(line)[SHARERS + level % MAX_ENTRY_LEVELS] >> cache & 1 != 0
    }

    /// It does.
    #[inline]
    pub fn add_sharer(&mut self, line: u32, level: usize, cache: usize) {
        if let Some(many) = &mut self.many {
            return many.add_sharer(line, level, cache);
        }
        self.at_mut(line)[SHARERS + level % MAX_ENTRY_LEVELS] |= 1 << cache;
    }

    /// It does not.
    #[inline]
    pub fn remove_sharer(&mut self, line: u32, level: usize, cache: usize) {
        if let Some(many) = &mut self.many {
            return many.remove_sharer(line, level, cache);
        }
        self.at_mut(line)[SHARERS + level % MAX_ENTRY_LEVELS] &= !(1 << cache);
    }

    /// Words of [`Directory::sharer_bits`] at a level.
    #[inline]
    pub fn sharer_words(&self, level: usize) -> usize {
        if let Some(many) = &self.many {
            return many.sharer_words(level);
        }
        1
    }

    /// Caches 64 n and following of a level that hold a line read-only, as bits.
    #[inline]
    pub fn sharer_bits(&self, line: u32, level: usize, n: usize) -> u64 {
        if let Some(many) = &self.many {
            return many.sharer_bits(line, level, n);
        }
        u64::from(self.at(line)[SHARERS + level % MAX_ENTRY_LEVELS])
    }

    /// Whether a cache of a level holds a line read-only.
    #[inline]
    pub fn has_sharers_at(&self, line: u32, level: usize) -> bool {
        if let Some(many) = &self.many {
            return many.has_sharers_at(line, level);
        }
        self.at(line)[SHARERS + level % MAX_ENTRY_LEVELS] != 0
    }

    /// Whether one of the first `levels` levels has a read-only copy.
    #[inline]
    pub fn has_sharers_below(&self, line: u32, levels: usize) -> bool {
        if let Some(many) = &self.many {
            return many.has_sharers_below(line, levels);
        }
        let copies = &self.at(line)[SHARERS..];
        copies.iter().take(levels).any(|&copies| copies != 0)
    }

    /// A private hierarchy has a line now.
    #[inline]
    pub fn add_holder(&mut self, line: u32, l1: usize) {
        if let Some(many) = &mut self.many {
            return many.add_holder(line, l1);
        }
        self.at_mut(line)[HELD] |= 1 << l1;
    }

    /// All lost it to a write.
    #[inline]
    pub fn invalidate_holders(&mut self, line: u32) {
        if let Some(many) = &mut self.many {
            return many.invalidate_holders(line);
        }
        let known = self.at_mut(line);
        known[INVALIDATED] |= known[HELD];
        known[HELD] = 0;
    }

    /// Whether one of the private hierarchies below a cache fetched a line since it was last written by
    /// another.
    #[inline]
    pub fn was_held(&self, tree: &CacheTree, line: u32, level: usize, cache: usize) -> bool {
        if let Some(many) = &self.many {
            return many.was_held(tree, line, level, cache);
        }
        u64::from(self.at(line)[HELD]) & tree.l1_mask_below(level, cache) != 0
    }

    /// Whether one lost it.
    #[inline]
    pub fn was_invalidated(&self, tree: &CacheTree, line: u32, level: usize, cache: usize) -> bool {
        if let Some(many) = &self.many {
            return many.was_invalidated(tree, line, level, cache);
        }
        u64::from(self.at(line)[INVALIDATED]) & tree.l1_mask_below(level, cache) != 0
    }
}
