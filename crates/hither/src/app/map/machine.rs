//! The machine to place on, and what distances on it are.
use super::options::{CostKind, MapOptions};
use anyhow::{anyhow, Result};
use hither_model::map::PuDistances;
use hither_model::topology::fingerprint_of;
use hither_model::topology::{select_machine, SelectedMachine, TopologyLevel, TopologyTree};
use hither_profile::MachineIdentity;

/// What the machine is called that hither runs on.
pub const THIS_MACHINE: &str = "this machine";

/// The machine to place on.
pub struct MapTarget {
    /// Units that may be used.
    pub tree: TopologyTree,
    pub cost: PuDistances,
    pub id: MachineIdentity,
}

/// The machine for this many threads.
///
/// # Errors
/// A sentence when there is no such machine, or no unit of it may be used.
pub fn target(options: &MapOptions, threads: usize) -> Result<MapTarget> {
    let name = options.topology.as_deref();
    let selected = select_machine(name, &options.restrictions(threads))?;
    of_selected(selected, name, options.cost)
}

/// The same for a machine that was read already.
///
/// # Errors
/// A sentence when the topology does not say what the cost needs.
pub fn of_selected(
    selected: SelectedMachine,
    name: Option<&str>,
    kind: CostKind,
) -> Result<MapTarget> {
    let whole = TopologyTree::new(&selected.topology, |_| true);
    let whole = whole.ok_or_else(|| anyhow!("the machine has no processing unit"))?;
    Ok(MapTarget {
        cost: cost(&selected.tree, selected.latencies.as_deref(), kind)?,
        tree: selected.tree,
        id: fingerprint_of(&whole, name.unwrap_or(THIS_MACHINE)),
    })
}

fn cost(tree: &TopologyTree, latencies: Option<&[u32]>, kind: CostKind) -> Result<PuDistances> {
    match (kind, latencies) {
        (CostKind::Hops, _) => Ok(PuDistances::from_hops(tree)),
        (CostKind::Levels, _) => Ok(PuDistances::from_levels(tree, level_latency)),
        (CostKind::Latency, Some(latencies)) => Ok(with_latencies(tree, latencies)),
        (CostKind::Latency, None) => Err(anyhow!("this topology has no latencies between nodes; use --cost levels, or a topology that has them, such as --topology grace-superchip")),
    }
}

/// Cycles for a line from another unit below a vertex of this level: round figures of x86
/// servers, whose ratios are what counts. A vertex that shares no more than a node holds
/// several packages.
fn level_latency(level: TopologyLevel) -> u32 {
    match level {
        TopologyLevel::Pu => 0,
        TopologyLevel::Core | TopologyLevel::L1 => 5,
        TopologyLevel::L2 => 15,
        TopologyLevel::L3 | TopologyLevel::L4 | TopologyLevel::L5 => 50,
        TopologyLevel::Group => 70,
        TopologyLevel::Package => 100,
        TopologyLevel::Node => CYCLES_OF_NODE,
        TopologyLevel::Machine => 300,
    }
}

const CYCLES_OF_NODE: u32 = 200;

/// Latencies between nodes; below, the levels' cycles scaled so that those of a node are
/// its latency to itself. Firmware gives latencies for both directions, an event has none:
/// it costs their mean.
fn with_latencies(tree: &TopologyTree, latencies: &[u32]) -> PuDistances {
    let nodes = tree.nodes.len();
    let local = (0..nodes).map(|n| latencies[n * nodes + n]).min();
    let local = u64::from(local.unwrap_or(1).max(1));
    // Whole numbers fine enough for what is inside a node.
    let scaled = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let unit = u64::from(CYCLES_OF_NODE);
    let between = (0..nodes * nodes).map(|at| {
        let back = latencies[at % nodes * nodes + at / nodes];
        scaled((u64::from(latencies[at]) + u64::from(back)) * unit / (2 * local))
    });
    PuDistances::from_levels(tree, level_latency).with_node_matrix(between.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_model::topology::{load, TopologyTree};

    #[test]
    fn latencies_go_on_where_levels_end() {
        let topology = load("node:2 core:2 pu:2").expect("a topology");
        let tree = TopologyTree::new(&topology, |_| true).expect("units");
        let cost = cost(&tree, Some(&[10, 28, 21, 10]), CostKind::Latency).expect("latencies");
        let d = |a, b| cost.distance(&tree, a, b);
        assert_eq!((d(0, 0), d(0, 1), d(0, 2)), (0, 5, 70));
        assert_eq!((d(0, 4), d(4, 0)), (490, 490));
        assert!(super::cost(&tree, None, CostKind::Latency).is_err());
    }
}
