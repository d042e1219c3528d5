//! Counts extrapolated over pauses: where a program passes synchronisation points so fast that
//! counting all of them would slow it down, counting pauses, and during a pause the rate is
//! taken to be that of the time before.
use hither_profile::Nanos;

/// What is known of each kind of synchronisation point; `None` where it is not counted.
pub type KnownSyncCounts = [Option<u64>; 4];

/// Counting may cost this share of the time that the program's threads have; after a pause
/// it goes on when it has cost half of that.
pub const BUDGET: f64 = 0.01;
/// Least time that tells how fast points are passed.
const WINDOW: Nanos = 100_000_000;

const PARALLEL: usize = hither_sys::wire::SYNC_OMP_PARALLEL as usize;

pub struct SyncEstimate {
    /// Nanoseconds that a call takes when it is counted.
    pub cost: Nanos,
    /// Threads that share the work, and this cost.
    threads: u64,
    is_on: bool,
    has_paused: bool,
    /// When counting went on or off last, and what was counted and passed by then.
    since: Nanos,
    counted: [u64; 4],
    passed: [f64; 4],
    /// Points per nanosecond before the pause.
    rate: [f64; 4],
}

impl SyncEstimate {
    pub fn new(threads: u64) -> SyncEstimate {
        SyncEstimate {
            cost: 0,
            threads: threads.max(1),
            is_on: true,
            has_paused: false,
            since: 0,
            counted: [0; 4],
            passed: [0.0; 4],
            rate: [0.0; 4],
        }
    }

    /// Whether counting is to be on.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    pub fn has_paused(&self) -> bool {
        self.has_paused
    }

    /// What was passed at a time, when so much was counted.
    pub fn estimate_passed(&mut self, at: Nanos, counts: &KnownSyncCounts) -> KnownSyncCounts {
        let counted = counts.map(|c| c.unwrap_or(0));
        let time = at.saturating_sub(self.since);
        let passed: [f64; 4] = std::array::from_fn(|kind| {
            let more = match self.is_on {
                true => counted[kind].saturating_sub(self.counted[kind]) as f64,
                false => self.rate[kind] * time as f64,
            };
            self.passed[kind] + more
        });
        if self.is_on && counted == [0; 4] {
            self.since = at;
        }
        let spent = self.counting_time(&counted) as f64 / at.max(1) as f64;
        let turns = match self.is_on {
            true => time >= WINDOW && spent > BUDGET,
            false => spent <= BUDGET / 2.0,
        };
        if turns {
            if self.is_on {
                self.has_paused = true;
                let seen = |kind: usize| counted[kind].saturating_sub(self.counted[kind]);
                self.rate = std::array::from_fn(|kind| seen(kind) as f64 / time as f64);
            }
            (self.since, self.counted, self.passed) = (at, counted, passed);
            self.is_on = !self.is_on;
        }
        std::array::from_fn(|kind| counts[kind].map(|_| passed[kind] as u64))
    }

    /// Time that counting took from each thread so far. Parallel regions are entered by one,
    /// and the others wait for it.
    fn counting_time(&self, counted: &[u64; 4]) -> Nanos {
        let calls = counted.iter().enumerate().map(|(kind, count)| {
            let threads = if kind == PARALLEL { 1 } else { self.threads };
            count / threads
        });
        calls.sum::<u64>().saturating_mul(self.cost)
    }
}
