//! Machines of the benchmark: 4 x X7550 as in the SPCD and OPT papers' evaluation, and the same
//! with more packages, to see what the number of caches costs.
use crate::simulate::machine::*;

/// `packages` packages of eight cores with two units each.
pub fn x7550(packages: u32) -> Machine {
    let cores = packages * 8;
    let level = |name: &str, bytes, ways, latency, inclusive, caches| Level {
        name: name.into(),
        bytes,
        ways,
        replacement: Replacement::Lru,
        latency,
        inclusive,
        prefetch: None,
        caches,
    };
    let units = (0..cores * 2).map(|n| Unit {
        core: n / 2,
        package: n / 16,
        node: n / 16,
        at: n / 16,
        caches: vec![n / 2, n / 2, n / 16],
    });
    let dram = Dram {
        channels: 4,
        banks: 16,
        row: 8192,
        controller: 60.0,
        cas: 27.0,
        rcd: 27.0,
        rp: 27.0,
        burst: 15.0,
    };
    let node = |package| Node {
        package,
        dram: dram.clone(),
    };
    Machine {
        core: Core {
            frequency: 2.0,
            width: 4.0,
            window: 128,
            misses: 10,
        },
        levels: vec![
            level("L1d", 32 << 10, 8, 4, false, cores),
            level("L2", 256 << 10, 8, 10, false, cores),
            level("L3", 18 << 20, 24, 45, true, packages),
        ],
        line: 64,
        protocol: Protocol::Mesi,
        units: units.collect(),
        packages,
        nodes: (0..packages).map(node).collect(),
        links: all_to_all(packages),
        energy: Energy::default(),
    }
}

/// A link from each package to each other.
fn all_to_all(packages: u32) -> Links {
    let mut links = Links {
        data_bytes: 72,
        control_bytes: 8,
        inside: 20,
        ..Links::default()
    };
    for from in 0..packages {
        let mut routes = Vec::new();
        for to in 0..packages {
            if from == to {
                routes.push(Vec::new());
                continue;
            }
            routes.push(vec![links.links.len() as u32]);
            links.links.push(Link {
                from,
                to,
                latency: 60.0,
                bandwidth: 6.4,
                between_packages: true,
            });
        }
        links.routes.push(routes);
    }
    links
}
