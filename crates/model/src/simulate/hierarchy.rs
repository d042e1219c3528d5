//! The way of an access through the caches to memory.
//!
//! A request goes up its branch, then through the shared caches of its domain, then to the home of
//! its line, whose directory sends it on to the owner or to memory (`coherence.rs`). The line is
//! then put into all caches on the way back (`fill.rs`).
use super::cache::{Caches, AHEAD, DIRTY, WRITABLE};
use super::directory::{Lines, DEPTH};
use super::links::Interconnect;
use super::machine::{Machine, Protocol};
use super::memory::Memory;
use super::outcome::{LevelCounts, MissKind, NodeCounts, Share};
use super::pages::Pages;
use super::prefetch::Prefetcher;
use super::tree::Tree;
use super::under_way::UnderWay;

/// What was counted since the last [`Hierarchy::clear`].
#[derive(Default)]
pub struct Tally {
    pub levels: [LevelCounts; DEPTH],
    pub invalidations: u64,
    pub transfers_inside: u64,
    pub transfers_between: u64,
    pub link_bytes: Vec<u64>,
    pub nodes: Vec<NodeCounts>,
}

/// A request of a branch for a line.
#[derive(Clone, Copy)]
pub struct Request {
    pub branch: usize,
    pub line: u32,
    pub write: bool,
    /// The level that asks, 0 for a core's access: levels below it do not get the line.
    pub first: usize,
    /// A prefetcher asks, not a core.
    pub ahead: bool,
    /// When it leaves the core.
    pub now: f64,
    /// Where its sets begin, of the levels that were looked at.
    pub sets: [usize; DEPTH],
}

/// How a request was served: when, and the flags that the line gets in the caches on its way that
/// did not have it: the last level's, and those below.
pub struct Served {
    pub done: f64,
    pub below: u32,
    pub last: u32,
}

pub struct Hierarchy {
    pub(super) tree: Tree,
    pub(super) caches: Vec<Caches>,
    pub(super) latency: Vec<f64>,
    first_latency: f64,
    pub(super) inclusive: Vec<bool>,
    pub(super) lines: Lines,
    pub pages: Pages,
    pub(super) interconnect: Interconnect,
    pub(super) memory: Memory,
    pub(super) moesi: bool,
    prefetchers: Vec<Option<Prefetcher>>,
    looks_ahead: bool,
    ahead: Vec<u32>,
    pub(super) under_way: UnderWay,
    /// A line that was fetched ahead was found by the last accesses.
    pub first_use: bool,
    /// When the request that is being served left its core.
    pub(super) now: f64,
    /// Domains that lost a copy to the write being served.
    pub(super) losers: Vec<usize>,
    pub tally: Tally,
    /// What the accesses since it was last taken did; its time and accesses stay 0.
    pub last: Share,
    /// The kinds of the last access's misses, by level.
    pub kinds: [u8; DEPTH],
}

impl Hierarchy {
    /// For a checked machine.
    pub fn new(machine: &Machine, timed: bool) -> Self {
        let pages = Pages::new(machine);
        let prefetcher = |level: &super::machine::Level| {
            let kind = level.prefetch.as_ref()?;
            Some(Prefetcher::new(kind, level.caches, pages.lines_per_page()))
        };
        let levels = &machine.levels;
        let tree = Tree::new(machine);
        let mut new = Hierarchy {
            caches: levels
                .iter()
                .map(|level| Caches::new(level, machine.line))
                .collect(),
            first_latency: f64::from(levels[0].latency),
            latency: levels.iter().map(|l| f64::from(l.latency)).collect(),
            inclusive: levels.iter().map(|l| l.inclusive).collect(),
            lines: Lines::new(machine),
            interconnect: Interconnect::new(machine, timed),
            memory: Memory::new(machine, timed),
            moesi: machine.protocol == Protocol::Moesi,
            prefetchers: levels.iter().map(prefetcher).collect(),
            looks_ahead: levels.iter().any(|l| l.prefetch.is_some()),
            ahead: Vec::new(),
            under_way: UnderWay::new(machine, &tree, timed),
            first_use: false,
            now: 0.0,
            losers: Vec::new(),
            tally: Tally::default(),
            last: Share::default(),
            kinds: [0; DEPTH],
            tree,
            pages,
        };
        new.clear(machine);
        new
    }

