//! Pages that are there and that a sampler may take: those that faulted and were not taken
//! since. SPCD and kMAF walk the page table for that (III.B.2, 3.1.2), which is not open to
//! us; the faults tell as well. A page that is taken comes back when it faults, so pages that
//! nobody uses any more leave by themselves.
//!
//! One page of many tells who shares, but each tells only where it is used. So pages that
//! several threads use are picked more often than others, all of them alike; but not so
//! often that the rest of them is never found. They are looked for first where memory of one
//! thread borders on another's: grids and arrays that threads divide among them are shared
//! there, if at all.
use super::analysis::{Access, Detector, Page, Seen, ELEMENTS, PAGE};
use crate::place::run::guide::Pid;

/// A page of a process, by its address.
type At = (Pid, u64);

/// By whom a page is used, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// By one thread.
    Own,
    /// By one thread, and the page before or after it by others.
    Border,
    /// By several threads.
    Shared,
}

/// How much likelier a page is picked than one of a single thread, by its use.
const WEIGHTS: [u64; 3] = [1, 16, 32];
/// Every so many picks one is left to pages that nothing is known of, and one of as many at
/// least to those that one thread uses.
const LEAST: u64 = 4;

#[derive(Debug)]
pub struct Present {
    /// By their use.
    pages: [Vec<At>; 3],
    random: u64,
}

impl Present {
    pub fn new() -> Present {
        Present {
            pages: Default::default(),
            random: 0x9E37_79B9_7F4A_7C15,
        }
    }

    /// A page faulted, and this is what it told.
    pub fn accessed(&mut self, at: At, access: &Access, seen: Seen, detector: &dyn Detector) {
        let mut borders = false;
        for step in [-1, 1] {
            let Some(number) = access.page.number.checked_add_signed(step) else {
                continue;
            };
            let page = Page {
                number,
                ..access.page
            };
            if !detector.is_of_others(page, access.who) {
                continue;
            }
            borders = true;
            // It was there first, and did not know.
            if !seen.known {
                let there = at.1.wrapping_add_signed(step * PAGE.cast_signed());
                self.saw((at.0, there), Use::Border);
            }
        }
        let by = match (seen.mixed, borders) {
            (true, _) => Use::Shared,
            (false, true) => Use::Border,
            (false, false) => Use::Own,
        };
        self.saw(at, by);
    }

