//! Pages that are there and that a sampler may take: those that faulted and were not taken
//! since. SPCD and kMAF walk the page table for that (III.B.2, 3.1.2), which is not open to
//! us; the faults tell as well. A page that is taken comes back when it faults, so pages that
//! nobody uses any more leave by themselves.
//!
//! One page of many tells who shares, but each tells only where it is used. So pages that
//! several threads use are picked more often than others, all of them alike; but not so
//! often that the rest of them is never found.
use super::analysis::{ELEMENTS, PAGE};
use crate::place::run::guide::Pid;

/// A page of a process, by its address.
type At = (Pid, u64);

/// How much likelier a page is picked that several threads use.
const WEIGHT: u64 = 8;
/// Every so many picks one is left to pages that nothing is known of, and one of as many at
/// least to those that one thread uses.
const LEAST: u64 = 4;

#[derive(Debug)]
pub struct Present {
    mixed: Vec<At>,
    other: Vec<At>,
    random: u64,
}

impl Present {
    pub fn new() -> Present {
        Present {
            mixed: Vec::new(),
            other: Vec::new(),
            random: 0x9E37_79B9_7F4A_7C15,
        }
    }

    fn list(&mut self, mixed: bool) -> &mut Vec<At> {
        match mixed {
            true => &mut self.mixed,
            false => &mut self.other,
        }
    }

    /// A page faulted, that several threads use or that one does.
    pub fn saw(&mut self, pid: Pid, address: u64, mixed: bool) {
        let at = (pid, address / PAGE * PAGE);
        let random = self.random() >> 8;
        let list = self.list(mixed);
        if list.len() < ELEMENTS {
            list.push(at);
        } else {
            list[random as usize % ELEMENTS] = at;
        }
    }

    /// The process is gone, or has other memory now.
    pub fn forget(&mut self, pid: Pid) {
        self.mixed.retain(|at| at.0 != pid);
        self.other.retain(|at| at.0 != pid);
    }

    /// At most as many pages as are wanted.
    pub fn pick(&mut self, wanted: u32) -> Vec<At> {
        let mut picks: Vec<At> = Vec::new();
        for _ in 0..wanted {
            if self.random().is_multiple_of(LEAST) {
                continue;
            }
            let (mixed, other) = (self.mixed.len() as u64, self.other.len() as u64);
            let mixed = WEIGHT * mixed;
            let all = mixed + other.max(mixed / LEAST);
            let is_mixed = self.random() % all.max(1) < mixed;
            let random = (self.random() >> 8) as usize;
            let list = self.list(is_mixed);
            if !list.is_empty() {
                picks.push(list.swap_remove(random % list.len()));
            }
        }
        picks.sort_unstable();
        picks.dedup();
        picks
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_picked_once_until_they_fault_again() {
        let mut present = Present::new();
        (0..6).for_each(|page| present.saw(1, page * PAGE + 17, page < 3));
        let mut picks: Vec<At> = (0..100).flat_map(|_| present.pick(1)).collect();
        picks.sort_unstable();
        let all: Vec<At> = (0..6).map(|page| (1, page * PAGE)).collect();
        assert_eq!(picks, all);
        assert_eq!(present.pick(100), []);
        present.saw(1, 5 * PAGE, true);
        assert_eq!(present.pick(100), [(1, 5 * PAGE)]);
    }

    /// Of 1000 pages 20 are used by several threads.
    #[test]
    fn pages_that_several_use_are_likelier_to_be_picked() {
        let mut present = Present::new();
        let (mut mixed, mut all) = (0, 0);
        (0..1000).for_each(|page| present.saw(1, page * PAGE, page < 20));
        for _ in 0..10_000 {
            for (pid, at) in present.pick(4) {
                all += 1;
                mixed += u64::from(at < 20 * PAGE);
                present.saw(pid, at, at < 20 * PAGE);
            }
        }
        // Of four three are picked; of those 160 in 1140 are such pages.
        assert!((29_000..31_000).contains(&all), "{all}");
        let share = mixed as f64 / all as f64;
        assert!((0.13..0.15).contains(&share), "{share}");
    }

    #[test]
    fn processes_that_are_gone_are_not_picked() {
        let mut present = Present::new();
        for pid in [1, 2] {
            present.saw(pid, PAGE, true);
            present.saw(pid, 2 * PAGE, false);
        }
        present.forget(1);
        assert_eq!(present.pick(100), [(2, PAGE), (2, 2 * PAGE)]);
    }
}
