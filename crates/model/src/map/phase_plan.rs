//! Placements by communication phase.
//!
//! ```text
//!   phases   |--- A ---|-- B --|--- A ---|------ C ------|
//!   threads  ^ start                     ^ what C gains exceeds the moves
//!   pages    ^ start   ^ each page where it gains        ^ ...
//! ```
//! Phases are detected elsewhere. This module decides which of them get a placement of their own:
//! all together ([`plan_threads_together`]), so that no remap costs more than it gains until the next
//! one; or by the paper's rule ([`plan_threads_by_rule`], OPT 6.2.2), in order. `page_plan` decides which
//! pages move when.
mod page_plan;
mod periodic_mapping;

pub use page_plan::{plan_pages, PagePlan, PageStep, PageTiming, StagedPages};

pub use periodic_mapping::plan_threads_by_period;

pub use super::migration::{MigrationLimits, PhaseRule};

use super::cheapest_stages::StageChoice;
use super::PuAssignment;
use hither_profile::{CommMatrix, Nanos, Profile, Slice, SliceIx};
use serde::Serialize;
use std::ops::Range;

/// A phase and its communication.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseCommunication {
    /// Slices of the run, by number.
    pub slices: Range<usize>,
    /// Start of the first slice, ns since the start of the run.
    pub start: Nanos,
    /// How long it was counted, ns: its duration, but for what `--from` and `--until` leave out.
    pub counted: Nanos,
    /// Communication while it lasts.
    pub matrix: CommMatrix,
    /// Which threads take part in the run's work: the T of C_H and C_A.
    pub working: Vec<bool>,
    /// Who communicates with whom is no chance, so that it is worth a placement.
    pub stable: bool,
}

/// The phases of a profile, given as ranges of its slices, in order and without gaps.
#[must_use]
pub fn phases_of_profile(profile: &Profile, ranges: &[Range<usize>]) -> Vec<PhaseCommunication> {
    let end = profile
        .slices
        .last()
        .map_or(0, |s| s.start.saturating_add(s.length));
    let start_of = |slice: usize| profile.slices.get(slice).map_or(end, |s| s.start);
    let paused = |slices: &Range<usize>| {
        let of_phase = profile.slices.get(slices.clone()).unwrap_or_default();
        of_phase.iter().map(|s| s.paused).sum::<Nanos>()
    };
    let mut phases: Vec<PhaseCommunication> = ranges
        .iter()
        .map(|slices| PhaseCommunication {
            slices: slices.clone(),
            start: start_of(slices.start),
            counted: start_of(slices.end)
                .saturating_sub(start_of(slices.start))
                .saturating_sub(paused(slices)),
            matrix: CommMatrix::new(profile.threads.len()),
            working: profile.working_threads(),
            stable: true,
        })
        .collect();
    for c in &profile.comm {
        let at = ranges.partition_point(|r| r.end <= c.slice.at());
        if let Some(phase) = phases.get_mut(at) {
            phase.matrix.add(c.i.at(), c.j.at(), c.events);
        }
    }
    phases
}

/// The five conditions of OPT 6.2.2 for the threads to move at the start of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MigrationConditions {
    /// C_H of the phase (OPT eq. 2), 0 to 2500.
    pub heterogeneity_value: f64,
    /// C_A of the phase (OPT eq. 3) per second.
    pub amount_value: f64,
    /// 1: the communication phase has changed.
    pub phase_changed: bool,
    /// 2: C_H is higher than H_min.
    pub heterogeneity: bool,
    /// 3: the last migration is at least t_min ago, or there was none.
    pub time: bool,
    /// 4: C_A per second is higher than A_min.
    pub amount: bool,
    /// 5: the mapping calculated differs; `None` when the others already say no, and none
    /// was calculated.
    pub mapping_differs: Option<bool>,
}

impl MigrationConditions {
    fn evaluate(phase: &PhaseCommunication, limits: &MigrationLimits) -> MigrationConditions {
        let matrix = phase.matrix.among(&phase.working);
        let heterogeneity_value = matrix.heterogeneity();
        let seconds = phase.counted as f64 / 1e9;
        let amount_value = if seconds > 0.0 {
            matrix.amount() / seconds
        } else {
            0.0
        };
        MigrationConditions {
            heterogeneity_value,
            amount_value,
            phase_changed: false,
            heterogeneity: heterogeneity_value > limits.heterogeneity,
            time: true,
            amount: amount_value > limits.amount,
            mapping_differs: None,
        }
    }

