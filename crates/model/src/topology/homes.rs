//! NUMA nodes: which one is a processing unit's own, and how far they are from one another.
//!
//! A unit's home is the nearest node with memory. Nodes that hold none (sockets without
//! memory) and nodes attached to the whole machine (CXL memory) are homes only where there is
//! nothing nearer.
use super::tree::{logical, number};
use super::{Node, Topology};
use hither_profile::NodeIx;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::distance::{Distances, DistancesKind};
use hwlocality::object::types::ObjectType;
use hwlocality::object::TopologyObject;
use std::collections::BTreeMap;

/// All nodes by logical index, without units.
pub(super) fn nodes(topology: &Topology) -> Vec<Node> {
    let objects = topology.inner.objects_with_type(ObjectType::NUMANode);
    let node = |object: &TopologyObject| Node {
        node: NodeIx(logical(object)),
        os: number(object.os_index()),
        bytes: bytes(object),
        units: Vec::new(),
    };
    objects.map(node).collect()
}

fn bytes(node: &TopologyObject) -> u64 {
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
pub(super) fn homes(topology: &Topology) -> BTreeMap<u32, NodeIx> {
    let objects = topology.inner.objects_with_type(ObjectType::NUMANode);
    let mut all: Vec<&TopologyObject> = objects.collect();
    let served = |node: &TopologyObject| node.cpuset().map_or(0, |s| s.weight().unwrap_or(0));
    all.sort_by_cached_key(|node| (served(node), node.logical_index()));
    let mut with_memory: Vec<&TopologyObject> = all.clone();
    with_memory.retain(|node| bytes(node) > 0);
    if with_memory.is_empty() {
        // Nothing says that any of them has memory: then they all do.
        with_memory.clone_from(&all);
    }
    let mut homes = BTreeMap::new();
    take(&mut homes, &with_memory);
    let own = {
        let mut own = BTreeMap::new();
        take(&mut own, &all);
        own
    };
    let latencies = topology.node_latencies();
    for unit in topology.inner.objects_with_type(ObjectType::PU) {
        let os = number(unit.os_index());
        if homes.contains_key(&os) {
            continue;
        }
        let row = own.get(&os).zip(latencies.as_ref());
        let row = row.map(|(node, all)| (node.at() * topology.nodes(), all));
        let nearest = match row {
            Some((start, all)) => {
                let far = |node: &&&TopologyObject| all[start + node.logical_index()];
                with_memory.iter().min_by_key(far).copied()
            }
            None => closest(unit, &with_memory),
        };
        homes.extend(nearest.map(|node| (os, NodeIx(logical(node)))));
    }
    homes
}

/// Gives each unit the first of the nodes that serves it.
fn take(homes: &mut BTreeMap<u32, NodeIx>, nodes: &[&TopologyObject]) {
    for node in nodes {
        let Some(set) = node.cpuset() else { continue };
        for pu in set.iter_set() {
            let os = number(Some(usize::from(pu)));
            homes.entry(os).or_insert(NodeIx(logical(node)));
        }
    }
}

/// The node below the lowest object around the unit that has one.
fn closest<'a>(unit: &TopologyObject, nodes: &[&'a TopologyObject]) -> Option<&'a TopologyObject> {
    let below = |around: &TopologyObject| {
        let found = nodes.iter().find(|node| node.is_in_subtree(around));
        found.copied()
    };
    unit.ancestors().find_map(below)
}

/// Whether one of `homes` is attached to the object itself.
pub(super) fn is_home_here(object: &TopologyObject, homes: &[NodeIx]) -> bool {
    object
        .memory_children()
        .any(|child| match child.object_type() {
            ObjectType::NUMANode => homes.binary_search(&NodeIx(logical(child))).is_ok(),
            // A cache of the memory's own.
            _ => is_home_here(child, homes),
        })
}

impl Topology {
    /// Latencies between nodes by logical index, row by row, as the machine's firmware or
    /// the topology file says them; `None` where nothing covers all nodes.
    #[must_use]
    pub fn node_latencies(&self) -> Option<Vec<u32>> {
        let kind = Some(DistancesKind::MEANS_LATENCY);
        let all = self.inner.distances_with_type(kind, ObjectType::NUMANode);
        all.ok()?.iter().find_map(|d| matrix(d, self.nodes()))
    }
}

fn matrix(distances: &Distances, nodes: usize) -> Option<Vec<u32>> {
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
