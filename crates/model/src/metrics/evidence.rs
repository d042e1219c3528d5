//! Whether what was seen of sharing suffices for a verdict on threads.
//!
//! Where more threads than processing units take turns, and in a sample, two threads share a line
//! only in slices in which both were seen. Chance then gives some pairs more than others, and with
//! it heterogeneity. What the program does comes again, so the matrix of every other slice, x, is
//! held against that of the others, y, by the correlation of their pairs. A slice has the weight of
//! the root of its events, lest one that is like no other, such as that of initialisation, decide:
//!
//! ```text
//!   x = sum over slices s of M_s / sqrt(total of M_s)
//!   r = sum over i < j of (x_ij - mean x) (y_ij - mean y) / sqrt(var x var y)
//! ```
//! And n independent events vary by sqrt(n): that alone makes pairs which share alike differ, by
//! a variance that is the mean of the cells.
use super::communication::{pair_heterogeneity, CommunicationMetrics};
use super::thresholds::{h_min, EVENTS_MIN};
use hither_profile::{CommMatrix, PairComm, Profile};
use std::collections::BTreeMap;

/// Seconds from which a run shows a rate. Ours: ten slices of OPT.
pub const SECONDS_MIN: f64 = 0.1;
/// r from which pairs are the program's. Ours: half of their variance comes again.
pub const REPEAT_MIN: f64 = 0.5;
/// Slices with communication from which r is computed. Ours: five on either side.
const LEAST_ROWS: usize = 10;

/// Why what was seen does not suffice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InsufficientEvidence {
    /// The run is too short.
    TooShort {
        /// Time counted.
        seconds: f64,
    },
    /// A sample has too few events.
    TooFewEvents {
        /// Those that were seen.
        events: u64,
        /// Those that it takes.
        needed: u64,
    },
    /// Which pairs share is not the same from slice to slice.
    Unrepeated {
        /// The correlation of every other slice with the others.
        correlation: f64,
        /// Processing units of the traced machine, if its threads are more.
        units: Option<u32>,
    },
    /// As few events differ as much by chance.
    Chance {
        /// Heterogeneity between pairs that chance gives.
        heterogeneity: f64,
    },
}

impl InsufficientEvidence {
    /// Whether it only matters where pairs seem to differ.
    #[must_use]
    pub fn is_about_pairs(&self) -> bool {
        matches!(
            self,
            InsufficientEvidence::Unrepeated { .. } | InsufficientEvidence::Chance { .. }
        )
    }
}

/// What was seen of sharing, of all communication events or of the coherence events.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharingEvidence<'a> {
    /// H, C_H and A of the run.
    pub communication: CommunicationMetrics,
    /// The same of its phases.
    pub phases: &'a [CommunicationMetrics],
    /// Why it does not suffice for a verdict.
    pub insufficient: Option<InsufficientEvidence>,
    /// There are enough slices to see that the same pairs come again.
    pub comes_again: bool,
}

/// What is left of sharing without the pairs of threads of which both hardly work.
#[derive(Clone, Copy, Debug, Default)]
pub struct BusyThreadsEvidence<'a> {
    /// Of all communication events.
    pub sharing: SharingEvidence<'a>,
    /// Of the coherence events among them; `None` where they were not told apart.
    pub coherence: Option<SharingEvidence<'a>>,
    /// What the threads of these pairs execute, of all instructions.
    pub left_out: f64,
}

