//! Balanced locality (Locality and Balance, section 4): as EagerMap, but a unit, cache or
//! node takes threads for their communication with what it has only while it has less
//! communication than the average of its level.
//!
//! The paper says when a group is full, not what fills a cache that must still take threads
//! because there are no others: here those that communicate least, so that the amount stays
//! near the average. Each group starts with the thread that communicates most. Units take
//! more threads than they must only where sharing them is asked for.
use super::balance::vector;
use super::seats::{fit, seats_for, Fill};
use super::shape::{contract, Arity, Groups, Shape, Stage};
use super::ThreadPolicy;
use crate::map::{Assignment, Graph, Problem};
use std::cmp::Reverse;

pub struct BalancedLocality;

impl ThreadPolicy for BalancedLocality {
    fn name(&self) -> &'static str {
        "balanced-locality"
    }

    fn about(&self) -> &'static str {
        "as eagermap while every cache stays near the average communication (Locality and Balance)"
    }

    fn place(&self, problem: &Problem) -> Result<Assignment, String> {
        let amounts = vector(problem.comm);
        let threads = fit(problem)?;
        let leaves = match problem.siblings {
            true => leaves(problem, &amounts),
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
        let seats = seats_for(leaves.len(), problem.tree, Fill::Even);
        let shape = Shape::new(problem.tree, &seats, Arity::OfMachine);
        let comm = contract(problem.comm, &leaf, leaves.len());
        let units = shape.fill(&comm, |stage| balanced(stage, &amounts));
        Ok(leaf.iter().map(|&at| units[at as usize]).collect())
    }
}

/// The threads of each unit that gets any, in no order of units: threads are added until the
/// unit has its average or is full, and on while the others would not fit elsewhere.
fn leaves(problem: &Problem, amounts: &[u128]) -> Vec<Vec<usize>> {
    let threads = amounts.len();
    let capacity = problem.capacity as usize;
    let units = threads.min(problem.tree.units.len());
    let total: u128 = amounts.iter().sum();
    let mut growing = Growing::new(problem.comm, amounts.to_vec());
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
fn balanced(stage: &Stage, amounts: &[u128]) -> Groups {
    let of = |threads: &Vec<u32>| threads.iter().map(|t| amounts[*t as usize]).sum();
    let total: u128 = amounts.iter().sum();
    let mut growing = Growing::new(stage.comm, stage.members.iter().map(of).collect());
    let mut groups = Groups::new();
    for _ in 0..stage.groups {
        let mut wanted = stage.parts.to_vec();
        growing.start();
        while !wanted.is_empty() {
            let above = growing.amount * amounts.len() as u128 >= total * stage.seats as u128;
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
struct Growing<'a> {
    comm: &'a Graph,
    amounts: Vec<u128>,
    /// In ascending order.
    free: Vec<usize>,
    group: Vec<usize>,
    /// Communication of the group's members, with anyone.
    amount: u128,
    /// Communication of every element with the group.
    events: Vec<u128>,
}

impl Growing<'_> {
    fn new(comm: &Graph, amounts: Vec<u128>) -> Growing<'_> {
        Growing {
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
        for (partner, events) in self.comm.row(element) {
            self.events[partner] += u128::from(events);
        }
        Some(element)
    }
}
