//! How much memory the collector takes for what the target tells: reports of mappings and heap blocks
//! cost the target nothing.

/// For regions, where they lay when, and the calls that allocate.
const MOST_BYTES: u64 = 768 << 20;
/// A region, roughly, without its file's name.
pub const REGION_BYTES: u64 = 192;
/// An interval that turned out to be a module's.
pub const LATE_MODULE_BYTES: u64 = 64;
/// A call path that allocates.
pub const SITE_BYTES: u64 = 320;
/// A large block that it allocated.
pub const BLOCK_BYTES: u64 = 24;

pub struct MemoryBudget {
    pub most: u64,
    spent: u64,
    /// Reports that were not kept.
    pub refused: u64,
}

impl Default for MemoryBudget {
    fn default() -> MemoryBudget {
        MemoryBudget {
            most: MOST_BYTES,
            spent: 0,
            refused: 0,
        }
    }
}

impl MemoryBudget {
    pub fn is_spent(&self) -> bool {
        self.spent >= self.most
    }

    pub fn spend(&mut self, bytes: u64) {
        self.spent = self.spent.saturating_add(bytes);
    }

    pub fn give_back(&mut self, bytes: u64) {
        self.spent = self.spent.saturating_sub(bytes);
    }
}
