//! Fills, and the evictions that they cause.
use super::hierarchy::CacheHierarchy;
use super::line_request::{LineRequest, RequestOutcome};
use super::tag_array::{line_of, tag_entry, DIRTY, PREFETCHED, WRITABLE};
use crate::locality::is_remote;
use hither_profile::NodeIx;

impl CacheHierarchy {
    /// Puts the line of a served request into the levels below `missed`, the farthest first.
    pub(super) fn fill(&mut self, r: &LineRequest, missed: usize, served: &RequestOutcome) {
        for level in (r.first..missed).rev() {
            let mut flags = if level + 1 == self.tree.depth {
                served.last
            } else {
                served.below
            };
            if level == r.first {
                flags |= (u32::from(r.write) * DIRTY) | (u32::from(r.ahead) * PREFETCHED);
            }
            self.insert_entry(r.l1, level, r.sets[level], tag_entry(r.line, flags));
        }
    }

    /// Puts an entry into its set of the private hierarchy's cache of a level.
    #[inline]
    pub(super) fn insert_entry(&mut self, l1: usize, level: usize, set: usize, new: u32) {
        if new & WRITABLE == 0 {
            let cache = self.tree.cache(l1, level);
            self.lines.add_sharer(line_of(new), level, cache);
        }
        self.counts.levels[level].touches += 1;
        let out = self.caches[level].insert(set, new);
        if out != 0 {
            self.handle_eviction(l1, level, out);
        }
    }

    /// An entry was evicted from the private hierarchy's cache of a level.
    fn handle_eviction(&mut self, l1: usize, level: usize, out: u32) {
        let line = line_of(out);
        if out & WRITABLE == 0 {
            let cache = self.tree.cache(l1, level);
            self.lines.remove_sharer(line, level, cache);
        }
        let mut dirty = out & DIRTY != 0;
        if level > 0 && self.inclusive[level] {
            dirty |= self.back_invalidate(l1, level, line);
        }
        if dirty {
            self.write_back(l1, level + 1, line, out & WRITABLE);
        }
    }

    /// Dirty data leave a private hierarchy's path for a level, or for memory behind the last.
    pub(super) fn write_back(&mut self, l1: usize, level: usize, line: u32, writable: u32) {
        if level == self.tree.depth {
            self.write_to_memory(l1, line, self.now);
            return;
        }
        match self.find_likely(l1, level, line) {
            Some((_, at)) => {
                self.caches[level].set_flags(at, DIRTY);
                self.counts.levels[level].touches += 1;
            }
            None => {
                let set = self.set_of(l1, level, line);
                self.insert_entry(l1, level, set, tag_entry(line, writable | DIRTY));
            }
        }
    }

    /// Writes a line to its home's memory, from a private hierarchy's domain.
    pub(super) fn write_to_memory(&mut self, l1: usize, line: u32, at: f64) {
        let from = self.tree.at[l1];
        let (home, number) = self.pages.home_of_line(line);
        let data = self.interconnect.data;
        let bytes = &mut self.counts.link_bytes;
        let there = self.interconnect.send(from, home as u32, data, at, bytes);
        let counts = &mut self.counts.nodes[home];
        if is_remote(NodeIx(self.tree.node[l1]), NodeIx(home as u32)) {
            counts.remote_writes += 1;
        } else {
            counts.local_writes += 1;
        }
        self.memory.access_line(home, number, there, counts);
    }

    /// Takes a line out of all caches below the private hierarchy's cache of a level; whether one was dirty.
    fn back_invalidate(&mut self, l1: usize, level: usize, line: u32) -> bool {
        let cache = self.tree.cache(l1, level);
        let owner = self.lines.private_owner(line);
        let mut dirty = false;
        if let Some(o) = owner.filter(|&o| self.tree.cache(o, level) == cache) {
            for below in 0..level {
                if let Some((set, at)) = self.find(o, below, line) {
                    dirty |=
                        self.remove_entry(below, self.tree.cache(o, below), set, at) & DIRTY != 0;
                }
            }
        }
        for below in 0..level {
            for n in 0..self.lines.sharer_words(below) {
                let mut copies = self.lines.sharer_bits(line, below, n);
                while copies != 0 {
                    let other = n * 64 + copies.trailing_zeros() as usize;
                    copies &= copies - 1;
                    if self.tree.cache(self.tree.l1_below(below, other), level) == cache {
                        dirty |= self.remove_copy(below, other, line) & DIRTY != 0;
                    }
                }
            }
        }
        dirty
    }

    /// Takes a line out of a cache that holds it read-only; its entry.
    pub(super) fn remove_copy(&mut self, level: usize, cache: usize, line: u32) -> u32 {
        let set = self.caches[level].set_of(cache, line);
        match self.caches[level].find_way(set, line) {
            Some(at) => self.remove_entry(level, cache, set, at),
            None => 0,
        }
    }

    /// Takes an entry out of a cache.
    pub(super) fn remove_entry(
        &mut self,
        level: usize,
        cache: usize,
        set: usize,
        at: usize,
    ) -> u32 {
        let out = self.caches[level].remove(set, at);
        self.counts.levels[level].touches += 1;
        if out & WRITABLE == 0 {
            self.lines.remove_sharer(line_of(out), level, cache);
        }
        out
    }
}
