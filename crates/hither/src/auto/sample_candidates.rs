//! Pages that are there and that a sampler may take: those that faulted and were not taken
//! since. SPCD and kMAF walk the page table for that (III.B.2, 3.1.2), which user space
//! cannot; page faults give the same. A sampled page is a candidate again when it faults, so
//! pages that are not used any more drop out.
//!
//! One page of many shows which threads share, but only its own faults show on which node a
//! page is used. So pages that
//! several threads use are picked more often than others, all of them alike; but not so
//! often that the rest of them is never found. They are looked for first where memory of one
//! thread borders on another's: grids and arrays that threads divide among them are shared
//! there, if at all.
use super::analysis::{AccessObservation, FaultAccess, ObjectPage, SharingDetector, TABLE_ENTRIES};
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use hither_model::rng::Rng;
use hither_profile::{Nanos, PAGE_SIZE};
use hither_sys::Pid;

/// A page of a process, by its address.
type PageAddress = (Pid, u64);

/// How much likelier a page is picked that several threads use, or may.
const WEIGHT: u64 = 32;
/// One of this many picks goes to pages that nothing is known of, and at least one of as many
/// to pages that one thread uses.
const LEAST: u64 = 4;

/// A page that faulted is left alone for this long: one that threads use all the time would be back at
/// once and be most of what is seen, while those of large data are touched once a sweep.
const REST: Nanos = 500_000_000;

/// Users of a page that are known at most: with more threads than these, nobody can say
/// whether all of them use it.
const COUNTED: usize = 8;
/// As many users may be all there are, but still tell something.
const CROWD: usize = 4;

/// What is known of a page that faulted.
#[derive(Clone, Copy, Debug, Default)]
struct KnownPage {
    /// When it did last, but for memory that was given back and taken again.
    last: Nanos,
    /// It is in the list of likely ones, or in that of the others.
    is_listed: Option<bool>,
}

#[derive(Debug)]
pub struct SampleCandidates {
    /// Used by several threads, or beside memory of others.
    likely: Vec<PageAddress>,
    other: Vec<PageAddress>,
    /// Pages that faulted.
    known: HashMap<PageAddress, KnownPage>,
    /// Processes that have ended, or have other memory now, and may be named above still.
    gone: HashSet<Pid>,
    random: Rng,
}

impl SampleCandidates {
    pub fn new() -> SampleCandidates {
        SampleCandidates {
            likely: Vec::new(),
            other: Vec::new(),
            known: HashMap::new(),
            gone: HashSet::new(),
            random: Rng::new(0),
        }
    }

    /// A page faulted, and this is what it told, while so many threads live.
    pub fn observe_access(
        &mut self,
        at: PageAddress,
        access: &FaultAccess,
        seen: AccessObservation,
        detector: &dyn SharingDetector,
        threads: usize,
    ) {
        if self.gone.contains(&at.0) {
            // Another process has the number.
            self.drop_gone();
        }
        let page = (at.0, at.1 / PAGE_SIZE * PAGE_SIZE);
        if self.known.len() >= TABLE_ENTRIES {
            self.known.clear();
        }
        let known = self.known.entry(page).or_default();
        if !seen.is_new_memory {
            known.last = access.at;
        }
        let mut borders = false;
        for step in [-1, 1] {
            let Some(number) = access.page.number.checked_add_signed(step) else {
                continue;
            };
            let page = ObjectPage {
                number,
                ..access.page
            };
            if !detector.is_used_by_others(page, access.thread) {
                continue;
            }
            borders = true;
            // It was there first, and did not know.
            if !seen.known {
                let there = at.1.wrapping_add_signed(step * PAGE_SIZE.cast_signed());
                self.insert((at.0, there), true);
            }
        }
        self.insert(at, is_telling(seen.users, threads, borders));
    }

    fn insert(&mut self, at: PageAddress, likely: bool) {
        let at = (at.0, at.1 / PAGE_SIZE * PAGE_SIZE);
        let known = self.known.entry(at).or_default();
        if known.is_listed.replace(likely) == Some(likely) {
            return;
        }
        let random = self.random.next_u64() >> 8;
        let list = match likely {
            true => &mut self.likely,
            false => &mut self.other,
        };
        if list.len() < TABLE_ENTRIES {
            list.push(at);
        } else {
            list[random as usize % TABLE_ENTRIES] = at;
        }
    }

    /// The process is gone, or has other memory now: its pages are picked no more.
    pub fn remove_process(&mut self, pid: Pid) {
        self.gone.insert(pid);
    }

    /// Drops the pages of all processes that are gone: going through all pages for each of them would cost
    /// a program that starts many processes much.
    pub fn drop_gone(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        let gone = std::mem::take(&mut self.gone);
        self.likely.retain(|at| !gone.contains(&at.0));
        self.other.retain(|at| !gone.contains(&at.0));
        self.known.retain(|at, _| !gone.contains(&at.0));
    }

