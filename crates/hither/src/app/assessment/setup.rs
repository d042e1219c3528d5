//! Nodes and caches to count with.
use anyhow::Result;
use hither_model::metrics::{MetricsSetup, PageSize};
use hither_model::topology;
use hither_profile::MachineInfo;

/// Nodes of the machine of the papers (OPT table 2), where nothing better is known.
const PAPERS_NODES: usize = 4;
/// No machine has more, and work grows with them.
pub const MAX_NODES: u16 = 1024;

/// What the user says, else the traced machine if it has
/// several nodes, else the machine of the papers.
pub fn setup(
    machine: &MachineInfo,
    nodes: Option<u16>,
    topology: Option<&str>,
    page_size: PageSize,
) -> Result<MetricsSetup> {
    let mut setup = MetricsSetup {
        nodes: PAPERS_NODES,
        nodes_from: format!(
            "as on the papers' machine, for the traced one has {}; --nodes sets it",
            match machine.numa_nodes {
                1 => "one node",
                _ => "no known nodes",
            }
        ),
        cache_bytes: machine.cache_bytes,
        page_size,
    };
    if machine.numa_nodes > 1 {
        setup.nodes = machine.numa_nodes.min(MAX_NODES.into()) as usize;
        setup.nodes_from = "those of the traced machine".to_owned();
    }
    if let Some(name) = topology {
        let topology = topology::load(name)?;
        setup.nodes = topology.nodes_with_pus().clamp(1, MAX_NODES.into());
        setup.nodes_from = format!("those of {name}");
        setup.cache_bytes = topology.cache_bytes();
    }
    if let Some(nodes) = nodes {
        setup.nodes = usize::from(nodes);
        setup.nodes_from = "as --nodes says".to_owned();
    }
    Ok(setup)
}
