//! Where threads have their copies of thread-local variables.
use std::collections::{BTreeSet, HashMap};

/// Copies that are told one by one, at most.
pub const MOST_COPIES: usize = 10_000;

#[derive(Default)]
pub struct ThreadLocals {
    /// The region in which the copies of a thread are, by its key.
    pub regions: HashMap<u32, u32>,
    /// Large copies: the process and record of the structure, region, offset and size.
    pub copies: BTreeSet<((u32, u32), u32, u64, u64)>,
}
