//! Pages that samplers took and that did not fault since. A fault on one of them tells of an access, was
//! paid for, and is looked at always. One on another page that was accessed before tells that memory there is new: programs
//! give memory back and take it again.
use hither_sys::bpf::{filter_bit, page_hash, FaultFilter, FILTER_BITS};
use hither_sys::Pid;

/// Pages after which the older of the two bitmaps is emptied. At 2 % of a processor some 600 pages are taken
/// in a second.
const PAGES: usize = 1 << 16;

/// The pages, by their hashes: one other page in sixteen at most is taken for one of them.
#[derive(Debug)]
pub struct TakenPages {
    bitmaps: [Vec<u64>; 2],
    /// The bitmap that pages are put into, and how many it has.
    recent: usize,
    count: usize,
    /// The kernel takes pages by itself.
    any: bool,
    /// Keeps faults that are not looked at from being recorded.
    filter: Option<FaultFilter>,
    /// Faults that it has kept, when it was asked last.
    left_out: u64,
}

impl TakenPages {
    /// `any`: the kernel balances pages itself, so that any page may have been taken.
    pub fn new(any: bool) -> TakenPages {
        let bitmap = || vec![0; FILTER_BITS / 64];
        TakenPages {
            bitmaps: [bitmap(), bitmap()],
            recent: 0,
            count: 0,
            any,
            filter: None,
            left_out: 0,
        }
    }

    /// From now on the kernel leaves out what is not looked at.
    pub fn filter_in_kernel(&mut self, filter: FaultFilter) {
        self.filter = Some(filter);
        for bitmap in 0..2 {
            (0..FILTER_BITS / 64).for_each(|word| self.publish(bitmap, word));
        }
    }

    fn publish(&self, bitmap: usize, word: usize) {
        if let Some(filter) = &self.filter {
            filter.store(bitmap, word, self.bitmaps[bitmap][word]);
        }
    }

    /// Faults that the kernel left out since the last call.
    pub fn take_left_out(&mut self) -> u64 {
        let all = self.filter.as_ref().map_or(0, FaultFilter::left_out);
        all - std::mem::replace(&mut self.left_out, all)
    }

    /// As [`Self::is_looked_at`] will have it from now on.
    pub fn set_share(&self, share: f64) {
        if let Some(filter) = &self.filter {
            filter.set_share(share);
        }
    }

    pub fn page_taken(&mut self, pid: Pid, address: u64) {
        if self.count == PAGES {
            self.recent = 1 - self.recent;
            self.bitmaps[self.recent].fill(0);
            (0..FILTER_BITS / 64).for_each(|word| self.publish(self.recent, word));
            self.count = 0;
        }
        let (word, bit) = filter_bit(page_hash(pid, address));
        self.bitmaps[self.recent][word] |= bit;
        self.publish(self.recent, word);
        self.count += 1;
    }

    /// A page faulted and is there again. Whether it had been taken.
    pub fn page_faulted(&mut self, pid: Pid, address: u64) -> bool {
        let was_taken = self.was_taken(pid, address);
        if was_taken {
            let (word, bit) = filter_bit(page_hash(pid, address));
            for bitmap in 0..2 {
                self.bitmaps[bitmap][word] &= !bit;
                self.publish(bitmap, word);
            }
        }
        was_taken
    }

    fn was_taken(&self, pid: Pid, address: u64) -> bool {
        let (word, bit) = filter_bit(page_hash(pid, address));
        let [one, other] = &self.bitmaps;
        self.any || (one[word] | other[word]) & bit != 0
    }

    /// Whether a fault is looked at where only a share of them is: always those on the same pages, since
    /// what is known of a page takes several, and those on pages that were taken.
    pub fn is_looked_at(&self, pid: Pid, address: u64, share: f64) -> bool {
        let upper = page_hash(pid, address) >> 32;
        upper as f64 <= share * f64::from(u32::MAX) || !self.any && self.was_taken(pid, address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_profile::PAGE_SIZE;

    fn looked_at(pages: &TakenPages, share: f64) -> Vec<u64> {
        let is_looked_at = |page: &u64| pages.is_looked_at(1, page * PAGE_SIZE + 8, share);
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
            pages.page_taken(2, page * PAGE_SIZE);
        };
        assert!(!pages.page_faulted(1, taken * PAGE_SIZE));
        pages.page_taken(1, taken * PAGE_SIZE + 8);
        assert!(pages.page_faulted(1, taken * PAGE_SIZE));
        assert!(!pages.page_faulted(1, taken * PAGE_SIZE));
        pages.page_taken(1, taken * PAGE_SIZE + 16);
        for _ in 0..PAGES {
            assert!(pages.was_taken(1, taken * PAGE_SIZE + 99));
            take(&mut pages);
        }
        assert!(looked_at(&pages, 0.01).contains(&taken));
        let others = looked_at(&pages, 0.01).len() - before.len();
        assert!(others < 10_000 / 8, "{others}");
        assert!(pages.page_faulted(1, taken * PAGE_SIZE + 8));
        assert!(!pages.page_faulted(1, taken * PAGE_SIZE + 8));
        assert!(TakenPages::new(true).page_faulted(1, taken * PAGE_SIZE));
    }
}
