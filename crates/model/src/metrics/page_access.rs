//! Accesses per page and thread, at any of the three page sizes of OPT figure 6.
use super::page_id::{PageId, PageSize};
use super::page_map::PageMap;
use hither_profile::{PageFirstTouch, PageRows, PageUse, Region, SliceIx, ThreadIx};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

/// More accesses than any thread makes to a page in days. Counts of a damaged profile are
/// cut here, so that sums over a page cannot overflow.
const MAX_ACCESSES: u64 = 1 << 44;

/// The accesses of one thread to one page. In eight bytes, as there are so many of them: the thread in the
/// upper bits, which a profile has fewer than 2^16 of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPageAccesses(u64);

const ACCESS_BITS: u32 = 48;

impl ThreadPageAccesses {
    fn new(thread: ThreadIx, accesses: u64) -> Self {
        ThreadPageAccesses(u64::from(thread.0) << ACCESS_BITS | accesses.min(MAX_ACCESSES))
    }

    /// The thread that made the accesses.
    #[must_use]
    pub fn thread(&self) -> ThreadIx {
        ThreadIx((self.0 >> ACCESS_BITS) as u32)
    }

    /// Reads and writes.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.0 & ((1 << ACCESS_BITS) - 1)
    }
}

/// A page, a thread, and its accesses to the page.
type TableCell = (PageId, ThreadIx, u64);

/// All pages with at least one access, in order, each with its threads in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageAccessTable {
    /// A table with other sums of the same pages has this in common.
    ids: Arc<Vec<PageId>>,
    /// Uses of page p are `uses[starts[p]..starts[p + 1]]`.
    starts: Arc<Vec<u32>>,
    uses: Vec<ThreadPageAccesses>,
}

impl PageAccessTable {
    /// Sums the rows of a `pages` table (any order, any number of slices) per page and thread.
    pub fn from_rows(rows: &PageRows<PageUse>, regions: &[Region], size: PageSize) -> Self {
        let cells = size.parts(rows, regions).map(|u| {
            let id = size.page_of(regions, u.region, u.page);
            (id, u.thread, u.reads.saturating_add(u.writes))
        });
        let cells = cells.filter(|(_, _, accesses)| *accesses > 0);
        // One page slice is in this order already, which for millions of rows saves a copy.
        if cells.clone().is_sorted_by_key(|c| (c.0, c.1)) {
            return PageAccessTable::from_cells(cells);
        }
        let mut sorted: Vec<TableCell> = cells.collect();
        sorted.sort_unstable();
        PageAccessTable::from_cells(sorted.iter().copied())
    }

    /// Of cells in order, of which those of the same page and thread add up.
    fn from_cells(cells: impl Iterator<Item = TableCell> + Clone) -> Self {
        let (mut pages, mut threads, mut last) = (0, 0, None);
        for (id, thread, _) in cells.clone() {
            pages += usize::from(last.map(|(page, _)| page) != Some(id));
            threads += usize::from(last != Some((id, thread)));
            last = Some((id, thread));
        }
        let mut ids = Vec::with_capacity(pages);
        let mut starts = Vec::with_capacity(pages + 1);
        let mut uses: Vec<ThreadPageAccesses> = Vec::with_capacity(threads);
        for (id, thread, accesses) in cells {
            let new_page = ids.last() != Some(&id);
            if new_page {
                ids.push(id);
                starts.push(uses.len() as u32);
            }
            match uses.last_mut() {
                Some(last) if !new_page && last.thread() == thread => {
                    let sum = last.accesses().saturating_add(accesses);
                    *last = ThreadPageAccesses::new(thread, sum);
                }
                _ => uses.push(ThreadPageAccesses::new(thread, accesses)),
            }
        }
        starts.push(uses.len() as u32);
        PageAccessTable {
            ids: Arc::new(ids),
            starts: Arc::new(starts),
            uses,
        }
    }

