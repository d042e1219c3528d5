//! The directory's part: which caches must give up or share a line, which supplies it, and the
//! messages.
//!
//! | the private hierarchy's copy | read | write | another reads | another writes |
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
use super::hierarchy::CacheHierarchy;
use super::line_request::{LineRequest, RequestOutcome};
use super::tag_array::{DIRTY, PREFETCHED, WRITABLE};
use crate::locality::is_remote;
use hither_profile::NodeIx;

/// What was found in another private hierarchy's caches.
#[derive(Clone, Copy, Default)]
struct OwnerCopy {
    writable: bool,
    dirty: bool,
    /// Dirty below the last level, or in a last level of the private hierarchy's own.
    dirty_below: bool,
}

impl CacheHierarchy {
    /// A private hierarchy that has a line may write it from now on; when.
    pub(super) fn upgrade(&mut self, l1: usize, line: u32, now: f64) -> f64 {
        let last = self.tree.depth - 1;
        let alone = last >= self.tree.private && {
            let found = self.find(l1, last, line);
            found.is_some_and(|(_, at)| self.caches[last].flags(at) & WRITABLE != 0)
        };
        self.invalidate_others(l1, line);
        self.lines.own_writable(line, l1);
        self.lines.add_holder(line, l1);
        let asked = now + self.latency[last];
        if alone {
            asked + self.interconnect.inside
        } else {
            self.request_ownership(l1, line, asked)
        }
    }

    /// A request that a shared cache of the domain can serve.
    pub(super) fn serve_in_domain(
        &mut self,
        r: &LineRequest,
        level: usize,
        at: usize,
    ) -> RequestOutcome {
        let flags = self.caches[level].flags(at);
        let ready = r.now + self.latency[level];
        let mut done = self.under_way.ready_at_shared(&self.tree, r, level, ready);
        if flags & PREFETCHED != 0 && !r.ahead {
            self.count_useful_prefetch(level, at);
        }
        if r.write {
            let others = self.lines.has_sharers_below(r.line, level)
                || self.lines.private_owner(r.line) != Some(r.l1);
            let (supplier, found) = self.invalidate_others(r.l1, r.line);
            if found.dirty && self.same_domain(supplier, r.l1) {
                self.count_transfer(supplier, r.l1);
            }
            self.lines.own_writable(r.line, r.l1);
            if flags & WRITABLE == 0 {
                done = self.request_ownership(r.l1, r.line, done);
            } else if others {
                done += self.interconnect.inside;
            }
            return RequestOutcome {
                done,
                below: WRITABLE,
                last: WRITABLE,
            };
        }
        done += self.recall_from_owner(r, level, at);
        let owner = self.lines.private_owner(r.line);
        let free = owner.is_none_or(|o| o == r.l1);
        let alone = flags & WRITABLE != 0 && free && !self.lines.has_sharers_below(r.line, level);
        self.grant(r, alone, done)
    }

    /// The requester has the line at `done`, and may write it if it has it `alone`.
    fn grant(&mut self, r: &LineRequest, alone: bool, done: f64) -> RequestOutcome {
        if alone {
            self.lines.own_writable(r.line, r.l1);
        }
        let given = u32::from(alone) * WRITABLE;
        RequestOutcome {
            done,
            below: given,
            last: given,
        }
    }

    /// A private hierarchy below the shared cache that holds a line, at a place, may have written it: its copy
    /// becomes shared. Returns the cycles that this takes.
    fn recall_from_owner(&mut self, r: &LineRequest, level: usize, at: usize) -> f64 {
        let cache = self.tree.cache(r.l1, level);
        let owner = self.lines.private_owner(r.line);
        let owner = owner.filter(|&o| o != r.l1);
        let Some(o) = owner.filter(|&o| self.tree.cache(o, level) == cache) else {
            return 0.0;
        };
        let found = self.downgrade(o, level, r.line);
        if found.dirty {
            self.count_transfer(o, r.l1);
        }
        if found.dirty && !self.moesi {
            self.caches[level].set_flags(at, DIRTY);
            self.counts.levels[level].touches += 1;
        }
        // A level in between may still be writable.
        let last = level + 1 == self.tree.depth;
        if last && !(found.dirty && self.moesi) {
            self.lines.downgrade_owner(r.line);
        }
        if found.dirty || found.writable {
            self.interconnect.inside
        } else {
            0.0
        }
    }

