//! How many threads each unit takes.
use super::{machine, tree_of};
use crate::map::threads::slots::{slots_for, smt_ranks, SlotDistribution};
use crate::topology::TopologyTree;

fn check(fill: SlotDistribution, tree: &TopologyTree, expected: &[u32]) {
    let threads = expected.iter().sum::<u32>() as usize;
    assert_eq!(slots_for(threads, tree, fill), expected, "{fill:?}");
}

#[test]
fn cores_then_siblings_then_rounds() {
    let tree = machine("node:2 core:2 pu:2");
    assert_eq!(smt_ranks(&tree), [0, 1, 0, 1, 0, 1, 0, 1]);
    check(SlotDistribution::Packed, &tree, &[1, 0, 0, 0, 0, 0, 0, 0]);
    check(SlotDistribution::Packed, &tree, &[1, 0, 1, 0, 1, 0, 0, 0]);
    check(SlotDistribution::Packed, &tree, &[1, 1, 1, 1, 1, 0, 1, 0]);
    check(SlotDistribution::Packed, &tree, &[2, 1, 1, 1, 1, 1, 1, 1]);
    check(SlotDistribution::Even, &tree, &[1, 0, 0, 0, 1, 0, 0, 0]);
    check(SlotDistribution::Even, &tree, &[1, 0, 1, 0, 1, 0, 0, 0]);
    check(SlotDistribution::Even, &tree, &[1, 1, 1, 0, 1, 1, 1, 0]);
    check(SlotDistribution::Even, &tree, &[2, 1, 2, 1, 2, 1, 1, 1]);
}

#[test]
fn even_is_by_units_where_nodes_differ() {
    // Nodes of one and of four cores: four threads are 0.8 and 3.2, one and three.
    let tree = tree_of("node:2 core:4 pu:1", |pu| pu == 0 || pu > 3);
    check(SlotDistribution::Even, &tree, &[1, 1, 1, 1, 0]);
    // Two are 0.4 and 1.6: none and two, not one each.
    check(SlotDistribution::Even, &tree, &[0, 1, 1, 0, 0]);
}
