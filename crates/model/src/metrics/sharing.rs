//! What threads share: the communication of a run and of its phases, and of both the coherence events,
//! where those were told apart.
use super::communication::{metrics_beside, CommunicationMetrics, UpperTriangle};
use super::evidence::{
    comes_again, insufficient_evidence, BusyThreadsEvidence, InsufficientEvidence, SharingEvidence,
};
use super::phase_detection::{communication_phases, partner_window, DIFF_MIN, WINDOW};
use super::stable_phases::stable_phases;
use super::thread_pairs::{pairs_apart, LightThreads};
use crate::units::nanos_to_seconds;
use hither_profile::{CommMatrix, PairComm, Profile};
use serde::Serialize;
use std::ops::Range;

/// A communication phase: slices `first..end`.
#[derive(Clone, Debug, Serialize)]
pub struct CommunicationPhase {
    /// First slice.
    pub first: usize,
    /// Slice after the last.
    pub end: usize,
    /// Start, s since the start of the run.
    pub start_seconds: f64,
    /// Duration, s.
    pub seconds: f64,
    /// Reads and writes in it.
    pub accesses: u64,
    /// H, C_H and A of the phase (OPT eqs. 1 and 2).
    pub communication: CommunicationMetrics,
    /// The same of its coherence events; `None` where they were not told apart.
    pub coherence: Option<CommunicationMetrics>,
    /// Its communication matrix.
    pub matrix: UpperTriangle,
}

/// The coherence events of the run.
#[derive(Clone, Debug, Serialize)]
pub struct CoherenceMetrics {
    /// Of all communication events.
    pub share: f64,
    /// H, C_H and A of them.
    #[serde(flatten)]
    pub communication: CommunicationMetrics,
    /// Which pairs have them.
    pub matrix: UpperTriangle,
}

/// What threads share.
pub(super) struct Sharing {
    pub matrix: CommMatrix,
    pub working: Vec<bool>,
    /// Of the threads that work.
    pub communication: CommunicationMetrics,
    pub coherence: Option<CoherenceMetrics>,
    pub phases: Vec<CommunicationPhase>,
    /// All events, and the coherence events, of each phase by heterogeneity, stable or not.
    by_heterogeneity: [Vec<CommunicationMetrics>; 2],
    /// Why all events, and the coherence events, do not suffice for a verdict.
    pub insufficient: [Option<InsufficientEvidence>; 2],
    /// Whether the same pairs come again.
    pub come_again: [bool; 2],
    /// The same without what threads share that hardly work; `None` where they share nothing.
    without_light_threads: Option<WithoutLightThreads>,
}

/// What is left without the pairs of threads that hardly work.
struct WithoutLightThreads {
    /// What those execute, of all instructions.
    share: f64,
    /// All events, and the coherence events.
    kinds: [SeenSharing; 2],
}

/// What the verdict asks of one kind of events.
struct SeenSharing {
    communication: CommunicationMetrics,
    phases: Vec<CommunicationMetrics>,
    insufficient: Option<InsufficientEvidence>,
    comes_again: bool,
}

impl Sharing {
    pub fn of_run(profile: &Profile, accesses: u64) -> Sharing {
        let matrix = profile.matrix();
        let working = profile.working_threads();
        let among = matrix.among(&working);
        let seconds = nanos_to_seconds(profile.counted_time());
        let apart = pairs_apart(profile, &working);
        let metrics = |matrix: &CommMatrix| metrics_beside(matrix, &apart, (seconds, accesses));
        let communication = metrics(&among);
        let known = profile.meta.has_coherence;
        let coherent = known.then(|| matrix_of(profile, |_| true, coherence_of));
        let working_coherent = coherent.as_ref().map(|all| all.among(&working));
        let coherence = coherent.zip(working_coherent.as_ref()).map(|(all, among)| {
            let of_all = communication.events.max(1) as f64;
            CoherenceMetrics {
                share: among.total() as f64 / of_all,
                communication: metrics(among),
                matrix: UpperTriangle::from_matrix(&all),
            }
        });
        let insufficient_coherence =
            working_coherent.map(|among| insufficient_evidence(profile, &among, coherence_of));
        let window = partner_window(profile);
        let stable = stable_phases(profile, window, DIFF_MIN);
        let stable: Vec<_> = stable.into_iter().map(|phase| phase.slices).collect();
        let ranges = communication_phases(&profile.slices, WINDOW, DIFF_MIN);
        let pairs = (working.as_slice(), apart.as_slice());
        let phases = phase_rows(profile, pairs, &stable);
        let by_heterogeneity = match ranges == stable {
            true => of_phases(&phases),
            false => of_phases(&phase_rows(profile, pairs, &ranges)),
        };
        let without_light_threads = WithoutLightThreads::of_run(profile, pairs, &ranges, accesses);
        Sharing {
            phases,
            by_heterogeneity,
            insufficient: [
                insufficient_evidence(profile, &among, all_of),
                insufficient_coherence.flatten(),
            ],
            come_again: [
                comes_again(profile, all_of),
                known && comes_again(profile, coherence_of),
            ],
            without_light_threads,
            matrix,
            working,
            communication,
            coherence,
        }
    }

