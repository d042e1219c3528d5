//! Machines worked by hand from what is published of them.
use super::*;
use crate::simulate::simulated_machine::{CoherenceProtocol, PuParameters, ReplacementPolicy};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Of each level: name, caches, units of each, bytes, ways and latency.
fn check(topology: &str, want: &[(&str, u32, usize, u64, u32, u32)]) {
    let machine = made(topology).machine;
    assert_eq!(machine.levels.len(), want.len(), "{topology}");
    for (at, (level, want)) in machine.levels.iter().zip(want).enumerate() {
        let sharers = |cache: u32| -> usize {
            let units = machine.units.iter();
            units.filter(|u| u.caches[at] == cache).count()
        };
        let got = (
            level.name.as_str(),
            level.caches,
            sharers(0),
            level.bytes,
            level.ways,
            level.latency,
        );
        assert_eq!(got, *want, "{topology}");
        assert!(
            (0..level.caches).all(|c| sharers(c) == want.2),
            "{topology}"
        );
    }
}

#[test]
fn caches_are_those_of_the_papers_machines() {
    check(
        "xeon-x7550x4",
        &[
            ("L1d", 32, 2, 32 * KIB, 8, 4),
            ("L2", 32, 2, 256 * KIB, 8, 10),
            ("L3", 4, 16, 18 * MIB, 24, 42),
        ],
    );
    check(
        "xeon-e5-2650x2",
        &[
            ("L1d", 16, 2, 32 * KIB, 8, 4),
            ("L2", 16, 2, 256 * KIB, 8, 12),
            ("L3", 2, 16, 20 * MIB, 20, 30),
        ],
    );
    check(
        "locality-balance-table1",
        &[("L1d", 8, 1, 32 * KIB, 8, 1), ("L2", 4, 2, 2 * MIB, 8, 5)],
    );
}

#[test]
fn caches_are_those_of_large_machines() {
    let epyc = [
        ("L1d", 192, 2, 32 * KIB, 8, 4),
        ("L2", 192, 2, MIB, 8, 14),
        ("L3", 24, 16, 32 * MIB, 16, 50),
    ];
    check("epyc-9654x2-nps1", &epyc);
    check("epyc-9654x2-nps4", &epyc);
    check(
        "grace-superchip",
        &[
            ("L1d", 144, 1, 64 * KIB, 4, 4),
            ("L2", 144, 1, MIB, 8, 11),
            // 38 ns at 3.1 GHz.
            ("L3", 2, 72, 114 * MIB, 12, 118),
        ],
    );
}

#[test]
fn x7550_memory_answers_as_measured() {
    let machine = made("xeon-x7550x4").machine;
    assert_eq!((machine.packages, machine.nodes.len()), (4, 4));
    assert_eq!(machine.protocol, CoherenceProtocol::Mesi);
    // A full mesh: three links out of each of four.
    assert_eq!(machine.links.links.len(), 12);
    let dram = &machine.nodes[2].dram;
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    // A clock of DDR3-1066 takes 1.876 ns, 3.752 cycles of 2 GHz.
    let clock = 2000.0 / 1066.0 * 2.0;
    near(dram.cas, 7.0 * clock);
    near(dram.rcd, 7.0 * clock);
    // Eight transfers, two a clock.
    near(dram.burst, 4.0 * clock);
    // 136 ns are 272 cycles, of which 42 to the L3.
    near(
        42.0 + dram.controller + dram.rcd + dram.cas + dram.burst,
        272.0,
    );
    assert_eq!((dram.channels, dram.banks, dram.row), (4, 32, 8192));
    let way = &machine.links.routes[0][3];
    assert_eq!(way.len(), 1);
    let link = &machine.links.links[way[0] as usize];
    // 31 ns, and 12.8 GB/s of 2 GHz.
    near(link.latency, 62.0);
    near(link.bandwidth, 6.4);
    assert!(link.between_packages);
}

/// One memory, two packages: each hangs on a place of its own.
#[test]
fn table1_has_one_memory() {
    let machine = made("locality-balance-table1").machine;
    assert_eq!(machine.protocol, CoherenceProtocol::Moesi);
    assert!(machine
        .levels
        .iter()
        .all(|l| l.replacement == ReplacementPolicy::Lru));
    assert_eq!((machine.packages, machine.nodes.len()), (2, 1));
    let places: Vec<(u32, u32, u32)> = machine
        .units
        .iter()
        .map(|u| (u.package, u.node, u.at))
        .collect();
    assert_eq!(places, [[(0, 0, 1); 4], [(1, 0, 2); 4]].concat());
    let length = |from: usize, to: usize| -> Vec<f64> {
        let way = &machine.links.routes[from][to];
        way.iter()
            .map(|l| machine.links.links[*l as usize].latency)
            .collect()
    };
    assert_eq!(length(1, 2), [2.0]);
    assert_eq!(length(2, 0), [16.0]);
    assert_eq!(length(0, 1), [16.0]);
    assert_eq!(machine.links.inside, 2);
    let dram = &machine.nodes[0].dram;
    assert_eq!((dram.channels, dram.banks, dram.row), (2, 8, 1024));
    // 5 clocks of DDR2-667 are 15 ns: 27 cycles of 1.8 GHz.
    assert!((dram.cas - 27.0).abs() < 0.02, "{}", dram.cas);
}

