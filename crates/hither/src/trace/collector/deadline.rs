//! How long the collector may go on once the program has ended. A program of good will leaves what is
//! read in seconds; one of bad will could leave what takes days.
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Or as long as the program ran.
const PATIENCE: Duration = Duration::from_secs(60);
/// Calls between looks at the clock, a power of two.
const CALLS: u32 = 64;
const NEVER: u64 = u64::MAX;

pub struct Deadline {
    start: Instant,
    /// Nanoseconds from the start.
    end: AtomicU64,
    calls: AtomicU32,
    missed: AtomicBool,
}

impl Default for Deadline {
    fn default() -> Deadline {
        Deadline {
            start: Instant::now(),
            end: AtomicU64::new(NEVER),
            calls: AtomicU32::new(0),
            missed: AtomicBool::new(false),
        }
    }
}

impl Deadline {
    /// The program has ended. From the first call on the time runs.
    pub fn arm(&self) {
        self.arm_after(PATIENCE.max(self.start.elapsed()));
    }

    pub fn arm_after(&self, patience: Duration) {
        let end = self.start.elapsed().saturating_add(patience).as_nanos() as u64;
        let armed = (NEVER, end);
        let order = Ordering::Relaxed;
        // It stays as it was armed first.
        let _ = self.end.compare_exchange(armed.0, armed.1, order, order);
    }

    /// Whether it is time to leave the rest. To be asked often.
    pub fn passed(&self) -> bool {
        if self.missed() {
            return true;
        }
        let end = self.end.load(Ordering::Relaxed);
        let calls = self.calls.load(Ordering::Relaxed).wrapping_add(1);
        self.calls.store(calls, Ordering::Relaxed);
        if end == NEVER || !calls.is_multiple_of(CALLS) {
            return false;
        }
        if (self.start.elapsed().as_nanos() as u64) < end {
            return false;
        }
        self.missed.store(true, Ordering::Relaxed);
        true
    }

    /// Whether something was left.
    pub fn missed(&self) -> bool {
        self.missed.load(Ordering::Relaxed)
    }
}
