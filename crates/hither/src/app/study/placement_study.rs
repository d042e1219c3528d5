//! All simulations of a study: what is played once, what a race gives up, several at a time.
use std::collections::BTreeSet;

use anyhow::Result;

use super::candidates::{CandidatePlanner, PlacementCandidate};
use super::forecast::CandidateResult;
use super::options::SimOptions;
use super::progress::Progress;
use super::race;
use super::replay::{
    side_by_side, AddressGroup, ReplayMonitor, ReplayResult, ReplaySetup, WindowParts,
};
use super::run_recording::SimWindow;
use super::shared_starts::SharedStarts;
use super::structures::StructureIndex;
use super::warm_up::WarmUp;
use hither_model::simulate::replay_input::replay_plan::ReplayPlan;

/// The share of what is played of a window that only warms the caches.
pub const COLD: f64 = 0.25;

/// What is played, and how it was asked for.
pub struct PlacementStudy<'a> {
    pub options: &'a SimOptions,
    pub stand: ReplaySetup<'a>,
    pub progress: &'a dyn Progress,
}

impl PlacementStudy<'_> {
    pub fn planner(&self) -> CandidatePlanner<'_> {
        CandidatePlanner {
            recording: self.stand.recording,
            windows: self.stand.windows,
            model: self.stand.model,
            options: self.options,
        }
    }

    /// What counts of what is played of each window.
    pub fn parts(&self, warm: WarmUp) -> [(f64, bool); 2] {
        if self.options.short.is_none() {
            return [(warm.share, false), (1.0, true)];
        }
        let cold = match self.stand.recording.is_whole() {
            true => 0.0,
            false => COLD,
        };
        [(cold, false), (1.0, true)]
    }

    /// Plays all candidates with all seeds; what came of those that a race does not give up, and whether some accesses
    /// could not be read.
    pub fn simulate(
        &self,
        candidates: Vec<PlacementCandidate>,
        parts: WindowParts,
        structures: Option<&StructureIndex>,
    ) -> Result<(Vec<CandidateResult>, bool)> {
        let plans: Vec<&ReplayPlan> = candidates.iter().flat_map(|c| &c.plans).collect();
        let (played, same) = self.distinct(&plans);
        let mut same = same.into_iter();
        let plans_of = |c: &PlacementCandidate| same.by_ref().take(c.plans.len()).collect();
        let plans_of: Vec<Vec<usize>> = candidates.iter().map(plans_of).collect();
        let mut stays = vec![true; candidates.len()];
        let mut results = vec![ReplayResult::default(); played.len()];
        let mut damaged = false;
        let is_race = self.is_race(candidates.len());
        let parts_of_run = race::parts(self.stand.windows.len(), is_race);
        for (nth, windows) in parts_of_run.iter().enumerate() {
            if nth > 0 {
                stays = race::may_win(&times(&plans_of, &results));
            }
            let needed = plans_of.iter().zip(&stays).filter(|(_, stays)| **stays);
            let needed: BTreeSet<usize> = needed.flat_map(|(plans, _)| plans).copied().collect();
            let needed: Vec<usize> = needed.into_iter().collect();
            let plans: Vec<&ReplayPlan> = needed.iter().map(|at| played[*at]).collect();
            let (found, broken) = self.play(&plans, windows, parts, structures)?;
            damaged |= broken;
            for (at, found) in needed.into_iter().zip(found) {
                results[at].absorb(found);
            }
        }
        let told_apart = structures.map_or(0, |s| s.names.len());
        let seed_error = self.options.short.map_or(0.0, |short| short.seed_error);
        let all = candidates.into_iter().zip(plans_of).zip(stays);
        let summed_up = all
            .filter(|(_, stays)| *stays)
            .map(|((candidate, plans), _)| {
                let runs = plans.iter().map(|at| results[*at].clone());
                let played = CandidateResult::summarise_runs(candidate, runs, told_apart);
                played.with_seed_error(seed_error)
            });
        Ok((summed_up.collect(), damaged))
    }

    /// Whether placements race: only the fastest of several is wanted, and windows are many, each with caches as they were.
    fn is_race(&self, candidates: usize) -> bool {
        let enough = candidates > 2 && self.stand.windows.len() >= race::LEAST_WINDOWS;
        enough && self.options.short.is_some() && self.stand.warming.is_some()
    }

    /// Plays plans in windows by position; whether some accesses could not be read.
    fn play(
        &self,
        plans: &[&ReplayPlan],
        windows: &[usize],
        parts: WindowParts,
        structures: Option<&StructureIndex>,
    ) -> Result<(Vec<ReplayResult>, bool)> {
        let played = windows.iter().map(|at| &self.stand.windows[*at]);
        let steps = played.clone().map(|w| 1 + w.before.len()).sum::<usize>() * plans.len();
        let steps = self.progress.begin(steps as u64, "windows simulated");
        let step = || steps.step();
        let heard = ReplayMonitor::new(&step);
        let number = |window: &SimWindow, address: u64| {
            structures.map_or(0, |s| s.structure_at(window, address))
        };
        let starts = SharedStarts::new(self.stand.recording, played, plans.len());
        let stand = ReplaySetup {
            starts: Some(&starts),
            ..self.stand
        };
        let results = side_by_side(plans.len(), self.options.jobs, |at| {
            let group = structures.map(|_| &number as AddressGroup);
            stand.replay_plan(plans[at], windows, parts, group, &heard)
        })?;
        Ok((results, heard.damaged()))
    }

    /// Plans without those that put threads and pages where one before does, and of each plan which of them it is: policies often
    /// agree, as where every core gets a thread or pages are placed where they are anyway, and are played once.
    fn distinct<'p>(&self, plans: &[&'p ReplayPlan]) -> (Vec<&'p ReplayPlan>, Vec<usize>) {
        let layouts = || {
            let windows = self.stand.windows.iter();
            let windows = windows.flat_map(|w| w.before.iter().chain([w]));
            windows.map(|window| &window.layout)
        };
        distinct(plans, |one, other| {
            let homes = |plan| self.stand.page_homes(plan);
            homes(one).are_those_of(&homes(other), layouts())
        })
    }
}

/// Of each candidate the cycles by plan and window, given its plans and what came of all.
fn times(plans_of: &[Vec<usize>], results: &[ReplayResult]) -> Vec<Vec<Vec<f64>>> {
    let cycles = |at: &usize| {
        let windows = results[*at].windows.iter().flatten();
        windows.map(|counts| counts.cycles).collect()
    };
    let of_candidate = |plans: &Vec<usize>| plans.iter().map(cycles).collect();
    plans_of.iter().map(of_candidate).collect()
}

/// Plans without those that are the `same` as one before, and of each plan which of them it is.
fn distinct<'a>(
    plans: &[&'a ReplayPlan],
    same: impl Fn(&ReplayPlan, &ReplayPlan) -> bool,
) -> (Vec<&'a ReplayPlan>, Vec<usize>) {
    let mut found: Vec<&ReplayPlan> = Vec::new();
    let known = plans.iter().map(|plan| {
        let known = found.iter().position(|known| same(known, plan));
        known.unwrap_or_else(|| {
            found.push(plan);
            found.len() - 1
        })
    });
    let known = known.collect();
    (found, known)
}

#[cfg(test)]
#[path = "placement_study_tests.rs"]
mod tests;
