use super::*;
use crate::topology::{load, TopologyTree};
use proptest::prelude::*;

/// Vertices on the way from one unit to another, the lowest that covers both left out: as many
/// as there are steps.
fn steps(tree: &TopologyTree, a: usize, b: usize) -> u32 {
    let covered = |unit: usize| {
        let vertices = tree.vertices.iter();
        vertices.map(move |v| v.units.contains(&(unit as u32)))
    };
    let differ = covered(a).zip(covered(b)).filter(|(a, b)| a != b);
    differ.count() as u32
}

proptest! {
    /// Machines of which some units may not be used, so that branches differ in height.
    #[test]
    fn hops_are_steps_up_and_down(
        text in prop::sample::select(vec!["pack:2 core:4 pu:2", "pack:3 l2:2 core:2 pu:2", "core-i9-13900k"]),
        kept: u64,
    ) {
        let machine = load(text).unwrap();
        let Some(tree) = TopologyTree::new(&machine, |pu| kept >> pu & 1 == 1) else {
            return Ok(());
        };
        let cost = PuDistances::from_hops(&tree);
        let units = tree.units.len();
        for (a, b) in (0..units * units).map(|i| (i / units, i % units)) {
            prop_assert_eq!(cost.distance(&tree, a, b), steps(&tree, a, b));
            prop_assert!(cost.distance(&tree, a, b) <= cost.largest());
        }
    }
}

#[test]
fn one_thread_for_each_fast_core_is_nearer_than_the_clusters_of_slow_ones() {
    // PUs 0, 2, .. 14 are of eight fast cores, 16 to 31 of clusters of four slow ones.
    let machine = load("core-i9-13900k").unwrap();
    let tree = TopologyTree::new(&machine, |pu| pu >= 16 || pu % 2 == 0).unwrap();
    let cost = PuDistances::from_hops(&tree);
    let between = |a: u32, b: u32| {
        let of = |pu| tree.units.iter().position(|u| u.os == pu).unwrap();
        cost.distance(&tree, of(a), of(b))
    };
    let fast_and_slow = (
        between(0, 2),
        between(0, 16),
        between(16, 17),
        between(16, 20),
    );
    assert_eq!(fast_and_slow, (2, 3, 2, 4));
}
