//! The pages of a profile as data policies see them: use of each page by thread and
//! slice, and its first toucher.
//!
//! A profile names a 4 KiB page by its region and number. A larger page is an aligned run of
//! them, cut where the hardware would cut it: by the address that the region had; regions that share one are
//! placed together. It keeps
//! the 4 KiB pages it stands for, so a placement still says what is meant when the region
//! lies elsewhere in the next run.
use super::packed_uses::{PackedUses, UnpackedUses};
use crate::locality::AccessLocality;
use crate::topology::TopologyTree;
use hither_profile::{
    NodeIx, PageNo, PageRow, PageRows, PageUse, ProcessIx, Profile, Region, RegionIx, SliceIx,
    ThreadIx, PAGE_SIZE,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The sizes in which pages are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementPageSize {
    /// 4 KiB.
    #[default]
    K4,
    /// 2 MiB.
    M2,
}

impl PlacementPageSize {
    /// Pages of 4 KiB in one of this size.
    fn small_pages(self) -> u64 {
        match self {
            PlacementPageSize::K4 => 1,
            PlacementPageSize::M2 => (2 << 20) / PAGE_SIZE,
        }
    }

    /// A table's rows, each within one page of this size.
    fn parts<'a, R: PageRow>(
        self,
        rows: &'a PageRows<R>,
        regions: &'a [Region],
    ) -> impl Iterator<Item = R> + Clone + 'a {
        let address = |region: RegionIx| regions.get(region.at()).map_or(0, |r| r.address);
        rows.parts(self.small_pages() as u32, move |region| {
            address(region) / PAGE_SIZE
        })
    }
}

impl std::str::FromStr for PlacementPageSize {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "4k" => Ok(PlacementPageSize::K4),
            "2m" => Ok(PlacementPageSize::M2),
            _ => Err("pages are placed in sizes of 4k or 2m".to_owned()),
        }
    }
}

/// The first access to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstAccess {
    /// The slice of the run.
    pub slice: SliceIx,
    /// The thread that made the accesses.
    pub thread: ThreadIx,
}

/// A page of any size: `count` pages of 4 KiB of a region, from `first` on. Those at the
/// ends of a region may be shorter than the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceablePage {
    /// The region the page lies in.
    pub region: RegionIx,
    /// Its first page of 4 KiB, counted from the start of the region.
    pub first: PageNo,
    /// How many pages of 4 KiB it spans: 1, or 512 for 2 MiB.
    pub count: u32,
    /// Number among all pages of the profile; it stays when some of them are placed alone.
    pub number: u32,
    /// `None` when the profile does not say.
    pub touch: Option<FirstAccess>,
}

impl PlaceablePage {
    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.count) * PAGE_SIZE
    }

    /// Bytes of the region that it covers, from the region's start.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        let start = u64::from(self.first.0) * PAGE_SIZE;
        start..start + self.bytes()
    }
}

/// The accesses of one thread to one page in one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSliceUse {
    /// The slice of the run.
    pub slice: SliceIx,
    /// The thread that made the accesses.
    pub thread: ThreadIx,
    /// Reads plus writes.
    pub accesses: u64,
}

/// Pages by region and number, each with its uses by slice and thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceablePages {
    pages: Vec<PlaceablePage>,
    uses: PackedUses,
    /// By position: what else lies in the same page, of other regions.
    parts: BTreeMap<usize, Vec<PlaceablePage>>,
    /// The same by region: in which page each part lies.
    parts_of_region: BTreeMap<RegionIx, Vec<(usize, PlaceablePage)>>,
}

/// A large page of an address space: its process and number.
type LargePage = (ProcessIx, u64);

/// A region and the number of a page of the chosen size in it.
type PageBlock = (RegionIx, u64);

