//! One placement per communication phase (OPT 6.2.2 and 6.3).
//!
//! ```text
//!   phases   |--- A ---|--- B ---|-- A --|------ C ------|
//!   threads  ^ start             ^ all five conditions hold
//!   pages    ^ start        ^ 10 s later       ^ ...
//! ```
//! Phases are detected elsewhere. This module decides which of them get a placement of their own,
//! and `page_plan` which pages move when.
mod page_plan;

pub use page_plan::{plan_pages, PagePlan, PageStep};

use super::PuAssignment;
use hither_profile::{CommMatrix, Nanos, Profile, SliceIx};
use serde::Serialize;
use std::ops::Range;

/// When threads and pages may move; the default is the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MigrationLimits {
    /// H_min: C_H (OPT eq. 2) that a phase must exceed.
    pub heterogeneity: f64,
    /// A_min: C_A (OPT eq. 3) per second that a phase must exceed.
    pub amount: f64,
    /// t_min of threads: least nanoseconds between their migrations.
    pub thread_interval: Nanos,
    /// t_min of pages.
    pub page_interval: Nanos,
}

impl Default for MigrationLimits {
    fn default() -> Self {
        MigrationLimits {
            heterogeneity: 100.0,
            amount: 150.0,
            thread_interval: 1_000_000_000,
            page_interval: 10_000_000_000,
        }
    }
}

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

/// Decides which phases get their own thread mapping. The run starts with the first mapping
/// calculated (OPT 6.4): that of the first phase whose communication is worth one, or, where
/// none is, that of the whole run. `map` calculates a mapping for a matrix, from the
/// one in use if there is one.
///
/// # Errors
/// When `map` has one.
pub fn plan_threads(
    phases: &[PhaseCommunication],
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
        slice: SliceIx(0),
        start: 0,
        phase: first,
        threads,
        moved: 0,
    }];
    let mut last_migration: Option<Nanos> = None;
    for (at, phase) in phases
        .iter()
        .enumerate()
        .skip(first.map_or(phases.len(), |f| f + 1))
    {
        let c = &mut conditions[at];
        c.phase_changed = true;
        let since = last_migration.map(|last| phase.start.saturating_sub(last));
        c.time = since.is_none_or(|t| t >= limits.thread_interval);
        if !(c.is_worth_mapping() && c.time) {
            continue;
        }
        let now = &stages[stages.len() - 1].threads;
        let threads = map(&phase.matrix, Some(now))?;
        let moved = now.iter().zip(&threads).filter(|(a, b)| a != b).count();
        c.mapping_differs = Some(moved > 0);
        if c.allow_migration() {
            last_migration = Some(phase.start);
            stages.push(ThreadStage {
                slice: SliceIx(phase.slices.start as u32),
                start: phase.start,
                phase: Some(at),
                threads,
                moved,
            });
        }
    }
    Ok(ThreadPlan { stages, conditions })
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
