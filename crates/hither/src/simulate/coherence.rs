//! The directory's part: who must give up or share a line, who supplies it, and the messages.
//!
//! | the branch's copy | read | write | another reads | another writes |
//! |---|---|---|---|---|
//! | none | E if there is no other copy, else S | M | | |
//! | S | S | M, others are invalidated | S | none |
//! | E | E | M | S | none |
//! | M | M | M | MOESI: O, MESI: S and written back | none |
//! | O | O | M, others are invalidated | O | none |
//!
//! E and M are [`WRITABLE`], M and O are [`DIRTY`]. A shared cache is writable if there is no copy
//! outside the caches below it; so a domain does not ask the home what it may do with its own
//! lines. MESI writes back to the shared cache if reader and owner have one in common, else to
//! memory.
use super::cache::{AHEAD, DIRTY, WRITABLE};
use super::directory::Line;
use super::hierarchy::{Hierarchy, Request, Served};

/// What was found on another's path.
#[derive(Clone, Copy, Default)]
struct Found {
    writable: bool,
    dirty: bool,
    /// Dirty below the last level, or in a last level of the branch's own.
    dirty_below: bool,
}

impl Hierarchy {
    /// A branch that has a line may write it from now on; when.
    pub(super) fn upgrade(&mut self, branch: usize, line: u32, now: f64) -> f64 {
        let mut known = self.lines.get(line);
        let last = self.tree.depth - 1;
        let alone = last >= self.tree.private && {
            let caches = &self.caches[last];
            let set = caches.set(self.tree.cache(branch, last), line);
            caches
                .find(set, line)
                .is_some_and(|at| caches.flags(at) & WRITABLE != 0)
        };
        self.take(branch, line, &mut known);
        known.own(branch);
        known.held |= self.tree.mask(0, self.tree.cache(branch, 0)).bits();
        *self.lines.at(line) = known;
        let asked = now + self.latency[last];
        if alone {
            asked + self.interconnect.inside
        } else {
            self.ask_home(branch, line, asked)
        }
    }

    /// A request that a shared cache of the domain can serve.
    pub(super) fn inside(
        &mut self,
        r: &Request,
        known: &mut Line,
        level: usize,
        at: usize,
    ) -> Served {
        let flags = self.caches[level].flags(at);
        let ready = r.now + self.latency[level];
        let mut done = self.under_way.there_shared(&self.tree, r, level, ready);
        if flags & AHEAD != 0 && !r.ahead {
            self.used(level, at);
        }
        if r.write {
            let others = known.any_copy(level) || known.private_owner() != Some(r.branch);
            let (supplier, found) = self.take(r.branch, r.line, known);
            if found.dirty && self.same_domain(supplier, r.branch) {
                self.transfer(supplier, r.branch);
            }
            known.own(r.branch);
            if flags & WRITABLE == 0 {
                done = self.ask_home(r.branch, r.line, done);
            } else if others {
                done += self.interconnect.inside;
            }
            return Served {
                done,
                below: WRITABLE,
                last: WRITABLE,
            };
        }
        done += self.recall(r, known, level, at);
        let free = known.private_owner().is_none_or(|o| o == r.branch);
        let alone = flags & WRITABLE != 0 && free && !known.any_copy(level);
        if alone {
            known.own(r.branch);
        }
        let given = u32::from(alone) * WRITABLE;
        Served {
            done,
            below: given,
            last: given,
        }
    }

    /// A branch below the shared cache that has a line, at a place, may have written it: it shares
    /// what it has. The cycles that this takes.
    fn recall(&mut self, r: &Request, known: &mut Line, level: usize, at: usize) -> f64 {
        let cache = self.tree.cache(r.branch, level);
        let owner = known.private_owner().filter(|&o| o != r.branch);
        let Some(o) = owner.filter(|&o| self.tree.cache(o, level) == cache) else {
            return 0.0;
        };
        let found = self.downgrade(o, level, r.line, known);
        if found.dirty {
            self.transfer(o, r.branch);
        }
        if found.dirty && !self.moesi {
            self.caches[level].set_flags(at, DIRTY);
            self.tally.levels[level].touches += 1;
        }
        // A level in between may still be writable.
        let last = level + 1 == self.tree.depth;
        if last && !(found.dirty && self.moesi) {
            known.share();
        }
        if found.dirty || found.writable {
            self.interconnect.inside
        } else {
            0.0
        }
    }

