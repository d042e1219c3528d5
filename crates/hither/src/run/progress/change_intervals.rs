//! When threads and pages may follow the phases that the run reaches.
//!
//! `hither map --phases` decided which phases are worth a change (the five conditions of
//! OPT 6.2.2), with t_min in the time of the traced run. The run itself is faster, so that
//! t_min is kept here once more, in its own time: threads move once per second at most
//! (6.2.2), pages once per ten seconds (6.3). A phase that ends before its change may be
//! made is skipped by the threads; the moves of its pages are made up for.
use crate::run::guide::ActivePhases;
use hither_profile::{Nanos, PlacedPhase};

#[derive(Clone, Debug)]
pub struct ChangeIntervals {
    /// Least time between moves of threads, and of pages.
    pub threads: Nanos,
    pub pages: Nanos,
    /// Where the threads are in each phase: phases with the same number have the same.
    placements: Vec<usize>,
    /// Whether pages move at the start of a phase.
    moves: Vec<bool>,
    holding: ActivePhases,
    last: (Option<Nanos>, Option<Nanos>),
}

impl ChangeIntervals {
    pub fn new(phases: &[PlacedPhase], threads: Nanos, pages: Nanos) -> ChangeIntervals {
        let same = |phase: &PlacedPhase| phases.iter().position(|p| p.threads == phase.threads);
        ChangeIntervals {
            threads,
            pages,
            placements: phases.iter().map(|p| same(p).unwrap_or(0)).collect(),
            moves: phases.iter().map(|p| !p.pages.is_empty()).collect(),
            holding: ActivePhases::default(),
            last: (None, None),
        }
    }

    /// What is to hold at a time when phase `reached` has begun.
    pub fn active_phases(&mut self, at: Nanos, reached: usize) -> ActivePhases {
        let over = |last: Option<Nanos>, interval: Nanos| {
            last.is_none_or(|last| at.saturating_sub(last) >= interval)
        };
        let now = &mut self.holding;
        if self.placements[reached] != self.placements[now.threads]
            && over(self.last.0, self.threads)
        {
            now.threads = reached;
            self.last.0 = Some(at);
        }
        let due = (now.pages + 1..=reached).any(|phase| self.moves[phase]);
        if due && over(self.last.1, self.pages) {
            now.pages = reached;
            self.last.1 = Some(at);
        }
        *now
    }

    /// Whether nothing will change any more once the last phase is reached.
    pub fn is_settled(&self) -> bool {
        let last = self.placements.len().saturating_sub(1);
        let due = (self.holding.pages + 1..=last).any(|phase| self.moves[phase]);
        self.placements.get(last) == self.placements.get(self.holding.threads) && !due
    }
}