    /// The same without what threads share that hardly work, and what those execute of all instructions; nothing
    /// where they share nothing.
    pub fn of_busy_threads(&self) -> Option<BusyThreadsEvidence<'_>> {
        let without = self.without_light_threads.as_ref()?;
        let [all, coherence] = [0, 1].map(|kind| without.kinds[kind].evidence());
        Some(BusyThreadsEvidence {
            sharing: all,
            coherence: self.coherence.is_some().then_some(coherence),
            left_out: without.share,
        })
    }

    /// What the verdict rests on.
    pub fn evidence(&self) -> [Option<SharingEvidence<'_>>; 2] {
        let kinds = [
            Some(self.communication),
            self.coherence.as_ref().map(|c| c.communication),
        ];
        [0, 1].map(|kind| {
            kinds[kind].map(|communication| SharingEvidence {
                communication,
                phases: &self.by_heterogeneity[kind],
                insufficient: self.insufficient[kind],
                comes_again: self.come_again[kind],
            })
        })
    }
}

impl WithoutLightThreads {
    fn of_run(
        profile: &Profile,
        (working, apart): (&[bool], &[(u32, u32)]),
        ranges: &[Range<usize>],
        accesses: u64,
    ) -> Option<WithoutLightThreads> {
        let little = LightThreads::of(profile, working);
        let between = |pair: &PairComm| little.both(pair.i, pair.j);
        if !profile.comm.iter().any(between) {
            return None;
        }
        let mut apart = [apart, &little.pairs(working)].concat();
        apart.sort_unstable();
        apart.dedup();
        let kind = |of: fn(&PairComm) -> u64| {
            let events = |pair: &PairComm| if between(pair) { 0 } else { of(pair) };
            let matrix = |slices: &Range<usize>| {
                matrix_of(profile, |slice| slices.contains(&slice), events).among(working)
            };
            let metrics = |slices: &Range<usize>| {
                let rows = profile.slices.get(slices.clone()).unwrap_or_default();
                let counted = rows.iter().map(hither_profile::Slice::counted_time).sum();
                let accesses = rows.iter().map(|s| s.accesses).sum();
                metrics_beside(
                    &matrix(slices),
                    &apart,
                    (nanos_to_seconds(counted), accesses),
                )
            };
            let whole = matrix(&(0..usize::MAX));
            let seconds = nanos_to_seconds(profile.counted_time());
            SeenSharing {
                communication: metrics_beside(&whole, &apart, (seconds, accesses)),
                phases: ranges.iter().map(metrics).collect(),
                insufficient: insufficient_evidence(profile, &whole, events),
                comes_again: comes_again(profile, events),
            }
        };
        Some(WithoutLightThreads {
            share: little.share,
            kinds: [kind(all_of), kind(coherence_of)],
        })
    }
}

impl SeenSharing {
    fn evidence(&self) -> SharingEvidence<'_> {
        SharingEvidence {
            communication: self.communication,
            phases: &self.phases,
            insufficient: self.insufficient,
            comes_again: self.comes_again,
        }
    }
}

fn all_of(pair: &PairComm) -> u64 {
    pair.events
}

fn coherence_of(pair: &PairComm) -> u64 {
    pair.coherence
}

fn matrix_of(
    profile: &Profile,
    counts: impl Fn(usize) -> bool,
    events: impl Fn(&PairComm) -> u64,
) -> CommMatrix {
    let mut matrix = CommMatrix::new(profile.threads.len());
    for c in profile.comm.iter().filter(|c| counts(c.slice.at())) {
        matrix.add(c.i.at(), c.j.at(), events(c));
    }
    matrix
}

/// All events, and the coherence events, of each phase.
fn of_phases(phases: &[CommunicationPhase]) -> [Vec<CommunicationMetrics>; 2] {
    let coherent = phases.iter().filter_map(|p| p.coherence);
    let all = phases.iter().map(|p| p.communication);
    [all.collect(), coherent.collect()]
}

fn phase_rows(
    profile: &Profile,
    (working, apart): (&[bool], &[(u32, u32)]),
    ranges: &[Range<usize>],
) -> Vec<CommunicationPhase> {
    ranges
        .iter()
        .map(|range| {
            let in_phase = |slice| range.contains(&slice);
            let matrix = matrix_of(profile, in_phase, |c| c.events);
            let slices = &profile.slices[range.clone()];
            let length = slices.iter().map(|s| s.length).sum();
            let counted = slices.iter().map(hither_profile::Slice::counted_time).sum();
            let accesses = slices.iter().map(|s| s.accesses).sum();
            let metrics = |matrix: &CommMatrix| {
                let among = matrix.among(working);
                metrics_beside(&among, apart, (nanos_to_seconds(counted), accesses))
            };
            let coherent = || metrics(&matrix_of(profile, in_phase, coherence_of));
            CommunicationPhase {
                first: range.start,
                end: range.end,
                start_seconds: nanos_to_seconds(slices.first().map_or(0, |s| s.start)),
                seconds: nanos_to_seconds(length),
                accesses,
                communication: metrics(&matrix),
                coherence: profile.meta.has_coherence.then(coherent),
                matrix: UpperTriangle::from_matrix(&matrix),
            }
        })
        .collect()
}