    /// Begins to count anew.
    pub fn clear(&mut self, machine: &Machine) {
        self.tally = Tally {
            link_bytes: vec![0; machine.links.links.len()],
            nodes: vec![NodeCounts::default(); machine.nodes.len()],
            ..Tally::default()
        };
    }

    /// A core of `branch` reads or writes `line` at time `now`: when that is done, and how many
    /// levels it missed.
    #[inline]
    pub fn access(&mut self, branch: usize, line: u32, write: bool, now: f64) -> (f64, usize) {
        self.tally.levels[0].accesses += 1;
        // Branches have the numbers of their first caches.
        let first = &mut self.caches[0];
        let set = first.set(branch, line);
        if !first.front_hit(set, line, write) {
            let Some(at) = first.find(set, line) else {
                return self.miss_first(set, branch, line, write, now);
            };
            let at = first.touch(set, at);
            if !first.plain_hit(at, line, write) {
                return (self.hit_first(at, branch, line, write, now), 0);
            }
        }
        (
            self.under_way.there(branch, line, now + self.first_latency),
            0,
        )
    }

    /// Whether a branch's first level has a line.
    #[inline]
    pub fn has(&self, branch: usize, line: u32) -> bool {
        let set = self.caches[0].set(branch, line);
        self.caches[0].find(set, line).is_some()
    }

    /// A hit of a line that was fetched ahead, or a write that has to ask.
    #[cold]
    fn hit_first(&mut self, at: usize, branch: usize, line: u32, write: bool, now: f64) -> f64 {
        let flags = self.caches[0].flags(at);
        let mut done = self.under_way.there(branch, line, now + self.first_latency);
        if write {
            if flags & WRITABLE == 0 {
                self.now = now;
                done = done.max(self.upgrade(branch, line, now));
            }
            self.caches[0].set_flags(at, DIRTY);
        }
        if flags & AHEAD != 0 {
            self.used(0, at);
            self.look_ahead(branch, 0, line, now);
        }
        done
    }

    #[inline(never)]
    fn miss_first(
        &mut self,
        set: usize,
        branch: usize,
        line: u32,
        write: bool,
        now: f64,
    ) -> (f64, usize) {
        let mut sets = [0; DEPTH];
        sets[0] = set;
        let mut request = Request {
            branch,
            line,
            write,
            first: 0,
            ahead: false,
            now,
            sets,
        };
        self.first_use = false;
        let (done, missed) = self.fetch(&mut request);
        // The first use of a line that was fetched ahead counts for the prefetcher like a miss.
        let shown = missed + usize::from(self.first_use);
        self.last.first_misses += 1;
        self.last.last_misses += u64::from(missed == self.tree.depth);
        if self.looks_ahead {
            for level in 0..shown {
                self.look_ahead(branch, level, line, now);
            }
        }
        (done, missed)
    }

    /// A line that was fetched ahead is used.
    pub(super) fn used(&mut self, level: usize, at: usize) {
        self.caches[level].clear_flags(at, AHEAD);
        self.tally.levels[level].useful += 1;
        self.first_use = true;
    }

    /// Shows a prefetcher what it is asked for, and does what it wants.
    fn look_ahead(&mut self, branch: usize, level: usize, line: u32, now: f64) {
        let Some(prefetcher) = &mut self.prefetchers[level] else {
            return;
        };
        let mut ahead = std::mem::take(&mut self.ahead);
        prefetcher.see(self.tree.cache(branch, level), line, &mut ahead);
        for &line in &ahead {
            self.fetch_ahead(branch, level, line, now);
        }
        self.ahead = ahead;
    }

    fn fetch_ahead(&mut self, branch: usize, level: usize, line: u32, now: f64) {
        // The page is the one of the access, so it has a home; its other lines may be new.
        self.lines.reserve(line);
        let present = (0..=level).any(|l| self.find(branch, l, line).is_some());
        if present || self.is_anothers(branch, line) {
            return;
        }
        self.tally.levels[level].prefetches += 1;
        let mut sets = [0; DEPTH];
        sets[level] = self.set(branch, level, line);
        let mut request = Request {
            branch,
            line,
            write: false,
            first: level,
            ahead: true,
            now,
            sets,
        };
        self.fetch(&mut request);
    }

