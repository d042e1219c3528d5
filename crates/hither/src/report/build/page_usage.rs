//! Accesses per page and thread over the whole run, in order of pages.
use hither_profile::{PageNo, PageRows, PageUse, RegionIx, ThreadIx};
use std::ops::Range;

/// What one thread did to one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadPageUse {
    pub thread: ThreadIx,
    pub reads: u64,
    pub writes: u64,
}

impl ThreadPageUse {
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }
}

/// The same in two thirds of the memory: the thread above the reads, of which there are fewer than 2^48.
#[derive(Clone, Copy, Debug)]
struct PackedUse([u64; 2]);

impl PackedUse {
    fn new(u: ThreadPageUse) -> Self {
        let reads = u.reads.min((1 << READ_BITS) - 1);
        PackedUse([u64::from(u.thread.0) << READ_BITS | reads, u.writes])
    }

    fn unpack(self) -> ThreadPageUse {
        let [first, writes] = self.0;
        ThreadPageUse {
            thread: ThreadIx((first >> READ_BITS) as u32),
            reads: first & ((1 << READ_BITS) - 1),
            writes,
        }
    }
}

const READ_BITS: u32 = 48;

/// A page in the profile.
pub type PageKey = (RegionIx, PageNo);

/// All pages with an access.
#[derive(Clone, Debug, Default)]
pub struct PageUsage {
    places: Vec<PageKey>,
    /// Uses of page p are `uses[starts[p]..starts[p + 1]]`, threads ascending.
    starts: Vec<u32>,
    uses: Vec<PackedUse>,
}

impl PageUsage {
    /// Adds up the rows over page slices.
    #[must_use]
    pub fn from_rows(rows: &PageRows<PageUse>) -> PageUsage {
        let key = |u: &PageUse| (u.region, u.page, u.thread);
        let mut usage = PageUsage::default();
        // One page slice is in this order already, which for millions of rows saves a copy.
        if rows.iter().is_sorted_by_key(|u| key(&u)) {
            rows.iter().for_each(|row| usage.push_row(&row));
        } else {
            let mut sorted: Vec<PageUse> = rows.iter().collect();
            sorted.sort_unstable_by_key(key);
            sorted.iter().for_each(|row| usage.push_row(row));
        }
        usage.starts.push(usage.uses.len() as u32);
        usage
    }

    fn push_row(&mut self, row: &PageUse) {
        if row.reads == 0 && row.writes == 0 {
            return;
        }
        let place = (row.region, row.page);
        let new_page = self.places.last() != Some(&place);
        if new_page {
            self.places.push(place);
            self.starts.push(self.uses.len() as u32);
        }
        let mut sum = ThreadPageUse {
            thread: row.thread,
            reads: row.reads,
            writes: row.writes,
        };
        match self.uses.last_mut() {
            Some(last) if !new_page && last.unpack().thread == row.thread => {
                let before = last.unpack();
                sum.reads = sum.reads.saturating_add(before.reads);
                sum.writes = sum.writes.saturating_add(before.writes);
                *last = PackedUse::new(sum);
            }
            _ => self.uses.push(PackedUse::new(sum)),
        }
    }

    #[must_use]
    pub fn page_key(&self, page: usize) -> PageKey {
        self.places[page]
    }

    pub fn uses(&self, page: usize) -> impl Iterator<Item = ThreadPageUse> + Clone + '_ {
        let uses = &self.uses[self.starts[page] as usize..self.starts[page + 1] as usize];
        uses.iter().map(|u| u.unpack())
    }

    /// Positions of the used pages among `from..=to` of a region.
    #[must_use]
    pub fn page_range(&self, region: RegionIx, from: u32, to: u32) -> Range<usize> {
        let first = self.places.partition_point(|p| *p < (region, PageNo(from)));
        let end = self.places.partition_point(|p| *p <= (region, PageNo(to)));
        first..end.max(first)
    }
}
