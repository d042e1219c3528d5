//! What holds for every machine, whatever topology and file it is made of.
use super::*;
use crate::simulate::simulated_machine::{EnergyCoefficients, PrefetcherKind, SimulatedMachine};
use crate::topology::tests::rules::machines;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Every rule; `what` names the case.
fn check_rules(made: &BuiltMachine, what: &str) {
    let machine = &made.machine;
    check_levels(machine, what);
    check_units(machine, what);
    check_nodes(machine, what);
    check_routes(machine, what);
    check_energy(machine, what);
}

fn check_levels(machine: &SimulatedMachine, what: &str) {
    assert!(!machine.levels.is_empty(), "{what}");
    assert!(machine.line.is_power_of_two(), "{what}");
    for (at, level) in machine.levels.iter().enumerate() {
        let set = u64::from(level.ways) * u64::from(machine.line);
        assert!(level.bytes >= set && level.bytes % set == 0, "{what}");
        // Every cache belongs to a unit.
        let used: BTreeSet<u32> = machine.units.iter().map(|u| u.caches[at]).collect();
        assert_eq!(used, (0..level.caches).collect(), "{what} {}", level.name);
        if let Some(PrefetcherKind::Stream {
            degree, distance, ..
        }) = level.prefetch
        {
            assert!(degree >= 1 && degree <= distance, "{what}");
        }
    }
    for pair in machine.levels.windows(2) {
        assert!(pair[0].latency < pair[1].latency, "{what}");
        assert!(pair[0].caches >= pair[1].caches, "{what}");
    }
}

/// Caches lie in one another and in a package, siblings share the nearest.
fn check_units(machine: &SimulatedMachine, what: &str) {
    for unit in &machine.units {
        assert_eq!(unit.caches.len(), machine.levels.len(), "{what}");
        assert!(unit.package < machine.packages, "{what}");
        assert!((unit.node as usize) < machine.nodes.len(), "{what}");
        assert!((unit.at as usize) < machine.links.routes.len(), "{what}");
    }
    for pair in machine.units.windows(2) {
        for level in 1..machine.levels.len() {
            if pair[0].caches[level - 1] == pair[1].caches[level - 1] {
                assert_eq!(pair[0].caches[level], pair[1].caches[level], "{what}");
            }
        }
        if pair[0].core == pair[1].core {
            assert_eq!(pair[0].caches, pair[1].caches, "{what}");
        }
        if pair[0].caches.last() == pair[1].caches.last() {
            assert_eq!(pair[0].package, pair[1].package, "{what}");
        }
    }
}

fn check_nodes(machine: &SimulatedMachine, what: &str) {
    for node in &machine.nodes {
        assert!(node.package < machine.packages, "{what}");
        let dram = &node.dram;
        assert!(dram.channels > 0 && dram.banks > 0, "{what}");
        assert!(
            dram.row >= machine.line && dram.row.is_power_of_two(),
            "{what}"
        );
        assert!(dram.controller >= 0.0 && dram.burst > 0.0, "{what}");
        assert!(dram.cas > 0.0 && dram.rcd > 0.0 && dram.rp > 0.0, "{what}");
    }
}

/// Routes join all endpoints, link after link.
fn check_routes(machine: &SimulatedMachine, what: &str) {
    let (routes, links) = (&machine.links.routes, &machine.links.links);
    assert!(routes.len() >= machine.nodes.len(), "{what}");
    for (from, row) in routes.iter().enumerate() {
        assert_eq!(row.len(), routes.len(), "{what}");
        for (to, way) in row.iter().enumerate() {
            let mut at = from;
            for link in way {
                let link = &links[*link as usize];
                assert_eq!(link.from as usize, at, "{what}");
                at = link.to as usize;
            }
            assert_eq!(at, to, "{what}");
        }
    }
    for (at, link) in links.iter().enumerate() {
        assert!(link.latency >= 0.0 && link.bandwidth > 0.0, "{what}");
        let back = &links[at ^ 1];
        assert_eq!((link.from, link.to), (back.to, back.from), "{what}");
    }
    assert!(machine.links.control_bytes > 0, "{what}");
    assert!(machine.links.data_bytes > machine.line, "{what}");
}

