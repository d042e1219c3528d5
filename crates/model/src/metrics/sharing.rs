//! What threads share: the communication of a run and of its phases, and of both the coherence events,
//! where those were told apart.
use super::communication::{communication_metrics, CommunicationMetrics, UpperTriangle};
use super::evidence::{comes_again, doubt, Doubt, SharingEvidence};
use super::phase_detection::{communication_phases, window_of_half_a_second, DIFF_MIN, WINDOW};
use super::stable_phases::stable_phases;
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
    pub doubts: [Option<Doubt>; 2],
    /// Whether the same pairs come again.
    pub come_again: [bool; 2],
}

impl Sharing {
    pub fn of_run(profile: &Profile, accesses: u64) -> Sharing {
        let matrix = profile.matrix();
        let working = profile.working_threads();
        let among = matrix.among(&working);
        let seconds = nanos_to_seconds(profile.counted_time());
        let communication = communication_metrics(&among, seconds, accesses);
        let known = profile.meta.has_coherence;
        let coherent = known.then(|| matrix_of(profile, |_| true, coherence_of));
        let working_coherent = coherent.as_ref().map(|all| all.among(&working));
        let coherence = coherent.zip(working_coherent.as_ref()).map(|(all, among)| {
            let of_all = communication.events.max(1) as f64;
            CoherenceMetrics {
                share: among.total() as f64 / of_all,
                communication: communication_metrics(among, seconds, accesses),
                matrix: UpperTriangle::from_matrix(&all),
            }
        });
        let coherence_doubt = working_coherent.map(|among| doubt(profile, &among, coherence_of));
        let window = window_of_half_a_second(&profile.slices);
        let stable = stable_phases(profile, window, DIFF_MIN);
        let stable: Vec<_> = stable.into_iter().map(|phase| phase.slices).collect();
        let ranges = communication_phases(&profile.slices, WINDOW, DIFF_MIN);
        let phases = phase_rows(profile, &working, &stable);
        let by_heterogeneity = match ranges == stable {
            true => of_phases(&phases),
            false => of_phases(&phase_rows(profile, &working, &ranges)),
        };
        Sharing {
            phases,
            by_heterogeneity,
            doubts: [doubt(profile, &among, all_of), coherence_doubt.flatten()],
            come_again: [
                comes_again(profile, all_of),
                known && comes_again(profile, coherence_of),
            ],
            matrix,
            working,
            communication,
            coherence,
        }
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
                doubt: self.doubts[kind],
                comes_again: self.come_again[kind],
            })
        })
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
    working: &[bool],
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
                communication_metrics(&matrix.among(working), nanos_to_seconds(counted), accesses)
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
