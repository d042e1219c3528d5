//! Phases that are no chance. Phases by heterogeneity ([`communication_phases`], OPT eq. 4) are many where threads share
//! irregularly: a trace of NPB LU has hundreds, and the next trace other ones. Ours: a phase is stable
//! where its halves are alike, and each tells more about the other than the whole run does,
//!
//! ```text
//!   overlap(one half, other half) >= 80 %  and  >= overlap(whole run, other half) + 5 %
//! ```
//! with the overlap of [`super::partner_shares`]. Neighbours that are not stable are one phase, so that where
//! nothing is stable there is one phase.
use super::partner_shares::{directed_cells, PartnerShares};
use super::phase_detection::communication_phases;
use hither_profile::{PairComm, Profile};
use std::ops::Range;

/// Of the 800 phases of NPB LU half are alike by 56 % or less, those of a program with phases by 90 % and more.
const ALIKE: f64 = 0.8;
/// How much more. Less is chance: who shares with whom at a given moment partly is.
const MORE: f64 = 0.05;
/// Least share of the run's events: with fewer, a phase is the program's beginning or end.
const LEAST_SHARE: f64 = 0.01;

/// What is said where there are none.
pub const NO_STABLE_PHASES: &str =
    "No stable phases: with whom threads communicate stays, or changes by chance.";

/// A part of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPhase {
    /// Slices, by number.
    pub slices: Range<usize>,
    /// It has a pattern of communication of its own.
    pub stable: bool,
}

/// The phases of a run, together all slices; those by heterogeneity are told apart by `window` and `diff_min`.
#[must_use]
pub fn stable_phases(profile: &Profile, window: usize, diff_min: f64) -> Vec<RunPhase> {
    let found = communication_phases(&profile.slices, window, diff_min);
    let mut rows: Vec<&PairComm> = profile.comm.iter().filter(|c| c.events > 0).collect();
    if !rows.is_sorted_by_key(|c| c.slice) {
        rows.sort_by_key(|c| c.slice);
    }
    let run = PatternsOfRun {
        whole: partners(&rows, profile),
        rows,
        profile,
    };
    let mut phases: Vec<RunPhase> = Vec::new();
    for slices in found {
        let stable = run.is_stable(&slices);
        match phases.last_mut() {
            Some(last) if !last.stable && !stable => last.slices.end = slices.end,
            _ => phases.push(RunPhase { slices, stable }),
        }
    }
    phases
}

fn partners(rows: &[&PairComm], profile: &Profile) -> PartnerShares {
    PartnerShares::of_cells(directed_cells(rows), profile.threads.len())
}

struct PatternsOfRun<'a> {
    whole: PartnerShares,
    /// In order of time.
    rows: Vec<&'a PairComm>,
    profile: &'a Profile,
}

impl PatternsOfRun<'_> {
    fn is_stable(&self, slices: &Range<usize>) -> bool {
        let at = |slice: usize| self.rows.partition_point(|c| c.slice.at() < slice);
        let middle = at(slices.start + slices.len() / 2);
        let halves = [at(slices.start)..middle, middle..at(slices.end)];
        let sum = |rows: &[&PairComm]| rows.iter().map(|c| c.events).sum::<u64>() as f64;
        let events = sum(&self.rows[halves[0].start..halves[1].end]);
        if halves.iter().any(Range::is_empty) || events < LEAST_SHARE * sum(&self.rows) {
            return false;
        }
        let [first, second] = halves.map(|half| partners(&self.rows[half], self.profile));
        let tells = |one: &PartnerShares, other: &PartnerShares| {
            one.overlap(other) >= ALIKE.max(self.whole.overlap(other) + MORE)
        };
        tells(&first, &second) && tells(&second, &first)
    }
}
