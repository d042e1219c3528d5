//! Machines of the benchmark: 4 x X7550 as in the SPCD and OPT papers' evaluation, and the same
//! with more packages, to see what the number of caches costs.
use hither_model::simulate::simulated_machine::{
    CoherenceProtocol, CoreParameters, DramParameters, SimulatedMachine,
};
use hither_model::simulate::symmetric::{self, level};

/// `packages` packages of eight cores with two units each.
pub fn x7550(packages: u32) -> SimulatedMachine {
    // A unit each, in the place of a core.
    let levels = [
        level(512, 8, 2, 4, false),
        level(4096, 8, 2, 10, false),
        level(18 << 14, 24, 16, 45, true),
    ];
    let mut machine = symmetric::machine(&levels, 16, packages, CoherenceProtocol::Mesi);
    machine.core = CoreParameters {
        frequency: 2.0,
        ..machine.core
    };
    for unit in &mut machine.units {
        unit.core /= 2;
    }
    for node in &mut machine.nodes {
        node.dram = DramParameters {
            channels: 4,
            banks: 16,
            row: 8192,
            controller: 60.0,
            cas: 27.0,
            rcd: 27.0,
            rp: 27.0,
            burst: 15.0,
        };
    }
    machine.links.inside = 20;
    for link in &mut machine.links.links {
        (link.latency, link.bandwidth) = (60.0, 6.4);
    }
    machine
}
