//! Symmetric machines made of a few numbers, for tests and benchmarks: identical packages, one
//! NUMA node each, and a link from each package to every other.
use crate::simulate::simulated_machine::*;

/// A level of `lines` lines of 64 bytes in sets of `ways`, a cache for each `cores` cores.
pub fn level(
    lines: u64,
    ways: u32,
    cores: u32,
    latency: u32,
    inclusive: bool,
) -> (CacheLevelParameters, u32) {
    let level = CacheLevelParameters {
        name: "L".into(),
        bytes: lines * 64,
        ways,
        replacement: ReplacementPolicy::Lru,
        latency,
        inclusive,
        prefetch: None,
        caches: 0,
    };
    (level, cores)
}

/// A machine with one unit to a core, `cores` to a package, a node and a link to each other for
/// each package. Memory takes 80 cycles and 1 more for the transfer; links 50 and 1/8 per byte.
pub fn machine(
    levels: &[(CacheLevelParameters, u32)],
    cores: u32,
    packages: u32,
    protocol: CoherenceProtocol,
) -> SimulatedMachine {
    let all = cores * packages;
    let units = (0..all).map(|n| PuParameters {
        core: n,
        package: n / cores,
        node: n / cores,
        at: n / cores,
        caches: levels.iter().map(|l| n / l.1).collect(),
    });
    let levels = levels.iter().map(|(level, cores)| CacheLevelParameters {
        caches: all.div_ceil(*cores),
        ..level.clone()
    });
    let node = |package| NodeParameters {
        package,
        dram: DramParameters {
            channels: 16,
            banks: 16,
            row: 4096,
            controller: 0.0,
            cas: 80.0,
            rcd: 0.0,
            rp: 0.0,
            burst: 1.0,
        },
    };
    SimulatedMachine {
        core: CoreParameters {
            frequency: 1.0,
            width: 4.0,
            window: 128,
            misses: 10,
        },
        levels: levels.collect(),
        line: 64,
        protocol,
        units: units.collect(),
        packages,
        nodes: (0..packages).map(node).collect(),
        links: links(packages),
        energy: EnergyCoefficients::default(),
    }
}

fn links(packages: u32) -> InterconnectParameters {
    let mut links = InterconnectParameters {
        data_bytes: 72,
        control_bytes: 8,
        inside: 10,
        ..InterconnectParameters::default()
    };
    for from in 0..packages {
        let mut routes = Vec::new();
        for to in 0..packages {
            if from == to {
                routes.push(Vec::new());
                continue;
            }
            routes.push(vec![links.links.len() as u32]);
            links.links.push(LinkParameters {
                from,
                to,
                latency: 50.0,
                bandwidth: 8.0,
                between_packages: true,
            });
        }
        links.routes.push(routes);
    }
    links
}
