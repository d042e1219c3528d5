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
        PageId {
            space,
            number: (before + u64::from(page.0)) / (self.bytes() / PAGE_SIZE),
        }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageSpace {
    /// A region: all pages of 4 KiB, and the larger ones of memory that has no one address.
    Region(RegionIx),
    /// The addresses of a process.
    Process(ProcessIx),
}

/// A page of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId {
    /// What it lies in.
    pub space: PageSpace,
    /// Number from the start of that, in pages of the size chosen.
    pub number: u64,
}

impl PageId {
    /// A page of 4 KiB.
    #[must_use]
    pub fn of_region(region: RegionIx, number: u64) -> Self {
        let space = PageSpace::Region(region);
        PageId { space, number }
    }

    /// The page of another size around one of 4 KiB.
    #[must_use]
    pub fn at_size(self, regions: &[Region], size: PageSize) -> Self {
        match self.space {
            PageSpace::Region(region) => {
                let page = u32::try_from(self.number).unwrap_or(u32::MAX);
                size.page_of(regions, region, PageNo(page))
            }
            PageSpace::Process(_) => self,
        }
    }
}
