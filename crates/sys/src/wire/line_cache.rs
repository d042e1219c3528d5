//! The line cache of a thread.

/// Entries of a line cache per bit of [`super::SegmentThread::used`].
pub const CACHE_GROUP: u32 = 256;
/// Of [`super::SegmentHeader::cache_log2`]: one group, and as many as [`super::SegmentThread::used`] has bits.
pub const CACHE_LOG2_MIN: u32 = 8;
pub const CACHE_LOG2_MAX: u32 = 17;
/// In a tag: makes the owner's next access miss.
pub const STALE: u64 = 1 << 63;
pub const EXACT: u64 = 1 << 62;
pub const TAG_LINE: u64 = (1 << 60) - 1;
pub const SIDE_SITE: u32 = 26;
pub const SIDE_OBJECT: u32 = 48;
pub const OTHERS: u32 = 1 << 15;
pub const LIST_WORDS: u32 = 2 * OTHERS;
pub const CONTINUED_USES: u32 = 1 << 16;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LineCacheEntry {
    pub tag: u64,
    pub reads: u32,
    pub writes: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideRecord {
    pub line: u64,
    pub others: u16,
    pub continued: u16,
    pub z1: u16,
    pub z2: u16,
    pub s1: u32,
    pub s2: u32,
}

/// What a thread did with a line.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineUseCount {
    pub accesses: u32,
    pub writes: u32,
}

/// Left lines of a thread.
pub const LEFT_LINES: u32 = 1 << 12;

/// What a thread had done with a shared line in a slice when the line left its line cache.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LeftLine {
    pub key: u64,
    pub uses: LineUseCount,
    pub page: u32,
    pub others: [u16; 2],
}

impl LeftLine {
    /// Address of the line.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.key >> 16
    }
}

impl SideRecord {
    /// Page id of the line.
    #[must_use]
    pub fn page(&self) -> u32 {
        (self.line & ((1 << SIDE_SITE) - 1)) as u32
    }

    /// The place in the code that entered the line.
    #[must_use]
    pub fn site(&self) -> u32 {
        (self.line >> SIDE_SITE) as u32 & ((1 << (SIDE_OBJECT - SIDE_SITE)) - 1)
    }

    /// Id of the object that entered the line, in its process.
    #[must_use]
    pub fn object(&self) -> u32 {
        (self.line >> SIDE_OBJECT) as u32
    }
}
