//! Lines that were asked for and are not there yet: who wants one meanwhile waits for it.
//!
//! Caches of the model have a line as soon as somebody asked for it. When it really is there is
//! kept here, by branch and by shared cache: for the last lines that each asked for, in tables
//! that forget a line when another takes its place.
use super::hierarchy::Request;
use super::machine::Machine;
use super::outcome::MissKind;
use super::tree::Tree;

/// Lines of a branch.
const EACH: usize = 64;

pub struct UnderWay {
    /// By branch and line modulo [`EACH`]: line, and when it is there.
    branches: Vec<(u32, f64)>,
    /// By shared level: how many lines of a cache, and by cache and line modulo that.
    shared: Vec<(usize, Vec<(u32, f64)>)>,
    /// As `branches`: lines that were fetched ahead, and why the branch did not have them.
    kinds: Vec<(u32, MissKind)>,
    timed: bool,
}

impl UnderWay {
    pub fn new(machine: &Machine, tree: &Tree, timed: bool) -> Self {
        let shared = machine.levels[tree.private..].iter().map(|level| {
            let caches = level.caches as usize;
            let each = tree.branches.div_ceil(caches) * EACH;
            (each, vec![(0, 0.0); each * caches])
        });
        UnderWay {
            branches: vec![(0, 0.0); tree.branches * EACH],
            shared: shared.collect(),
            kinds: vec![(0, MissKind::Cold); tree.branches * EACH],
            timed,
        }
    }

    /// When a branch has a line that it found, but not before `ready`.
    #[inline]
    pub fn there(&self, branch: usize, line: u32, ready: f64) -> f64 {
        if !self.timed {
            return ready;
        }
        let (under_way, at) = self.branches[branch * EACH + line as usize % EACH];
        if under_way == line {
            ready.max(at)
        } else {
            ready
        }
    }

    /// The same of a shared cache.
    pub fn there_shared(&self, tree: &Tree, r: &Request, level: usize, ready: f64) -> f64 {
        if !self.timed {
            return ready;
        }
        let (each, lines) = &self.shared[level - tree.private];
        let cache = tree.cache(r.branch, level);
        let (under_way, at) = lines[cache * each + r.line as usize % each];
        if under_way == r.line {
            ready.max(at)
        } else {
            ready
        }
    }

    /// A line that was asked for, and that levels below `missed` did not have, comes at `done`.
    pub fn comes(&mut self, tree: &Tree, r: &Request, missed: usize, done: f64) {
        if !self.timed {
            return;
        }
        self.branches[r.branch * EACH + r.line as usize % EACH] = (r.line, done);
        for level in tree.private.max(r.first)..missed {
            let (each, lines) = &mut self.shared[level - tree.private];
            let cache = tree.cache(r.branch, level);
            lines[cache * *each + r.line as usize % *each] = (r.line, done);
        }
    }

    /// A line is fetched ahead that the branch does not have, for this reason.
    pub fn keep_kind(&mut self, branch: usize, line: u32, why: MissKind) {
        self.kinds[branch * EACH + line as usize % EACH] = (line, why);
    }

    /// Why a branch did not have a line that was fetched ahead for it; asked once. `None`: it was
    /// for another, or too many were since.
    pub fn take_kind(&mut self, branch: usize, line: u32) -> Option<MissKind> {
        let kept = &mut self.kinds[branch * EACH + line as usize % EACH];
        (kept.0 == line).then(|| {
            kept.0 = 0;
            kept.1
        })
    }
}