    /// A request that no cache on its way could serve.
    pub(super) fn outside(&mut self, r: &Request, known: &mut Line) -> Served {
        let last = self.tree.depth - 1;
        let asked = r.now + self.latency[last];
        if r.write {
            let (supplier, found) = self.take(r.branch, r.line, known);
            known.own(r.branch);
            let supplier = (found.writable || found.dirty).then_some(supplier);
            let near = supplier.filter(|&o| self.same_domain(o, r.branch));
            let done = if let Some(o) = near {
                self.transfer(o, r.branch);
                let there = self.under_way.there(o, r.line, asked) + self.interconnect.inside;
                if found.writable {
                    there
                } else {
                    self.ask_home(r.branch, r.line, there)
                }
            } else {
                let home = self.reach_home(r.branch, r.line, asked);
                let data = self.data(r, supplier, home, false);
                let there = self.acknowledged(r.branch, home);
                data.max(there)
            };
            return Served {
                done,
                below: WRITABLE,
                last: WRITABLE,
            };
        }
        self.read_outside(r, known, asked)
    }

    fn read_outside(&mut self, r: &Request, known: &mut Line, asked: f64) -> Served {
        let mut supplier = None;
        let mut found = Found::default();
        if let Some(o) = known.owner() {
            if o != r.branch {
                found = self.downgrade(o, self.tree.depth, r.line, known);
            }
            if found.writable || found.dirty {
                supplier = Some(o);
            } else {
                known.disown();
            }
        }
        if let Some(o) = supplier.filter(|&o| self.same_domain(o, r.branch)) {
            // The last cache let go what the branch of another below it still has.
            if found.dirty {
                self.transfer(o, r.branch);
            }
            let kept = found.dirty && self.moesi;
            if !kept {
                known.share();
            }
            let dirty = u32::from(found.dirty && !self.moesi) * DIRTY;
            let there = self.under_way.there(o, r.line, asked);
            return Served {
                done: there + self.interconnect.inside,
                below: 0,
                last: (u32::from(found.writable) * WRITABLE) | dirty,
            };
        }
        let home = self.reach_home(r.branch, r.line, asked);
        let done = self.data(r, supplier, home, found.dirty && !self.moesi);
        if supplier.is_some() {
            if !(found.dirty && self.moesi) {
                known.disown();
            } else if !found.dirty_below {
                known.share();
            }
        }
        let alone = supplier.is_none() && !known.any_copy(self.tree.depth);
        if alone {
            known.own(r.branch);
        }
        let given = u32::from(alone) * WRITABLE;
        Served {
            done,
            below: given,
            last: given,
        }
    }

    /// Sends a request to its line's home; the home and when it is there.
    fn reach_home(&mut self, branch: usize, line: u32, at: f64) -> (u32, f64) {
        let home = self.pages.place(line).0 as u32;
        (home, self.control(self.tree.at[branch], home, at))
    }

    fn control(&mut self, from: u32, to: u32, at: f64) -> f64 {
        let bytes = self.interconnect.control;
        let counts = &mut self.tally.link_bytes;
        self.interconnect.send(from, to, bytes, at, counts)
    }

    /// The home, which the request has reached, sends the data or has them sent; when they are at
    /// the branch.
    fn data(
        &mut self,
        r: &Request,
        supplier: Option<usize>,
        (home, at): (u32, f64),
        write_back: bool,
    ) -> f64 {
        let to = self.tree.at[r.branch];
        let bytes = self.interconnect.data;
        let Some(o) = supplier else {
            let number = self.pages.place(r.line).1;
            let counts = &mut self.tally.nodes[home as usize];
            if self.tree.node[r.branch] == home {
                counts.local_reads += 1;
                self.last.local_reads += 1;
            } else {
                counts.remote_reads += 1;
                self.last.remote_reads += 1;
            }
            let read = self.memory.serve(home as usize, number, at, counts);
            let counts = &mut self.tally.link_bytes;
            return self.interconnect.send(home, to, bytes, read, counts);
        };
        self.transfer(o, r.branch);
        let from = self.tree.at[o];
        let asked = self.control(home, from, at);
        let mut found = self.under_way.there(o, r.line, asked) + self.latency[self.tree.depth - 1];
        if self.interconnect.beside(from, to) {
            found += self.interconnect.inside;
        }
        if write_back {
            self.write_to_memory(o, r.line, found);
        }
        let counts = &mut self.tally.link_bytes;
        self.interconnect.send(from, to, bytes, found, counts)
    }