/// Complexes hang on their node by links of their own; quadrants make a ring.
#[test]
fn epyc_complexes_have_links() {
    let check = |topology: &str, endpoints: usize, links: usize, channels: u32| {
        let machine = made(topology).machine;
        let nodes = machine.nodes.len();
        assert_eq!(machine.links.routes.len(), endpoints, "{topology}");
        assert_eq!(machine.links.links.len(), 2 * links, "{topology}");
        assert!(machine.nodes.iter().all(|n| n.dram.channels == channels));
        let own = |u: &PuParameters| u.at == nodes as u32 + u.caches[2];
        assert!(machine.units.iter().all(own), "{topology}");
    };
    // 24 complexes and one link between the packages, two channels of 32 bits for each of 12.
    check("epyc-9654x2-nps1", 2 + 24, 24 + 1, 24);
    // And two rings of four; four links between the packages.
    check("epyc-9654x2-nps4", 8 + 24, 24 + 8 + 4, 6);
}

#[test]
fn memory_without_cores_is_farther() {
    let machine = made("zen5-cxl").machine;
    let far = machine.nodes.len() - 1;
    assert!(machine.units.iter().all(|u| u.node as usize != far));
    assert_eq!(machine.nodes[far].dram.channels, 4);
    // 260 ns at 4.1 GHz, of which 60 on each way.
    let dram = &machine.nodes[far].dram;
    let array = dram.rcd + dram.cas + dram.burst;
    let sum = 50.0 + dram.controller + array + 2.0 * 60.0 * 4.1;
    assert!((sum - 260.0 * 4.1).abs() < 1e-6, "{sum}");
    // From the first package over one link, from the second over the first.
    assert_eq!(machine.links.routes[0][far].len(), 1);
    assert_eq!(machine.links.routes[1][far].len(), 2);
}

#[test]
fn hybrid_machines_are_simulated_as_their_fast_cores() {
    let all = MachineRestrictions {
        pus: None,
        kinds: crate::topology::CpuKindSelection::All,
        threads: None,
    };
    let selected = select_machine(Some("core-i9-13900k"), &all).unwrap();
    let made = build_machine(&selected, Some("core-i9-13900k"), None).unwrap();
    assert!(
        made.notes.iter().any(|n| n.contains("fastest kind")),
        "{:?}",
        made.notes
    );
    let levels = &made.machine.levels;
    assert_eq!((levels[0].bytes, levels[0].caches), (48 * KIB, 24));
    // Eight of the fast cores, and one for each four of the others.
    assert_eq!((levels[1].bytes, levels[1].caches), (2 * MIB, 12));
}

#[test]
fn caches_that_the_topology_does_not_tell_are_the_files() {
    let made = with("pack:2 core:4 pu:2", text("locality-balance-table1.toml")).unwrap();
    let of_unit: Vec<u32> = made.machine.units.iter().map(|u| u.caches[1]).collect();
    // Two cores with two units share an L2.
    assert_eq!(of_unit, [[0; 4], [1; 4], [2; 4], [3; 4]].concat());
    assert_eq!(made.machine.levels[1].bytes, 2 * MIB);
    // Half of the cache leaks half as much; an access takes less by the root.
    let small = with(
        "pack:1 l2:2(size=1048576) core:2 pu:1",
        text("locality-balance-table1.toml"),
    )
    .unwrap();
    let (half, full) = (small.machine.energy, made.machine.energy);
    assert!((half.cache_static[1] * 2.0 - full.cache_static[1]).abs() < 1e-9);
    assert!((half.cache_access[1] * 2f64.sqrt() - full.cache_access[1]).abs() < 1e-9);
}

#[test]
fn a_named_topology_has_its_file_and_others_the_generic_one() {
    let check = |name: Option<&str>, want: &str| assert_eq!(shipped_machine_file(name).name, want);
    check(Some("xeon-x7550x4"), "xeon-x7550x4.toml");
    check(Some("epyc-9654x2-nps4"), "epyc-9654x2.toml");
    check(Some("grace-superchip"), "grace.toml");
    check(Some("node:4 core:8"), "generic.toml");
    check(Some("../x"), "generic.toml");
    check(None, "generic.toml");
}
