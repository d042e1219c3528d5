//! What tells the regions of a process apart, so that the same ones of another can be found.
use hither_profile::{Region, RegionKind, ThreadIx};

/// What a region was when it appeared: the same mapping of another process was the same then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionOrigin {
    kind: RegionKind,
    thread: Option<ThreadIx>,
    ordinal: u32,
    /// 0 of what grows.
    size: u64,
}

impl RegionOrigin {
    pub fn of(region: &Region) -> RegionOrigin {
        let grows = matches!(region.kind, RegionKind::Brk | RegionKind::Other);
        RegionOrigin {
            kind: region.kind,
            thread: region.thread,
            ordinal: region.ordinal,
            size: if grows { 0 } else { region.size },
        }
    }
}

/// Row of the process, origin, file.
pub type LeftRegion = (u32, RegionOrigin, String);
