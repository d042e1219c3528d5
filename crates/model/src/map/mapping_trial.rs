//! Whether a mapping is worth it, judged by the events after it was proposed. For a few events
//! there is always a mapping that suits them, even if they are random; so a proposal is not judged
//! by the events that it was made from, but by how much shorter the distances of the next ones
//! would have been.
//!
//! Over the events e of all proposals, with d(e) the current distance between its threads and p(e)
//! the proposed one, moving m of T threads is worth it when
//!
//!   sum (d - p) > (MIN_GAIN + GAIN_PER_MOVED_SHARE * m / T) * sum d  +  SIGMAS * sqrt(sum (d - p)^2)
//!
//! The root is the standard error of the sum if events are independent. Within an interval they are
//! not quite, because threads take turns; so an interval counts as a few observations at most.

/// Share of the distance that a new mapping saves at least.
const MIN_GAIN: f64 = 0.05;
/// Share of the distance that moving all threads has to save on top of that. In an all-to-all
/// pattern, threads that happen to be scheduled at the same time seem to share, for seconds, up to
/// a fifth of all events, and following them saves that. Real patterns save half of the distance
/// and more.
const GAIN_PER_MOVED_SHARE: f64 = 0.15;
/// Standard errors by which the gain must exceed chance: at ten decisions a second it is wrong less
/// than once in hours.
const SIGMAS: f64 = 4.0;
/// What is kept of earlier intervals.
const DECAY: f64 = 31.0 / 32.0;
/// Observations that an interval counts as at most.
const BURST: f64 = 8.0;

/// The outcome of proposals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MappingTrial {
    distance: f64,
    gain: f64,
    variance: f64,
}

impl MappingTrial {
    /// An interval is over: for each event the distance as threads sit and as proposed.
    pub fn add_interval(&mut self, events: impl IntoIterator<Item = (f64, f64)>) {
        let (mut distance, mut gain, mut squares) = (0.0, 0.0, 0.0);
        for (now, then) in events {
            distance += now;
            gain += now - then;
            squares += (now - then) * (now - then);
        }
        self.distance = self.distance * DECAY + distance;
        self.gain = self.gain * DECAY + gain;
        let variance = f64::max(squares, gain * gain / BURST);
        self.variance = self.variance * DECAY + variance;
    }

    /// Whether to move this share of the threads.
    #[must_use]
    pub fn is_worth_moving(&self, moved: f64) -> bool {
        let needed = (MIN_GAIN + GAIN_PER_MOVED_SHARE * moved) * self.distance
            + SIGMAS * self.variance.sqrt();
        self.gain > needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals until this many events each at these distances are worth moving half of the
    /// threads, if ever within ten minutes.
    #[track_caller]
    fn check(events: usize, now: f64, then: f64, expected: Option<usize>) {
        let mut trial = MappingTrial::default();
        let found = (1..6000).find(|_| {
            trial.add_interval(std::iter::repeat_n((now, then), events));
            trial.is_worth_moving(0.5)
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_clear_is_done_soon() {
        // Eight events that become half as far: gain 8, needed 0.125 * 16 + 4 * sqrt(8) = 13.3
        // after one interval; 30.5 and 29.7 after four.
        check(8, 2.0, 1.0, Some(4));
        check(100, 2.0, 1.0, Some(4));
        check(1, 2.0, 1.0, Some(70));
        check(2, 2.0, 1.0, Some(19));
    }

    #[test]
    fn what_saves_little_is_not_done() {
        check(100, 2.0, 2.0, None);
        check(100, 2.0, 1.9, None);
        check(100, 1.0, 2.0, None);
        check(0, 0.0, 0.0, None);
    }

    #[test]
    fn one_burst_proves_nothing() {
        let mut trial = MappingTrial::default();
        trial.add_interval(std::iter::repeat_n((2.0, 0.0), 10_000));
        assert!(!trial.is_worth_moving(0.0));
    }

    /// Events that are near or far at random, whatever is proposed.
    #[test]
    fn chance_moves_nobody() {
        let mut rng = crate::rng::Rng::new(1);
        let mut distance = || rng.below(3) as f64 * 2.0;
        let mut trial = MappingTrial::default();
        for _ in 0..36_000 {
            trial.add_interval((0..16).map(|_| (distance(), distance())));
            assert!(!trial.is_worth_moving(0.0), "{trial:?}");
        }
    }
}
