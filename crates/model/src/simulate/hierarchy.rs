//! The path of an access through the caches to memory.
//!
//! A request goes up its private hierarchy, then through the shared caches of its domain, then to the home of
//! its line, whose directory sends it on to the owner or to memory (`coherence.rs`). The line is
//! then put into all caches on the way back (`cache_fill.rs`).
use super::cache_tree::{CacheTree, DEPTH};
use super::counts::{ActivityCounts, LevelCounts, MissKind, NodeCounts};
use super::directory::Directory;
use super::dram::MemorySystem;
use super::frame_table::FrameTable;
use super::interconnect::Interconnect;
use super::line_request::{LineRequest, RequestOutcome};
use super::outstanding_misses::OutstandingMisses;
use super::prefetcher::LevelPrefetchers;
use super::simulated_machine::{CoherenceProtocol, SimulatedMachine};
use super::tag_array::{TagArray, DIRTY, PREFETCHED, WRITABLE};

/// What was counted since the last [`CacheHierarchy::clear_counts`].
#[derive(Default)]
pub struct HierarchyCounts {
    pub levels: [LevelCounts; DEPTH],
    pub invalidations: u64,
    pub transfers_inside: u64,
    pub transfers_between: u64,
    pub link_bytes: Vec<u64>,
    pub nodes: Vec<NodeCounts>,
}

pub struct CacheHierarchy {
    pub(super) tree: CacheTree,
    pub(super) caches: Vec<TagArray>,
    pub(super) latency: Vec<f64>,
    pub(super) first_latency: f64,
    pub(super) inclusive: Vec<bool>,
    pub(super) lines: Directory,
    pub pages: FrameTable,
    pub(super) interconnect: Interconnect,
    pub(super) memory: MemorySystem,
    pub(super) moesi: bool,
    prefetchers: Vec<Option<LevelPrefetchers>>,
    pub(super) looks_ahead: bool,
    ahead: Vec<u32>,
    pub(super) under_way: OutstandingMisses,
    /// Whether the last accesses hit a prefetched line.
    pub first_use: bool,
    /// When the request that is being served left its core.
    pub(super) now: f64,
    /// Domains that lost a copy to the write being served.
    pub(super) losers: Vec<usize>,
    pub counts: HierarchyCounts,
    /// Counts of the accesses since they were last taken; time and accesses stay 0.
    pub last: ActivityCounts,
    /// The kinds of the last access's misses, by level.
    pub kinds: [u8; DEPTH],
}

impl CacheHierarchy {
    /// For a checked machine.
    pub fn new(machine: &SimulatedMachine, timed: bool) -> Self {
        let pages = FrameTable::new(machine);
        let prefetcher = |level: &super::simulated_machine::CacheLevelParameters| {
            let kind = level.prefetch.as_ref()?;
            Some(LevelPrefetchers::new(
                kind,
                level.caches,
                pages.lines_per_page(),
            ))
        };
        let levels = &machine.levels;
        let tree = CacheTree::new(machine);
        let mut new = CacheHierarchy {
            caches: levels
                .iter()
                .map(|level| TagArray::new(level, machine.line))
                .collect(),
            first_latency: f64::from(levels[0].latency),
            latency: levels.iter().map(|l| f64::from(l.latency)).collect(),
            inclusive: levels.iter().map(|l| l.inclusive).collect(),
            lines: Directory::new(machine),
            interconnect: Interconnect::new(machine, timed),
            memory: MemorySystem::new(machine, timed),
            moesi: machine.protocol == CoherenceProtocol::Moesi,
            prefetchers: levels.iter().map(prefetcher).collect(),
            looks_ahead: looks_ahead(machine),
            ahead: Vec::new(),
            under_way: OutstandingMisses::new(machine, &tree, timed),
            first_use: false,
            now: 0.0,
            losers: Vec::new(),
            counts: HierarchyCounts::default(),
            last: ActivityCounts::default(),
            kinds: [0; DEPTH],
            tree,
            pages,
        };
        new.clear_counts(machine);
        new
    }

    /// Whether anything waits from now on.
    pub(super) fn set_timed(&mut self, timed: bool) {
        self.interconnect.timed = timed;
        self.memory.timed = timed;
        self.under_way.timed = timed;
    }

    /// Resets the counts.
    pub fn clear_counts(&mut self, machine: &SimulatedMachine) {
        self.counts = HierarchyCounts {
            link_bytes: vec![0; machine.links.links.len()],
            nodes: vec![NodeCounts::default(); machine.nodes.len()],
            ..HierarchyCounts::default()
        };
    }

