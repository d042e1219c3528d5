//! How large kMAF's affinity table is, and by which rules it counts.
use hither_profile::{Nanos, PAGE_SIZE};

/// Sharers of a part of a page, or of a page by hither's own rules, at most.
pub const MOST_SHARERS: usize = 8;

/// What is made of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AffinityRules {
    /// What kMAF makes of them.
    Paper,
    /// All recent users of a page share it. First touches of a thread that fills memory for others are no
    /// sharing, and none decides where a page belongs; memory that was given back and taken again starts
    /// anew; old faults are forgotten.
    Adaptive,
}

/// Size of the table, and what a page is described by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffinityTableConfig {
    pub rules: AffinityRules,
    /// Pages that are known at a time.
    pub elements: usize,
    /// Bytes of a part of a page, as published, and threads that are known of each.
    pub sub_block: u64,
    pub sharers: usize,
    /// Of the counter of a node, as published.
    pub counter_bits: u32,
    /// After this time a thread that was not seen again does not count as a sharer any more
    /// (SPCD III.C.2), by hither's own rules. It is longer than SPCD's, for at a small budget a page is
    /// taken every few seconds only.
    pub window: Nanos,
}

impl AffinityTableConfig {
    /// What is usual.
    #[cfg(test)]
    pub fn of(rules: AffinityRules) -> AffinityTableConfig {
        AffinityTableConfig {
            rules,
            elements: super::TABLE_ENTRIES,
            sub_block: 1024,
            sharers: 2,
            counter_bits: 8,
            window: 30_000_000_000,
        }
    }

    /// Parts of a page: by hither's own rules it is not divided.
    pub fn blocks(&self) -> usize {
        match self.rules {
            AffinityRules::Paper => (PAGE_SIZE / self.sub_block.clamp(1, PAGE_SIZE)) as usize,
            AffinityRules::Adaptive => 1,
        }
    }

    /// Threads that are known of each.
    pub fn sharers_of_block(&self) -> usize {
        match self.rules {
            AffinityRules::Paper => self.sharers.clamp(1, MOST_SHARERS),
            AffinityRules::Adaptive => MOST_SHARERS,
        }
    }
}