    /// A table of 4 KiB pages as one of larger pages, the same as [`PageAccessTable::from_rows`] makes
    /// of the rows.
    #[must_use]
    pub fn merge_into(&self, regions: &[Region], size: PageSize) -> Self {
        let mut cells: Vec<TableCell> = Vec::new();
        // By thread, `None` for those that do not use the page.
        let mut sums: Vec<Option<u64>> = Vec::new();
        let large = |page: usize| self.ids[page].at_size(regions, size);
        for page in 0..self.len() {
            for u in self.uses(page) {
                let at = u.thread().at();
                if at >= sums.len() {
                    sums.resize(at + 1, None);
                }
                sums[at] = Some(sums[at].unwrap_or(0).saturating_add(u.accesses()));
            }
            let id = large(page);
            if page + 1 == self.len() || large(page + 1) != id {
                let used = sums.iter_mut().enumerate();
                let used = used.filter_map(|(t, sum)| sum.take().map(|sum| (t, sum)));
                cells.extend(used.map(|(t, sum)| (id, ThreadIx(t as u32), sum)));
            }
        }
        // The parts of a page that lies in several regions come one after another now.
        cells.sort_unstable();
        PageAccessTable::from_cells(cells.iter().copied())
    }

    /// The same pages and threads with other sums: those of each page by its position, divided among
    /// its threads as its accesses are.
    #[must_use]
    pub fn scaled_to(&self, sums: &[u64]) -> Self {
        let mut table = self.clone();
        for (page, &sum) in sums.iter().enumerate() {
            let uses = &mut table.uses[self.uses_range(page)];
            let all: u128 = uses.iter().map(|u| u128::from(u.accesses())).sum();
            for u in uses {
                let part = u128::from(u.accesses()) * u128::from(sum) + all / 2;
                let part = u64::try_from(part / all.max(1)).unwrap_or(MAX_ACCESSES);
                *u = ThreadPageAccesses::new(u.thread(), part);
            }
        }
        table
    }

    /// Number of pages P.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no page.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The page at a position of the table.
    #[must_use]
    pub fn id(&self, page: usize) -> PageId {
        self.ids[page]
    }

    /// Accesses to a page, in order of threads.
    #[must_use]
    pub fn uses(&self, page: usize) -> &[ThreadPageAccesses] {
        &self.uses[self.uses_range(page)]
    }

    /// Where those lie among the accesses to all pages.
    #[must_use]
    pub fn uses_range(&self, page: usize) -> Range<usize> {
        self.starts[page] as usize..self.starts[page + 1] as usize
    }

    /// Positions of the pages from `first` to `last`, both of the same region or process.
    #[must_use]
    pub fn page_range(&self, first: PageId, last: PageId) -> Range<usize> {
        let from = self.ids.partition_point(|id| *id < first);
        let to = self.ids.partition_point(|id| *id <= last);
        from..to.max(from)
    }
}

/// The first toucher of each page. A large page is placed by the first touch of any part of
/// it; among touches of the same slice the first row of the table wins.
#[must_use]
pub fn first_toucher_of_pages(
    rows: &PageRows<PageFirstTouch>,
    regions: &[Region],
    size: PageSize,
) -> PageMap<ThreadIx> {
    let touches = || {
        let rows = size.parts(rows, regions);
        rows.map(|row| {
            let id = size.page_of(regions, row.region, row.page);
            (id, (row.slice, row.thread))
        })
    };
    if size == PageSize::K4 && touches().is_sorted_by(|a, b| a.0 < b.0) {
        return PageMap::from_sorted(touches().map(|(id, (_, thread))| (id, thread)));
    }
    let mut first: Vec<(PageId, (SliceIx, ThreadIx))> = Vec::new();
    for (id, touch) in touches() {
        // The parts of a large page follow one another.
        match first.last_mut() {
            Some((last, before)) if *last == id => {
                if touch.0 < before.0 {
                    *before = touch;
                }
            }
            _ => first.push((id, touch)),
        }
    }
    // What is last of a page in this order is the first row of its first slice.
    first.reverse();
    first.sort_by_key(|(id, (slice, _))| (*id, Reverse(*slice)));
    PageMap::from_sorted(first.into_iter().map(|(id, (_, thread))| (id, thread)))
}
