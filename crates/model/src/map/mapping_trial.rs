//! Whether a mapping is worth it, judged by the events after it was proposed. For a few events
//! there is always a mapping that suits them, even if they are random; so a proposal is not judged
//! by the events that it was made from, but by how much shorter the distances of the next ones
//! would have been.
//!
//! Over the events e of all proposals, with d(e) the current distance between its threads and p(e)
//! the proposed one, moving m of T threads is worth it when
//!
//!   sum (d - p) > (MIN_GAIN + GAIN_PER_MOVED_SHARE * m / T) * sum d  +  SIGMAS * sqrt(sum v(e))
//!
//! The root is the standard error of the sum if events are independent. v(e) is what d - p varies by where
//! any two threads may meet. While the system schedules the threads that is known: d is a mean then, and p
//! varies as distances do that d is the mean of. Few events are enough, as where each costs the program
//! much: that all of thirteen are within couples of four threads is no chance. Else v(e) is (d - p)^2.
//! Within an interval events are not quite independent, because threads take turns; so an interval counts
//! as a few observations at most.

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

/// What an event says of a proposal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialEvent {
    /// Distance of its threads as they sit.
    pub now: f64,
    /// As proposed.
    pub then: f64,
    /// By which chance has one less the other vary.
    pub variance: f64,
}

impl TrialEvent {
    /// Of threads that both have a place.
    #[must_use]
    pub fn between_placed(now: f64, then: f64) -> TrialEvent {
        let variance = (now - then) * (now - then);
        TrialEvent {
            now,
            then,
            variance,
        }
    }
}

/// The outcome of proposals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MappingTrial {
    distance: f64,
    gain: f64,
    variance: f64,
}

impl MappingTrial {
    /// So many intervals with events are over.
    pub fn add_intervals(&mut self, count: u32, events: impl IntoIterator<Item = TrialEvent>) {
        let (mut distance, mut gain, mut chance) = (0.0, 0.0, 0.0);
        for event in events {
            distance += event.now;
            gain += event.now - event.then;
            chance += event.variance;
        }
        self.distance = self.distance * DECAY + distance;
        self.gain = self.gain * DECAY + gain;
        let observations = BURST * f64::from(count.max(1));
        let variance = f64::max(chance, gain * gain / observations);
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
            let event = TrialEvent::between_placed(now, then);
            trial.add_intervals(1, std::iter::repeat_n(event, events));
            trial.is_worth_moving(0.5)
        });
        assert_eq!(found, expected);
    }

    /// Four threads in two couples that the system puts on two units anyhow, four events at a time, of
    /// which each is between two that meet with this chance.
    #[test]
    fn few_events_are_enough_where_it_is_known_what_chance_does() {
        let mut rng = crate::rng::Rng::new(1);
        let mut check = |near: f64, least: usize, most: usize| {
            let mut trial = MappingTrial::default();
            let found = (1..36_000).find(|_| {
                let apart = |random: u64| f64::from(u8::from(random as f64 >= near * 3000.0));
                let events = [0; 4].map(|_| TrialEvent {
                    now: 2.0 / 3.0,
                    then: apart(rng.below(3000) as u64),
                    variance: 2.0 / 9.0,
                });
                trial.add_intervals(1, events);
                trial.is_worth_moving(1.0)
            });
            let found = found.unwrap_or(usize::MAX);
            assert!((least..=most).contains(&found), "{near}: {found}");
        };
        check(1.0, 4, 4);
        check(0.8, 4, 20);
        // Two of four are as often together by chance.
        check(1.0 / 3.0, usize::MAX, usize::MAX);
    }

    /// Eight at once are a burst, two at a time are not.
    #[test]
    fn events_of_many_intervals_tell_more() {
        let check = |intervals: u32, expected: bool| {
            let mut trial = MappingTrial::default();
            for _ in 0..2 {
                let event = TrialEvent {
                    now: 6.0 / 7.0,
                    then: 0.0,
                    variance: 6.0 / 49.0,
                };
                trial.add_intervals(intervals, [event; 8]);
            }
            assert_eq!(trial.is_worth_moving(1.0), expected, "{intervals}");
        };
        check(1, false);
        check(4, true);
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
        let event = TrialEvent::between_placed(2.0, 0.0);
        trial.add_intervals(1, std::iter::repeat_n(event, 10_000));
        assert!(!trial.is_worth_moving(0.0));
    }

    /// Events that are near or far at random, whatever is proposed.
    #[test]
    fn chance_moves_nobody() {
        let mut rng = crate::rng::Rng::new(1);
        let mut distance = || rng.below(3) as f64 * 2.0;
        let mut trial = MappingTrial::default();
        for _ in 0..36_000 {
            let event = || TrialEvent::between_placed(distance(), distance());
            trial.add_intervals(1, std::iter::repeat_with(event).take(16));
            assert!(!trial.is_worth_moving(0.0), "{trial:?}");
        }
    }
}
