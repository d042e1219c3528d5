//! The first level: hits that change next to nothing, and where other accesses go from there.
use super::cache_tree::DEPTH;
use super::hierarchy::CacheHierarchy;
use super::line_request::LineRequest;
use super::tag_array::{DIRTY, PREFETCHED, WRITABLE};

/// What was found of a line in the first level: its set, and its place there.
pub struct FirstLevelPlace {
    set: usize,
    pub at: Option<usize>,
}

impl CacheHierarchy {
    /// A core of `l1` reads or writes `line` at time `now`: when that is done, and how many
    /// levels it missed.
    pub fn access(&mut self, l1: usize, line: u32, write: bool, now: f64) -> (f64, usize) {
        match self.plain_access(l1, line, write, now) {
            Ok(done) => (done, 0),
            Err(found) => self.access_past_l1(found, l1, line, write, now),
        }
    }

    /// The same where it is a plain hit, which changes nothing but the order of use and makes the line dirty if it writes.
    ///
    /// # Errors
    /// With what else was found of the first level, if not: then nothing has happened.
    #[inline(always)]
    pub fn plain_access(
        &mut self,
        l1: usize,
        line: u32,
        write: bool,
        now: f64,
    ) -> Result<f64, FirstLevelPlace> {
        // Private hierarchies have the numbers of their first caches.
        let first = &mut self.caches[0];
        let set = first.set_of(l1, line);
        if !first.is_plain_mru_hit(set, line, write) {
            let at = first.find_way(set, line);
            let plain = at.filter(|&at| first.plain_hit(at, line, write));
            first.touch_way(set, plain.ok_or(FirstLevelPlace { set, at })?);
        }
        self.counts.levels[0].accesses += 1;
        let ready = now + self.first_latency;
        Ok(self.under_way.ready_at(l1, line, ready))
    }

    /// An access that is no plain hit.
    pub fn access_past_l1(
        &mut self,
        found: FirstLevelPlace,
        l1: usize,
        line: u32,
        write: bool,
        now: f64,
    ) -> (f64, usize) {
        self.counts.levels[0].accesses += 1;
        let Some(at) = found.at else {
            return self.miss_first_level(found.set, l1, line, write, now);
        };
        let at = self.caches[0].touch_way(found.set, at);
        (self.hit_first_level(at, l1, line, write, now), 0)
    }

    /// Whether a private hierarchy's first level has a line.
    #[inline]
    pub fn first_level_has(&self, l1: usize, line: u32) -> bool {
        let first = &self.caches[0];
        let set = first.set_of(l1, line);
        first.is_mru(set, line) || first.find_way(set, line).is_some()
    }

    /// A hit on a prefetched line, or a write that needs permission.
    #[cold]
    fn hit_first_level(&mut self, at: usize, l1: usize, line: u32, write: bool, now: f64) -> f64 {
        let flags = self.caches[0].flags(at);
        let mut done = self.under_way.ready_at(l1, line, now + self.first_latency);
        if write {
            if flags & WRITABLE == 0 {
                self.now = now;
                done = done.max(self.upgrade(l1, line, now));
            }
            self.caches[0].set_flags(at, DIRTY);
        }
        if flags & PREFETCHED != 0 {
            self.count_useful_prefetch(0, at);
            self.train_prefetcher(l1, 0, line, now);
        }
        done
    }

    #[inline(never)]
    fn miss_first_level(
        &mut self,
        set: usize,
        l1: usize,
        line: u32,
        write: bool,
        now: f64,
    ) -> (f64, usize) {
        let mut sets = [0; DEPTH];
        sets[0] = set;
        let mut request = LineRequest {
            l1,
            line,
            write,
            first: 0,
            ahead: false,
            now,
            sets,
        };
        self.first_use = false;
        let (done, missed) = self.serve_miss(&mut request);
        // The first use of a prefetched line triggers the prefetcher like a miss.
        let shown = missed + usize::from(self.first_use);
        self.last.first_misses += 1;
        self.last.last_misses += u64::from(missed == self.tree.depth);
        if self.looks_ahead {
            for level in 0..shown {
                self.train_prefetcher(l1, level, line, now);
            }
        }
        (done, missed)
    }
}
