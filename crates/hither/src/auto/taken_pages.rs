//! Pages that samplers took and that did not fault since. A fault on one of them tells of an access, was
//! paid for, and is looked at always. One on another page that was accessed before tells that memory there is new: programs
//! give memory back and take it again.
use hither_sys::Pid;

use super::analysis::{GOLDEN_RATIO_64, PAGE};

/// Bits of each of the two filters, and pages after which the older one is emptied. At 2 % of a processor
/// some 600 pages are taken in a second.
const BITS: usize = 1 << 20;
const PAGES: usize = 1 << 16;

/// The pages, by their hashes: one other page in sixteen at most is taken for one of them.
#[derive(Debug)]
pub struct TakenPages {
    recent: Vec<u64>,
    before: Vec<u64>,
    /// In `recent`.
    count: usize,
    /// The kernel takes pages by itself.
    any: bool,
}

impl TakenPages {
    /// `any`: the kernel balances pages itself, so that any page may have been taken.
    pub fn new(any: bool) -> TakenPages {
        TakenPages {
            recent: vec![0; BITS / 64],
            before: vec![0; BITS / 64],
            count: 0,
            any,
        }
    }

    pub fn page_taken(&mut self, pid: Pid, address: u64) {
        if self.count == PAGES {
            std::mem::swap(&mut self.recent, &mut self.before);
            self.recent.fill(0);
            self.count = 0;
        }
        let (word, bit) = place(pid, address);
        self.recent[word] |= bit;
        self.count += 1;
    }

    /// A page faulted and is there again. Whether it had been taken.
    pub fn page_faulted(&mut self, pid: Pid, address: u64) -> bool {
        let was_taken = self.was_taken(pid, address);
        let (word, bit) = place(pid, address);
        self.recent[word] &= !bit;
        self.before[word] &= !bit;
        was_taken
    }

    fn was_taken(&self, pid: Pid, address: u64) -> bool {
        let (word, bit) = place(pid, address);
        self.any || (self.recent[word] | self.before[word]) & bit != 0
    }

    /// Whether a fault is looked at where only a share of them is: always those on the same pages, since
    /// what is known of a page takes several, and those on pages that were taken.
    pub fn is_looked_at(&self, pid: Pid, address: u64, share: f64) -> bool {
        let upper = page_hash(pid, address) >> 32;
        upper as f64 <= share * f64::from(u32::MAX) || !self.any && self.was_taken(pid, address)
    }
}

fn page_hash(pid: Pid, address: u64) -> u64 {
    let page = (address / PAGE) ^ u64::from(pid.cast_unsigned()) << 40;
    page.wrapping_mul(GOLDEN_RATIO_64)
}

/// Word and bit in a filter.
fn place(pid: Pid, address: u64) -> (usize, u64) {
    let bit = (page_hash(pid, address) >> 20) as usize % BITS;
    (bit / 64, 1 << (bit % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_at(pages: &TakenPages, share: f64) -> Vec<u64> {
        let is_looked_at = |page: &u64| pages.is_looked_at(1, page * PAGE + 8, share);
        (0..10_000).filter(is_looked_at).collect()
    }

    #[test]
    fn a_share_is_of_all_pages_and_always_the_same_ones() {
        for any in [false, true] {
            let pages = TakenPages::new(any);
            let few = looked_at(&pages, 0.1);
            assert!((900..1100).contains(&few.len()), "{}", few.len());
            let more = looked_at(&pages, 0.2);
            assert!(few.iter().all(|page| more.binary_search(page).is_ok()));
            assert_eq!(looked_at(&pages, 1.0).len(), 10_000);
        }
    }

    #[test]
    fn pages_that_were_taken_are_looked_at_until_they_fault() {
        let mut pages = TakenPages::new(false);
        let before = looked_at(&pages, 0.01);
        let own = |page: &u64| before.binary_search(page).is_err();
        let taken = (0..).find(own).expect("a page");
        let mut page = 1 << 30;
        let mut take = |pages: &mut TakenPages| {
            page += 1;
            pages.page_taken(2, page * PAGE);
        };
        assert!(!pages.page_faulted(1, taken * PAGE));
        pages.page_taken(1, taken * PAGE + 8);
        assert!(pages.page_faulted(1, taken * PAGE));
        assert!(!pages.page_faulted(1, taken * PAGE));
        pages.page_taken(1, taken * PAGE + 16);
        for _ in 0..PAGES {
            assert!(pages.was_taken(1, taken * PAGE + 99));
            take(&mut pages);
        }
        assert!(looked_at(&pages, 0.01).contains(&taken));
        let others = looked_at(&pages, 0.01).len() - before.len();
        assert!(others < 10_000 / 8, "{others}");
        assert!(pages.page_faulted(1, taken * PAGE + 8));
        assert!(!pages.page_faulted(1, taken * PAGE + 8));
        assert!(TakenPages::new(true).page_faulted(1, taken * PAGE));
    }
}