    /// A prefetched line is used.
    pub(super) fn count_useful_prefetch(&mut self, level: usize, at: usize) {
        self.caches[level].clear_flags(at, PREFETCHED);
        self.counts.levels[level].useful += 1;
        self.first_use = true;
    }

    /// Passes a request to a prefetcher, and makes the prefetches that it asks for.
    pub(super) fn train_prefetcher(&mut self, l1: usize, level: usize, line: u32, now: f64) {
        let Some(prefetcher) = &mut self.prefetchers[level] else {
            return;
        };
        let mut ahead = std::mem::take(&mut self.ahead);
        prefetcher.observe(self.tree.cache(l1, level), line, &mut ahead);
        for &line in &ahead {
            self.prefetch_line(l1, level, line, now);
        }
        self.ahead = ahead;
    }

    fn prefetch_line(&mut self, l1: usize, level: usize, line: u32, now: f64) {
        // The page is the one of the access, so it has a home; its other lines may be new.
        self.lines.reserve(line);
        let present = (0..=level).any(|l| self.find(l1, l, line).is_some());
        if present || self.is_owned_elsewhere(l1, line) {
            return;
        }
        self.counts.levels[level].prefetches += 1;
        let mut sets = [0; DEPTH];
        sets[level] = self.set_of(l1, level, line);
        let mut request = LineRequest {
            l1,
            line,
            write: false,
            first: level,
            ahead: true,
            now,
            sets,
        };
        self.serve_miss(&mut request);
    }

    /// Whether another private hierarchy owns a line where this one does not look: below the last level, or in
    /// a last level of its own.
    fn is_owned_elsewhere(&self, l1: usize, line: u32) -> bool {
        let owner = self.lines.private_owner(line);
        let Some(o) = owner.filter(|&o| o != l1) else {
            return false;
        };
        let alone = self.tree.private.max(self.tree.depth - 1);
        (0..alone).any(|level| {
            let apart = self.tree.cache(o, level) != self.tree.cache(l1, level);
            let found = self.find(o, level, line).filter(|_| apart);
            let flags = found.map_or(0, |(_, at)| self.caches[level].flags(at));
            flags & (WRITABLE | DIRTY) != 0
        })
    }

