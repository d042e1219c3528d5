//! Data policies: one file each, one line in [`data_policies`].
//!
//! A thread's accesses come from the node of its unit, so threads are mapped before pages.
mod balanced;
mod first_touch;
mod interleave;
mod kmaf;
mod locality_balance;
mod most_access;
mod packed_uses;
mod page_cache;
pub mod page_groups;
pub mod page_history;
mod page_placer;
pub mod placeable_pages;
mod random;

pub use balanced::BalancedDataPolicy;
pub use first_touch::FirstTouchPolicy;
pub use interleave::InterleavePolicy;
pub use kmaf::KmafPolicy;
pub use locality_balance::LocalityBalancePolicy;
pub use most_access::MostAccessPolicy;
pub use random::RandomDataPolicy;

pub use page_cache::cached_pages;
pub use page_history::{PageHistory, PageMoves, PageUseStep};
pub use placeable_pages::{
    FirstAccess, PageSliceUse, PlaceablePage, PlaceablePages, PlacementPageSize,
};

use super::migration::{MigrationLimits, PhaseRule};
use super::PuDistances;
use crate::topology::TopologyTree;
use hither_profile::NodeIx;

/// Pages to be placed, given where the threads run.
#[derive(Clone, Copy)]
pub struct DataProblem<'a> {
    /// The machine.
    pub tree: &'a TopologyTree,
    /// Gives the nearest node when the best one is full.
    pub cost: &'a PuDistances,
    /// The unit of each thread.
    pub threads: &'a [u32],
    /// The pages and their accesses by thread.
    pub pages: &'a PlaceablePages,
    /// Bytes that each node of the tree can take, see [`node_capacities`].
    pub capacity: &'a [u64],
    /// Where the pages are now, if known; the others are where they are first touched. Empty if
    /// nothing is known.
    pub current: &'a [Option<NodeIx>],
    /// Pages whose node is decided already; empty when there are none.
    pub fixed: &'a [Option<NodeIx>],
}

/// A way of placing pages.
pub trait DataPolicy: Sync {
    /// As `--data` takes it.
    fn name(&self) -> &'static str;
    /// One line: what it does, and where it comes from.
    fn about(&self) -> &'static str;
    /// A node for every page, none above its capacity, the fixed ones where they are.
    ///
    /// # Errors
    /// A sentence that says why it cannot place these pages, and what can.
    fn place(&self, problem: &DataProblem) -> Result<Vec<NodeIx>, String>;
    /// Where a page is over time while phases are followed, from its first use on; `None` for a policy
    /// that places once.
    fn follow(
        &self,
        _history: &PageHistory,
        _rule: PhaseRule,
        _limits: &MigrationLimits,
    ) -> Option<PageMoves> {
        None
    }
    /// Whether it places pages without regard to who uses them, and so whatever threads do.
    fn ignores_threads(&self) -> bool {
        false
    }
}

/// Every policy, in the order in which `hither map --list` shows them.
#[must_use]
pub fn data_policies() -> Vec<Box<dyn DataPolicy>> {
    vec![
        Box::new(MostAccessPolicy),
        Box::new(LocalityBalancePolicy::DEFAULT),
        Box::new(BalancedDataPolicy {
            exclusive: KmafPolicy::PAPER,
        }),
        Box::new(KmafPolicy::PAPER),
        Box::new(InterleavePolicy),
        Box::new(RandomDataPolicy { seed: 0 }),
        Box::new(FirstTouchPolicy),
    ]
}

/// The policy that `--data` names; `locality-balance` takes its parameter after a colon.
///
/// # Errors
/// A sentence that lists the names.
pub fn data_policy_by_name(text: &str) -> Result<Box<dyn DataPolicy>, String> {
    if let Some(text) = text.strip_prefix("locality-balance:") {
        let mix = text.parse().ok().filter(|mix| (0.0..=1.0).contains(mix));
        let mix = mix.ok_or("locality-balance takes a number from 0 (balance) to 1 (locality), as in locality-balance:0.1")?;
        return Ok(Box::new(LocalityBalancePolicy { mix }));
    }
    let policies = data_policies();
    let names: Vec<_> = policies.iter().map(|p| p.name()).collect();
    let unknown = format!(
        "there is no data policy \"{text}\": use one of {}",
        names.join(", ")
    );
    let policy = policies.into_iter().find(|policy| policy.name() == text);
    policy.ok_or(unknown)
}

/// Bytes of each node of a tree. If no node has a size, as on many synthetic machines, all have
/// unlimited room; otherwise a node without a size has no memory.
#[must_use]
pub fn node_capacities(tree: &TopologyTree) -> Vec<u64> {
    if tree.nodes.iter().all(|n| n.bytes == 0) {
        return vec![u64::MAX; tree.nodes.len()];
    }
    tree.nodes.iter().map(|n| n.bytes).collect()
}

#[cfg(test)]
mod tests;
