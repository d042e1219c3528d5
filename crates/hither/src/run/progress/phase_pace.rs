//! Which phase a run has reached, from what it has counted and from time. No clock here.
//!
//! A phase is reached once every kind of synchronisation point that lies between it and
//! the phase before has been passed as often as in the traced run, by all threads together.
//! Where one kind stays behind for good, because this run does something differently, the
//! others do not wait for ever: the phase is reached too when its clock, one of the kinds,
//! is a quarter of the way beyond. Phases without points between them follow by time, each
//! as long as in the traced run times how much faster this run has come along so far; one
//! point more than the phase began with tells that it has begun.
use hither_profile::{Nanos, PlacedPhase};

/// Counts of each kind of synchronisation point, as in [`hither_profile::Slice::sync`].
pub type SyncCounts = [u64; 4];

const PARALLEL: usize = hither_sys::wire::SYNC_OMP_PARALLEL as usize;
/// Parallel regions are counted once however many threads there are: they are the clock
/// where there are at least this many of them.
const ENOUGH: u64 = 16;
/// A kind is late when the clock is this share of a phase beyond.
const LATE: u64 = 4;

#[derive(Clone, Debug)]
struct PhaseBoundary {
    start: Nanos,
    sync: SyncCounts,
}

/// How far the run has come.
#[derive(Clone, Debug)]
pub struct PhasePace {
    phases: Vec<PhaseBoundary>,
    reached: usize,
    /// Time of the run and of the traced run at a moment that both are known of.
    anchor: (Nanos, Nanos),
    /// Time of the run per time of the traced run.
    ratio: f64,
    /// Some counts told of the pace.
    by_count: bool,
    /// Some phases were reached by time alone.
    by_time: bool,
}

impl PhasePace {
    pub fn new(phases: &[PlacedPhase]) -> PhasePace {
        let boundary = |p: &PlacedPhase| PhaseBoundary {
            start: p.start,
            sync: p.sync,
        };
        PhasePace {
            phases: phases.iter().map(boundary).collect(),
            reached: 0,
            anchor: (0, 0),
            ratio: 1.0,
            by_count: false,
            by_time: false,
        }
    }

    /// Whether some phases were reached by counting, and some by time.
    pub fn reached_by(&self) -> (bool, bool) {
        (self.by_count, self.by_time)
    }

    /// Time of the run per time of the traced run; `None` where nothing tells.
    pub fn ratio(&self) -> Option<f64> {
        self.by_count.then_some(self.ratio)
    }

    pub fn is_last(&self) -> bool {
        self.reached + 1 >= self.phases.len()
    }

    /// Kinds that tell phases apart.
    pub fn telling_kinds(&self) -> [bool; 4] {
        let last = self.phases.last().map_or([0; 4], |p| p.sync);
        last.map(|count| count > 0)
    }

    /// The phase reached at a time, `counts` being what was passed of each kind that can
    /// be counted.
    pub fn advance(&mut self, at: Nanos, counts: &[Option<u64>; 4]) -> usize {
        while let Some(next) = self.phases.get(self.reached + 1) {
            let growth = self.growth(counts);
            if growth.iter().all(|g| *g == 0) {
                let due = self.due_time(next.start);
                if at >= due {
                    self.anchor = (due, next.start);
                    self.by_time = true;
                } else if !is_exceeded(&next.sync, counts) {
                    break;
                }
            } else {
                if !is_passed(&next.sync, &growth, counts) {
                    break;
                }
                self.by_count = true;
                self.anchor = (at, next.start);
                if next.start > 0 {
                    self.ratio = at as f64 / next.start as f64;
                }
            }
            self.reached += 1;
        }
        self.reached
    }

    /// Synchronisation points between the phase reached and the next, of kinds that can be
    /// counted.
    fn growth(&self, counts: &[Option<u64>; 4]) -> SyncCounts {
        let (before, after) = (&self.phases[self.reached], &self.phases[self.reached + 1]);
        std::array::from_fn(|kind| match counts[kind] {
            Some(_) => after.sync[kind].saturating_sub(before.sync[kind]),
            None => 0,
        })
    }

    fn due_time(&self, start: Nanos) -> Nanos {
        let (here, there) = self.anchor;
        let wait = start.saturating_sub(there) as f64 * self.ratio;
        here.saturating_add(wait as Nanos)
    }
}

/// Whether more was passed of some kind than so many.
fn is_exceeded(sync: &SyncCounts, counts: &[Option<u64>; 4]) -> bool {
    sync.iter().zip(counts).any(|(n, count)| *count > Some(*n))
}

/// Whether counts have come to `wanted`, where kinds grow by `growth` before.
fn is_passed(wanted: &SyncCounts, growth: &SyncCounts, counts: &[Option<u64>; 4]) -> bool {
    let count = |kind: usize| counts[kind].unwrap_or(0);
    let mut kinds = (0..wanted.len()).filter(|&k| growth[k] > 0);
    if kinds.all(|k| count(k) >= wanted[k]) {
        return true;
    }
    let clock = best_clock(growth);
    let late = (growth[clock] / LATE).max(1);
    count(clock) >= wanted[clock].saturating_add(late)
}

/// The kind that tells progress best.
fn best_clock(growth: &SyncCounts) -> usize {
    let most = (0..growth.len()).rev().max_by_key(|&k| growth[k]);
    match growth[PARALLEL] >= ENOUGH {
        true => PARALLEL,
        false => most.unwrap_or(0),
    }
}
