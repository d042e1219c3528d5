//! Balance (Locality and Balance, section 4): the thread with the most communication that
//! has no unit yet goes to the unit with the least, until all have one.
//!
//! The paper leaves open which of several units with the least. Here cores without a thread
//! come first, then, from the machine down, the part with the least communication per unit,
//! so that nodes and caches are balanced too.
use super::slots::{check_fit, max_threads_per_unit};
use super::ThreadPolicy;
use crate::map::{CommGraph, PuAssignment, ThreadProblem};
use crate::topology::TopologyTree;
use std::cmp::{Ordering, Reverse};

pub struct BalancePolicy;

impl ThreadPolicy for BalancePolicy {
    fn name(&self) -> &'static str {
        "balance"
    }

    fn about(&self) -> &'static str {
        "evens out the communication of units; locality plays no part (Locality and Balance)"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        balance_amounts(problem, &communication_vector(problem.comm))
    }
}

/// Events of each thread with all others, CommV (Locality and Balance, eq. 2).
pub fn communication_vector(comm: &CommGraph) -> Vec<u128> {
    let of = |thread| {
        comm.neighbours(thread)
            .map(|(_, events)| u128::from(events))
            .sum()
    };
    (0..comm.threads()).map(of).collect()
}

/// Evens out the sum of `amounts`, one per thread, over the units.
pub fn balance_amounts(problem: &ThreadProblem, amounts: &[u128]) -> Result<PuAssignment, String> {
    let threads = check_fit(problem)?;
    let mut order: Vec<usize> = (0..threads).collect();
    order.sort_by_key(|&thread| Reverse(amounts[thread]));
    let mut on = VertexLoads::new(problem.tree, max_threads_per_unit(problem));
    let mut units = vec![0; threads];
    for thread in order {
        let unit = on.least_loaded_unit();
        on.add(unit, amounts[thread]);
        units[thread] = unit;
    }
    Ok(units)
}

/// What has been put on each vertex so far.
struct VertexLoads<'a> {
    tree: &'a TopologyTree,
    /// The vertex of each unit.
    leaf: Vec<usize>,
    /// Sum and number of threads of each vertex.
    held: Vec<(u128, u32)>,
    /// The best that a unit below each vertex offers; `None` where all are full.
    offer: Vec<Option<PuOffer>>,
    /// Units of each core.
    cores: Vec<Vec<u32>>,
    capacity: u32,
}

/// Of a unit, the less the better: its sum, its threads, the threads of its core.
type PuOffer = (u128, u32, u32);

impl<'a> VertexLoads<'a> {
    fn new(tree: &'a TopologyTree, capacity: u32) -> VertexLoads<'a> {
        let mut leaf = vec![0; tree.units.len()];
        for (at, vertex) in tree.vertices.iter().enumerate() {
            if vertex.children.is_empty() {
                leaf[vertex.units.start as usize] = at;
            }
        }
        let mut cores = vec![Vec::new(); tree.units.len()];
        for (unit, at) in tree.units.iter().zip(0..) {
            cores[unit.core as usize].push(at);
        }
        let any = (capacity > 0).then_some((0, 0, 0));
        VertexLoads {
            tree,
            leaf,
            held: vec![(0, 0); tree.vertices.len()],
            offer: vec![any; tree.vertices.len()],
            cores,
            capacity,
        }
    }

    /// The unit with the best offer, along the parts of the machine with the least on them.
    fn least_loaded_unit(&self) -> u32 {
        let mut at = 0;
        loop {
            let vertex = &self.tree.vertices[at];
            let children = vertex.children.iter().map(|&v| v as usize);
            let best = children.filter(|v| self.offer[*v] == self.offer[at]);
            match best.min_by(|a, b| self.compare_per_unit(*a, *b)) {
                Some(child) => at = child,
                None => return vertex.units.start,
            }
        }
    }

    /// Compares what two vertices hold for each of their units: amounts, then threads.
    fn compare_per_unit(&self, a: usize, b: usize) -> Ordering {
        let units = |v: usize| u128::from(self.tree.vertices[v].units.len() as u32);
        let ((amount_a, threads_a), (amount_b, threads_b)) = (self.held[a], self.held[b]);
        let amounts = (amount_a * units(b)).cmp(&(amount_b * units(a)));
        let threads = |n: u32, other| u128::from(n) * units(other);
        amounts.then(threads(threads_a, b).cmp(&threads(threads_b, a)))
    }

    fn add(&mut self, unit: u32, amount: u128) {
        let mut above = Some(self.leaf[unit as usize]);
        while let Some(at) = above {
            self.held[at].0 += amount;
            self.held[at].1 += 1;
            above = self.tree.vertices[at].parent.map(|v| v as usize);
        }
        let core = self.tree.units[unit as usize].core as usize;
        for sibling in self.cores[core].clone() {
            self.update_offers(sibling);
        }
    }

    fn update_offers(&mut self, unit: u32) {
        let leaf = self.leaf[unit as usize];
        let core = &self.cores[self.tree.units[unit as usize].core as usize];
        let on = |at: &u32| self.held[self.leaf[*at as usize]].1;
        let (amount, threads) = self.held[leaf];
        let offer = (amount, threads, core.iter().map(on).sum());
        self.offer[leaf] = (threads < self.capacity).then_some(offer);
        let mut above = self.tree.vertices[leaf].parent;
        while let Some(at) = above {
            let vertex = &self.tree.vertices[at as usize];
            let offers = vertex.children.iter().map(|v| self.offer[*v as usize]);
            self.offer[at as usize] = offers.flatten().min();
            above = vertex.parent;
        }
    }
}