    /// At most as many pages as are wanted, of those that may be taken now; the others wait
    /// for their time.
    pub fn pick(
        &mut self,
        now: Nanos,
        wanted: u32,
        may: impl Fn(PageAddress) -> bool,
    ) -> Vec<PageAddress> {
        let mut picks: Vec<PageAddress> = Vec::new();
        for _ in 0..wanted {
            if self.random.next_u64().is_multiple_of(LEAST) {
                continue;
            }
            let (likely, other) = (self.likely.len() as u64, self.other.len() as u64);
            let likely = WEIGHT * likely;
            let all = likely + other.max(likely / LEAST);
            let is_likely = self.random.next_u64() % all.max(1) < likely;
            let random = (self.random.next_u64() >> 8) as usize;
            let list = match is_likely {
                true => &mut self.likely,
                false => &mut self.other,
            };
            let at = random % list.len().max(1);
            let (known, gone) = (&self.known, &self.gone);
            let rests = |page: &PageAddress| known.get(page).is_some_and(|k| now < k.last + REST);
            let may = |page: &PageAddress| !gone.contains(&page.0) && !rests(page) && may(*page);
            if list.get(at).is_some_and(may) {
                let page = list.swap_remove(at);
                picks.push(page);
                if let Some(known) = self.known.get_mut(&page) {
                    known.is_listed = None;
                }
            }
        }
        picks.sort_unstable();
        picks.dedup();
        // Some may be taken only.
        self.random.shuffle(&mut picks);
        picks
    }
}

/// Whether a page with as many known users shows who shares with whom. One that all threads
/// use does not, and as it comes back at once, it would take the place of those that do.
fn is_telling(users: usize, threads: usize, borders: bool) -> bool {
    let all = threads.min(COUNTED);
    let crowd = users >= CROWD && 4 * users >= 3 * all;
    !crowd && (users >= 2 || borders)
}

#[cfg(test)]
mod tests {
    use hither_profile::NodeIx;

    use super::super::analysis::affinity_settings::{AffinityRules, AffinityTableConfig};
    use super::super::analysis::affinity_table::AffinityTable;
    use super::super::analysis::sharing_matrix::SharingMatrix;
    use super::super::analysis::{MemoryObject, SharerId};
    use super::*;

    const NOW: Nanos = 10 * REST;

    fn access(who: u16, number: u64, at: Nanos, was_taken: bool) -> FaultAccess {
        FaultAccess {
            thread: SharerId(who),
            node: NodeIx(0),
            page: ObjectPage {
                object: MemoryObject(0),
                number,
            },
            offset: 0,
            at,
            was_taken,
        }
    }

    /// A page that is always in use does not take the place of all others.
    #[test]
    fn pages_rest_between_two_faults() {
        let mut present = SampleCandidates::new();
        present.insert((1, PAGE_SIZE), true);
        present.known.entry((1, PAGE_SIZE)).or_default().last = NOW;
        assert_eq!(present.pick(NOW + REST - 1, 100, |_| true), []);
        assert_eq!(present.pick(NOW + REST, 100, |_| true), [(1, PAGE_SIZE)]);
    }

    /// Memory that is given back and taken again faults for ever, on its own.
    #[test]
    fn memory_that_was_given_back_is_listed_once_and_does_not_rest_for_it() {
        let mut present = SampleCandidates::new();
        let mut table = AffinityTable::new(1, AffinityTableConfig::of(AffinityRules::Adaptive));
        let mut matrix = SharingMatrix::default();
        for (at, was_taken) in [(1, true), (NOW - 1, false), (NOW, false)] {
            let access = access(0, 9, at, was_taken);
            let seen = table.access(&access, &mut matrix);
            present.observe_access((1, 9 * PAGE_SIZE), &access, seen, &table, 2);
        }
        assert_eq!(present.other, [(1, 9 * PAGE_SIZE)]);
        assert_eq!(present.pick(NOW, 100, |_| true), [(1, 9 * PAGE_SIZE)]);
    }

    #[test]
    fn pages_are_picked_once_until_they_fault_again() {
        let mut present = SampleCandidates::new();
        (0..6).for_each(|page| present.insert((1, page * PAGE_SIZE + 17), page < 3));
        let mut picks: Vec<PageAddress> = (0..100)
            .flat_map(|_| present.pick(NOW, 1, |_| true))
            .collect();
        picks.sort_unstable();
        let all: Vec<PageAddress> = (0..6).map(|page| (1, page * PAGE_SIZE)).collect();
        assert_eq!(picks, all);
        assert_eq!(present.pick(NOW, 100, |_| true), []);
        present.insert((1, 5 * PAGE_SIZE), true);
        assert_eq!(present.pick(NOW, 100, |_| true), [(1, 5 * PAGE_SIZE)]);
    }

