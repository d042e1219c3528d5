//! Machines of the bench, as hwloc synthetic strings.
use hither_model::topology::{Level, Tree};

pub struct Machine {
    pub name: &'static str,
    pub threads: usize,
    synthetic: &'static str,
    /// Processing units that may not be used.
    without: &'static [u32],
}

const fn regular(name: &'static str, threads: usize, synthetic: &'static str) -> Machine {
    Machine {
        name,
        threads,
        synthetic,
        without: &[],
    }
}

pub const ALL: &[Machine] = &[
    regular("8", 8, "pack:2 core:2 pu:2"),
    regular("32", 32, "pack:2 l3:2 core:4 pu:2"),
    regular("64", 64, "pack:4 core:8 pu:2"),
    regular("128", 128, "pack:4 l3:2 core:8 pu:2"),
    regular("256", 256, "pack:4 l3:4 core:8 pu:2"),
    regular("1024", 1024, "pack:8 l3:8 core:8 pu:2"),
    regular("4096", 4096, "group:16 pack:4 l3:4 core:8 pu:2"),
    Machine {
        name: "asymmetric",
        threads: 56,
        synthetic: "pack:4 core:8 pu:2",
        without: &[3, 9, 17, 18, 19, 20, 40, 63],
    },
    regular("128-on-64", 128, "pack:4 core:8 pu:2"),
    regular("100-on-128", 100, "pack:4 l3:2 core:8 pu:2"),
];

impl Machine {
    pub fn tree(&self) -> Tree {
        let machine = hither_model::topology::load(self.synthetic).expect("a sound description");
        Tree::new(&machine, |pu| !self.without.contains(&pu)).expect("units")
    }
}

/// Nanoseconds from cache to cache, about what servers have.
pub fn latency(level: Level) -> u32 {
    match level {
        Level::Pu | Level::Core | Level::L1 => 5,
        Level::L2 => 15,
        Level::L3 => 40,
        Level::L4 | Level::L5 => 60,
        Level::Node | Level::Package => 90,
        Level::Group => 150,
        Level::Machine => 250,
    }
}
