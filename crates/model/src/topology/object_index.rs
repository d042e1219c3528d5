//! hwloc's numbers of objects as ours: one that is missing or too large is the largest.
use hwlocality::object::TopologyObject;

pub(super) fn logical_index(object: &TopologyObject) -> u32 {
    u32::try_from(object.logical_index()).unwrap_or(u32::MAX)
}

pub(super) fn u32_or_max(index: Option<usize>) -> u32 {
    index
        .and_then(|i| u32::try_from(i).ok())
        .unwrap_or(u32::MAX)
}