impl PlaceablePages {
    /// Every page that a profile knows: accessed, or only touched first.
    #[must_use]
    pub fn from_profile(profile: &Profile, size: PlacementPageSize) -> PlaceablePages {
        let cut = PageLayout::new(profile, size);
        let common = cut.common_pages(profile);
        let place = |region, page| {
            let own = cut.block(region, page);
            let large = cut.large_page(own);
            (
                own,
                *large.and_then(|large| common.get(&large)).unwrap_or(&own),
            )
        };
        let touched = size.parts(&profile.first_touch, &profile.regions);
        let used = size.parts(&profile.pages, &profile.regions);
        let parts = parts_of_others(
            (touched.clone().map(|row| place(row.region, row.page)))
                .chain(used.clone().map(|row| place(row.region, row.page))),
            size,
        );
        let touches = touched.map(|row| {
            let touch = FirstAccess {
                slice: row.slice,
                thread: row.thread,
            };
            (place(row.region, row.page).1, touch)
        });
        // Within a slice the table's first row wins.
        let touches = in_order(touches, |(block, touch)| (*block, touch.slice));
        let uses = used.map(|row| (place(row.region, row.page).1, slice_use(&row)));
        let uses = in_order(uses, |(block, u)| (*block, u.slice, u.thread));
        let (mut touches, mut uses) = (touches.peekable(), uses.peekable());
        let mut out = PlaceablePages::default();
        while let Some(block) = [touches.peek().map(|t| t.0), uses.peek().map(|u| u.0)]
            .into_iter()
            .flatten()
            .min()
        {
            let touch = touches.next_if(|t| t.0 == block).map(|t| t.1);
            while touches.next_if(|t| t.0 == block).is_some() {}
            let page = PlaceablePage {
                number: u32::try_from(out.len()).unwrap_or(u32::MAX),
                touch,
                ..cut.page(block)
            };
            if let Some(others) = parts.get(&block) {
                let others: Vec<PlaceablePage> =
                    others.iter().map(|other| cut.page(*other)).collect();
                for part in &others {
                    let of_region = out.parts_of_region.entry(part.region).or_default();
                    of_region.push((out.pages.len(), *part));
                }
                out.parts.insert(out.len(), others);
            }
            let of_page = std::iter::from_fn(|| Some(uses.next_if(|u| u.0 == block)?.1));
            out.push_page(page, of_page);
        }
        out
    }

    /// Pages in ascending order, each with its uses in the order of slices and threads.
    pub fn new(
        pages: impl IntoIterator<Item = (PlaceablePage, Vec<PageSliceUse>)>,
    ) -> PlaceablePages {
        let mut out = PlaceablePages::default();
        for (page, uses) in pages {
            out.push_page(page, uses);
        }
        out
    }

    fn push_page(&mut self, page: PlaceablePage, uses: impl IntoIterator<Item = PageSliceUse>) {
        self.uses.push_page(uses);
        self.pages.push(page);
    }

    /// Number of pages P.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether there is no page.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The page at a position, 0 to the number of pages less 1.
    #[must_use]
    pub fn page(&self, at: usize) -> &PlaceablePage {
        &self.pages[at]
    }

    /// What else lies in a page, of other regions: its uses are among those of the page, and it lies on the same
    /// node. Empty for pages of 4 KiB.
    #[must_use]
    pub fn parts(&self, at: usize) -> &[PlaceablePage] {
        self.parts.get(&at).map_or(&[], Vec::as_slice)
    }

    /// Uses of a page, by slice, then by thread.
    #[must_use]
    pub fn uses(&self, at: usize) -> UnpackedUses<'_> {
        self.uses.of_page(at)
    }

    /// Their accesses, with each page on its node of `nodes` and each thread on its unit of
    /// `threads`; threads that have none do not count.
    #[must_use]
    pub fn locality(
        &self,
        nodes: impl IntoIterator<Item = NodeIx>,
        threads: &[u32],
        tree: &TopologyTree,
    ) -> AccessLocality {
        let mut sum = AccessLocality::default();
        for (page, home) in nodes.into_iter().enumerate() {
            for u in self.uses(page) {
                if let Some(&unit) = threads.get(u.thread.at()) {
                    sum.count(tree.units[unit as usize].node, home, u.accesses);
                }
            }
        }
        sum
    }

    /// Positions of the pages that hold a byte of `bytes` of a region.
    #[must_use]
    pub fn page_range(&self, region: RegionIx, bytes: Range<u64>) -> Range<usize> {
        let from = self
            .pages
            .partition_point(|p| (p.region, p.range().end) <= (region, bytes.start));
        let to = self
            .pages
            .partition_point(|p| (p.region, p.range().start) < (region, bytes.end));
        from..to.max(from)
    }

    /// Positions of the pages that hold some of `bytes` of a region, and how much: those of the region, and
    /// large pages that count for another region which lies in them, too.
    pub fn held(
        &self,
        region: RegionIx,
        bytes: Range<u64>,
    ) -> impl Iterator<Item = (usize, u64)> + '_ {
        let own = self.page_range(region, bytes.clone());
        let own = own.map(|at| (at, &self.pages[at]));
        let parts = self.parts_of_region.get(&region).into_iter().flatten();
        let parts = parts.map(|(at, part)| (*at, part));
        let within = move |page: &PlaceablePage| {
            let held = page.range();
            held.end
                .min(bytes.end)
                .saturating_sub(held.start.max(bytes.start))
        };
        let all = own.chain(parts).map(move |(at, page)| (at, within(page)));
        all.filter(|(_, held)| *held > 0)
    }
}

