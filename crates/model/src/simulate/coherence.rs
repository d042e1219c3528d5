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
        let last = self.tree.depth - 1;
        let alone = last >= self.tree.private && {
            let found = self.find(branch, last, line);
            found.is_some_and(|(_, at)| self.caches[last].flags(at) & WRITABLE != 0)
        };
        self.take(branch, line);
        self.lines.own(line, branch);
        self.lines.hold(line, branch);
        let asked = now + self.latency[last];
        if alone {
            asked + self.interconnect.inside
        } else {
            self.ask_home(branch, line, asked)
        }
    }

    /// A request that a shared cache of the domain can serve.
    pub(super) fn inside(&mut self, r: &Request, level: usize, at: usize) -> Served {
        let flags = self.caches[level].flags(at);
        let ready = r.now + self.latency[level];
        let mut done = self.under_way.there_shared(&self.tree, r, level, ready);
        if flags & AHEAD != 0 && !r.ahead {
            self.used(level, at);
        }
        if r.write {
            let others = self.lines.any_below(r.line, level)
                || self.lines.private_owner(r.line) != Some(r.branch);
            let (supplier, found) = self.take(r.branch, r.line);
            if found.dirty && self.same_domain(supplier, r.branch) {
                self.transfer(supplier, r.branch);
            }
            self.lines.own(r.line, r.branch);
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
        done += self.recall(r, level, at);
        let owner = self.lines.private_owner(r.line);
        let free = owner.is_none_or(|o| o == r.branch);
        let alone = flags & WRITABLE != 0 && free && !self.lines.any_below(r.line, level);
        if alone {
            self.lines.own(r.line, r.branch);
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
    fn recall(&mut self, r: &Request, level: usize, at: usize) -> f64 {
        let cache = self.tree.cache(r.branch, level);
        let owner = self.lines.private_owner(r.line);
        let owner = owner.filter(|&o| o != r.branch);
        let Some(o) = owner.filter(|&o| self.tree.cache(o, level) == cache) else {
            return 0.0;
        };
        let found = self.downgrade(o, level, r.line);
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
            self.lines.share(r.line);
        }
        if found.dirty || found.writable {
            self.interconnect.inside
        } else {
            0.0
        }
    }

    /// A request that no cache on its way could serve.
    pub(super) fn outside(&mut self, r: &Request) -> Served {
        let last = self.tree.depth - 1;
        let asked = r.now + self.latency[last];
        if r.write {
            let (supplier, found) = self.take(r.branch, r.line);
            self.lines.own(r.line, r.branch);
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
        self.read_outside(r, asked)
    }

    fn read_outside(&mut self, r: &Request, asked: f64) -> Served {
        let mut supplier = None;
        let mut found = Found::default();
        if let Some(o) = self.lines.owner(r.line) {
            if o != r.branch {
                found = self.downgrade(o, self.tree.depth, r.line);
            }
            if found.writable || found.dirty {
                supplier = Some(o);
            } else {
                self.lines.disown(r.line);
            }
        }
        if let Some(o) = supplier.filter(|&o| self.same_domain(o, r.branch)) {
            // The last cache let go what the branch of another below it still has.
            if found.dirty {
                self.transfer(o, r.branch);
            }
            let kept = found.dirty && self.moesi;
            if !kept {
                self.lines.share(r.line);
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
                self.lines.disown(r.line);
            } else if !found.dirty_below {
                self.lines.share(r.line);
            }
        }
        let alone = supplier.is_none() && !self.lines.any_below(r.line, self.tree.depth);
        if alone {
            self.lines.own(r.line, r.branch);
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
    fn downgrade(&mut self, o: usize, levels: usize, line: u32) -> Found {
        let mut found = Found::default();
        for level in 0..levels {
            let Some((_, at)) = self.find(o, level, line) else {
                continue;
            };
            let caches = &mut self.caches[level];
            let flags = caches.flags(at);
            self.tally.levels[level].touches += 1;
            if flags & WRITABLE != 0 {
                found.writable = true;
                let cache = self.tree.cache(o, level);
                self.lines.add_copy(line, level, cache);
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
    fn take(&mut self, branch: usize, line: u32) -> (usize, Found) {
        self.losers.clear();
        for level in 0..self.tree.depth {
            let cache = self.tree.cache(branch, level);
            if !self.lines.is_copy(line, level, cache) {
                continue;
            }
            let caches = &mut self.caches[level];
            if let Some(at) = caches.find(caches.set(cache, line), line) {
                caches.set_flags(at, WRITABLE);
            }
            self.lines.drop_copy(line, level, cache);
        }
        let owner = self.lines.owner(line).unwrap_or(branch);
        let mut found = Found::default();
        if owner != branch {
            found = self.strip_owner(branch, owner, line);
        }
        self.strip_branches(branch, line);
        for level in self.tree.private..self.tree.depth {
            for n in 0..self.lines.copy_words(level) {
                let mut copies = self.lines.copies(line, level, n);
                while copies != 0 {
                    let cache = n * 64 + copies.trailing_zeros() as usize;
                    copies &= copies - 1;
                    self.remove_copy(level, cache, line);
                    self.tally.invalidations += 1;
                    self.loses(branch, self.tree.branch(level, cache));
                }
            }
        }
        self.lines.take(line);
        // The order in which they are told does not depend on how they were found.
        self.losers.sort_unstable();
        (owner, found)
    }

    /// Takes a line from the branches that hold it read-only.
    fn strip_branches(&mut self, writer: usize, line: u32) {
        for n in 0..self.lines.copy_words(0) {
            let mut any = 0;
            for level in 0..self.tree.private {
                let mut copies = self.lines.copies(line, level, n);
                any |= copies;
                while copies != 0 {
                    let other = n * 64 + copies.trailing_zeros() as usize;
                    copies &= copies - 1;
                    self.remove_copy(level, other, line);
                }
            }
            self.tally.invalidations += u64::from(any.count_ones());
            while any != 0 {
                self.loses(writer, n * 64 + any.trailing_zeros() as usize);
                any &= any - 1;
            }
        }
    }

    /// Takes a line from its owner and the caches above it that are not on the writer's path.
    fn strip_owner(&mut self, writer: usize, o: usize, line: u32) -> Found {
        let mut found = Found::default();
        let mut private = false;
        for level in 0..self.tree.depth {
            let cache = self.tree.cache(o, level);
            if cache == self.tree.cache(writer, level) {
                break;
            }
            let Some((set, at)) = self.find(o, level, line) else {
                continue;
            };
            let flags = self.remove(level, cache, set, at);
            found.writable |= flags & WRITABLE != 0;
            found.dirty |= flags & DIRTY != 0;
            self.tally.invalidations += u64::from(level >= self.tree.private || !private);
            private = true;
            self.loses(writer, o);
        }
        found
    }

    /// A branch lost a line to a writer, who waits until it has told so.
    fn loses(&mut self, writer: usize, o: usize) {
        if self.same_domain(o, writer) {
            return;
        }
        let at = self.tree.at[o] as usize;
        if !self.losers.contains(&at) {
            self.losers.push(at);
        }
    }
}