fn check_energy(machine: &SimulatedMachine, what: &str) {
    let EnergyCoefficients {
        core_static,
        instruction,
        cache_static,
        cache_access,
        link_static,
        link_byte,
        controller_static,
        controller_request,
        dram_static,
        dram_line,
        dram_row,
    } = &machine.energy;
    let (levels, links) = (machine.levels.len(), machine.links.links.len());
    let nodes = machine.nodes.len();
    let groups = [
        (levels, cache_static),
        (levels, cache_access),
        (links, link_static),
        (links, link_byte),
        (nodes, controller_static),
        (nodes, controller_request),
        (nodes, dram_static),
        (nodes, dram_line),
        (nodes, dram_row),
    ];
    for (count, group) in groups {
        assert_eq!(group.len(), count, "{what}");
        assert!(group.iter().all(|e| *e > 0.0 && e.is_finite()), "{what}");
    }
    assert!(*core_static > 0.0 && *instruction > 0.0, "{what}");
}

#[test]
fn the_rules_hold_for_every_shipped_machine() {
    assert!(shipped_machines().len() >= 10);
    for topology in shipped_machines() {
        let made = made(&topology.name);
        assert_ne!(made.file, "generic.toml", "{} has a file", topology.name);
        check_rules(&made, &topology.name);
        let access = &made.machine.energy.cache_access;
        assert!(access.is_sorted(), "{}: {access:?}", topology.name);
    }
}

#[test]
fn the_rules_hold_for_synthetic_machines() {
    for topology in [
        "pu:1",
        "core:3 pu:1",
        "node:4 core:8 pu:2",
        "pack:4 l3:1 core:8 pu:2",
        "pack:2 group:3 [numa(memory=1024)] l2:3 core:1 pu:3",
        "[numa(memory=4096)] pack:2 [numa(memory=1024)] core:2 pu:2",
        "pack:2 die:2 l4:1 l3:2 l2:2 l1:1 core:1 pu:1",
        "pack:3 l2:1 core:4 pu:1",
    ] {
        let made = made(topology);
        assert_eq!(made.file, "generic.toml", "{topology}");
        assert!(
            made.notes.iter().any(|n| n.contains("typical")),
            "{topology}"
        );
        check_rules(&made, topology);
    }
}

#[test]
fn every_file_fits_every_machine_without_caches_of_its_own() {
    for (name, text) in FILES {
        for topology in ["pack:3 [numa(memory=1024)] core:6 pu:2", "core:16 pu:1"] {
            let made = with(topology, text).unwrap_or_else(|e| panic!("{name}: {e}"));
            check_rules(&made, name);
        }
    }
}

#[test]
fn parts_of_machines_are_machines() {
    for (topology, pus) in [
        ("xeon-x7550x4", "0-3,40"),
        ("zen5-cxl", "0,1,96"),
        ("epyc-9654x2-nps4", "0,100,191"),
        ("core-i9-13900k", "0-31"),
    ] {
        let part = MachineRestrictions {
            pus: Some(pus.parse().unwrap()),
            kinds: crate::topology::CpuKindSelection::All,
            threads: None,
        };
        let selected = select_machine(Some(topology), &part).unwrap();
        let made = build_machine(&selected, Some(topology), None).unwrap();
        assert_eq!(made.machine.units.len(), selected.tree.units.len());
        check_rules(&made, topology);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_rules_hold_for_any_machine((topology, _) in machines(), file in 0..FILES.len()) {
        let text = FILES[file].1;
        if let Ok(made) = with(&topology, text) {
            check_rules(&made, &topology);
        }
        check_rules(&made(&topology), &topology);
    }

    /// Files are not trusted.
    #[test]
    fn broken_files_are_refused_or_possible(at in 0usize..8000, byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = text("xeon-x7550x4.toml").as_bytes().to_vec();
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        if let Ok(text) = String::from_utf8(bytes) {
            match with("xeon-x7550x4", &text) {
                Ok(made) => check_units(&made.machine, "changed"),
                Err(e) => prop_assert!(e.line <= text.matches('\n').count() + 1),
            }
        }
    }
}
