//! Machines shipped with the program, by name: testdata/topologies. Each says where its
//! figures come from; latencies between nodes are only there where somebody published them.
use super::{from_synthetic, from_xml, Topology};
use hwlocality::object::distance::{AddDistancesFlags, DistancesKind};
use hwlocality::object::types::ObjectType;
use serde::Deserialize;

const TABLE: &str = include_str!("../../../../testdata/topologies/machines.json");
/// Files that the table names.
const FILES: [(&str, &str); 1] = [(
    "core-i9-13900k.xml",
    include_str!("../../../../testdata/topologies/core-i9-13900k.xml"),
)];

/// A machine of the table.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ShippedMachine {
    /// As `--topology` takes it.
    pub name: String,
    /// One line that says which machine it is.
    pub title: String,
    /// Where its figures come from.
    pub source: String,
    /// Between nodes, where they are published.
    pub latencies: Option<NodeLatencies>,
    synthetic: Option<String>,
    xml: Option<String>,
}

/// Latencies between nodes.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct NodeLatencies {
    /// Row by row, by logical index.
    pub values: Vec<u64>,
    pub source: String,
}

/// All shipped machines.
#[must_use]
pub fn shipped_machines() -> Vec<ShippedMachine> {
    // A test reads the table, so that what is shipped can be read.
    serde_json::from_str(TABLE).unwrap_or_default()
}

/// The shipped machine of this name.
pub(super) fn load_shipped(name: &str) -> Option<Topology> {
    let machine = shipped_machines().into_iter().find(|m| m.name == name)?;
    let mut topology = match (&machine.synthetic, &machine.xml) {
        (Some(text), _) => from_synthetic(text).ok()?,
        (None, Some(file)) => from_xml(FILES.iter().find(|f| f.0 == file)?.1)?,
        (None, None) => return None,
    };
    if let Some(latencies) = machine.latencies {
        add_latencies(&mut topology, latencies.values)?;
    }
    Some(topology)
}

fn add_latencies(topology: &mut Topology, values: Vec<u64>) -> Option<()> {
    let kind = DistancesKind::FROM_USER | DistancesKind::MEANS_LATENCY;
    let added = topology.inner.edit(|editor| {
        editor.add_distances(
            // hwlocality alpha.13 frees a name before hwloc copies it.
            None,
            kind,
            AddDistancesFlags::empty(),
            |topology| {
                let nodes = topology.objects_with_type(ObjectType::NUMANode);
                (nodes.map(Some).collect(), values)
            },
        )
    });
    added.ok()
}
