use super::*;
use crate::map::PuDistances;
use crate::topology::{load, TopologyTree};

/// Every unit within its room, and no better than `least`.
fn check(synthetic: &str, without: &[u32], comm: &CommGraph, least: u128, most: u128) {
    let machine = load(synthetic).unwrap();
    let tree = TopologyTree::new(&machine, |pu| !without.contains(&pu)).unwrap();
    let cost = PuDistances::from_hops(&tree);
    let problem = ThreadProblem {
        tree: &tree,
        cost: &cost,
        comm,
        load: &[],
        capacity: comm.threads().div_ceil(tree.units.len()).max(1) as u32,
        siblings: false,
        current: None,
        seed: 0,
    };
    let units = ScotchPolicy.place(&problem).unwrap();
    assert_eq!(ScotchPolicy.place(&problem).unwrap(), units);
    let mut room = problem.unit_capacities();
    for &unit in &units {
        assert!(room[unit as usize] > 0, "{units:?}");
        room[unit as usize] -= 1;
    }
    let found = problem.objective(&units);
    assert!((least..=most).contains(&found), "{found}");
}

fn pairs(threads: u32) -> CommGraph {
    let half = threads / 2;
    CommGraph::new(threads as usize, (0..half).map(|i| (i, i + half, 10)))
}

#[test]
fn pairs_meet_on_machines_of_every_kind() {
    check("pack:2 core:2 pu:2", &[], &pairs(8), 80, 80);
    check("pack:2 core:2 pu:2", &[], &pairs(16), 0, 160);
    check("pack:2 core:2 pu:2", &[], &pairs(4), 80, 80);
    check("pack:2 core:4 pu:2", &[3, 9], &pairs(14), 140, 280);
    check("pack:2 core:2 pu:2", &[], &CommGraph::new(0, []), 0, 0);
    check("core:1 pu:1", &[], &pairs(2), 0, 0);
}

#[test]
fn heavy_events_fit_its_numbers() {
    let all = (0..8u32).flat_map(|i| (i + 1..8).map(move |j| (i, j, u64::MAX / 64)));
    let expected = u128::from(u64::MAX / 64) * (4 * 2 + 8 * 4 + 16 * 6);
    check(
        "pack:2 core:2 pu:2",
        &[],
        &CommGraph::new(8, all),
        expected,
        expected,
    );
}

/// Sixteen threads without a pattern on four nodes of sixteen: with idle vertices added they were packed
/// on one.
#[test]
fn fewer_threads_than_places_are_spread_as_libscotch_does() {
    let tree = TopologyTree::new(&load("node:4 core:16 pu:1").unwrap(), |_| true).unwrap();
    let all = (0..16u32).flat_map(|i| (i + 1..16).map(move |j| (i, j, 10)));
    let problem = ThreadProblem {
        tree: &tree,
        cost: &PuDistances::from_hops(&tree),
        comm: &CommGraph::new(16, all),
        load: &[],
        capacity: 1,
        siblings: false,
        current: None,
        seed: 0,
    };
    let units = ScotchPolicy.place(&problem).unwrap();
    let mut on_node = [0; 4];
    for unit in units {
        on_node[tree.units[unit as usize].node.at()] += 1;
    }
    assert!(on_node.iter().all(|n| *n > 0), "{on_node:?}");
}
