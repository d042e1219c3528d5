//! NUMA nodes: which one is a processing unit's own, and how far they are from one another.
//!
//! A unit's home is the nearest node with memory. Nodes that hold none (sockets without
//! memory) and nodes attached to the whole machine (CXL memory) are homes only where there is
//! nothing nearer.
use super::object_index::{logical_index, u32_or_max};
use super::{NumaNode, Topology};
use hither_profile::NodeIx;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::distance::{Distances, DistancesKind};
use hwlocality::object::types::ObjectType;
use hwlocality::object::TopologyObject;
use std::collections::BTreeMap;

/// All nodes by logical index, without units.
pub(super) fn numa_nodes(topology: &Topology) -> Vec<NumaNode> {
    let objects = topology.inner.objects_with_type(ObjectType::NUMANode);
    let node = |object: &TopologyObject| NumaNode {
        node: NodeIx(logical_index(object)),
        os: u32_or_max(object.os_index()),
        bytes: local_memory_bytes(object),
        units: Vec::new(),
    };
    objects.map(node).collect()
}

fn local_memory_bytes(node: &TopologyObject) -> u64 {
    match node.attributes() {
        Some(ObjectAttributes::NUMANode(memory)) => {
            memory.local_memory().map_or(0, std::num::NonZeroU64::get)
        }
        _ => 0,
    }
}

/// The home of each unit, by the kernel's number of the unit. The node that serves the fewest
/// units is the nearest; among equals the first, for hwloc puts ordinary memory before what
/// is attached beside it.
pub(super) fn local_nodes(topology: &Topology) -> BTreeMap<u32, NodeIx> {
    let objects = topology.inner.objects_with_type(ObjectType::NUMANode);
    let mut all: Vec<&TopologyObject> = objects.collect();
    let served = |node: &TopologyObject| node.cpuset().map_or(0, |s| s.weight().unwrap_or(0));
    all.sort_by_cached_key(|node| (served(node), node.logical_index()));
    let mut with_memory: Vec<&TopologyObject> = all.clone();
    with_memory.retain(|node| local_memory_bytes(node) > 0);
    if with_memory.is_empty() {
        // Nothing says that any of them has memory: then they all do.
        with_memory.clone_from(&all);
    }
    let mut homes = BTreeMap::new();
    assign_local_nodes(&mut homes, &with_memory);
    let own = {
        let mut own = BTreeMap::new();
        assign_local_nodes(&mut own, &all);
        own
    };
    let latencies = topology.node_latencies();
    for unit in topology.inner.objects_with_type(ObjectType::PU) {
        let os = u32_or_max(unit.os_index());
        if homes.contains_key(&os) {
            continue;
        }
        let row = own.get(&os).zip(latencies.as_ref());
        let row = row.map(|(node, all)| (node.at() * topology.node_count(), all));
        let nearest = match row {
            Some((start, all)) => {
                let far = |node: &&&TopologyObject| all[start + node.logical_index()];
                with_memory.iter().min_by_key(far).copied()
            }
            None => closest_node(unit, &with_memory),
        };
        homes.extend(nearest.map(|node| (os, NodeIx(logical_index(node)))));
    }
    homes
}

/// Gives each unit the first of the nodes that serves it.
fn assign_local_nodes(homes: &mut BTreeMap<u32, NodeIx>, nodes: &[&TopologyObject]) {
    for node in nodes {
        let Some(set) = node.cpuset() else { continue };
        for pu in set.iter_set() {
            let os = u32_or_max(Some(usize::from(pu)));
            homes.entry(os).or_insert(NodeIx(logical_index(node)));
        }
    }
}

/// The node below the lowest object around the unit that has one.
fn closest_node<'a>(
    unit: &TopologyObject,
    nodes: &[&'a TopologyObject],
) -> Option<&'a TopologyObject> {
    let below = |around: &TopologyObject| {
        let found = nodes.iter().find(|node| node.is_in_subtree(around));
        found.copied()
    };
    unit.ancestors().find_map(below)
}

/// Whether one of `homes` is attached to the object itself.
pub(super) fn has_local_node(object: &TopologyObject, homes: &[NodeIx]) -> bool {
    object
        .memory_children()
        .any(|child| match child.object_type() {
            ObjectType::NUMANode => homes.binary_search(&NodeIx(logical_index(child))).is_ok(),
            // A cache of the memory's own.
            _ => has_local_node(child, homes),
        })
}

impl Topology {
    /// Latencies between nodes by logical index, row by row, as the machine's firmware or
    /// the topology file says them; `None` where nothing covers all nodes.
    #[must_use]
    pub fn node_latencies(&self) -> Option<Vec<u32>> {
        let kind = Some(DistancesKind::MEANS_LATENCY);
        let all = self.inner.distances_with_type(kind, ObjectType::NUMANode);
        all.ok()?
            .iter()
            .find_map(|d| latency_matrix(d, self.node_count()))
    }
}

fn latency_matrix(distances: &Distances, nodes: usize) -> Option<Vec<u32>> {
    let order: Option<Vec<usize>> = distances
        .objects()
        .map(|o| o.map(TopologyObject::logical_index))
        .collect();
    let order = order?;
    let values = distances.distances();
    if order.len() != nodes || values.len() != nodes * nodes {
        return None;
    }
    let mut found = vec![None; nodes * nodes];
    for (i, &from) in order.iter().enumerate() {
        for (j, &to) in order.iter().enumerate() {
            *found.get_mut(from * nodes + to)? = u32::try_from(values[i * nodes + j]).ok();
        }
    }
    found.into_iter().collect()
}
