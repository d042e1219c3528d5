//! Outstanding misses (MSHR): lines that were requested and have not arrived. A second access to
//! such a line waits for it.
//!
//! Caches of the model hold a line as soon as it is requested. Its arrival time is kept here, by
//! private hierarchy and by shared cache, for the last lines that each requested: a newer line in the same
//! place of these tables replaces an older one.
use super::cache_tree::CacheTree;
use super::counts::MissKind;
use super::instruction_window::later;
use super::line_request::LineRequest;
use super::simulated_machine::SimulatedMachine;

/// Lines of a private hierarchy.
const ENTRIES_PER_L1: usize = 64;

pub struct OutstandingMisses {
    /// By L1 and line modulo [`ENTRIES_PER_L1`]: line, and when it is there.
    l1s: Vec<(u32, f64)>,
    /// By shared level: how many lines of a cache, and by cache and line modulo that.
    shared: Vec<(usize, Vec<(u32, f64)>)>,
    /// As `l1s`: prefetched lines, and why the private hierarchy did not have them.
    kinds: Vec<(u32, MissKind)>,
    pub timed: bool,
}

impl OutstandingMisses {
    pub fn new(machine: &SimulatedMachine, tree: &CacheTree, timed: bool) -> Self {
        let shared = machine.levels[tree.private..].iter().map(|level| {
            let caches = level.caches as usize;
            let each = tree.l1s.div_ceil(caches) * ENTRIES_PER_L1;
            (each, vec![(0, 0.0); each * caches])
        });
        OutstandingMisses {
            l1s: vec![(0, 0.0); tree.l1s * ENTRIES_PER_L1],
            shared: shared.collect(),
            kinds: vec![(0, MissKind::Cold); tree.l1s * ENTRIES_PER_L1],
            timed,
        }
    }

    /// When a private hierarchy has a line that it found, but not before `ready`.
    #[inline]
    pub fn ready_at(&self, l1: usize, line: u32, ready: f64) -> f64 {
        if !self.timed {
            return ready;
        }
        let (under_way, at) = self.l1s[l1 * ENTRIES_PER_L1 + line as usize % ENTRIES_PER_L1];
        if under_way == line {
            later(ready, at)
        } else {
            ready
        }
    }

    /// The same of a shared cache.
    pub fn ready_at_shared(
        &self,
        tree: &CacheTree,
        r: &LineRequest,
        level: usize,
        ready: f64,
    ) -> f64 {
        if !self.timed {
            return ready;
        }
        let (each, lines) = &self.shared[level - tree.private];
        let cache = tree.cache(r.l1, level);
        let (under_way, at) = lines[cache * each + r.line as usize % each];
        if under_way == r.line {
            later(ready, at)
        } else {
            ready
        }
    }

    /// A requested line, which levels below `missed` did not have, arrives at `done`.
    pub fn add_fill(&mut self, tree: &CacheTree, r: &LineRequest, missed: usize, done: f64) {
        if !self.timed {
            return;
        }
        self.l1s[r.l1 * ENTRIES_PER_L1 + r.line as usize % ENTRIES_PER_L1] = (r.line, done);
        for level in tree.private.max(r.first)..missed {
            let (each, lines) = &mut self.shared[level - tree.private];
            let cache = tree.cache(r.l1, level);
            lines[cache * *each + r.line as usize % *each] = (r.line, done);
        }
    }

    /// A line is prefetched that the private hierarchy does not have, for this reason.
    pub fn note_prefetch_kind(&mut self, l1: usize, line: u32, why: MissKind) {
        self.kinds[l1 * ENTRIES_PER_L1 + line as usize % ENTRIES_PER_L1] = (line, why);
    }

    /// Why a private hierarchy did not have a line that was prefetched for it; removes the reason. `None`: it
    /// was prefetched for another, or too long ago.
    pub fn take_prefetch_kind(&mut self, l1: usize, line: u32) -> Option<MissKind> {
        let kept = &mut self.kinds[l1 * ENTRIES_PER_L1 + line as usize % ENTRIES_PER_L1];
        (kept.0 == line).then(|| {
            kept.0 = 0;
            kept.1
        })
    }
}