    /// Whether the phase is worth a mapping, whatever came before.
    fn is_worth_mapping(&self) -> bool {
        self.heterogeneity && self.amount
    }

    /// Whether the threads move.
    #[must_use]
    pub fn allow_migration(&self) -> bool {
        self.phase_changed
            && self.is_worth_mapping()
            && self.time
            && self.mapping_differs == Some(true)
    }
}

/// A time during which the threads stay where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadStage {
    /// First slice; the stage lasts until the next one's.
    pub slice: SliceIx,
    /// From when on the placement holds, ns since the start of the run.
    pub start: Nanos,
    /// The phase for whose communication it was made; `None` for that of the whole run.
    pub phase: Option<usize>,
    /// The unit of each thread.
    pub threads: PuAssignment,
    /// Threads that are elsewhere than in the stage before.
    pub moved: usize,
}

impl ThreadStage {
    /// Threads that stay where they are from beginning to end.
    #[must_use]
    pub fn whole_run(threads: PuAssignment) -> ThreadStage {
        ThreadStage {
            slice: SliceIx(0),
            start: 0,
            phase: None,
            threads,
            moved: 0,
        }
    }
}

/// Where the threads are when, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadPlan {
    /// In order, the first from the start of the run.
    pub stages: Vec<ThreadStage>,
    /// For each phase.
    pub conditions: Vec<MigrationConditions>,
}

/// Decides which phases get their own thread mapping, as OPT 6.2.2 does: the five conditions are asked
/// in every slice, so that a phase which begins too early after a migration gets its mapping later, if
/// it lasts. The run starts with the first mapping calculated (OPT 6.4): that of the first phase whose
/// communication is worth one, or, where none is, that of the whole run. `map` calculates a mapping
/// for a matrix, from the one in use if there is one.
///
/// # Errors
/// When `map` has one.
pub fn plan_threads_by_rule(
    phases: &[PhaseCommunication],
    slices: &[Slice],
    limits: &MigrationLimits,
    mut map: impl FnMut(&CommMatrix, Option<&[u32]>) -> Result<PuAssignment, String>,
) -> Result<ThreadPlan, String> {
    let mut conditions: Vec<MigrationConditions> = phases
        .iter()
        .map(|p| MigrationConditions::evaluate(p, limits))
        .collect();
    let first = conditions
        .iter()
        .position(MigrationConditions::is_worth_mapping);
    let threads = match first {
        Some(first) => map(&phases[first].matrix, None)?,
        None => map(&total_communication(phases), None)?,
    };
    let mut stages = vec![ThreadStage {
        phase: first,
        ..ThreadStage::whole_run(threads)
    }];
    let mut last_migration: Option<Nanos> = None;
    for (at, phase) in phases
        .iter()
        .enumerate()
        .skip(first.map_or(phases.len(), |f| f + 1))
    {
        let c = &mut conditions[at];
        c.phase_changed = true;
        let earliest = last_migration.map_or(0, |last| last.saturating_add(limits.thread_interval));
        // The slice in which the last condition comes to hold.
        let start = |slice: &usize| slices.get(*slice).map_or(phase.start, |s| s.start);
        let when = phase.slices.clone().find(|slice| start(slice) >= earliest);
        c.time = when.is_some();
        let Some(when) = when.filter(|_| c.is_worth_mapping()) else {
            continue;
        };
        let now = &stages[stages.len() - 1].threads;
        let threads = map(&phase.matrix, Some(now))?;
        let moved = threads_that_move(now, &threads);
        c.mapping_differs = Some(moved > 0);
        if c.allow_migration() {
            last_migration = Some(start(&when));
            stages.push(ThreadStage {
                slice: SliceIx(when as u32),
                start: start(&when),
                phase: Some(at),
                threads,
                moved,
            });
        }
    }
    Ok(ThreadPlan { stages, conditions })
}