    /// Serves a request that its first level does not have; when it is done, and how many levels
    /// did not have it.
    pub(super) fn serve_miss(&mut self, r: &mut LineRequest) -> (f64, usize) {
        self.now = r.now;

        for level in r.first + 1..self.tree.private {
            if let Some(at) = self.look_up(r, level) {
                let done = self.serve_from_l1(r, level, at);
                self.under_way.add_fill(&self.tree, r, level, done);
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
            Some((level, at)) => self.serve_in_domain(r, level, at),
            None => self.serve_by_directory(r),
        };
        self.lines.add_holder(r.line, r.l1);
        self.fill(r, missed, &served);
        self.under_way.add_fill(&self.tree, r, missed, served.done);
        (served.done, missed)
    }

    /// Counts why levels up to `missed` did not have a line, or keeps the reason until a demand access uses the line.
    fn count_misses(&mut self, r: &LineRequest, hit: Option<(usize, usize)>, missed: usize) {
        if r.ahead {
            let why = self.miss_kind(
                0,
                r.l1,
                r.line,
                self.never_held_or_invalidated(0, r.l1, r.line),
            );
            self.under_way.note_prefetch_kind(r.l1, r.line, why);
            return;
        }
        let ahead = hit.is_some_and(|(level, at)| self.caches[level].flags(at) & PREFETCHED != 0);
        let kept = ahead.then(|| self.under_way.take_prefetch_kind(r.l1, r.line));
        let mut lost = self.never_held_or_invalidated(0, r.l1, r.line);
        for level in 0..missed {
            if level >= self.tree.private {
                lost = self.never_held_or_invalidated(level, r.l1, r.line);
            }
            let kind = match kept.flatten() {
                Some(kind) => kind,
                None => self.miss_kind(level, r.l1, r.line, lost),
            };
            self.count_miss(level, kind);
        }
    }

    /// Looks for a line at a level; its place, moved to the front.
    #[inline]
    pub(super) fn look_up(&mut self, r: &mut LineRequest, level: usize) -> Option<usize> {
        let counts = &mut self.counts.levels[level];
        counts.accesses += u64::from(!r.ahead);
        counts.touches += u64::from(r.ahead);
        let set = self.set_of(r.l1, level, r.line);
        r.sets[level] = set;
        if level >= self.tree.private && !self.may_have(r.l1, level, r.line) {
            return None;
        }
        let caches = &mut self.caches[level];
        let at = caches.find_way(set, r.line)?;
        Some(caches.touch_way(set, at))
    }

    /// Where a line's set begins in the private hierarchy's cache of a level.
    #[inline]
    pub(super) fn set_of(&self, l1: usize, level: usize, line: u32) -> usize {
        self.caches[level].set_of(self.tree.cache(l1, level), line)
    }

    /// Whether the directory does not know that the private hierarchy's cache of a level is without a line.
    #[inline]
    fn may_have(&self, l1: usize, level: usize, line: u32) -> bool {
        let cache = self.tree.cache(l1, level);
        let is_owners = |o| self.tree.cache(o, level) == cache;
        self.lines.is_sharer(line, level, cache) || self.lines.owner(line).is_some_and(is_owners)
    }

    /// [`CacheHierarchy::find`] where the line is likely to be, if the level is the private hierarchy's own: a
    /// search then takes less than asking the directory.
    #[inline]
    pub(super) fn find_likely(&self, l1: usize, level: usize, line: u32) -> Option<(usize, usize)> {
        if level >= self.tree.private {
            return self.find(l1, level, line);
        }
        let caches = &self.caches[level];
        let set = caches.set_of(l1, line);
        Some((set, caches.find_way(set, line)?))
    }

    /// Where a line is in the private hierarchy's cache of a level: set and place. Searched only if the
    /// directory does not know that it is not there.
    #[inline]
    pub(super) fn find(&self, l1: usize, level: usize, line: u32) -> Option<(usize, usize)> {
        if !self.may_have(l1, level, line) {
            return None;
        }
        let set = self.set_of(l1, level, line);
        Some((set, self.caches[level].find_way(set, line)?))
    }

    /// A hit in the private hierarchy, above its first level.
    fn serve_from_l1(&mut self, r: &LineRequest, level: usize, at: usize) -> f64 {
        let flags = self.caches[level].flags(at);
        if !r.ahead {
            let kept =
                (flags & PREFETCHED != 0).then(|| self.under_way.take_prefetch_kind(r.l1, r.line));
            // The private hierarchy has the line, so no write took it away.
            for below in 0..level {
                let kind = if let Some(kind) = kept {
                    kind.unwrap_or(MissKind::Cold)
                } else if flags & WRITABLE == 0 && self.lines.has_sharers_at(r.line, below) {
                    MissKind::Replication
                } else {
                    MissKind::Capacity
                };
                self.count_miss(below, kind);
            }
        }
        let mut done = r.now + self.latency[level];
        if flags & PREFETCHED != 0 && !r.ahead {
            self.count_useful_prefetch(level, at);
            done = self.under_way.ready_at(r.l1, r.line, done);
        }
        let mut private = flags & WRITABLE;
        if r.write && private == 0 {
            done = done.max(self.upgrade(r.l1, r.line, r.now));
            private = WRITABLE;
        }
        let served = RequestOutcome {
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
            self.counts.levels[level].accesses -= 1;
            if level < both {
                self.counts.levels[level].misses[usize::from(self.kinds[level])] -= 1;
            }
        }
        if both > 0 {
            self.last.first_misses -= 1;
            self.last.last_misses -= u64::from(both == self.tree.depth);
        }
    }

    pub(super) fn count_miss(&mut self, level: usize, kind: MissKind) {
        self.kinds[level] = kind as u8;
        self.counts.levels[level].misses[kind as usize] += 1;
    }

    /// Why the private hierarchy's cache of a level does not have a line, given [`CacheHierarchy::lost`].
    #[inline]
    fn miss_kind(&self, level: usize, l1: usize, line: u32, lost: Option<MissKind>) -> MissKind {
        if let Some(kind) = lost {
            return kind;
        }
        let elsewhere = || {
            let (owner, cache) = (self.lines.owner(line), self.tree.cache(l1, level));
            let other = owner.filter(|&o| self.tree.cache(o, level) != cache);
            other.is_some_and(|o| self.find(o, level, line).is_some())
        };
        if self.lines.has_sharers_at(line, level) || elsewhere() {
            MissKind::Replication
        } else {
            MissKind::Capacity
        }
    }

    /// Whether the private hierarchy's cache of a level never had a line, or lost it to a write: the same for
    /// all levels of its own.
    #[inline]
    fn never_held_or_invalidated(&self, level: usize, l1: usize, line: u32) -> Option<MissKind> {
        let cache = self.tree.cache(l1, level);
        if self.lines.was_held(&self.tree, line, level, cache) {
            None
        } else if self.lines.was_invalidated(&self.tree, line, level, cache) {
            Some(MissKind::Invalidation)
        } else {
            Some(MissKind::Cold)
        }
    }
}

/// Whether any level has a prefetcher.
pub(super) fn looks_ahead(machine: &SimulatedMachine) -> bool {
    machine.levels.iter().any(|level| level.prefetch.is_some())
}
