//! The clocks of the kernel, which times and costs are measured by.
use hither_profile::Nanos;
use nix::time::{clock_gettime, ClockId};

/// Nanoseconds on a clock.
pub fn clock_ns(id: ClockId) -> Nanos {
    // These clocks cannot fail on Linux.
    clock_gettime(id).map_or(0, |t| {
        t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
    })
}

/// Now, by the clock that goes as long as the machine runs.
pub fn monotonic_ns() -> Nanos {
    #[cfg(test)]
    if let Some(now) = stopped::now() {
        return now;
    }
    clock_ns(ClockId::CLOCK_MONOTONIC)
}

/// A clock that goes only when a test says so: on a busy machine any moment is long.
#[cfg(test)]
pub mod stopped {
    use std::cell::Cell;
    use std::time::Duration;

    thread_local! {
        static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    }

    pub fn now() -> Option<u64> {
        NOW.get()
    }

    /// The clock of the calling thread, which goes on when this is dropped.
    pub struct StoppedClock(());

    impl StoppedClock {
        pub fn new() -> StoppedClock {
            NOW.set(Some(super::monotonic_ns()));
            StoppedClock(())
        }

        pub fn pass(&self, time: Duration) {
            NOW.set(NOW.get().map(|now| now + time.as_nanos() as u64));
        }
    }

    impl Drop for StoppedClock {
        fn drop(&mut self) {
            NOW.set(None);
        }
    }
}