    /// A request that no cache on its way could serve.
    pub(super) fn serve_by_directory(&mut self, r: &LineRequest) -> RequestOutcome {
        let last = self.tree.depth - 1;
        let asked = r.now + self.latency[last];
        if r.write {
            let (supplier, found) = self.invalidate_others(r.l1, r.line);
            self.lines.own_writable(r.line, r.l1);
            let supplier = (found.writable || found.dirty).then_some(supplier);
            let near = supplier.filter(|&o| self.same_domain(o, r.l1));
            let done = if let Some(o) = near {
                self.count_transfer(o, r.l1);
                let there = self.under_way.ready_at(o, r.line, asked) + self.interconnect.inside;
                if found.writable {
                    there
                } else {
                    self.request_ownership(r.l1, r.line, there)
                }
            } else {
                let home = self.reach_home(r.l1, r.line, asked);
                let data = self.send_data(r, supplier, home, false);
                let there = self.await_acknowledgements(r.l1, home);
                data.max(there)
            };
            return RequestOutcome {
                done,
                below: WRITABLE,
                last: WRITABLE,
            };
        }
        self.read_by_directory(r, asked)
    }

    fn read_by_directory(&mut self, r: &LineRequest, asked: f64) -> RequestOutcome {
        let mut supplier = None;
        let mut found = OwnerCopy::default();
        if let Some(o) = self.lines.owner(r.line) {
            if o != r.l1 {
                found = self.downgrade(o, self.tree.depth, r.line);
            }
            if found.writable || found.dirty {
                supplier = Some(o);
            } else {
                self.lines.clear_owner(r.line);
            }
        }
        if let Some(o) = supplier.filter(|&o| self.same_domain(o, r.l1)) {
            // The last-level cache evicted a line that a private hierarchy below another one still holds.
            if found.dirty {
                self.count_transfer(o, r.l1);
            }
            let kept = found.dirty && self.moesi;
            if !kept {
                self.lines.downgrade_owner(r.line);
            }
            let dirty = u32::from(found.dirty && !self.moesi) * DIRTY;
            let there = self.under_way.ready_at(o, r.line, asked);
            return RequestOutcome {
                done: there + self.interconnect.inside,
                below: 0,
                last: (u32::from(found.writable) * WRITABLE) | dirty,
            };
        }
        let home = self.reach_home(r.l1, r.line, asked);
        let done = self.send_data(r, supplier, home, found.dirty && !self.moesi);
        if supplier.is_some() {
            if !(found.dirty && self.moesi) {
                self.lines.clear_owner(r.line);
            } else if !found.dirty_below {
                self.lines.downgrade_owner(r.line);
            }
        }
        let alone = supplier.is_none() && !self.lines.has_sharers_below(r.line, self.tree.depth);
        self.grant(r, alone, done)
    }

    /// Sends a request to its line's home. Returns the home and the time of arrival.
    fn reach_home(&mut self, l1: usize, line: u32, at: f64) -> (u32, f64) {
        let home = self.pages.home_of_line(line).0 as u32;
        (home, self.send_control(self.tree.at[l1], home, at))
    }

    fn send_control(&mut self, from: u32, to: u32, at: f64) -> f64 {
        let bytes = self.interconnect.control;
        let counts = &mut self.counts.link_bytes;
        self.interconnect.send(from, to, bytes, at, counts)
    }

    /// The home, which the request has reached, sends the data or has the owner send them. Returns
    /// when they reach the private hierarchy.
    fn send_data(
        &mut self,
        r: &LineRequest,
        supplier: Option<usize>,
        (home, at): (u32, f64),
        write_back: bool,
    ) -> f64 {
        let to = self.tree.at[r.l1];
        let bytes = self.interconnect.data;
        let Some(o) = supplier else {
            let number = self.pages.home_of_line(r.line).1;
            let counts = &mut self.counts.nodes[home as usize];
            if is_remote(NodeIx(self.tree.node[r.l1]), NodeIx(home)) {
                counts.remote_reads += 1;
                self.last.remote_reads += 1;
            } else {
                counts.local_reads += 1;
                self.last.local_reads += 1;
            }
            let read = self.memory.access_line(home as usize, number, at, counts);
            let counts = &mut self.counts.link_bytes;
            return self.interconnect.send(home, to, bytes, read, counts);
        };
        self.count_transfer(o, r.l1);
        let from = self.tree.at[o];
        let asked = self.send_control(home, from, at);
        let mut found =
            self.under_way.ready_at(o, r.line, asked) + self.latency[self.tree.depth - 1];
        if self.interconnect.same_package_only(from, to) {
            found += self.interconnect.inside;
        }
        if write_back {
            self.write_to_memory(o, r.line, found);
        }
        let counts = &mut self.counts.link_bytes;
        self.interconnect.send(from, to, bytes, found, counts)
    }

    /// Requests ownership from the home. Returns the time when it and all sharers that lost the
    /// line have answered.
    fn request_ownership(&mut self, l1: usize, line: u32, at: f64) -> f64 {
        let (home, there) = self.reach_home(l1, line, at);
        let granted = self.send_control(home, self.tree.at[l1], there);
        granted.max(self.await_acknowledgements(l1, (home, there)))
    }

