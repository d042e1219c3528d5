//! Where threads change partners (ours). OPT's eq. 4 compares how unevenly threads communicate before and after a
//! slice, so it misses a change of partners that leaves that as it is. Here the partners themselves are compared:
//!
//! ```text
//!   distance(a, b) = 1 - min(overlap(a, b), overlap(b, a))
//!   a phase begins where distance(n slices before, n slices from here on) is largest
//!                  and >= diff_min and > the distance of the halves of either
//! ```
//! with the overlap of [`super::partner_shares`]. Where threads take turns the distance is the smaller one of that and of
//! the same with each matrix fitted to what each thread communicates in the other: who runs when is the scheduler's.
use super::evidence::threads_take_turns;
use super::partner_shares::PartnerShares;
use super::phase_detection::{phase_starts, ranges_between};
use hither_profile::{PairComm, Profile};
use std::collections::HashMap;
use std::ops::Range;

/// Cells compared at most, in all; with more, partners are compared every few slices only.
const MOST_CELLS: usize = 1 << 26;

/// The phases of a run as ranges of slices, cut where partners change; together they are all slices. A phase has at
/// least `window` traced slices.
#[must_use]
pub fn partner_phases(profile: &Profile, window: usize, diff_min: f64) -> Vec<Range<usize>> {
    let slices = &profile.slices;
    let traced: Vec<usize> = (0..slices.len()).filter(|&s| slices[s].traced).collect();
    let run = PartnersBySlice::new(profile, &traced);
    let distances = run.distances(window, diff_min);
    let starts = phase_starts(traced.len(), window, |t| distances[t]);
    let starts = starts.into_iter().filter(|start| {
        let halves = [start - window, *start].map(|from| run.halves_distance(from..from + window));
        halves
            .into_iter()
            .all(|noise| noise < distances[start + window])
    });
    // Slices without communication belong to either phase: the next one begins with its first partners.
    let begins = |start: usize| (start..traced.len()).find(|s| !run.rows[*s].is_empty());
    ranges_between(
        starts.map(|start| traced[begins(start).unwrap_or(start)]),
        slices.len(),
    )
}

/// What is communicated in each traced slice.
struct PartnersBySlice {
    /// By slice: a pair of `pairs`, and its events.
    rows: Vec<Vec<(usize, u64)>>,
    /// `(thread, partner)` in order, each with the position of its pair.
    cells: Vec<((u32, u32), usize)>,
    pairs: usize,
    threads: usize,
    take_turns: bool,
}

impl PartnersBySlice {
    fn new(profile: &Profile, traced: &[usize]) -> PartnersBySlice {
        let mut at = vec![None; profile.slices.len()];
        for (position, slice) in traced.iter().enumerate() {
            at[*slice] = Some(position);
        }
        let mut pairs: HashMap<(u32, u32), usize> = HashMap::new();
        let mut rows = vec![Vec::new(); traced.len()];
        for c in profile.comm.iter().filter(|c| c.events > 0) {
            let Some(position) = at.get(c.slice.at()).copied().flatten() else {
                continue;
            };
            let next = pairs.len();
            let pair = *pairs.entry(ordered(c)).or_insert(next);
            rows[position].push((pair, c.events));
        }
        let both = |((i, j), pair): (&(u32, u32), &usize)| [((*i, *j), *pair), ((*j, *i), *pair)];
        let mut cells: Vec<_> = pairs.iter().flat_map(both).collect();
        cells.sort_unstable();
        PartnersBySlice {
            rows,
            cells,
            pairs: pairs.len(),
            threads: profile.threads.len(),
            take_turns: threads_take_turns(profile),
        }
    }

    /// By the slice after the later one of two windows: how much they differ, 0 for less than `least`.
    fn distances(&self, window: usize, least: f64) -> Vec<f64> {
        let slices = self.rows.len();
        let mut found = vec![0.0; slices + 1];
        if window == 0 || slices < 2 * window {
            return found;
        }
        let step = (slices * self.cells.len()).div_ceil(MOST_CELLS).max(1);
        let mut before = self.sum(0..window);
        let mut after = self.sum(window..2 * window);
        for end in 2 * window..=slices {
            if (end - 2 * window).is_multiple_of(step) {
                let distance = self.distance(&before, &after, least);
                found[end] = if distance < least { 0.0 } else { distance };
            } else {
                found[end] = found[end - 1];
            }
            if end < slices {
                self.slide(&mut before, end - 2 * window, end - window);
                self.slide(&mut after, end - window, end);
            }
        }
        found
    }

    /// Takes a slice out of a sum and another one in.
    fn slide(&self, sum: &mut [u64], out: usize, into: usize) {
        self.rows[out].iter().for_each(|(pair, n)| sum[*pair] -= n);
        self.rows[into].iter().for_each(|(pair, n)| sum[*pair] += n);
    }

    fn sum(&self, slices: Range<usize>) -> Vec<u64> {
        let mut sum = vec![0; self.pairs];
        let rows = self.rows[slices].iter().flatten();
        rows.for_each(|(pair, n)| sum[*pair] += n);
        sum
    }

    fn halves_distance(&self, slices: Range<usize>) -> f64 {
        let middle = slices.start + slices.len() / 2;
        let halves = [slices.start..middle, middle..slices.end].map(|half| self.sum(half));
        self.distance(&halves[0], &halves[1], 0.0)
    }

    /// Fitting takes long, and is left out below `least`.
    fn distance(&self, before: &[u64], after: &[u64], least: f64) -> f64 {
        let [a, b] = [before, after].map(|sum| self.shares(sum));
        let distance = 1.0 - a.overlap(&b).min(b.overlap(&a));
        if !self.take_turns || distance < least {
            return distance;
        }
        let [fitted_a, fitted_b] = [a.with_events_of(&b), b.with_events_of(&a)];
        distance.min(1.0 - fitted_a.overlap(&b).min(fitted_b.overlap(&a)))
    }

    fn shares(&self, sum: &[u64]) -> PartnerShares {
        let cells = self.cells.iter().filter(|(_, pair)| sum[*pair] > 0);
        let cells = cells.map(|(cell, pair)| (*cell, sum[*pair] as f64));
        PartnerShares::of_cells(cells.collect(), self.threads)
    }
}

fn ordered(c: &PairComm) -> (u32, u32) {
    (c.i.0.min(c.j.0), c.i.0.max(c.j.0))
}