    /// Whether another branch has a line for itself, where this one cannot look: below the last
    /// level, or in a last level of its own.
    fn is_anothers(&self, branch: usize, line: u32) -> bool {
        let owner = self.lines.private_owner(line);
        let Some(o) = owner.filter(|&o| o != branch) else {
            return false;
        };
        let alone = self.tree.private.max(self.tree.depth - 1);
        (0..alone).any(|level| {
            let apart = self.tree.cache(o, level) != self.tree.cache(branch, level);
            let found = self.find(o, level, line).filter(|_| apart);
            let flags = found.map_or(0, |(_, at)| self.caches[level].flags(at));
            flags & (WRITABLE | DIRTY) != 0
        })
    }

    /// Serves a request that its first level does not have; when it is done, and how many levels
    /// did not have it.
    fn fetch(&mut self, r: &mut Request) -> (f64, usize) {
        self.now = r.now;

        for level in r.first + 1..self.tree.private {
            if let Some(at) = self.look_up(r, level) {
                let done = self.serve_from_branch(r, level, at);
                self.under_way.comes(&self.tree, r, level, done);
                return (done, level);
            }
        }
        self.lines.reserve(r.line);
        let private = self.tree.private.max(r.first + 1);
        let hit = (private..self.tree.depth)
            .find_map(|level| self.look_up(r, level).map(|at| (level, at)));
        let missed = hit.map_or(self.tree.depth, |(level, _)| level);
        self.count_misses(r, hit, missed);
        let served = match hit {
            Some((level, at)) => self.inside(r, level, at),
            None => self.outside(r),
        };
        self.lines.hold(r.line, r.branch);
        self.fill(r, missed, &served);
        self.under_way.comes(&self.tree, r, missed, served.done);
        (served.done, missed)
    }

    /// Counts why levels up to `missed` did not have a line, or keeps it for who will use it.
    fn count_misses(&mut self, r: &Request, hit: Option<(usize, usize)>, missed: usize) {
        if r.ahead {
            let why = self.kind(0, r.branch, r.line, self.lost(0, r.branch, r.line));
            self.under_way.keep_kind(r.branch, r.line, why);
            return;
        }
        let ahead = hit.is_some_and(|(level, at)| self.caches[level].flags(at) & AHEAD != 0);
        let kept = ahead.then(|| self.under_way.take_kind(r.branch, r.line));
        let mut lost = self.lost(0, r.branch, r.line);
        for level in 0..missed {
            if level >= self.tree.private {
                lost = self.lost(level, r.branch, r.line);
            }
            let kind = match kept.flatten() {
                Some(kind) => kind,
                None => self.kind(level, r.branch, r.line, lost),
            };
            self.count_miss(level, kind);
        }
    }

    /// Looks for a line at a level; its place, moved to the front.
    #[inline]
    fn look_up(&mut self, r: &mut Request, level: usize) -> Option<usize> {
        let counts = &mut self.tally.levels[level];
        counts.accesses += u64::from(!r.ahead);
        counts.touches += u64::from(r.ahead);
        let set = self.set(r.branch, level, r.line);
        r.sets[level] = set;
        if level >= self.tree.private && !self.may_have(r.branch, level, r.line) {
            return None;
        }
        let caches = &mut self.caches[level];
        let at = caches.find(set, r.line)?;
        Some(caches.touch(set, at))
    }

    /// Where a line's set begins in the branch's cache of a level.
    #[inline]
    pub(super) fn set(&self, branch: usize, level: usize, line: u32) -> usize {
        self.caches[level].set(self.tree.cache(branch, level), line)
    }

    /// Whether the directory does not know that the branch's cache of a level is without a line.
    #[inline]
    fn may_have(&self, branch: usize, level: usize, line: u32) -> bool {
        let cache = self.tree.cache(branch, level);
        let is_owners = |o| self.tree.cache(o, level) == cache;
        self.lines.is_copy(line, level, cache) || self.lines.owner(line).is_some_and(is_owners)
    }

