//! When there are enough new events to remap threads, and when the matrix is aged (kMAF 3.4).
//!
//! kMAF maps and then ages every 100 ms. Here faults may be few: fewer events than threads
//! that share say nothing, and ageing what is known without learning anything new leaves
//! nothing in the end. So a turn passes until there are as many events as such threads; but a
//! matrix that holds more than these would leave in it is aged all the same, since what
//! many events told long ago is no better than what few tell now.
use super::analysis::sharing_matrix::{SharingMatrix, EVENT_WEIGHT};
use super::analysis::SharerId;

/// Intervals with faults after which a program whose threads need no mapping counts as
/// mapped.
const PATIENCE: u32 = 20;
/// Events that are kept until they are asked for.
const MAX_NEW_EVENTS: usize = 1 << 16;

#[derive(Debug)]
pub struct RemapTrigger {
    /// What of the matrix is left each time.
    pub ageing: f64,
    /// Every interval, as kMAF does it.
    pub is_periodic: bool,
    /// Events since threads were last mapped.
    new_events: Vec<(SharerId, SharerId)>,
    /// Intervals that these are of, and how many there were at the end of the last.
    told_in: u32,
    told: usize,
    placed: bool,
    waited: u32,
}

impl Default for RemapTrigger {
    fn default() -> RemapTrigger {
        RemapTrigger {
            ageing: 0.75,
            is_periodic: false,
            new_events: Vec::new(),
            told_in: 0,
            told: 0,
            placed: false,
            waited: 0,
        }
    }
}

/// What threads are mapped by.
#[derive(Debug)]
pub struct RemapInput {
    /// Pairs that share, with the weight of their events.
    pub pairs: Vec<(SharerId, SharerId, u32)>,
    /// The events since the last time, and of how many intervals they are.
    pub news: Vec<(SharerId, SharerId)>,
    pub intervals: u32,
}

impl RemapTrigger {
    pub fn add_event(&mut self, a: SharerId, b: SharerId) {
        if self.new_events.len() < MAX_NEW_EVENTS {
            self.new_events.push((a, b));
        }
    }

    /// A thread is gone.
    pub fn forget_thread(&mut self, sharer: SharerId) {
        self.new_events.retain(|&(a, b)| a != sharer && b != sharer);
        self.told = self.told.min(self.new_events.len());
    }

    /// Pages may move: threads were mapped once (kMAF 3.3), or need not be.
    #[must_use]
    pub fn pages_may_move(&self) -> bool {
        self.placed
    }

    /// Threads were mapped.
    pub fn threads_mapped(&mut self) {
        self.placed = true;
    }

    /// This many intervals are over, with faults in them or without. Ages the matrix for each
    /// as far as due. Returns what it held before if threads are to be remapped.
    pub fn end_interval(
        &mut self,
        matrix: &mut SharingMatrix,
        intervals: u32,
        faults: bool,
    ) -> Option<RemapInput> {
        self.waited += if faults { intervals } else { 0 };
        self.placed |= self.waited >= PATIENCE;
        let pairs: Vec<(SharerId, SharerId, u32)> = matrix.pairs().collect();
        let mut talks = vec![false; matrix.sharers()];
        for &(i, j, _) in &pairs {
            (talks[i.at()], talks[j.at()]) = (true, true);
        }
        let talking = talks.iter().filter(|t| **t).count();
        let news = if self.is_periodic { 0 } else { talking };
        let enough = talking >= 2 && self.new_events.len() >= news;
        self.told_in += u32::from(self.new_events.len() > self.told);
        self.told = self.new_events.len();
        // As many as come each time, and what is left of all before.
        let stays = talking as f64 * f64::from(EVENT_WEIGHT) / (1.0 - self.ageing);
        let mut kept: f64 = pairs.iter().map(|&(_, _, w)| f64::from(w)).sum();
        for interval in 0..intervals {
            if kept <= stays && !(enough && interval == 0) && !self.is_periodic {
                break;
            }
            matrix.age(self.ageing);
            kept *= self.ageing;
        }
        enough.then(|| {
            self.told = 0;
            RemapInput {
                pairs,
                news: std::mem::take(&mut self.new_events),
                intervals: std::mem::take(&mut self.told_in),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of (intervals, events of each of two couples): whether remapping was due after
    /// the last, and the events that are left.
    fn turns(turns: &[(u32, usize)]) -> (bool, f64, RemapTrigger) {
        let (mut matrix, mut trigger) = (SharingMatrix::default(), RemapTrigger::default());
        let mut due = false;
        for &(intervals, count) in turns {
            for (a, b) in [(0, 1), (2, 3)].repeat(count) {
                matrix.share(SharerId(a), SharerId(b));
                trigger.add_event(SharerId(a), SharerId(b));
            }
            due = trigger.end_interval(&mut matrix, intervals, true).is_some();
        }
        let left: f64 = matrix.pairs().map(|(_, _, w)| f64::from(w)).sum();
        (due, left / f64::from(EVENT_WEIGHT), trigger)
    }

    #[test]
    fn mapping_waits_for_as_many_events_as_threads() {
        let check = |events: &[usize], expected: bool| {
            let of: Vec<_> = events.iter().map(|&count| (1, count)).collect();
            assert_eq!(turns(&of).0, expected, "{events:?}");
        };
        check(&[0], false);
        check(&[1], false);
        check(&[2], true);
        check(&[1, 1], true);
        check(&[1, 1, 1], false);
    }

    /// Turns of (intervals, events of each of two couples), the last of which is due.
    #[test]
    fn intervals_that_told_something_are_counted() {
        let check = |of: &[(u32, usize)], expected: u32| {
            let (mut matrix, mut trigger) = (SharingMatrix::default(), RemapTrigger::default());
            let mut due = None;
            for &(intervals, count) in of {
                for (a, b) in [(0, 1), (2, 3)].repeat(count) {
                    matrix.share(SharerId(a), SharerId(b));
                    trigger.add_event(SharerId(a), SharerId(b));
                }
                due = trigger.end_interval(&mut matrix, intervals, true);
            }
            assert_eq!(due.expect("due").intervals, expected, "{of:?}");
        };
        check(&[(1, 2)], 1);
        check(&[(1, 1), (1, 0), (7, 0), (1, 1)], 2);
        // The first two are over.
        check(&[(1, 1), (1, 1), (1, 0), (1, 2)], 1);
    }

    #[test]
    fn ageing_follows_news_and_time() {
        let check = |of: &[(u32, usize)], expected: f64| assert_eq!(turns(of).1, expected);
        // Too few to tell anything: all stay.
        check(&[(1, 1), (1, 0), (1, 0)], 2.0);
        // As many as threads: once, however long it took.
        check(&[(1, 2)], 3.0);
        check(&[(9, 2)], 3.0);
        check(&[(1, 2), (1, 0), (9, 0)], 3.0);
        // More than 16, which is four for each thread, age for each interval until they are.
        check(&[(1, 12)], 18.0);
        check(&[(1, 12), (1, 0)], 13.5);
        check(&[(2, 12)], 13.5);
        check(&[(9, 12), (9, 0)], 13.5);
    }

    #[test]
    fn pages_wait_for_threads_but_not_for_ever() {
        assert!(!turns(&[(1, 1); 19]).2.pages_may_move());
        assert!(turns(&[(1, 0); 20]).2.pages_may_move());
        assert!(turns(&[(10, 0); 2]).2.pages_may_move());
        let mut trigger = RemapTrigger::default();
        trigger.threads_mapped();
        assert!(trigger.pages_may_move());
    }
}