    /// Of 1000 pages, how many are likely shared, and the share of picks that these get.
    #[test]
    fn pages_that_may_be_shared_are_picked_more_often() {
        let check = |likely: u64, expected: f64| {
            let mut present = SampleCandidates::new();
            (0..1000).for_each(|page| present.insert((1, page * PAGE_SIZE), page < likely));
            let (mut picked, mut all) = (0, 0);
            for _ in 0..10_000 {
                for (pid, at) in present.pick(NOW, 4, |_| true) {
                    all += 1;
                    picked += u32::from(at < likely * PAGE_SIZE);
                    present.insert((pid, at), at < likely * PAGE_SIZE);
                }
            }
            // Of four three are picked.
            assert!((28_000..31_000).contains(&all), "{all}");
            let share = f64::from(picked) / f64::from(all);
            assert!((share - expected).abs() < 0.02, "{share} {expected}");
        };
        check(0, 0.0);
        // 20 * 32 : 980
        check(20, 0.395);
        // A quarter of that to the others.
        check(500, 0.8);
    }

    #[test]
    fn pages_wait_until_they_may_be_taken() {
        let mut present = SampleCandidates::new();
        (0..8).for_each(|page| present.insert((1, page * PAGE_SIZE), page < 4));
        let odd = |at: PageAddress| at.1 / PAGE_SIZE % 2 == 1;
        let mut picks: Vec<PageAddress> =
            (0..1000).flat_map(|_| present.pick(NOW, 1, odd)).collect();
        picks.sort_unstable();
        assert_eq!(picks, [1, 3, 5, 7].map(|page| (1, page * PAGE_SIZE)));
        picks.extend((0..1000).flat_map(|_| present.pick(NOW, 1, |_| true)));
        picks.sort_unstable();
        let all: Vec<PageAddress> = (0..8).map(|page| (1, page * PAGE_SIZE)).collect();
        assert_eq!(picks, all);
    }

    /// (thread, page) accesses in order, and the uses by which pages are known in the end.
    #[test]
    fn memory_that_borders_on_that_of_others_is_known() {
        let check = |accesses: &[(u16, u64)], expected: [&[u64]; 2]| {
            let mut present = SampleCandidates::new();
            let (mut table, mut matrix) = (
                AffinityTable::new(1, AffinityTableConfig::of(AffinityRules::Adaptive)),
                SharingMatrix::default(),
            );
            for &(who, number) in accesses {
                let access = access(who, number, 0, true);
                let seen = table.access(&access, &mut matrix);
                present.observe_access((1, number * PAGE_SIZE + 8), &access, seen, &table, 2);
            }
            for (pages, expected) in [&present.other, &present.likely].into_iter().zip(expected) {
                let numbers: Vec<u64> = pages.iter().map(|at| at.1 / PAGE_SIZE).collect();
                assert_eq!(numbers, expected, "{accesses:?}");
            }
        };
        check(&[(0, 1), (0, 2), (0, 3)], [&[1, 2, 3], &[]]);
        // The second thread to come shows that both share; until then the page counted as private.
        check(&[(0, 1), (0, 2), (1, 3), (1, 4)], [&[1, 2, 4], &[2, 3]]);
        check(&[(1, 3), (0, 1), (0, 2)], [&[3, 1], &[3, 2]]);
        // A gap is no border.
        check(&[(0, 1), (1, 3)], [&[1, 3], &[]]);
        check(&[(0, 1), (1, 1), (0, 2)], [&[1], &[1, 2]]);
        // Page 0 has none before it.
        check(&[(0, 0), (1, 1)], [&[0], &[0, 1]]);
    }

    #[test]
    fn pages_that_all_threads_use_tell_nothing() {
        let check = |users, threads, expected: bool| {
            assert_eq!(
                is_telling(users, threads, false),
                expected,
                "{users} {threads}"
            );
        };
        check(1, 8, false);
        check(2, 2, true);
        check(3, 3, true);
        check(5, 8, true);
        check(6, 8, false);
        check(4, 4, false);
        check(8, 64, false);
        assert!(is_telling(1, 8, true));
        assert!(!is_telling(8, 8, true));
    }

    #[test]
    fn processes_that_are_gone_are_not_picked() {
        let mut present = SampleCandidates::new();
        for pid in [1, 2] {
            present.insert((pid, PAGE_SIZE), true);
            present.insert((pid, 2 * PAGE_SIZE), false);
        }
        present.remove_process(1);
        let mut picks = present.pick(NOW, 100, |_| true);
        picks.sort_unstable();
        assert_eq!(picks, [(2, PAGE_SIZE), (2, 2 * PAGE_SIZE)]);
        // They are dropped all together, before another process with such a number has pages.
        present.remove_process(2);
        assert_eq!(present.likely, [(1, PAGE_SIZE)]);
        let access = access(0, 9, 0, true);
        let mut table = AffinityTable::new(1, AffinityTableConfig::of(AffinityRules::Adaptive));
        let seen = table.access(&access, &mut SharingMatrix::default());
        present.observe_access((1, 9 * PAGE_SIZE), &access, seen, &table, 2);
        assert_eq!(present.likely, []);
        assert_eq!(present.other, [(1, 9 * PAGE_SIZE)]);
        assert_eq!(present.pick(NOW, 100, |_| true), [(1, 9 * PAGE_SIZE)]);
    }
}