/// Rows by a key. Those of one page slice are in order already, which for millions of rows saves a copy.
pub fn in_order<'a, T: 'a, K: Ord>(
    rows: impl Iterator<Item = T> + Clone + 'a,
    key: impl Fn(&T) -> K,
) -> Box<dyn Iterator<Item = T> + 'a> {
    if rows.clone().is_sorted_by_key(|row| key(&row)) {
        return Box::new(rows);
    }
    let mut sorted: Vec<T> = rows.collect();
    sorted.sort_by_key(key);
    Box::new(sorted.into_iter())
}

/// What lies in a large page beside the block that it counts for, by that block. Each item is a block and the one
/// that it counts for.
fn parts_of_others(
    blocks: impl Iterator<Item = (PageBlock, PageBlock)>,
    size: PlacementPageSize,
) -> BTreeMap<PageBlock, BTreeSet<PageBlock>> {
    let mut parts: BTreeMap<PageBlock, BTreeSet<PageBlock>> = BTreeMap::new();
    if size.small_pages() > 1 {
        for (own, first) in blocks.filter(|(own, first)| own != first) {
            parts.entry(first).or_default().insert(own);
        }
    }
    parts
}

fn slice_use(row: &PageUse) -> PageSliceUse {
    PageSliceUse {
        slice: row.slice,
        thread: row.thread,
        accesses: row.reads.saturating_add(row.writes),
    }
}

/// How regions are cut into pages of a size.
struct PageLayout<'a> {
    regions: &'a [Region],
    size: PlacementPageSize,
    /// 4 KiB pages of each region: its size, or more where accesses say so.
    length: BTreeMap<RegionIx, u64>,
}

impl PageLayout<'_> {
    fn new(profile: &Profile, size: PlacementPageSize) -> PageLayout<'_> {
        let used = profile.pages.rows().map(|row| row.pages());
        let touched = profile.first_touch.rows().map(|row| row.pages());
        let mut length = BTreeMap::new();
        for run in used.chain(touched) {
            let known = profile.regions.get(run.region.at());
            let entry = length
                .entry(run.region)
                .or_insert_with(|| known.map_or(0, |r| r.size.div_ceil(PAGE_SIZE)));
            let end = u64::from(run.first) + u64::from(run.following) + 1;
            *entry = (*entry).max(end);
        }
        PageLayout {
            regions: &profile.regions,
            size,
            length,
        }
    }

    /// Pages of 4 KiB that the first page of this size has before the region begins.
    fn alignment_shift(&self, region: RegionIx) -> u64 {
        let address = self.regions.get(region.at()).map_or(0, |r| r.address);
        address / PAGE_SIZE % self.size.small_pages()
    }

    fn block(&self, region: RegionIx, page: PageNo) -> PageBlock {
        let number = (self.alignment_shift(region) + u64::from(page.0)) / self.size.small_pages();
        (region, number)
    }

    /// Where a block lies, if it is of large pages and its region has an address.
    fn large_page(&self, (region, number): PageBlock) -> Option<LargePage> {
        let per = self.size.small_pages();
        let region = self.regions.get(region.at());
        let region = region.filter(|r| per > 1 && r.address > 0)?;
        Some((region.process, region.address / PAGE_SIZE / per + number))
    }

    /// The first block in each large page: regions that share one have a common answer.
    fn common_pages(&self, profile: &Profile) -> BTreeMap<LargePage, PageBlock> {
        let mut first = BTreeMap::new();
        if self.size.small_pages() == 1 {
            return first;
        }
        let used = self.size.parts(&profile.pages, &profile.regions);
        let used = used.map(|r| (r.region, r.page));
        let touched = self.size.parts(&profile.first_touch, &profile.regions);
        let touched = touched.map(|r| (r.region, r.page));
        for (region, page) in used.chain(touched) {
            let block = self.block(region, page);
            if let Some(large) = self.large_page(block) {
                let known = first.entry(large).or_insert(block);
                *known = block.min(*known);
            }
        }
        first
    }

    fn page(&self, (region, number): PageBlock) -> PlaceablePage {
        let (per, shift) = (self.size.small_pages(), self.alignment_shift(region));
        let end = ((number + 1) * per - shift).min(self.length[&region]);
        let first = (number * per).saturating_sub(shift);
        PlaceablePage {
            region,
            first: PageNo(u32::try_from(first).unwrap_or(u32::MAX)),
            count: u32::try_from(end - first).unwrap_or(u32::MAX),
            ..PlaceablePage::default()
        }
    }
}
