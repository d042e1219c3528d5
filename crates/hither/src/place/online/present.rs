//! Pages that are there and that a sampler may take: those that faulted and were not taken
//! since. SPCD and kMAF walk the page table for that (III.B.2, 3.1.2), which is not open to
//! us; the faults tell as well. A page that is taken comes back when it faults, so pages that
//! nobody uses any more leave by themselves.
//!
//! One page of many tells who shares, but each tells only where it is used. So most of those
//! that are picked are pages that several threads use, each as often as the others: those
//! of which much is seen are no better known for being seen yet more.
use super::analysis::{ELEMENTS, PAGE};
use crate::place::run::guide::Pid;

/// A page of a process, by its address.
type At = (Pid, u64);

/// Which are picked of every eight: pages that several threads use, those that one does,
/// and those of which nothing is known.
const ORDER: [Option<bool>; 8] = [
    Some(true),
    None,
    Some(true),
    Some(true),
    Some(false),
    Some(true),
    None,
    Some(true),
];

#[derive(Debug)]
pub struct Present {
    mixed: Vec<At>,
    other: Vec<At>,
    /// Where in [`ORDER`] the next pick is.
    next: usize,
    random: u64,
}

impl Present {
    pub fn new() -> Present {
        Present {
            mixed: Vec::new(),
            other: Vec::new(),
            next: 0,
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
        let random = self.random();
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
            let random = self.random() as usize;
            let order = ORDER[self.next];
            self.next = (self.next + 1) % ORDER.len();
            let Some(mixed) = order else {
                continue;
            };
            let list = self.list(mixed);
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
        let mixed = |picks: &[At]| picks.iter().filter(|at| at.1 < 3 * PAGE).count();
        let first = present.pick(5);
        assert_eq!((first.len(), mixed(&first)), (4, 3), "{first:?}");
        let rest = present.pick(19);
        assert_eq!((rest.len(), mixed(&rest)), (2, 0), "{rest:?}");
        assert_eq!(present.pick(100), []);
        present.saw(1, 5 * PAGE, true);
        assert_eq!(present.pick(8), [(1, 5 * PAGE)]);
    }

    #[test]
    fn processes_that_are_gone_are_not_picked() {
        let mut present = Present::new();
        for pid in [1, 2] {
            present.saw(pid, PAGE, true);
            present.saw(pid, 2 * PAGE, false);
        }
        present.forget(1);
        assert_eq!(present.pick(8), [(2, PAGE), (2, 2 * PAGE)]);
    }
}
