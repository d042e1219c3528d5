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
            self.put(r.branch, level, r.line, flags);
        }
    }

    /// Puts a line into the branch's cache of a level.
    fn put(&mut self, branch: usize, level: usize, line: u32, flags: u32) {
        if flags & WRITABLE == 0 {
            self.lines.at(line).add_copy(level);
        }
        self.tally.levels[level].touches += 1;
        let cache = self.tree.cache(branch, level);
        let caches = &mut self.caches[level];
        let out = caches.insert(caches.set(cache, line), entry(line, flags));
        if out != 0 {
            self.evicted(branch, level, out);
        }
    }

    /// An entry was driven out of the branch's cache of a level.
    fn evicted(&mut self, branch: usize, level: usize, out: u32) {
        let line = line_of(out);
        if out & WRITABLE == 0 {
            self.lines.at(line).drop_copy(level);
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
        let caches = &mut self.caches[level];
        let set = caches.set(self.tree.cache(branch, level), line);
        match caches.find(set, line) {
            Some(at) => {
                caches.set_flags(at, DIRTY);
                self.tally.levels[level].touches += 1;
            }
            None => self.put(branch, level, line, writable | DIRTY),
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
        let mut known = self.lines.get(line);
        let cache = self.tree.cache(branch, level);
        let mut dirty = false;
        if level < self.tree.private {
            dirty |= self.purge_branch(branch, level, line, &mut known);
        } else {
            let owner = known.private_owner();
            if let Some(o) = owner.filter(|&o| self.tree.cache(o, level) == cache) {
                dirty |= self.purge_branch(o, level, line, &mut known);
            }
            let mask = self.tree.mask(level, cache).bits();
            let mut walk = self.tree.walk(known.held & mask);
            while known.any_copy(level) {
                let Some(o) = self.tree.step(&mut walk) else {
                    break;
                };
                if Some(o) != owner && self.tree.cache(o, level) == cache {
                    dirty |= self.purge_branch(o, level, line, &mut known);
                }
            }
        }
        *self.lines.at(line) = known;
        dirty
    }

    fn purge_branch(
        &mut self,
        branch: usize,
        levels: usize,
        line: u32,
        known: &mut super::directory::Line,
    ) -> bool {
        let mut dirty = false;
        for level in 0..levels {
            let caches = &mut self.caches[level];
            let set = caches.set(self.tree.cache(branch, level), line);
            if let Some(at) = caches.find(set, line) {
                let out = caches.remove(set, at);
                self.tally.levels[level].touches += 1;
                dirty |= out & DIRTY != 0;
                if out & WRITABLE == 0 {
                    known.drop_copy(level);
                }
            }
        }
        dirty
    }
}