    /// [`Hierarchy::find`] where the line is likely to be, if the level is the branch's own: a
    /// search then takes less than asking the directory.
    #[inline]
    pub(super) fn find_near(
        &self,
        branch: usize,
        level: usize,
        line: u32,
    ) -> Option<(usize, usize)> {
        if level >= self.tree.private {
            return self.find(branch, level, line);
        }
        let caches = &self.caches[level];
        let set = caches.set(branch, line);
        Some((set, caches.find(set, line)?))
    }

    /// Where a line is in the branch's cache of a level: set and place. Searched only if the
    /// directory does not know that it is not there.
    #[inline]
    pub(super) fn find(&self, branch: usize, level: usize, line: u32) -> Option<(usize, usize)> {
        if !self.may_have(branch, level, line) {
            return None;
        }
        let set = self.set(branch, level, line);
        Some((set, self.caches[level].find(set, line)?))
    }

    /// A hit in the branch, above its first level.
    fn serve_from_branch(&mut self, r: &Request, level: usize, at: usize) -> f64 {
        let flags = self.caches[level].flags(at);
        if !r.ahead {
            let kept = (flags & AHEAD != 0).then(|| self.under_way.take_kind(r.branch, r.line));
            // The branch has the line, so no write took it away.
            for below in 0..level {
                let kind = if let Some(kind) = kept {
                    kind.unwrap_or(MissKind::Cold)
                } else if flags & WRITABLE == 0 && self.lines.any_at(r.line, below) {
                    MissKind::Replication
                } else {
                    MissKind::Capacity
                };
                self.count_miss(below, kind);
            }
        }
        let mut done = r.now + self.latency[level];
        if flags & AHEAD != 0 && !r.ahead {
            self.used(level, at);
            done = self.under_way.there(r.branch, r.line, done);
        }
        let mut private = flags & WRITABLE;
        if r.write && private == 0 {
            done = done.max(self.upgrade(r.branch, r.line, r.now));
            private = WRITABLE;
        }
        let served = Served {
            done,
            below: private,
            last: private,
        };
        self.fill(r, level, &served);
        done
    }

    /// The last two accesses were one, which touched two lines: takes back what was counted
    /// twice. `first` and `second` levels were missed.
    pub fn count_once(&mut self, first: usize, second: usize) {
        let both = first.min(second);
        for level in 0..=both.min(self.tree.depth - 1) {
            self.tally.levels[level].accesses -= 1;
            if level < both {
                self.tally.levels[level].misses[usize::from(self.kinds[level])] -= 1;
            }
        }
        if both > 0 {
            self.last.first_misses -= 1;
            self.last.last_misses -= u64::from(both == self.tree.depth);
        }
    }

    pub(super) fn count_miss(&mut self, level: usize, kind: MissKind) {
        self.kinds[level] = kind as u8;
        self.tally.levels[level].misses[kind as usize] += 1;
    }

    /// Why the branch's cache of a level does not have a line, given [`Hierarchy::lost`].
    #[inline]
    fn kind(&self, level: usize, branch: usize, line: u32, lost: Option<MissKind>) -> MissKind {
        if let Some(kind) = lost {
            return kind;
        }
        let elsewhere = || {
            let (owner, cache) = (self.lines.owner(line), self.tree.cache(branch, level));
            let other = owner.filter(|&o| self.tree.cache(o, level) != cache);
            other.is_some_and(|o| self.find(o, level, line).is_some())
        };
        if self.lines.any_at(line, level) || elsewhere() {
            MissKind::Replication
        } else {
            MissKind::Capacity
        }
    }

    /// Whether the branch's cache of a level never had a line, or lost it to a write: the same for
    /// all levels of its own.
    #[inline]
    fn lost(&self, level: usize, branch: usize, line: u32) -> Option<MissKind> {
        let cache = self.tree.cache(branch, level);
        if self.lines.was_held(&self.tree, line, level, cache) {
            None
        } else if self.lines.was_taken(&self.tree, line, level, cache) {
            Some(MissKind::Invalidation)
        } else {
            Some(MissKind::Cold)
        }
    }
}
