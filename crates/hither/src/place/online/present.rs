//! Pages that are there and that a sampler may take: those that faulted and were not taken
//! since. SPCD and kMAF walk the page table for that (III.B.2, 3.1.2), which is not open to
//! us; the faults tell as well. A page that is taken comes back when it faults, so pages that
//! nobody uses any more leave by themselves.
//!
//! One page of many tells who shares, but each tells only where it is used. So those are
//! picked first whose last fault was a sharing event, then those of which several threads
//! use parts.
use super::analysis::{ELEMENTS, PAGE};
use crate::place::run::guide::Pid;

/// A page of a process, by its address.
type At = (Pid, u64);

/// What the last fault of a page told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Shared,
    Mixed,
    Other,
}

/// Which are picked of every eight; two are left to pages that nothing is known of.
const ORDER: [Option<Use>; 8] = [
    Some(Use::Shared),
    Some(Use::Mixed),
    None,
    Some(Use::Shared),
    Some(Use::Other),
    Some(Use::Shared),
    Some(Use::Mixed),
    None,
];

#[derive(Debug)]
pub struct Present {
    /// By what is known of them.
    pages: [Vec<At>; 3],
    /// Where in [`ORDER`] the next pick is.
    next: usize,
    random: u64,
}

impl Present {
    pub fn new() -> Present {
        Present {
            pages: Default::default(),
            next: 0,
            random: 0x9E37_79B9_7F4A_7C15,
        }
    }

    /// A page faulted.
    pub fn saw(&mut self, pid: Pid, address: u64, used: Use) {
        let at = (pid, address / PAGE * PAGE);
        let random = self.random();
        let list = &mut self.pages[used as usize];
        if list.len() < ELEMENTS {
            list.push(at);
        } else {
            list[random as usize % ELEMENTS] = at;
        }
    }

    /// The process is gone, or has other memory now.
    pub fn forget(&mut self, pid: Pid) {
        for list in &mut self.pages {
            list.retain(|at| at.0 != pid);
        }
    }

    /// At most as many pages as are wanted.
    pub fn pick(&mut self, wanted: u32) -> Vec<At> {
        let mut picks: Vec<At> = Vec::new();
        for _ in 0..wanted {
            let random = self.random() as usize;
            let order = ORDER[self.next];
            self.next = (self.next + 1) % ORDER.len();
            let Some(used) = order else {
                continue;
            };
            let list = &mut self.pages[used as usize];
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
        for page in 0..6 {
            let used = [Use::Shared, Use::Mixed, Use::Other][page as usize % 3];
            present.saw(1, page * PAGE + 17, used);
        }
        // Of the first three those that are shared or mixed.
        let pages = |picks: Vec<At>| -> Vec<u64> { picks.iter().map(|p| p.1 / PAGE % 3).collect() };
        let mut kinds = pages(present.pick(3));
        kinds.sort_unstable();
        assert_eq!(kinds, [0, 1]);
        let mut kinds = pages(present.pick(13));
        kinds.sort_unstable();
        assert_eq!(kinds, [0, 1, 2, 2]);
        assert_eq!(present.pick(100), []);
        present.saw(1, 5 * PAGE, Use::Shared);
        assert_eq!(present.pick(8), [(1, 5 * PAGE)]);
    }

    #[test]
    fn processes_that_are_gone_are_not_picked() {
        let mut present = Present::new();
        for pid in [1, 2] {
            present.saw(pid, PAGE, Use::Shared);
            present.saw(pid, 2 * PAGE, Use::Other);
        }
        present.forget(1);
        assert_eq!(present.pick(8), [(2, PAGE), (2, 2 * PAGE)]);
    }
}
