//! When there is enough news to map threads anew, and when the matrix is aged (kMAF 3.4).
//!
//! kMAF maps and then ages every 100 ms. Here faults may be few: fewer events than threads
//! that share say nothing, and ageing what is known without learning anything new leaves
//! nothing in the end. So a turn passes until there are as many events as such threads; but a
//! matrix that holds more than these would leave in it is aged all the same, since what
//! many events told long ago is no better than what few tell now.
use super::analysis::matrix::{SharingMatrix, EVENT};
use super::analysis::Member;

/// Events per thread that stay when as many events as threads come each time:
/// 1 / (1 - 0.75).
const STAY: u64 = 4;
/// Intervals with faults after which a program whose threads need no mapping counts as
/// mapped.
const PATIENCE: u32 = 20;
/// Events that are kept until they are asked for.
const NEWS: usize = 1 << 16;

#[derive(Debug, Default)]
pub struct Evidence {
    /// Events since threads were last mapped.
    news: Vec<(Member, Member)>,
    placed: bool,
    waited: u32,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// Mapping by these pairs and events, then ageing.
    Map(Vec<(Member, Member, u32)>, Vec<(Member, Member)>),
    Age,
    Pass,
}

impl Evidence {
    pub fn event(&mut self, a: Member, b: Member) {
        if self.news.len() < NEWS {
            self.news.push((a, b));
        }
    }

    /// A thread is gone.
    pub fn clear(&mut self, member: Member) {
        self.news.retain(|&(a, b)| a != member && b != member);
    }

    /// Pages may move: threads were mapped once (kMAF 3.3), or need not be.
    #[must_use]
    pub fn placed(&self) -> bool {
        self.placed
    }

    /// Threads were mapped.
    pub fn mapped(&mut self) {
        self.placed = true;
    }

    /// An interval is over, in which there were faults or not.
    pub fn turn(&mut self, matrix: &SharingMatrix, faults: bool) -> Turn {
        self.waited += u32::from(faults && !self.placed);
        self.placed |= self.waited >= PATIENCE;
        let pairs: Vec<(Member, Member, u32)> = matrix.pairs().collect();
        let mut talks = vec![false; matrix.members()];
        for &(i, j, _) in &pairs {
            (talks[i.at()], talks[j.at()]) = (true, true);
        }
        let talking = talks.iter().filter(|t| **t).count();
        if talking >= 2 && self.news.len() >= talking {
            return Turn::Map(pairs, std::mem::take(&mut self.news));
        }
        let kept: u64 = pairs.iter().map(|&(_, _, w)| u64::from(w)).sum();
        match kept > STAY * talking as u64 * u64::from(EVENT) {
            true => Turn::Age,
            false => Turn::Pass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns with so many events of each of two couples; what is due after the last.
    fn turns(events: &[usize]) -> (Turn, Evidence) {
        let (mut matrix, mut evidence) = (SharingMatrix::default(), Evidence::default());
        let mut due = Turn::Pass;
        for &count in events {
            for (a, b) in [(0, 1), (2, 3)].repeat(count) {
                matrix.share(Member(a), Member(b));
                evidence.event(Member(a), Member(b));
            }
            due = evidence.turn(&matrix, true);
            if due != Turn::Pass {
                matrix.age();
            }
        }
        (due, evidence)
    }

    #[test]
    fn mapping_waits_for_as_many_events_as_threads() {
        let check = |events: &[usize], expected: bool| {
            let is_map = matches!(turns(events).0, Turn::Map(..));
            assert_eq!(is_map, expected, "{events:?}");
        };
        check(&[0], false);
        check(&[1], false);
        check(&[2], true);
        check(&[1, 1], true);
        check(&[1, 1, 1], false);
    }

    #[test]
    fn many_old_events_age_without_new_ones() {
        // 16 events of four threads are what stays; 18 are more, by 0.75 less no more.
        assert_eq!(turns(&[8, 0]).0, Turn::Pass);
        assert_eq!(turns(&[12, 0]).0, Turn::Age);
        assert_eq!(turns(&[12, 0, 0]).0, Turn::Pass);
    }

    #[test]
    fn pages_wait_for_threads_but_not_for_ever() {
        assert!(!turns(&[1; 19]).1.placed());
        assert!(turns(&[0; 20]).1.placed());
        let mut evidence = Evidence::default();
        evidence.mapped();
        assert!(evidence.placed());
    }
}
