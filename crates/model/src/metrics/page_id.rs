//! Pages of the three sizes of OPT figure 6.
//!
//! A profile counts 4 KiB pages, named by region. A larger page is an aligned block of the
//! addresses of a process, as OPT has it, so that regions side by side have pages in common:
//!
//! ```text
//!   regions       |---- 0 ----|- 1 -|      |-------- 2 --------|
//!   large pages   |       |       |       |       |       |       |
//! ```
//!
//! Memory that processes share has a place of its own in each of them; its large pages are
//! aligned by the offset in it, as the kernel's are. So are those of a region whose address is
//! not known.
use hither_profile::{
    PageNo, PageRow, PageRows, ProcessIx, Region, RegionIx, RegionKind, PAGE_SIZE,
};
use serde::Serialize;

/// The page sizes of OPT section 5.2.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum PageSize {
    /// 4 KiB, the default of x86.
    #[default]
    #[serde(rename = "4k")]
    K4,
    /// 2 MiB, the huge page of x86.
    #[serde(rename = "2m")]
    M2,
    /// 64 MiB, a possible page of a future system.
    #[serde(rename = "64m")]
    M64,
}

impl PageSize {
    /// Bytes of a page.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            PageSize::K4 => PAGE_SIZE,
            PageSize::M2 => 2 << 20,
            PageSize::M64 => 64 << 20,
        }
    }

    /// The page of this size that holds a 4 KiB page.
    #[must_use]
    pub fn page_of(self, regions: &[Region], region: RegionIx, page: PageNo) -> PageId {
        if self == PageSize::K4 {
            return PageId::of_region(region, page.0.into());
        }
        let (space, before) = space_of(regions, region);
        let number = before.saturating_add(page.0.into()) / (self.bytes() / PAGE_SIZE);
        PageId::new(space, number)
    }

    /// A table's rows, each within one page of this size.
    pub fn parts<'a, R: PageRow>(
        self,
        rows: &'a PageRows<R>,
        regions: &'a [Region],
    ) -> impl Iterator<Item = R> + Clone + 'a {
        let small = (self.bytes() / PAGE_SIZE) as u32;
        rows.parts(small, move |region| space_of(regions, region).1)
    }
}

impl std::str::FromStr for PageSize {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "4k" => Ok(PageSize::K4),
            "2m" => Ok(PageSize::M2),
            "64m" => Ok(PageSize::M64),
            _ => Err("pages come in 4k, 2m and 64m".to_owned()),
        }
    }
}

/// What large pages of a region are counted in, and the pages of 4 KiB there before it.
fn space_of(regions: &[Region], region: RegionIx) -> (PageSpace, u64) {
    let known = regions.get(region.at());
    let placed = known.filter(|r| r.kind != RegionKind::Shared && r.address > 0);
    placed.map_or((PageSpace::Region(region), 0), |r| {
        (PageSpace::Process(r.process), r.address / PAGE_SIZE)
    })
}

/// What the pages of a size are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageSpace {
    /// A region: all pages of 4 KiB, and the larger ones of memory that has no one address.
    Region(RegionIx),
    /// The addresses of a process.
    Process(ProcessIx),
}

/// A page of any size. In eight bytes, as there are so many of them: from the highest bit on, whether it
/// is one of a process, the number of the region or process, the number of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(u64);

const OF_PROCESS: u64 = 1 << 63;

impl PageId {
    fn new(space: PageSpace, number: u64) -> Self {
        let (kind, index) = match space {
            PageSpace::Region(region) => (0, region.0),
            PageSpace::Process(process) => (OF_PROCESS, process.0),
        };
        let index = u64::from(index & (u32::MAX >> 1));
        PageId(kind | index << 32 | number.min(u32::MAX.into()))
    }

    /// A page of 4 KiB.
    #[must_use]
    pub fn of_region(region: RegionIx, number: u64) -> Self {
        PageId::new(PageSpace::Region(region), number)
    }

    /// Number from the start of its region or process, in pages of its size.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0 as u32
    }

    /// The region of a page of 4 KiB.
    #[must_use]
    pub fn region(self) -> RegionIx {
        RegionIx((self.0 >> 32) as u32)
    }

    /// The page of another size around one of 4 KiB.
    #[must_use]
    pub fn at_size(self, regions: &[Region], size: PageSize) -> Self {
        if self.0 & OF_PROCESS != 0 {
            return self;
        }
        size.page_of(regions, self.region(), PageNo(self.number()))
    }
}
