//! Balanced locality (Locality and Balance, section 4): as EagerMap, but a unit, cache or
//! node takes threads for their communication with what it has only while it has less
//! communication than the average of its level.
//!
//! The paper says when a group is full, not what fills a cache that must still take threads
//! because there are no others: here those that communicate least, so that the amount stays
//! near the average. Each group starts with the thread that communicates most. Units take
//! more threads than they must only where sharing them is asked for.
use super::balance::communication_vector;
use super::grouping_shape::{
    contract_graph, ElementGroups, GroupArity, GroupingShape, GroupingStage,
};
use super::slots::{check_fit, slots_for, SlotDistribution};
use super::ThreadPolicy;
use crate::map::{CommGraph, PuAssignment, ThreadProblem};
use std::cmp::Reverse;

pub struct BalancedLocalityPolicy;

impl ThreadPolicy for BalancedLocalityPolicy {
    fn name(&self) -> &'static str {
        "balanced-locality"
    }

    fn about(&self) -> &'static str {
        "as eagermap while every cache stays near the average communication (Locality and Balance)"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let amounts = communication_vector(problem.comm);
        let threads = check_fit(problem)?;
        let leaves = match problem.siblings {
            true => unit_groups(problem, &amounts),
            false => (0..threads).map(|thread| vec![thread]).collect(),
        };
        let mut leaf = vec![0; amounts.len()];
        for (members, at) in leaves.iter().zip(0..) {
            for &thread in members {
                leaf[thread] = at;
            }
        }
        let of_leaf = |members: &Vec<usize>| members.iter().map(|t| amounts[*t]).sum();
        let amounts: Vec<u128> = leaves.iter().map(of_leaf).collect();
        let slots = slots_for(leaves.len(), problem.tree, SlotDistribution::Even);
        let shape = GroupingShape::new(problem.tree, &slots, GroupArity::OfMachine);
        let comm = contract_graph(problem.comm, &leaf, leaves.len());
        let units = shape.assign_units(&comm, |stage| balanced_groups(stage, &amounts));
        Ok(leaf.iter().map(|&at| units[at as usize]).collect())
    }
}

/// The threads of each unit that gets any, in no order of units: threads are added until the
/// unit has its average or is full, and on while the others would not fit elsewhere.
fn unit_groups(problem: &ThreadProblem, amounts: &[u128]) -> Vec<Vec<usize>> {
    let threads = amounts.len();
    let capacity = problem.capacity as usize;
    let units = threads.min(problem.tree.units.len());
    let total: u128 = amounts.iter().sum();
    let mut growing = GrowingGroup::new(problem.comm, amounts.to_vec());
    let mut leaves = Vec::new();
    while !growing.free.is_empty() {
        let after = (units - leaves.len() - 1) * capacity;
        growing.start();
        while growing.group.len() < capacity {
            let above = growing.amount * units as u128 >= total;
            let enough = !growing.group.is_empty() && above && growing.free.len() <= after;
            if enough || growing.add(above, |_| true).is_none() {
                break;
            }
        }
        leaves.push(std::mem::take(&mut growing.group));
    }
    leaves
}

/// The groups of a stage; `amounts`: communication of each thread of the shape.
fn balanced_groups(stage: &GroupingStage, amounts: &[u128]) -> ElementGroups {
    let of = |threads: &Vec<u32>| threads.iter().map(|t| amounts[*t as usize]).sum();
    let total: u128 = amounts.iter().sum();
    let mut growing = GrowingGroup::new(stage.comm, stage.members.iter().map(of).collect());
    let mut groups = ElementGroups::new();
    for _ in 0..stage.groups {
        let mut wanted = stage.parts.to_vec();
        growing.start();
        while !wanted.is_empty() {
            let above = growing.amount * amounts.len() as u128 >= total * stage.slots as u128;
            let fits = |element: usize| wanted.contains(&stage.class[element]);
            let Some(element) = growing.add(above, fits) else {
                break;
            };
            if let Some(at) = wanted.iter().position(|&c| c == stage.class[element]) {
                wanted.remove(at);
            }
        }
        groups.push(std::mem::take(&mut growing.group));
    }
    groups
}

/// A group that is being made of what is left.
struct GrowingGroup<'a> {
    comm: &'a CommGraph,
    amounts: Vec<u128>,
    /// In ascending order.
    free: Vec<usize>,
    group: Vec<usize>,
    /// Communication of the group's members, with anyone.
    amount: u128,
    /// Communication of every element with the group.
    events: Vec<u128>,
}

impl GrowingGroup<'_> {
    fn new(comm: &CommGraph, amounts: Vec<u128>) -> GrowingGroup<'_> {
        GrowingGroup {
            comm,
            free: (0..amounts.len()).collect(),
            group: Vec::new(),
            amount: 0,
            events: vec![0; amounts.len()],
            amounts,
        }
    }

    fn start(&mut self) {
        self.group.clear();
        self.amount = 0;
        self.events.fill(0);
    }

    /// Adds one of those that fit: the one with the most communication to begin with, then
    /// the one with the most communication with the group, or, when the group is `above` its
    /// average, with the least of all; the first of equals.
    fn add(&mut self, above: bool, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let rank = |&at: &usize| {
            let element = self.free[at];
            match (self.group.is_empty(), above) {
                (true, _) => (0, Reverse(self.amounts[element])),
                (false, false) => (0, Reverse(self.events[element])),
                (false, true) => (self.amounts[element], Reverse(0)),
            }
        };
        let fitting = (0..self.free.len()).filter(|at| fits(self.free[*at]));
        let element = self.free.remove(fitting.min_by_key(rank)?);
        self.group.push(element);
        self.amount += self.amounts[element];
        for (partner, events) in self.comm.neighbours(element) {
            self.events[partner] += u128::from(events);
        }
        Some(element)
    }
}
