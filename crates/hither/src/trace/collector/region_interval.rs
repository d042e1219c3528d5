//! A piece of an address space, and which part of which region it is.

/// Pages [start, end) of the address space that lie at `offset` of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionInterval {
    pub start: u64,
    pub end: u64,
    pub region: u32,
    /// Pages from the region's start.
    pub offset: u64,
    pub generation: u32,
}

impl RegionInterval {
    pub fn pages(&self) -> u64 {
        self.end - self.start
    }

    /// The pages of it in [start, end), which must lie within.
    pub fn subinterval(&self, start: u64, end: u64) -> RegionInterval {
        RegionInterval {
            start,
            end,
            offset: self.offset.saturating_add(start - self.start),
            ..*self
        }
    }
}
