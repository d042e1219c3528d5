//! The machine to place on, and what distances on it are.
use super::args::{CostKind, Machine};
use crate::map::Cost;
use crate::place::identity;
use crate::topology::{self, Level, Tree};
use anyhow::{anyhow, Result};
use hither_profile::MachineId;

/// The machine to place on.
pub struct Target {
    /// Units that may be used.
    pub tree: Tree,
    pub id: MachineId,
}

/// # Errors
/// A sentence when there is no such machine, or no unit of it may be used.
pub fn target(args: &Machine) -> Result<Target> {
    let name = args.topology.as_deref();
    let topology = match name {
        Some(name) => topology::load(name)?,
        None => topology::this_machine()?,
    };
    let whole = Tree::new(&topology, |_| true);
    let whole = whole.ok_or_else(|| anyhow!("the machine has no processing unit"))?;
    let usable = |os| args.pus.as_ref().is_none_or(|list| list.contains(os));
    let tree = Tree::new(&topology, usable).ok_or_else(|| {
        let list = args.pus.as_ref().map(ToString::to_string);
        anyhow!(
            "the machine has none of the PUs {}; give some of 0-{} with --pus",
            list.unwrap_or_default(),
            whole.units.len() - 1
        )
    })?;
    let id = identity(&whole, name.unwrap_or("this machine"));
    Ok(Target { tree, id })
}

/// # Errors
/// When the machine has no latencies.
pub fn cost(tree: &Tree, kind: CostKind) -> Result<Cost> {
    Ok(match kind {
        CostKind::Hops => Cost::hops(tree),
        CostKind::Levels => Cost::levels(tree, cycles),
        CostKind::Latency => return Err(anyhow!("this topology has no latencies between nodes; use --cost hops or levels, or a topology that has them")),
    })
}

/// Cycles for a line from another unit below a vertex of this level: round figures of x86
/// servers, whose ratios are what counts.
fn cycles(level: Level) -> u32 {
    match level {
        Level::Pu => 0,
        Level::Core | Level::L1 => 5,
        Level::L2 => 15,
        Level::L3 | Level::L4 | Level::L5 => 50,
        Level::Group | Level::Node | Level::Package => 100,
        Level::Machine => 200,
    }
}
