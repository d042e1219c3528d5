//! Accesses per page and thread over the whole run, in order of pages: the table that the metrics are of, and
//! which of the accesses are writes.
use hither_model::metrics::page_access::PageAccessTable;
use hither_model::metrics::page_id::PageId;
use hither_model::metrics::PageSize;
use hither_profile::{PageNo, Profile, RegionIx, ThreadIx};
use std::collections::BTreeMap;
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

/// A page in the profile.
pub type PageKey = (RegionIx, PageNo);

/// All pages with an access.
#[derive(Clone, Debug)]
pub struct PageUsage<'a> {
    table: &'a PageAccessTable,
    writes: SmallCounts,
}

impl PageUsage<'_> {
    /// Of a profile, whose pages of 4 KiB `table` has.
    #[must_use]
    pub fn new<'a>(profile: &Profile, table: &'a PageAccessTable) -> PageUsage<'a> {
        let last = table.len().checked_sub(1);
        let uses = last.map_or(0, |last| table.uses_range(last).end);
        let mut writes = SmallCounts {
            counts: vec![0; uses],
            larger: BTreeMap::new(),
        };
        let (size, regions) = (PageSize::K4, &profile.regions);
        let mut page = 0;
        for row in size.parts(&profile.pages, regions).filter(|r| r.writes > 0) {
            let id = size.page_of(regions, row.region, row.page);
            // Rows of a page follow one another, and mostly those of the next page follow them.
            let near = [page, page + 1].into_iter();
            let near = near
                .filter(|&at| at < table.len())
                .find(|&at| table.id(at) == id);
            page = near.unwrap_or_else(|| table.page_range(id, id).start);
            let uses = table.uses(page);
            if let Ok(at) = uses.binary_search_by_key(&row.thread, |u| u.thread()) {
                writes.add(table.uses_range(page).start + at, row.writes);
            }
        }
        PageUsage { table, writes }
    }

    #[must_use]
    pub fn page_key(&self, page: usize) -> PageKey {
        let id = self.table.id(page);
        (id.region(), PageNo(id.number()))
    }

    pub fn uses(&self, page: usize) -> impl Iterator<Item = ThreadPageUse> + Clone + '_ {
        let places = self.table.uses_range(page);
        self.table.uses(page).iter().zip(places).map(|(u, at)| {
            let writes = self.writes.get(at);
            ThreadPageUse {
                thread: u.thread(),
                reads: u.accesses().saturating_sub(writes),
                writes,
            }
        })
    }

    /// Positions of the used pages among `from..=to` of a region.
    #[must_use]
    pub fn page_range(&self, region: RegionIx, from: u32, to: u32) -> Range<usize> {
        let page = |number: u32| PageId::of_region(region, number.into());
        self.table.page_range(page(from), page(to))
    }
}

/// Counts in four bytes, as there are so many of them and nearly all are small.
#[derive(Clone, Debug, Default)]
struct SmallCounts {
    counts: Vec<u32>,
    /// What is beyond them.
    larger: BTreeMap<usize, u64>,
}

impl SmallCounts {
    fn add(&mut self, at: usize, more: u64) {
        let small = &mut self.counts[at];
        match u32::try_from(more)
            .ok()
            .and_then(|more| small.checked_add(more))
        {
            Some(sum) => *small = sum,
            None => {
                let sum = self.larger.entry(at).or_insert(0);
                *sum = sum.saturating_add(more);
            }
        }
    }

    fn get(&self, at: usize) -> u64 {
        let larger = self.larger.get(&at).copied().unwrap_or(0);
        larger.saturating_add(self.counts[at].into())
    }
}
