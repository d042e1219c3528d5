//! Phases that are no chance. Phases by heterogeneity (OPT eq. 4) are many where threads share
//! irregularly: a trace of NPB LU has hundreds, and the next trace other ones; and they miss other partners of the same
//! heterogeneity. Ours begin where partners change ([`partner_phases`]), and are stable where their halves are alike, and
//! each tells more about the other than the whole run does,
//!
//! ```text
//!   overlap(one half, other half) >= 80 %  and  >= overlap(whole run, other half) + 5 %
//! ```
//! with the overlap of [`super::partner_shares`]. Where threads take turns ([`threads_take_turns`]) the scheduler
//! decides which of them run when, and so how much each communicates in a phase: one that spins while the others wait
//! for a processor is the partner of all for seconds. With whom those that run communicate is the program's. There the
//! whole run is held against a half both as it is and as it would be if each thread communicated as much as it does in
//! that half ([`PartnerShares::with_events_of`]). Neighbours that are alike in the same sense are one phase, and so are those
//! that are not stable: where nothing is stable there is one phase.
use super::evidence::threads_take_turns;
use super::partner_changes::partner_phases;
use super::partner_shares::{directed_cells, PartnerShares};
use hither_profile::{PairComm, Profile};
use std::ops::Range;

/// Of the 800 phases of NPB LU half are alike by 56 % or less, those of a program with phases by 90 % and more.
const ALIKE: f64 = 0.8;
/// How much more. Less is chance: who shares with whom at a given moment partly is.
const MORE: f64 = 0.05;
/// Least share of the run's events: with fewer, a part is the program's beginning or end, and no phase.
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

/// The phases of a run, together all slices; `window` and `diff_min` are those of [`partner_phases`].
#[must_use]
pub fn stable_phases(profile: &Profile, window: usize, diff_min: f64) -> Vec<RunPhase> {
    let found = partner_phases(profile, window, diff_min);
    let mut rows: Vec<&PairComm> = profile.comm.iter().filter(|c| c.events > 0).collect();
    if !rows.is_sorted_by_key(|c| c.slice) {
        rows.sort_by_key(|c| c.slice);
    }
    let run = PatternsOfRun {
        whole: partners(&rows, profile),
        rows,
        profile,
        take_turns: threads_take_turns(profile),
    };
    let mut phases: Vec<RunPhase> = Vec::new();
    for slices in run.large_enough(found) {
        let stable = run.is_stable(&slices);
        let goes_on = |last: &RunPhase| match (last.stable, stable) {
            (true, true) => run.are_alike([&last.slices, &slices].map(|s| run.rows_of(s))),
            (one, other) => one == other,
        };
        match phases.last_mut() {
            Some(last) if goes_on(last) => last.slices.end = slices.end,
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
    take_turns: bool,
}

impl PatternsOfRun<'_> {
    fn rows_of(&self, slices: &Range<usize>) -> Range<usize> {
        let at = |slice: usize| self.rows.partition_point(|c| c.slice.at() < slice);
        at(slices.start)..at(slices.end)
    }

    /// Parts of a run without those that are too small: they go with the one before, at the beginning with the next.
    fn large_enough(&self, found: Vec<Range<usize>>) -> Vec<Range<usize>> {
        let sum = |rows: &[&PairComm]| rows.iter().map(|c| c.events).sum::<u64>() as f64;
        let least = LEAST_SHARE * sum(&self.rows);
        let mut parts: Vec<Range<usize>> = Vec::new();
        for slices in found {
            let is_small = sum(&self.rows[self.rows_of(&slices)]) < least;
            match parts.last_mut() {
                Some(last) if is_small => last.end = slices.end,
                None if is_small => {}
                last => {
                    let start = last.map_or(0, |last| last.end);
                    parts.push(start..slices.end);
                }
            }
        }
        parts
    }

    fn is_stable(&self, slices: &Range<usize>) -> bool {
        let middle = slices.start + slices.len() / 2;
        let halves = [slices.start..middle, middle..slices.end].map(|half| self.rows_of(&half));
        !halves.iter().any(Range::is_empty) && self.are_alike(halves)
    }

    /// Whether each part tells more about the other than the whole run does.
    fn are_alike(&self, rows: [Range<usize>; 2]) -> bool {
        let [first, second] = rows.map(|part| partners(&self.rows[part], self.profile));
        let tells = |one: &PartnerShares, other: &PartnerShares| {
            let alike = one.overlap(other);
            let more_than = |whole: &PartnerShares| alike >= whole.overlap(other) + MORE;
            let fitted = || self.whole.with_events_of(other);
            alike >= ALIKE && more_than(&self.whole) && (!self.take_turns || more_than(&fitted()))
        };
        tells(&first, &second) && tells(&second, &first)
    }
}
