//! What holds for the tree of every machine, checked on all shipped ones, on synthetic ones
//! and on random parts of them.
use super::super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn tree(machine: &str) -> TopologyTree {
    TopologyTree::new(&load(machine).unwrap(), |_| true).unwrap()
}

/// Every rule; `what` names the case.
fn check_rules(tree: &TopologyTree, what: &str) {
    check_vertices(tree, what);
    check_leaves(tree, what);
    check_nodes(tree, what);
    check_cores(tree, what);
}

/// Children partition their parent's units, in order; none has one child.
fn check_vertices(tree: &TopologyTree, what: &str) {
    assert_eq!(tree.vertices[0].parent, None, "{what}");
    assert_eq!(tree.vertices[0].units, 0..tree.units.len() as u32, "{what}");
    for (at, vertex) in (0..).zip(&tree.vertices) {
        assert!(!vertex.levels.is_empty(), "{what}");
        assert!(vertex.levels.is_sorted(), "{what}");
        assert_ne!(vertex.children.len(), 1, "{what}: one child");
        if let Some(parent) = vertex.parent {
            let parent_vertex = &tree.vertices[parent as usize];
            assert!(parent < at, "{what}: parents first");
            assert!(parent_vertex.children.contains(&at), "{what}");
            assert_eq!(vertex.depth, parent_vertex.depth + 1, "{what}");
        }
        let mut next = vertex.units.start;
        for child in &vertex.children {
            let child = &tree.vertices[*child as usize];
            assert_eq!(
                (child.parent, child.units.start),
                (Some(at), next),
                "{what}"
            );
            assert!(!child.units.is_empty(), "{what}");
            next = child.units.end;
        }
        let end = if vertex.children.is_empty() {
            vertex.units.start + 1
        } else {
            next
        };
        assert_eq!(vertex.units.end, end, "{what}");
    }
}

/// Every unit is in exactly one leaf, and the lowest common vertex is one.
fn check_leaves(tree: &TopologyTree, what: &str) {
    let leaves = tree.vertices.iter().filter(|v| v.children.is_empty());
    assert_eq!(leaves.count(), tree.units.len(), "{what}");
    let n = tree.units.len();
    for at in 0..n {
        let leaf = &tree.vertices[tree.lowest_common_vertex(at, at) as usize];
        assert_eq!(leaf.units, at as u32..at as u32 + 1, "{what}");
        let other = (at * 7 + 3) % n;
        let common = &tree.vertices[tree.lowest_common_vertex(at, other) as usize];
        assert!(common.units.contains(&(at as u32)), "{what}");
        assert!(common.units.contains(&(other as u32)), "{what}");
        let closer = common.children.iter().map(|c| &tree.vertices[*c as usize]);
        let both =
            closer.filter(|c| c.units.contains(&(at as u32)) && c.units.contains(&(other as u32)));
        assert_eq!(both.count(), 0, "{what}: not the lowest");
    }
    let kernel: BTreeSet<u32> = tree.units.iter().map(|u| u.os).collect();
    let logical: BTreeSet<_> = tree.units.iter().map(|u| u.pu).collect();
    assert_eq!((kernel.len(), logical.len()), (n, n), "{what}");
}

/// Every unit has one home, with memory where any node has.
fn check_nodes(tree: &TopologyTree, what: &str) {
    let some_memory = tree.nodes.iter().any(|n| n.bytes > 0);
    for (at, node) in tree.nodes.iter().enumerate() {
        assert_eq!(node.node.at(), at, "{what}");
        assert!(
            node.units.is_empty() || node.bytes > 0 || !some_memory,
            "{what}"
        );
        assert!(
            node.units
                .iter()
                .all(|u| tree.units[*u as usize].node == node.node),
            "{what}"
        );
    }
    let homed: usize = tree.nodes.iter().map(|n| n.units.len()).sum();
    assert_eq!(homed, tree.units.len(), "{what}");
}

/// Cores are numbered from 0 without a gap, and their units stand together.
fn check_cores(tree: &TopologyTree, what: &str) {
    assert_eq!(tree.units[0].core, 0, "{what}");
    for pair in tree.units.windows(2) {
        assert!(pair[1].core - pair[0].core <= 1, "{what}");
    }
    assert_eq!(
        tree.units.last().unwrap().core as usize + 1,
        tree.core_count(),
        "{what}"
    );
}

#[test]
fn the_rules_hold_for_every_shipped_machine() {
    assert!(shipped_machines().len() >= 9);
    for machine in shipped_machines() {
        check_rules(&tree(&machine.name), &machine.name);
    }
}

#[test]
fn the_rules_hold_for_synthetic_machines() {
    for machine in [
        "pu:1",
        "core:3 pu:1",
        "core:1 pu:4",
        "node:4 core:8 pu:2",
        "pack:4 l3:1 core:8 pu:2",
        "pack:2 group:3 [numa(memory=1024)] l2:3 core:1 pu:3",
        "[numa(memory=4096)] pack:2 [numa(memory=1024)] core:2 pu:2",
        "pack:2 die:2 l4:1 l3:2 l2:2 l1:1 core:1 pu:1",
    ] {
        check_rules(&tree(machine), machine);
    }
}

#[test]
fn this_machine_follows_the_rules() {
    check_rules(
        &select_machine(None, &MachineRestrictions::default())
            .unwrap()
            .tree,
        "this machine",
    );
}

/// A random description, and whatever part of its units.
pub fn machines() -> impl Strategy<Value = (String, BTreeSet<u32>)> {
    let levels = (
        1..4usize,
        any::<bool>(),
        1..4usize,
        1..3usize,
        1..5usize,
        1..4usize,
    );
    let text = levels.prop_map(|(packs, numa, l3, l2, core, pu)| {
        let numa = if numa { " [numa(memory=1048576)]" } else { "" };
        let units = packs * l3 * l2 * core * pu;
        let text = format!("pack:{packs}{numa} l3:{l3} l2:{l2} core:{core} pu:{pu}");
        (text, units as u32)
    });
    text.prop_flat_map(|(text, units)| {
        let part = prop::collection::btree_set(0..units, 1..=units as usize);
        (Just(text), part)
    })
}

proptest! {
    #[test]
    fn the_rules_hold_for_any_part_of_any_machine((text, part) in machines()) {
        let topology = load(&text).unwrap();
        let tree = TopologyTree::new(&topology, |os| part.contains(&os)).unwrap();
        check_rules(&tree, &format!("{text} {part:?}"));
        let units: BTreeSet<u32> = tree.units.iter().map(|u| u.os).collect();
        prop_assert_eq!(units, part);
    }
}
