//! Choosing a placement: (communication, pages, machine) -> threads to units, pages to nodes.
//!
//! A policy is one file in `threads/` or `data/` and one line in the list of its `mod.rs`. All are
//! pure: the same problem and seed give the same placement on any machine.
mod cheapest_stages;
pub mod comm_graph;
pub mod communication_filter;
pub mod data;
pub mod explain;
pub mod mapping_trial;
pub mod migration;
pub mod phase_plan;
pub mod pu_distances;
mod search;
pub mod threads;

pub use comm_graph::CommGraph;
pub use pu_distances::PuDistances;

use crate::topology::TopologyTree;
use threads::slots::{slots_for, SlotDistribution};

/// Threads to be placed.
pub struct ThreadProblem<'a> {
    /// The machine.
    pub tree: &'a TopologyTree,
    /// Distances between its units.
    pub cost: &'a PuDistances,
    /// Communication between the threads.
    pub comm: &'a CommGraph,
    /// Work of each thread, any unit; empty where it is not known.
    pub load: &'a [u64],
    /// Most threads of a unit; at least threads / units, rounded up.
    pub capacity: u32,
    /// Whether threads may share a core, or a unit, while another is idle. If not, every core
    /// gets a thread before any gets two, and every unit before any gets two: two threads
    /// on one core halve each other's speed, which costs more than communication does.
    pub siblings: bool,
    /// Where the threads are now, if that is known.
    pub current: Option<&'a [u32]>,
    /// For policies that use random numbers: the same seed gives the same placement.
    pub seed: u64,
}

/// The unit of each thread, a position in [`TopologyTree::units`].
pub type PuAssignment = Vec<u32>;

impl ThreadProblem<'_> {
    /// Threads that each unit may get: [`ThreadProblem::capacity`] where `siblings` is set. Else one
    /// unit of each core is free while there are cores enough, and with more threads the
    /// shares of units are fixed, so that none has two while another idles.
    #[must_use]
    pub fn unit_capacities(&self) -> Vec<u32> {
        let units = &self.tree.units;
        let threads = self.comm.threads();
        if self.siblings {
            return vec![self.capacity.min(threads.max(1) as u32); units.len()];
        }
        let cores = units.iter().map(|u| u.core + 1).max().unwrap_or(0) as usize;
        if threads <= cores {
            return self.one_unit_per_core(cores);
        }
        let slots = slots_for(threads, self.tree, SlotDistribution::Even);
        slots.iter().map(|n| self.capacity.min(*n)).collect()
    }

    /// Of each core the unit where a thread is now, or the first.
    fn one_unit_per_core(&self, cores: usize) -> Vec<u32> {
        let units = &self.tree.units;
        let mut chosen = vec![None; cores];
        for &at in self.current.unwrap_or_default() {
            if let Some(unit) = units.get(at as usize) {
                chosen[unit.core as usize].get_or_insert(at);
            }
        }
        for (at, unit) in (0..).zip(units) {
            chosen[unit.core as usize].get_or_insert(at);
        }
        let mut room = vec![0; units.len()];
        for at in chosen.into_iter().flatten() {
            room[at as usize] = 1;
        }
        room
    }

    /// Sum over i<j of M\[i\]\[j\] * d(unit of i, unit of j).
    #[must_use]
    pub fn objective(&self, units: &[u32]) -> u128 {
        let pairs = self.comm.pairs();
        pairs
            .map(|(i, j, events)| {
                let d = self
                    .cost
                    .distance(self.tree, units[i] as usize, units[j] as usize);
                u128::from(events) * u128::from(d)
            })
            .sum()
    }
}
