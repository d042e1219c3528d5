//! Policies that do not look at communication: compact, scatter, random.
use super::{machine, on_units, tree_of, Case};
use crate::topology::TopologyTree;

fn check(policy: &str, tree: TopologyTree, expected: &[u32]) {
    let case = Case::new(tree, expected.len(), &[]);
    assert_eq!(case.place(policy), expected, "{policy}");
}

/// Two nodes of two cores of two siblings: units 0 1 | 2 3 || 4 5 | 6 7.
const SMALL: &str = "node:2 core:2 pu:2";

#[test]
fn compact_takes_units_in_order() {
    check("compact", machine(SMALL), &[]);
    check("compact", machine(SMALL), &[0]);
    check("compact", machine(SMALL), &[0, 1, 2]);
    // Ten threads on eight units: two units get two, thread t is on unit 8 t / 10.
    check("compact", machine(SMALL), &[0, 0, 1, 2, 3, 4, 4, 5, 6, 7]);
    check("compact", machine("pu:1"), &[0, 0, 0]);
    // Without PUs 1 and 2 the units are 0 | 3 || 4 5 | 6 7, numbered 0 to 5.
    check(
        "compact",
        tree_of(SMALL, |pu| pu != 1 && pu != 2),
        &[0, 1, 2],
    );
}

#[test]
fn scatter_goes_over_nodes_then_cores_then_siblings() {
    // First siblings are 0, 2 (node 0) and 4, 6 (node 1): one of each node in turn, then
    // the second siblings 1, 3 and 5, 7 likewise, then from the start.
    check("scatter", machine(SMALL), &[0, 4, 2, 6, 1, 5, 3, 7, 0, 4]);
    check("scatter", machine(SMALL), &[]);
    check("scatter", machine(SMALL), &[0]);
    // Two packages of two nodes of two cores: packages alternate, then nodes, then cores.
    check(
        "scatter",
        machine("pack:2 node:2 core:2 pu:1"),
        &[0, 4, 2, 6, 1, 5, 3, 7],
    );
    // Node 0 has only PU 1 left (unit 0), node 1 has units 1 2 | 3 4: after one thread each,
    // node 1 takes the rest, cores before siblings.
    let lopsided = tree_of(SMALL, |pu| pu == 1 || pu > 3);
    check("scatter", lopsided, &[0, 1, 3, 2, 4]);
}

#[test]
fn scatter_is_even_at_every_level_for_any_number_of_threads() {
    let tree = machine("pack:2 node:2 l3:2 core:2 pu:1");
    for threads in 0..40 {
        let case = Case::new(tree.clone(), threads, &[]);
        let on = on_units(&case.place("scatter"), &tree);
        for vertex in tree.vertices.iter().filter(|v| !v.children.is_empty()) {
            let of = |child: &u32| {
                let units = tree.vertices[*child as usize].units.clone();
                units.map(|u| on[u as usize]).sum::<u32>()
            };
            let below: Vec<u32> = vertex.children.iter().map(of).collect();
            let spread = below.iter().max().unwrap() - below.iter().min().unwrap();
            assert!(spread <= 1, "{threads} threads: {below:?}");
        }
    }
}

#[test]
fn random_uses_every_unit_before_any_twice() {
    let tree = machine("node:2 core:4 pu:2");
    for threads in 0..50 {
        let case = Case::new(tree.clone(), threads, &[]);
        let on = on_units(&case.place("random"), &tree);
        let full = (threads / 16) as u32;
        assert!(on.iter().all(|n| (full..=full + 1).contains(n)), "{on:?}");
    }
}

#[test]
fn random_depends_on_the_seed_alone() {
    let mut case = Case::new(machine("node:4 core:8 pu:2"), 64, &[]);
    let first = case.place("random");
    case.seed = 1;
    assert_ne!(first, case.place("random"));
    case.seed = 0;
    assert_eq!(first, case.place("random"));
}

/// Each of the 24 ways to place four threads on four units comes up, none far too often:
/// 2400 draws give 100 of each, with a standard deviation of 10.
#[test]
fn random_draws_all_placements_alike() {
    let mut case = Case::new(machine("core:4 pu:1"), 4, &[]);
    let mut seen = std::collections::BTreeMap::new();
    for seed in 0..2400 {
        case.seed = seed;
        *seen.entry(case.place("random")).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 24);
    assert!(seen.values().all(|n| (50..150).contains(n)), "{seen:?}");
}

#[test]
fn random_leaves_siblings_idle_unless_told() {
    let mut case = Case::new(machine("core:8 pu:2"), 8, &[]);
    let shared = |case: &Case| super::on_cores(&case.place("random"), &case.tree).contains(&2);
    assert!((0..50).all(|seed| {
        case.seed = seed;
        !shared(&case)
    }));
    case.siblings = true;
    assert!((0..50).any(|seed| {
        case.seed = seed;
        shared(&case)
    }));
}
