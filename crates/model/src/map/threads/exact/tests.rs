use super::*;
use crate::map::{CommGraph, PuDistances};
use crate::topology::{load, TopologyTree};
use proptest::prelude::*;

fn problem<'a>(
    tree: &'a TopologyTree,
    cost: &'a PuDistances,
    comm: &'a CommGraph,
) -> ThreadProblem<'a> {
    ThreadProblem {
        tree,
        cost,
        comm,
        load: &[],
        capacity: 1,
        siblings: true,
        current: None,
        seed: 0,
    }
}

/// The least objective of all ways to give threads from `next` on a free unit.
fn all_ways(problem: &ThreadProblem, units: &mut Vec<u32>) -> u128 {
    if units.len() == problem.comm.threads() {
        return problem.objective(units);
    }
    let mut least = u128::MAX;
    for unit in 0..problem.tree.units.len() as u32 {
        if !units.contains(&unit) {
            units.push(unit);
            least = least.min(all_ways(problem, units));
            units.pop();
        }
    }
    least
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_way_is_better(
        threads in 1..6usize,
        pairs in proptest::collection::vec((0..5u32, 0..5u32, 1..100u64), 0..12),
        text in prop::sample::select(vec!["pack:2 core:2 pu:2", "pack:1 l2:2 core:2 pu:2", "l3:3 core:3 pu:1"]),
        without in proptest::collection::vec(0..9u32, 0..5),
        near in proptest::option::of(1..9u32),
    ) {
        let machine = load(text).unwrap();
        let tree = TopologyTree::new(&machine, |pu| !without.contains(&pu)).unwrap();
        let mut cost = PuDistances::from_hops(&tree);
        if let Some(near) = near {
            cost = cost.with_node_matrix(vec![near; tree.nodes.len() * tree.nodes.len()]);
        }
        // Each unit takes one.
        prop_assume!(threads <= tree.units.len());
        let comm = CommGraph::new(threads, pairs);
        let problem = problem(&tree, &cost, &comm);
        let found = problem.objective(&ExactPolicy.place(&problem).unwrap());
        prop_assert_eq!(found, all_ways(&problem, &mut Vec::new()));
    }
}

/// The threads of each core, and of each unit.
fn shares(tree: &TopologyTree, units: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let cores = tree.units.iter().map(|u| u.core + 1).max().unwrap_or(0);
    let mut on = (vec![0; cores as usize], vec![0; tree.units.len()]);
    for &unit in units {
        on.0[tree.units[unit as usize].core as usize] += 1;
        on.1[unit as usize] += 1;
    }
    on
}

/// The least objective of all ways to place the threads from `units.len()` on: each on a core of its own
/// where there are enough, else each in one of the slots that are left.
fn all_assignments(problem: &ThreadProblem, slots: &mut [u32], units: &mut Vec<u32>) -> u128 {
    if units.len() == problem.comm.threads() {
        return problem.objective(units);
    }
    let mut least = u128::MAX;
    for unit in 0..slots.len() {
        if slots[unit] > 0 {
            slots[unit] -= 1;
            units.push(unit as u32);
            least = least.min(all_assignments(problem, slots, units));
            units.pop();
            slots[unit] += 1;
        }
    }
    least
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Irregular machines, with fewer threads than cores, than units, and more.
    #[test]
    fn no_assignment_by_the_rules_is_better(
        threads in 1..7usize,
        pairs in proptest::collection::vec((0..6u32, 0..6u32, 1..100u64), 0..14),
        without in proptest::collection::btree_set(0..8u32, 0..6),
    ) {
        let machine = load("pack:2 core:2 pu:2").unwrap();
        let tree = TopologyTree::new(&machine, |pu| !without.contains(&pu)).unwrap();
        let cost = PuDistances::from_hops(&tree);
        let comm = CommGraph::new(threads, pairs);
        let count = tree.units.len();
        let problem = ThreadProblem {
            siblings: false,
            capacity: threads.div_ceil(count) as u32,
            ..problem(&tree, &cost, &comm)
        };
        let units = ExactPolicy.place(&problem).unwrap();
        let (cores, on) = shares(&tree, &units);
        let mut slots = on.clone();
        if threads <= cores.len() {
            prop_assert!(cores.iter().all(|n| *n <= 1), "{cores:?}");
            // Any core will do, and which of its units makes no difference.
            let first = |at: usize| at == 0 || tree.units[at - 1].core != tree.units[at].core;
            slots = (0..count).map(|at| u32::from(first(at))).collect();
        } else {
            let (least, most) = (on.iter().min().unwrap(), on.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{on:?}");
            prop_assert!(cores.iter().all(|n| *n > 0), "{cores:?}");
        }
        let found = problem.objective(&units);
        prop_assert_eq!(found, all_assignments(&problem, &mut slots, &mut Vec::new()));
    }
}

#[test]
fn a_star_has_its_centre_next_to_the_heaviest() {
    let tree = TopologyTree::new(&load("pack:2 core:2 pu:1").unwrap(), |_| true).unwrap();
    let cost = PuDistances::from_hops(&tree);
    let comm = CommGraph::new(4, [(0, 1, 1), (0, 2, 7), (0, 3, 2)]);
    let problem = problem(&tree, &cost, &comm);
    let units = ExactPolicy.place(&problem).unwrap();
    // 2 beside 0 at distance 2, the others at 4.
    assert_eq!(problem.objective(&units), 7 * 2 + 3 * 4);
    assert_eq!(units[0] / 2, units[2] / 2);
}

/// Each fast core is a cell of its own there, and none is taken to be like another.
#[test]
fn ten_threads_on_a_hybrid_machine_are_not_too_many() {
    let machine = load("core-i9-13900k").unwrap();
    let tree = TopologyTree::new(&machine, |pu| pu >= 16 || pu % 2 == 0).unwrap();
    let cost = PuDistances::from_hops(&tree);
    let ring = (0..10u32).map(|t| (t, (t + 1) % 10, 1));
    let comm = CommGraph::new(10, ring);
    let problem = problem(&tree, &cost, &comm);
    let units = ExactPolicy.place(&problem).unwrap();
    // Nothing is nearer than two steps; eight on fast cores and two in a cluster have two pairs of
    // threads three steps apart.
    assert_eq!(problem.objective(&units), 8 * 2 + 2 * 3);
}

#[test]
fn too_many_threads_are_refused_with_a_sentence() {
    let tree = TopologyTree::new(&load("core:11 pu:1").unwrap(), |_| true).unwrap();
    let cost = PuDistances::from_hops(&tree);
    let comm = CommGraph::new(11, []);
    let message = ExactPolicy
        .place(&problem(&tree, &cost, &comm))
        .unwrap_err();
    assert!(message.contains("at most 10"), "{message}");
}