    fn saw(&mut self, at: At, by: Use) {
        let at = (at.0, at.1 / PAGE * PAGE);
        let random = self.random() >> 8;
        let list = &mut self.pages[by as usize];
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
            if self.random().is_multiple_of(LEAST) {
                continue;
            }
            let of = |by: Use| WEIGHTS[by as usize] * self.pages[by as usize].len() as u64;
            let (border, shared) = (of(Use::Border), of(Use::Shared));
            let own = of(Use::Own).max((border + shared) / LEAST);
            let mut at = self.random() % (own + border + shared).max(1);
            let mut by = 0;
            for weight in [own, border] {
                if at < weight {
                    break;
                }
                (at, by) = (at - weight, by + 1);
            }
            let random = (self.random() >> 8) as usize;
            let list = &mut self.pages[by];
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
    use hither_profile::NodeIx;

    use super::super::analysis::affinity::AffinityTable;
    use super::super::analysis::matrix::SharingMatrix;
    use super::super::analysis::{Member, Object};
    use super::*;

    const USES: [Use; 3] = [Use::Own, Use::Border, Use::Shared];

    #[test]
    fn pages_are_picked_once_until_they_fault_again() {
        let mut present = Present::new();
        (0..6).for_each(|page| present.saw((1, page * PAGE + 17), USES[page as usize % 3]));
        let mut picks: Vec<At> = (0..100).flat_map(|_| present.pick(1)).collect();
        picks.sort_unstable();
        let all: Vec<At> = (0..6).map(|page| (1, page * PAGE)).collect();
        assert_eq!(picks, all);
        assert_eq!(present.pick(100), []);
        present.saw((1, 5 * PAGE), Use::Shared);
        assert_eq!(present.pick(100), [(1, 5 * PAGE)]);
    }

    /// So many pages of each use of 1000, and the share of the picks that they get.
    #[test]
    fn the_likelier_a_page_is_shared_the_likelier_it_is_picked() {
        let check = |shared: u64, border: u64, expected: [f64; 3]| {
            let by = |page: u64| match page {
                _ if page < shared => Use::Shared,
                _ if page < shared + border => Use::Border,
                _ => Use::Own,
            };
            let mut present = Present::new();
            (0..1000).for_each(|page| present.saw((1, page * PAGE), by(page)));
            let mut picked = [0; 3];
            for _ in 0..10_000 {
                for (pid, at) in present.pick(4) {
                    picked[by(at / PAGE) as usize] += 1;
                    present.saw((pid, at), by(at / PAGE));
                }
            }
            // Of four three are picked.
            let all: u32 = picked.iter().sum();
            assert!((28_000..31_000).contains(&all), "{all}");
            for (picked, expected) in picked.into_iter().zip(expected) {
                let share = f64::from(picked) / f64::from(all);
                assert!((share - expected).abs() < 0.02, "{share} {expected}");
            }
        };
        check(0, 0, [1.0, 0.0, 0.0]);
        // 980 : 20 * 32
        check(20, 0, [0.605, 0.0, 0.395]);
        // 970 : 20 * 16 : 10 * 32
        check(10, 20, [0.602, 0.199, 0.199]);
        // A quarter of the rest to those of one thread.
        check(500, 490, [0.2, 0.263, 0.537]);
    }

    /// Who accesses which page in order: the uses that pages are known by in the end.
    #[test]
    fn memory_that_borders_on_that_of_others_is_known() {
        let check = |accesses: &[(u16, u64)], expected: [&[u64]; 3]| {
            let mut present = Present::new();
            let (mut table, mut matrix) = (AffinityTable::new(1), SharingMatrix::default());
            for &(who, number) in accesses {
                let access = Access {
                    who: Member(who),
                    node: NodeIx(0),
                    page: Page {
                        object: Object(0),
                        number,
                    },
                    offset: 0,
                    at: 0,
                };
                let seen = table.access(&access, &mut matrix);
                present.accessed((1, number * PAGE + 8), &access, seen, &table);
            }
            for (pages, expected) in present.pages.iter().zip(expected) {
                let numbers: Vec<u64> = pages.iter().map(|at| at.1 / PAGE).collect();
                assert_eq!(numbers, expected, "{accesses:?}");
            }
        };
        check(&[(0, 1), (0, 2), (0, 3)], [&[1, 2, 3], &[], &[]]);
        // Whoever comes second tells of both; the first one was thought its own until then.
        check(
            &[(0, 1), (0, 2), (1, 3), (1, 4)],
            [&[1, 2, 4], &[2, 3], &[]],
        );
        check(&[(1, 3), (0, 1), (0, 2)], [&[3, 1], &[3, 2], &[]]);
        // A gap is no border.
        check(&[(0, 1), (1, 3)], [&[1, 3], &[], &[]]);
        check(&[(0, 1), (1, 1), (0, 2)], [&[1], &[1, 2], &[1]]);
        // Page 0 has none before it.
        check(&[(0, 0), (1, 1)], [&[0], &[0, 1], &[]]);
    }

    #[test]
    fn processes_that_are_gone_are_not_picked() {
        let mut present = Present::new();
        for pid in [1, 2] {
            present.saw((pid, PAGE), Use::Shared);
            present.saw((pid, 2 * PAGE), Use::Own);
        }
        present.forget(1);
        assert_eq!(present.pick(100), [(2, PAGE), (2, 2 * PAGE)]);
    }
}
