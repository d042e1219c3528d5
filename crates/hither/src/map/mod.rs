//! Choosing a placement: (communication, pages, machine) -> threads to units, pages to nodes.
//!
//! A policy is one file in `threads/` or `data/` and one line in the list below. All are
//! pure: the same problem and seed give the same placement on any machine.
pub mod cost;
pub mod data;
pub mod explain;
pub mod filter;
pub mod graph;
pub mod phases;
pub mod threads;

pub use cost::Cost;
pub use graph::Graph;

use crate::topology::Tree;

/// Threads to be placed.
pub struct Problem<'a> {
    pub tree: &'a Tree,
    pub cost: &'a Cost,
    pub comm: &'a Graph,
    /// Work of each thread (memory accesses, or instructions), any unit.
    pub load: &'a [u64],
    /// Most threads of a unit; at least threads / units, rounded up.
    pub capacity: u32,
    /// Where the threads are now, if that is known.
    pub current: Option<&'a [u32]>,
    pub seed: u64,
}

/// The unit of each thread, a position in [`Tree::units`].
pub type Assignment = Vec<u32>;

impl Problem<'_> {
    /// Sum over i<j of M\[i\]\[j\] * d(unit of i, unit of j).
    #[must_use]
    pub fn objective(&self, units: &[u32]) -> u128 {
        let pairs = self.comm.pairs();
        pairs
            .map(|(i, j, events)| {
                let d = self
                    .cost
                    .between(self.tree, units[i] as usize, units[j] as usize);
                u128::from(events) * u128::from(d)
            })
            .sum()
    }
}
