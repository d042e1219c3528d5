//! Outstanding misses (MSHR): lines that were requested and have not arrived. A second access to
//! such a line waits for it.
//!
//! Caches of the model hold a line as soon as it is requested. Its arrival time is kept here, by
//! branch and by shared cache, for the last lines that each requested: a newer line in the same
//! place of these tables replaces an older one.
use super::cache_tree::CacheTree;
use super::counts::MissKind;
use super::instruction_window::later;
use super::line_request::LineRequest;
use super::simulated_machine::SimulatedMachine;

/// Lines of a branch.
const ENTRIES_PER_BRANCH: usize = 64;

pub struct OutstandingMisses {
    /// By branch and line modulo [`ENTRIES_PER_BRANCH`]: line, and when it is there.
    branches: Vec<(u32, f64)>,
    /// By shared level: how many lines of a cache, and by cache and line modulo that.
    shared: Vec<(usize, Vec<(u32, f64)>)>,
    /// As `branches`: prefetched lines, and why the branch did not have them.
    kinds: Vec<(u32, MissKind)>,
    timed: bool,
}

impl OutstandingMisses {
    pub fn new(machine: &SimulatedMachine, tree: &CacheTree, timed: bool) -> Self {
        let shared = machine.levels[tree.private..].iter().map(|level| {
            let caches = level.caches as usize;
            let each = tree.branches.div_ceil(caches) * ENTRIES_PER_BRANCH;
            (each, vec![(0, 0.0); each * caches])
        });
        OutstandingMisses {
            branches: vec![(0, 0.0); tree.branches * ENTRIES_PER_BRANCH],
            shared: shared.collect(),
            kinds: vec![(0, MissKind::Cold); tree.branches * ENTRIES_PER_BRANCH],
            timed,
        }
    }

    /// When a branch has a line that it found, but not before `ready`.
    #[inline]
    pub fn ready_at(&self, branch: usize, line: u32, ready: f64) -> f64 {
        if !self.timed {
            return ready;
        }
        let (under_way, at) =
            self.branches[branch * ENTRIES_PER_BRANCH + line as usize % ENTRIES_PER_BRANCH];
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
        let cache = tree.cache(r.branch, level);
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
        self.branches[r.branch * ENTRIES_PER_BRANCH + r.line as usize % ENTRIES_PER_BRANCH] =
            (r.line, done);
        for level in tree.private.max(r.first)..missed {
            let (each, lines) = &mut self.shared[level - tree.private];
            let cache = tree.cache(r.branch, level);
            lines[cache * *each + r.line as usize % *each] = (r.line, done);
        }
    }

    /// A line is prefetched that the branch does not have, for this reason.
    pub fn note_prefetch_kind(&mut self, branch: usize, line: u32, why: MissKind) {
        self.kinds[branch * ENTRIES_PER_BRANCH + line as usize % ENTRIES_PER_BRANCH] = (line, why);
    }

    /// Why a branch did not have a line that was prefetched for it; removes the reason. `None`: it
    /// was prefetched for another, or too long ago.
    pub fn take_prefetch_kind(&mut self, branch: usize, line: u32) -> Option<MissKind> {
        let kept =
            &mut self.kinds[branch * ENTRIES_PER_BRANCH + line as usize % ENTRIES_PER_BRANCH];
        (kept.0 == line).then(|| {
            kept.0 = 0;
            kept.1
        })
    }
}