    /// The home sends invalidations to the domains that lose the line, and these acknowledge to
    /// the private hierarchy. Returns the time of the last acknowledgement.
    fn await_acknowledgements(&mut self, l1: usize, (home, at): (u32, f64)) -> f64 {
        let to = self.tree.at[l1];
        let mut last = at;
        for n in 0..self.losers.len() {
            let from = self.losers[n] as u32;
            let told = self.send_control(home, from, at);
            last = last.max(self.send_control(from, to, told));
        }
        last
    }

    fn same_domain(&self, a: usize, b: usize) -> bool {
        let last = self.tree.depth - 1;
        self.tree.cache(a, last) == self.tree.cache(b, last)
    }

    /// Counts a line that goes from one private hierarchy to another.
    fn count_transfer(&mut self, from: usize, to: usize) {
        self.last.transfers += 1;
        if self.tree.package[from] == self.tree.package[to] {
            self.counts.transfers_inside += 1;
        } else {
            self.counts.transfers_between += 1;
        }
    }

    /// Another core reads a line that a private hierarchy owns: its copies, up to a level, become read-only.
    fn downgrade(&mut self, o: usize, levels: usize, line: u32) -> OwnerCopy {
        let mut found = OwnerCopy::default();
        for level in 0..levels {
            let Some((_, at)) = self.find(o, level, line) else {
                continue;
            };
            let caches = &mut self.caches[level];
            let flags = caches.flags(at);
            self.counts.levels[level].touches += 1;
            if flags & WRITABLE != 0 {
                found.writable = true;
                let cache = self.tree.cache(o, level);
                self.lines.add_sharer(line, level, cache);
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

    /// Invalidates a line everywhere but on a private hierarchy's path, where it becomes writable. Returns the
    /// previous owner, or the private hierarchy itself, and its copy.
    fn invalidate_others(&mut self, l1: usize, line: u32) -> (usize, OwnerCopy) {
        self.losers.clear();
        for level in 0..self.tree.depth {
            let cache = self.tree.cache(l1, level);
            if !self.lines.is_sharer(line, level, cache) {
                continue;
            }
            let caches = &mut self.caches[level];
            if let Some(at) = caches.find_way(caches.set_of(cache, line), line) {
                caches.set_flags(at, WRITABLE);
            }
            self.lines.remove_sharer(line, level, cache);
        }
        let owner = self.lines.owner(line).unwrap_or(l1);
        let mut found = OwnerCopy::default();
        if owner != l1 {
            found = self.invalidate_owner(l1, owner, line);
        }
        self.invalidate_sharers(l1, line);
        for level in self.tree.private..self.tree.depth {
            for n in 0..self.lines.sharer_words(level) {
                let mut copies = self.lines.sharer_bits(line, level, n);
                while copies != 0 {
                    let cache = n * 64 + copies.trailing_zeros() as usize;
                    copies &= copies - 1;
                    self.remove_copy(level, cache, line);
                    self.counts.invalidations += 1;
                    self.note_invalidated(l1, self.tree.l1_below(level, cache));
                }
            }
        }
        self.lines.invalidate_holders(line);
        // Sorted, so that the order of invalidations does not depend on how the sharers were found.
        self.losers.sort_unstable();
        (owner, found)
    }

    /// Takes a line from the private hierarchies that hold it read-only.
    fn invalidate_sharers(&mut self, writer: usize, line: u32) {
        for n in 0..self.lines.sharer_words(0) {
            let mut any = 0;
            for level in 0..self.tree.private {
                let mut copies = self.lines.sharer_bits(line, level, n);
                any |= copies;
                while copies != 0 {
                    let other = n * 64 + copies.trailing_zeros() as usize;
                    copies &= copies - 1;
                    self.remove_copy(level, other, line);
                }
            }
            self.counts.invalidations += u64::from(any.count_ones());
            while any != 0 {
                self.note_invalidated(writer, n * 64 + any.trailing_zeros() as usize);
                any &= any - 1;
            }
        }
    }

    /// Takes a line from its owner and the caches above it that are not on the writer's path.
    fn invalidate_owner(&mut self, writer: usize, o: usize, line: u32) -> OwnerCopy {
        let mut found = OwnerCopy::default();
        let mut private = false;
        for level in 0..self.tree.depth {
            let cache = self.tree.cache(o, level);
            if cache == self.tree.cache(writer, level) {
                break;
            }
            let Some((set, at)) = self.find(o, level, line) else {
                continue;
            };
            let flags = self.remove_entry(level, cache, set, at);
            found.writable |= flags & WRITABLE != 0;
            found.dirty |= flags & DIRTY != 0;
            self.counts.invalidations += u64::from(level >= self.tree.private || !private);
            private = true;
            self.note_invalidated(writer, o);
        }
        found
    }

    /// A private hierarchy lost a line to a writer, which waits for the acknowledgement.
    fn note_invalidated(&mut self, writer: usize, o: usize) {
        if self.same_domain(o, writer) {
            return;
        }
        let at = self.tree.at[o] as usize;
        if !self.losers.contains(&at) {
            self.losers.push(at);
        }
    }
}
