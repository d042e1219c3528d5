//! The clocks that slices and costs are measured by.
use nix::time::{clock_gettime, ClockId};

/// Nanoseconds on a clock.
pub fn clock_ns(id: ClockId) -> u64 {
    // These clocks cannot fail on Linux.
    clock_gettime(id).map_or(0, |t| {
        t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
    })
}

pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::CLOCK_MONOTONIC)
}
