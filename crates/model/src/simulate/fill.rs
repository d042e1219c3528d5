//! Lines into caches, and what they drive out.
use super::cache::{entry, line_of, AHEAD, DIRTY, WRITABLE};
use super::hierarchy::{Hierarchy, Request, Served};

impl Hierarchy {
    /// Puts the line of a request that was served into the levels below `missed`, the farthest
    /// first.
    pub(super) fn fill(&mut self, r: &Request, missed: usize, served: &Served) {
        for level in (r.first..missed).rev() {
            let mut flags = if level + 1 == self.tree.depth {
                served.last
            } else {
                served.below
            };
            if level == r.first {
                flags |= (u32::from(r.write) * DIRTY) | (u32::from(r.ahead) * AHEAD);
            }
            self.put(r.branch, level, r.sets[level], entry(r.line, flags));
        }
    }

    /// Puts an entry into its set of the branch's cache of a level.
    #[inline]
    fn put(&mut self, branch: usize, level: usize, set: usize, new: u32) {
        if new & WRITABLE == 0 {
            let cache = self.tree.cache(branch, level);
            self.lines.add_copy(line_of(new), level, cache);
        }
        self.tally.levels[level].touches += 1;
        let out = self.caches[level].insert(set, new);
        if out != 0 {
            self.evicted(branch, level, out);
        }
    }

    /// An entry was driven out of the branch's cache of a level.
    fn evicted(&mut self, branch: usize, level: usize, out: u32) {
        let line = line_of(out);
        if out & WRITABLE == 0 {
            let cache = self.tree.cache(branch, level);
            self.lines.drop_copy(line, level, cache);
        }
        let mut dirty = out & DIRTY != 0;
        if level > 0 && self.inclusive[level] {
            dirty |= self.purge(branch, level, line);
        }
        if dirty {
            self.write_back(branch, level + 1, line, out & WRITABLE);
        }
    }

    /// Dirty data leave a branch's path for a level, or for memory behind the last.
    pub(super) fn write_back(&mut self, branch: usize, level: usize, line: u32, writable: u32) {
        if level == self.tree.depth {
            self.write_to_memory(branch, line, self.now);
            return;
        }
        match self.find_near(branch, level, line) {
            Some((_, at)) => {
                self.caches[level].set_flags(at, DIRTY);
                self.tally.levels[level].touches += 1;
            }
            None => {
                let set = self.set(branch, level, line);
                self.put(branch, level, set, entry(line, writable | DIRTY));
            }
        }
    }

    /// Writes a line to its home's memory, from a branch's domain.
    pub(super) fn write_to_memory(&mut self, branch: usize, line: u32, at: f64) {
        let from = self.tree.at[branch];
        let (home, number) = self.pages.place(line);
        let data = self.interconnect.data;
        let bytes = &mut self.tally.link_bytes;
        let there = self.interconnect.send(from, home as u32, data, at, bytes);
        let counts = &mut self.tally.nodes[home];
        if self.tree.node[branch] == home as u32 {
            counts.local_writes += 1;
        } else {
            counts.remote_writes += 1;
        }
        self.memory.serve(home, number, there, counts);
    }

    /// Takes a line out of all caches below the branch's cache of a level; whether one was dirty.
    fn purge(&mut self, branch: usize, level: usize, line: u32) -> bool {
        let cache = self.tree.cache(branch, level);
        let owner = self.lines.private_owner(line);
        let mut dirty = false;
        if let Some(o) = owner.filter(|&o| self.tree.cache(o, level) == cache) {
            for below in 0..level {
                if let Some((set, at)) = self.find(o, below, line) {
                    dirty |= self.remove(below, self.tree.cache(o, below), set, at) & DIRTY != 0;
                }
            }
        }
        for below in 0..level {
            for n in 0..self.lines.copy_words(below) {
                let mut copies = self.lines.copies(line, below, n);
                while copies != 0 {
                    let other = n * 64 + copies.trailing_zeros() as usize;
                    copies &= copies - 1;
                    if self.tree.cache(self.tree.branch(below, other), level) == cache {
                        dirty |= self.remove_copy(below, other, line) & DIRTY != 0;
                    }
                }
            }
        }
        dirty
    }

    /// Takes a line out of a cache that holds it read-only; its entry.
    pub(super) fn remove_copy(&mut self, level: usize, cache: usize, line: u32) -> u32 {
        let set = self.caches[level].set(cache, line);
        match self.caches[level].find(set, line) {
            Some(at) => self.remove(level, cache, set, at),
            None => 0,
        }
    }

    /// Takes an entry out of a cache.
    pub(super) fn remove(&mut self, level: usize, cache: usize, set: usize, at: usize) -> u32 {
        let out = self.caches[level].remove(set, at);
        self.tally.levels[level].touches += 1;
        if out & WRITABLE == 0 {
            self.lines.drop_copy(line_of(out), level, cache);
        }
        out
    }
}
