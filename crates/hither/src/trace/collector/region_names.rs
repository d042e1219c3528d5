//! What lies at an address, in terms of regions; the names of pages: (region, page number in it).
use super::address_space::PageName;
use super::regions::{RegionMap, PAGE_BITS};
use hither_profile::RegionKind;
use hither_sys::{wire, Segment};

/// Pages of a region beyond this number cannot be named.
const MAX_PAGE: u64 = u32::MAX as u64;

impl RegionMap {
    /// (region, byte offset) of a live address.
    pub fn locate(&mut self, process: u32, address: u64) -> Option<(u32, u64)> {
        let page = address >> PAGE_BITS;
        let interval = self.spaces.get(&process)?.live_at(page)?;
        let interval = self.own_interval(process, interval);
        let pages = interval.offset.saturating_add(page - interval.start);
        let in_page = address & ((1 << PAGE_BITS) - 1);
        Some((
            interval.region,
            pages.saturating_mul(1 << PAGE_BITS) | in_page,
        ))
    }

    /// (region, ELF address) of code that ran in a generation, or of a variable there.
    pub fn locate_code(
        &mut self,
        process: u32,
        pc: u64,
        generation: Option<u32>,
    ) -> Option<(u32, u64)> {
        let page = pc >> PAGE_BITS;
        let space = self.spaces.get(&process)?;
        let found = match generation {
            Some(generation) => space.interval_at(page, generation),
            None => space.live_at(page),
        }?;
        let region = &self.all.get(found.region as usize)?.region;
        let elf = region.kind == RegionKind::Elf;
        // Processes of one row have it at different addresses.
        let pages = found.offset.wrapping_sub(found.start) << PAGE_BITS;
        let in_page = region.address & ((1 << PAGE_BITS) - 1);
        let offset = pc.wrapping_add(pages).wrapping_sub(in_page);
        elf.then(|| (found.region, region.file_offset.wrapping_add(offset)))
    }

    /// Names a page from its record; `None` while its mapping was not reported yet.
    pub fn name_page(&mut self, segment: &Segment, page: &wire::SegmentPage) -> Option<PageName> {
        if page.shared != 0 {
            return self.name_shared_page(segment, page);
        }
        let found = self
            .spaces
            .get(&page.process)?
            .interval_at(page.va, page.generation)?;
        let found = self.own_interval(page.process, found);
        let number = found.offset.saturating_add(page.va - found.start);
        Some((found.region, u32::try_from(number.min(MAX_PAGE)).ok()?))
    }

    fn name_shared_page(
        &mut self,
        segment: &Segment,
        page: &wire::SegmentPage,
    ) -> Option<PageName> {
        let place = page.shared - 1;
        let chunk = segment.chunk(u32::try_from(place / u64::from(wire::CHUNK_PAGES)).ok()?);
        if chunk.state != 2 {
            return None;
        }
        let in_chunk = place % u64::from(wire::CHUNK_PAGES);
        let number = chunk
            .chunk
            .checked_mul(wire::CHUNK_PAGES.into())?
            .checked_add(in_chunk)?;
        let number = u32::try_from(number).ok()?;
        let region = self.shared_region(page.process, chunk.dev, chunk.ino, "", 0);
        self.grow(region, u64::from(number) + 1);
        Some((region, number))
    }

    /// The name of a page whose mapping was never reported.
    pub fn name_unknown_page(&mut self, page: &wire::SegmentPage) -> PageName {
        let region = self.unknown_region(page.process);
        (region, (page.va & MAX_PAGE) as u32)
    }
}
