//! Which memory of a process is open to the agent in it. The program can write the agent's reports
//! itself: they open only what was asked for, and what is kept of them is bounded.
use super::protocol::{CloseReason, REGIONS};
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Until a region that was touched for the first time too often is tried again: soon, for a
/// program that begins something new is worth looking at, and often it is not filling for
/// long. What is in vain costs it some 0.5 ms each time.
const LATER: Duration = Duration::from_millis(400);

/// A range that is open to the agent.
#[derive(Clone, Debug)]
pub struct MovableRegion {
    pub range: Range<u64>,
    /// The agent watches it, and it was looked at once more since: pages may be taken.
    pub sure: bool,
}

#[derive(Debug, Default)]
pub struct OpenRegions {
    pub regions: Vec<MovableRegion>,
    /// What the agent was told to open and has not answered: lengths by address.
    asked: HashMap<u64, u64>,
    /// Not again, or not before.
    shunned: Vec<(Range<u64>, Option<Instant>)>,
}

impl OpenRegions {
    /// Whether the agent is to be told to open a range: not where it was told already, is to leave it
    /// alone, or has as many as it can.
    pub fn ask(&mut self, range: &Range<u64>) -> bool {
        let shunned = self.shunned.iter().any(|(s, _)| ranges_overlap(s, range));
        let open = self.regions.len() + self.asked.len();
        if shunned || open + 1 >= REGIONS || self.asked.contains_key(&range.start) {
            return false;
        }
        self.asked.insert(range.start, range.end - range.start);
        true
    }

    /// The agent says that it has opened a range, or could not. Whether one is open that was not.
    pub fn opened(&mut self, address: u64, length: u64, error: i32) -> bool {
        let asked = self.asked.get(&address) == Some(&length);
        if asked {
            self.asked.remove(&address);
        }
        let opened = asked && error == 0;
        if opened {
            self.regions.push(MovableRegion {
                range: address..address + length,
                sure: false,
            });
        }
        opened
    }

    /// The agent says that a range is closed.
    pub fn closed(&mut self, address: u64, length: u64, why: CloseReason) {
        let range = address..address.saturating_add(length);
        self.regions.retain(|r| !ranges_overlap(&r.range, &range));
        let until = match why {
            CloseReason::Removed => None,
            CloseReason::Filling => Some(Instant::now() + LATER),
            CloseReason::Gone | CloseReason::Ordered => return,
        };
        if self.shunned.len() < 4 * REGIONS {
            self.shunned.push((range, until));
        }
    }

    /// Whether the time of one that was to be left alone is over.
    pub fn is_due(&self, now: Instant) -> bool {
        let mut shunned = self.shunned.iter();
        shunned.any(|(_, until)| until.is_some_and(|until| until <= now))
    }

    /// Forgets what was to be left alone and is not there any more, or has been for long enough.
    pub fn forget_shunned(&mut self, now: Instant, is_there: impl Fn(&Range<u64>) -> bool) {
        self.shunned
            .retain(|(range, until)| until.is_none_or(|until| until > now) && is_there(range));
    }
}

pub fn ranges_overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::super::protocol::{decode_report, AgentReport, REPORT};
    use super::*;

    #[test]
    fn forged_reports_open_nothing_and_take_no_memory() {
        let mut open = OpenRegions::default();
        assert!(open.ask(&(0x10_000..0x20_000)));
        assert!(!open.ask(&(0x10_000..0x20_000)), "it was asked already");
        for n in 0..100_000 {
            assert!(!open.opened(n << 30, 1 << 20, 0));
            open.closed(n << 30, u64::MAX, CloseReason::Filling);
        }
        assert!(!open.opened(0x10_000, u64::MAX, 0), "more than was asked");
        assert_eq!(open.regions.len(), 0);
        assert!(open.shunned.len() <= 4 * REGIONS);
        assert!(open.opened(0x10_000, 0x10_000, 0));
        assert!(!open.opened(0x10_000, 0x10_000, 0), "once");
        assert_eq!(open.regions.len(), 1);
        open.closed(0, u64::MAX, CloseReason::Ordered);
        assert_eq!(open.regions.len(), 0);
    }

    #[test]
    fn no_more_than_127_are_open() {
        let mut open = OpenRegions::default();
        let range = |n: u64| n << 20..(n << 20) + 4096;
        for n in 1..=127 {
            assert!(open.ask(&range(n)) && (n % 2 == 0 || open.opened(n << 20, 4096, 0)));
        }
        assert!(!open.ask(&range(128)));
        open.closed(1 << 20, 4096, CloseReason::Ordered);
        assert!(open.ask(&range(128)) && !open.ask(&range(129)));
    }

    #[test]
    fn any_bytes_for_reports_open_only_what_was_asked_for() {
        let mut random = hither_model::rng::Rng::new(7);
        let mut open = OpenRegions::default();
        let asked = [0x10_000..0x20_000, 0x40_0000..0x80_0000];
        for n in 0..200_000u64 {
            for range in &asked {
                open.ask(range);
            }
            let mut bytes = [0; REPORT];
            for word in bytes.chunks_mut(8) {
                let value = match random.next_u64() % 4 {
                    0 => random.next_u64() % 5,
                    1 => asked[(n % 2) as usize].start,
                    2 => asked[(n % 2) as usize].end - asked[(n % 2) as usize].start,
                    _ => random.next_u64(),
                };
                let value = value.to_le_bytes();
                word.copy_from_slice(&value[..word.len()]);
            }
            match decode_report(&bytes) {
                Some((
                    AgentReport::Opened {
                        address,
                        length,
                        error,
                    },
                    _,
                )) => {
                    open.opened(address, length, error);
                }
                Some((
                    AgentReport::Closed {
                        address,
                        length,
                        why,
                    },
                    _,
                )) => {
                    open.closed(address, length, why);
                }
                _ => {}
            }
            let known = |region: &MovableRegion| asked.contains(&region.range);
            assert!(open.regions.iter().all(known) && open.regions.len() < REGIONS);
        }
    }

    #[test]
    fn what_the_program_fills_is_opened_again_later() {
        let mut open = OpenRegions::default();
        let range = 0x10_000..0x20_000;
        assert!(open.ask(&range) && open.opened(range.start, 0x10_000, 0));
        open.closed(range.start, 0x10_000, CloseReason::Filling);
        assert!(!open.ask(&range));
        let later = Instant::now() + LATER;
        assert!(open.is_due(later));
        open.forget_shunned(later, |_| true);
        assert!(open.ask(&range));
        assert!(!open.opened(range.start, 0x10_000, 12), "it could not");
        open.closed(range.start, 0x10_000, CloseReason::Removed);
        open.forget_shunned(later, |_| true);
        assert!(!open.ask(&range));
        open.forget_shunned(later, |_| false);
        assert!(open.ask(&range));
    }
}