/// The first reason why the communication of a profile does not suffice: `matrix` is that of its working threads,
/// all events or what `events` says of each pair.
#[must_use]
pub fn insufficient_evidence(
    profile: &Profile,
    matrix: &CommMatrix,
    events: impl Fn(&PairComm) -> u64,
) -> Option<InsufficientEvidence> {
    let seconds = profile.counted_time() as f64 / 1e9;
    if profile.meta.duration > 0 && seconds < SECONDS_MIN {
        return Some(InsufficientEvidence::TooShort { seconds });
    }
    let (online, sampled) = (
        profile.meta.is_online(),
        profile.meta.options.sample.is_some(),
    );
    let scale = if sampled { skipped_scale(profile) } else { 1.0 };
    let seen = (matrix.total() as f64 / scale) as u64;
    let needed = EVENTS_MIN * matrix.threads() as u64;
    if (online || sampled) && seen < needed {
        let few = InsufficientEvidence::TooFewEvents {
            events: seen,
            needed,
        };
        return Some(few);
    }
    let units = profile.meta.machine.processing_units;
    let crowded = threads_take_turns(profile);
    if online || sampled || crowded {
        let correlation = repeatability(profile, events).filter(|r| *r < REPEAT_MIN);
        let units = crowded.then_some(units);
        if let Some(correlation) = correlation {
            return Some(InsufficientEvidence::Unrepeated { correlation, units });
        }
    }
    let heterogeneity = chance_heterogeneity(matrix, scale);
    // Twice, as the largest cell, to which all are scaled, is a matter of chance too.
    let rest = pair_heterogeneity(matrix) - 2.0 * heterogeneity;
    (rest < h_min(matrix.threads())).then_some(InsufficientEvidence::Chance { heterogeneity })
}

/// Whether more threads work than the traced machine has processing units.
#[must_use]
pub fn threads_take_turns(profile: &Profile) -> bool {
    let units = profile.meta.machine.processing_units as usize;
    let working = profile.working_threads();
    units > 0 && working.iter().filter(|w| **w).count() > units
}

/// Slices for each traced one: at most what counts were multiplied by in the mean.
fn skipped_scale(profile: &Profile) -> f64 {
    let traced = profile.slices.iter().filter(|s| s.traced).count();
    (profile.slices.len() as f64 / traced.max(1) as f64).max(1.0)
}

/// What [`super::communication::pair_heterogeneity`] is in the mean of threads that share alike,
/// for events each of which was counted `scale` times.
fn chance_heterogeneity(matrix: &CommMatrix, scale: f64) -> f64 {
    let (threads, max) = (matrix.threads() as f64, matrix.max() as f64);
    if max == 0.0 || threads < 2.0 {
        return 0.0;
    }
    let mean = 2.0 * matrix.total() as f64 / (threads * (threads - 1.0));
    mean * scale * (100.0 / max).powi(2)
}

/// Whether there are enough slices to see pairs come again, and they do.
#[must_use]
pub fn comes_again(profile: &Profile, events: impl Fn(&PairComm) -> u64) -> bool {
    repeatability(profile, events).is_some_and(|r| r >= REPEAT_MIN)
}

/// The correlation of the pairs of working threads in every other slice with those in the
/// others; `None` where there are too few slices or pairs to tell.
#[must_use]
pub fn repeatability(profile: &Profile, events: impl Fn(&PairComm) -> u64) -> Option<f64> {
    let working = profile.working_threads();
    let threads = working.iter().filter(|w| **w).count();
    let pairs = threads as f64 * (threads as f64 - 1.0) / 2.0;
    let works = |t: usize| working.get(t).copied().unwrap_or(false);
    // Rows may be of several slices each, and of sampled runs not all are traced.
    let mut slices: BTreeMap<u32, Vec<&PairComm>> = BTreeMap::new();
    for c in profile
        .comm
        .iter()
        .filter(|c| works(c.i.at()) && works(c.j.at()))
    {
        slices.entry(c.slice.0).or_default().push(c);
    }
    if slices.len() < LEAST_ROWS || threads < 4 {
        return None;
    }
    let mut cells: BTreeMap<(u32, u32), [f64; 2]> = BTreeMap::new();
    for (number, slice) in slices.values().enumerate() {
        let total: u64 = slice.iter().map(|c| events(c)).sum();
        let weight = 1.0 / (total.max(1) as f64).sqrt();
        for c in slice {
            cells.entry((c.i.0, c.j.0)).or_default()[number % 2] += events(c) as f64 * weight;
        }
    }
    let mean = |of: &dyn Fn(&[f64; 2]) -> f64| cells.values().map(of).sum::<f64>() / pairs;
    let (x, y) = (mean(&|c| c[0]), mean(&|c| c[1]));
    let covariance = mean(&|c| c[0] * c[1]) - x * y;
    let variances = [
        mean(&|c| c[0] * c[0]) - x * x,
        mean(&|c| c[1] * c[1]) - y * y,
    ];
    let scale = (variances[0].max(0.0) * variances[1].max(0.0)).sqrt();
    (scale > 0.0).then(|| covariance / scale)
}