fn threads_that_move(before: &[u32], after: &[u32]) -> usize {
    before.iter().zip(after).filter(|(a, b)| a != b).count()
}

/// Placements of phases that are tried, those of the phases with most communication: what is decided
/// takes time that grows with phases and placements.
const MOST_PLACEMENTS: usize = 32;

/// Per cent of the communication cost that a placement must save in a phase to be worth a change. What saves less
/// is not the same in the next run: who shares with whom at a given moment is partly chance.
const LEAST_GAIN: u128 = 5;

/// What a plan costs.
pub trait PlanCosts {
    /// A mapping for a matrix, from the one in use if there is one.
    ///
    /// # Errors
    /// When there is none.
    fn map(&self, matrix: &CommMatrix, now: Option<&[u32]>) -> Result<PuAssignment, String>;
    /// Communication times distance.
    fn objective(&self, matrix: &CommMatrix, threads: &[u32]) -> u128;
    /// Distances that threads move.
    fn distance_moved(&self, from: &[u32], to: &[u32]) -> u128;
}

/// Decides for all phases together where the threads are: a remap happens where it gains more until
/// the next one than it costs, and `LEAST_GAIN` of the phase that it begins with. Only phases have placements of
/// their own that are stable. Staying where the communication of the whole run puts them is one of
/// the plans, so the result never costs more than that.
///
/// # Errors
/// When there is no mapping.
pub fn plan_threads_together(
    phases: &[PhaseCommunication],
    limits: &MigrationLimits,
    costs: &impl PlanCosts,
) -> Result<Vec<ThreadStage>, String> {
    let whole_run = costs.map(&total_communication(phases), None)?;
    let mut by_events: Vec<&PhaseCommunication> = phases.iter().collect();
    by_events.sort_by_key(|p| std::cmp::Reverse(p.matrix.total()));
    let mut places = vec![whole_run];
    let stable = by_events.into_iter().filter(|phase| phase.stable);
    for phase in stable.take(MOST_PLACEMENTS) {
        let own = costs.map(&phase.matrix, Some(&places[0]))?;
        if !places.contains(&own) {
            places.push(own);
        }
    }
    let of_phase = |phase: &PhaseCommunication| -> Vec<u128> {
        let cost = |threads: &PuAssignment| costs.objective(&phase.matrix, threads);
        places.iter().map(cost).collect()
    };
    let by_phase: Vec<Vec<u128>> = phases.iter().map(of_phase).collect();
    let choice = StageChoice {
        costs: &by_phase,
        starts: &phases.iter().map(|p| p.start).collect::<Vec<_>>(),
        interval: limits.thread_interval,
    };
    let moving = |phase: usize, from: usize, to: usize| {
        let [stay, go] = [from, to].map(|place| by_phase[phase][place]);
        // A change that is not worth it whatever it costs.
        if go.saturating_add(stay / 100 * LEAST_GAIN) > stay {
            return u128::MAX;
        }
        let distance = costs.distance_moved(&places[from], &places[to]);
        distance.saturating_mul(limits.thread_move.into())
    };
    let mut stages = vec![ThreadStage::whole_run(places[0].clone())];
    for (phase, place) in choice.cheapest(moving) {
        let threads = places[place].clone();
        let before = &stages[stages.len() - 1].threads;
        let stage = ThreadStage {
            slice: SliceIx(phases[phase].slices.start as u32),
            start: phases[phase].start,
            phase: (place > 0).then_some(phase),
            moved: threads_that_move(before, &threads),
            threads,
        };
        if phase == 0 {
            stages[0] = ThreadStage {
                moved: 0,
                slice: SliceIx(0),
                start: 0,
                ..stage
            };
        } else {
            stages.push(stage);
        }
    }
    Ok(stages)
}

/// The communication of all phases.
fn total_communication(phases: &[PhaseCommunication]) -> CommMatrix {
    let threads = phases.first().map_or(0, |p| p.matrix.threads());
    let mut all = CommMatrix::new(threads);
    for phase in phases {
        for i in 0..threads {
            for j in i + 1..threads {
                all.add(i, j, phase.matrix.get(i, j));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests;
