//! Machines of the bench, as hwloc synthetic strings.
use hither_model::topology::{TopologyLevel, TopologyTree};

pub struct BenchMachine {
    pub name: &'static str,
    pub threads: usize,
    synthetic: &'static str,
    /// Processing units that may not be used.
    without: &'static [u32],
}

const fn regular_machine(
    name: &'static str,
    threads: usize,
    synthetic: &'static str,
) -> BenchMachine {
    BenchMachine {
        name,
        threads,
        synthetic,
        without: &[],
    }
}

pub const MACHINES: &[BenchMachine] = &[
    regular_machine("8", 8, "pack:2 core:2 pu:2"),
    regular_machine("32", 32, "pack:2 l3:2 core:4 pu:2"),
    regular_machine("64", 64, "pack:4 core:8 pu:2"),
    regular_machine("128", 128, "pack:4 l3:2 core:8 pu:2"),
    regular_machine("256", 256, "pack:4 l3:4 core:8 pu:2"),
    regular_machine("1024", 1024, "pack:8 l3:8 core:8 pu:2"),
    regular_machine("4096", 4096, "group:16 pack:4 l3:4 core:8 pu:2"),
    BenchMachine {
        name: "asymmetric",
        threads: 56,
        synthetic: "pack:4 core:8 pu:2",
        without: &[3, 9, 17, 18, 19, 20, 40, 63],
    },
    regular_machine("128-on-64", 128, "pack:4 core:8 pu:2"),
    regular_machine("100-on-128", 100, "pack:4 l3:2 core:8 pu:2"),
];

impl BenchMachine {
    pub fn tree(&self) -> TopologyTree {
        let machine = hither_model::topology::load(self.synthetic).expect("a sound description");
        TopologyTree::new(&machine, |pu| !self.without.contains(&pu)).expect("units")
    }
}

/// Nanoseconds from cache to cache, about what servers have.
pub fn level_latency(level: TopologyLevel) -> u32 {
    match level {
        TopologyLevel::Pu | TopologyLevel::Core | TopologyLevel::L1 => 5,
        TopologyLevel::L2 => 15,
        TopologyLevel::L3 => 40,
        TopologyLevel::L4 | TopologyLevel::L5 => 60,
        TopologyLevel::Node | TopologyLevel::Package => 90,
        TopologyLevel::Group => 150,
        TopologyLevel::Machine => 250,
    }
}