    /// Asks the home for the right to write; when it and all who lost the line have answered.
    fn ask_home(&mut self, branch: usize, line: u32, at: f64) -> f64 {
        let (home, there) = self.reach_home(branch, line, at);
        let granted = self.control(home, self.tree.at[branch], there);
        granted.max(self.acknowledged(branch, (home, there)))
    }

    /// The home tells those domains that lose the line, who tell the branch; when the last has.
    fn acknowledged(&mut self, branch: usize, (home, at): (u32, f64)) -> f64 {
        let to = self.tree.at[branch];
        let mut last = at;
        for n in 0..self.losers.len() {
            let from = self.losers[n] as u32;
            let told = self.control(home, from, at);
            last = last.max(self.control(from, to, told));
        }
        last
    }

    fn same_domain(&self, a: usize, b: usize) -> bool {
        let last = self.tree.depth - 1;
        self.tree.cache(a, last) == self.tree.cache(b, last)
    }

    /// Counts a line that goes from branch to branch.
    fn transfer(&mut self, from: usize, to: usize) {
        self.last.transfers += 1;
        if self.tree.package[from] == self.tree.package[to] {
            self.tally.transfers_inside += 1;
        } else {
            self.tally.transfers_between += 1;
        }
    }

    /// Another reads what a branch has for itself: its copies, up to a level, are read-only now.
    fn downgrade(&mut self, o: usize, levels: usize, line: u32, known: &mut Line) -> Found {
        let mut found = Found::default();
        for level in 0..levels {
            let caches = &mut self.caches[level];
            let set = caches.set(self.tree.cache(o, level), line);
            let Some(at) = caches.find(set, line) else {
                continue;
            };
            let flags = caches.flags(at);
            self.tally.levels[level].touches += 1;
            if flags & WRITABLE != 0 {
                found.writable = true;
                known.add_copy(level);
            }
            if flags & DIRTY != 0 {
                found.dirty = true;
                let below = level + 1 < self.tree.depth || level < self.tree.private;
                found.dirty_below |= below;
            }
            let gone = if self.moesi {
                WRITABLE
            } else {
                WRITABLE | DIRTY
            };
            caches.clear_flags(at, gone);
        }
        found
    }

    /// Takes a line from all but a branch's path, on which it becomes writable. The owner before,
    /// or the branch itself, and what it had.
    fn take(&mut self, branch: usize, line: u32, known: &mut Line) -> (usize, Found) {
        self.losers.clear();
        for level in 0..self.tree.depth {
            if known.copies(level) == 0 {
                continue;
            }
            let caches = &mut self.caches[level];
            let set = caches.set(self.tree.cache(branch, level), line);
            if let Some(at) = caches.find(set, line) {
                if caches.flags(at) & WRITABLE == 0 {
                    caches.set_flags(at, WRITABLE);
                    known.drop_copy(level);
                }
            }
        }
        let owner = known.owner().unwrap_or(branch);
        let mut found = Found::default();
        if owner != branch {
            found = self.strip(branch, owner, line, known, true);
        }
        let mut walk = self.tree.walk(known.held);
        while known.any_copy(self.tree.depth) {
            let Some(o) = self.tree.step(&mut walk) else {
                break;
            };
            if o != branch && o != owner {
                self.strip(branch, o, line, known, false);
            }
        }
        known.no_copies();
        known.taken |= known.held;
        known.held = 0;
        (owner, found)
    }

    /// Takes a line from a branch and the caches above it that are not on the writer's path.
    fn strip(
        &mut self,
        writer: usize,
        o: usize,
        line: u32,
        known: &mut Line,
        owner: bool,
    ) -> Found {
        let mut found = Found::default();
        let mut private = false;
        for level in 0..self.tree.depth {
            let cache = self.tree.cache(o, level);
            if cache == self.tree.cache(writer, level) {
                break;
            }
            if !owner && known.copies(level) == 0 {
                continue;
            }
            let caches = &mut self.caches[level];
            let set = caches.set(cache, line);
            let Some(at) = caches.find(set, line) else {
                continue;
            };
            let flags = caches.remove(set, at);
            self.tally.levels[level].touches += 1;
            if flags & WRITABLE == 0 {
                known.drop_copy(level);
            } else {
                found.writable = true;
            }
            found.dirty |= flags & DIRTY != 0;
            if level < self.tree.private {
                self.tally.invalidations += u64::from(!private);
                private = true;
            } else {
                self.tally.invalidations += 1;
            }
            if !self.same_domain(o, writer) {
                let at = self.tree.at[o] as usize;
                if !self.losers.contains(&at) {
                    self.losers.push(at);
                }
            }
        }
        found
    }
}
