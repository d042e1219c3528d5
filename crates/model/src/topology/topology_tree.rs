//! The part of a machine that threads may use, as a tree for mapping.
//!
//! Units are numbered depth first, so every vertex covers a range of them:
//!
//!   vertex 0   machine             units 0..8
//!   |- 1       node, package, L3   units 0..4
//!   |  |- 2    L2, core            units 0..2
//!   ...
//!
//! A level whose vertex has one child is collapsed into it (kMAF 3.3): the vertex that stays
//! carries both levels.
use super::object_index::{logical_index, u32_or_max};
use super::{numa_nodes, Topology};
use hither_profile::{NodeIx, PuIx};
use hwlocality::object::types::ObjectType;
use hwlocality::object::TopologyObject;
use std::collections::BTreeMap;
use std::ops::Range;

/// A kind of sharing, from the loosest to the closest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopologyLevel {
    /// The whole machine.
    Machine,
    /// A NUMA node is the nearest with memory for everything below.
    Node,
    /// Package (socket).
    Package,
    /// A group of hwloc's, such as a cluster of cores.
    Group,
    /// Fifth-level cache.
    L5,
    /// Fourth-level cache.
    L4,
    /// Third-level cache.
    L3,
    /// Second-level cache.
    L2,
    /// First-level data cache.
    L1,
    /// Core.
    Core,
    /// Processing unit (hardware thread).
    Pu,
}

/// A processing unit that may be used. Its position in [`TopologyTree::units`] is its number in
/// everything that maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsablePu {
    /// hwloc's logical index in the whole machine.
    pub pu: PuIx,
    /// The kernel's number.
    pub os: u32,
    /// The nearest node with memory.
    pub node: NodeIx,
    /// Cores are numbered 0.. in the order of units: units of one core are SMT siblings.
    pub core: u32,
    /// The rank of its kind of core, 0 for the slowest and where all are alike.
    pub kind: u32,
}

/// A set of units that share something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyVertex {
    /// `None` for the root.
    pub parent: Option<u32>,
    /// Loosest first, in the order of [`TopologyLevel`]; several where levels were collapsed.
    pub levels: Vec<TopologyLevel>,
    /// Positions in [`TopologyTree::units`].
    pub units: Range<u32>,
    /// In the order of their units; none for a unit.
    pub children: Vec<u32>,
    /// 0 for the root.
    pub depth: u32,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaNode {
    /// hwloc's logical index.
    pub node: NodeIx,
    /// The kernel's number.
    pub os: u32,
    /// Bytes; 0 where nothing is known (synthetic topologies say what they are told).
    pub bytes: u64,
    /// Usable units whose nearest node it is; none for memory-only nodes.
    pub units: Vec<u32>,
}

/// The units that may be used and what they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyTree {
    /// Its processing units, in the order of the tree.
    pub units: Vec<UsablePu>,
    /// The root first, every parent before its children.
    pub vertices: Vec<TopologyVertex>,
    /// By logical index, those without units included.
    pub nodes: Vec<NumaNode>,
    /// The vertex of each unit.
    leaves: Vec<u32>,
}

fn level_of(object: &TopologyObject) -> Option<TopologyLevel> {
    Some(match object.object_type() {
        ObjectType::Machine => TopologyLevel::Machine,
        ObjectType::Package => TopologyLevel::Package,
        ObjectType::Group | ObjectType::Die => TopologyLevel::Group,
        ObjectType::L5Cache => TopologyLevel::L5,
        ObjectType::L4Cache => TopologyLevel::L4,
        ObjectType::L3Cache => TopologyLevel::L3,
        ObjectType::L2Cache => TopologyLevel::L2,
        ObjectType::L1Cache => TopologyLevel::L1,
        ObjectType::Core => TopologyLevel::Core,
        ObjectType::PU => TopologyLevel::Pu,
        _ => return None,
    })
}

/// What growing a tree needs to know.
struct TopologyTreeBuilder<F> {
    tree: TopologyTree,
    usable: F,
    /// Nodes that are some usable unit's own, ascending.
    homes: Vec<NodeIx>,
}

impl TopologyTree {
    /// The tree over the units for which `usable` (by the kernel's number) holds.
    /// `None` when there are none.
    #[must_use]
    pub fn new(topology: &Topology, usable: impl Fn(u32) -> bool) -> Option<TopologyTree> {
        let home_of = numa_nodes::local_nodes(topology);
        let used = home_of.iter().filter(|(os, _)| usable(**os));
        let mut homes: Vec<NodeIx> = used.map(|(_, node)| *node).collect();
        homes.sort_unstable();
        homes.dedup();
        let tree = TopologyTree {
            units: Vec::new(),
            vertices: Vec::new(),
            nodes: numa_nodes::numa_nodes(topology),
            leaves: Vec::new(),
        };
        let mut grower = TopologyTreeBuilder {
            tree,
            usable,
            homes,
        };
        grower.add_object(topology.inner.root_object(), None, &mut Vec::new())?;
        let mut tree = grower.tree;
        tree.number_cores();
        tree.assign_nodes(&home_of);
        tree.assign_kinds(topology);
        Some(tree)
    }

    /// Number of cores with a usable unit.
    #[must_use]
    pub fn core_count(&self) -> usize {
        self.units.last().map_or(0, |u| u.core as usize + 1)
    }

    fn push_vertex(&mut self, parent: Option<u32>, mut levels: Vec<TopologyLevel>) -> u32 {
        // hwloc attaches memory anywhere among what has the same units.
        levels.sort_unstable();
        levels.dedup();
        let depth = parent.map_or(0, |p| self.vertices[p as usize].depth + 1);
        self.vertices.push(TopologyVertex {
            parent,
            levels,
            units: 0..0,
            children: Vec::new(),
            depth,
        });
        (self.vertices.len() - 1) as u32
    }

    fn add_unit(
        &mut self,
        object: &TopologyObject,
        parent: Option<u32>,
        levels: Vec<TopologyLevel>,
    ) -> u32 {
        let at = self.units.len() as u32;
        let me = self.push_vertex(parent, levels);
        self.vertices[me as usize].units = at..at + 1;
        self.leaves.push(me);
        let core = object.first_ancestor_with_type(ObjectType::Core);
        self.units.push(UsablePu {
            pu: PuIx(logical_index(object)),
            os: u32_or_max(object.os_index()),
            node: NodeIx(0),
            core: core.map_or(u32::MAX - at, logical_index),
            kind: 0,
        });
        me
    }

    /// Cores are numbered in the order in which units name them.
    fn number_cores(&mut self) {
        let mut known = BTreeMap::new();
        for unit in &mut self.units {
            let next = known.len() as u32;
            unit.core = *known.entry(unit.core).or_insert(next);
        }
    }

    fn assign_nodes(&mut self, homes: &BTreeMap<u32, NodeIx>) {
        for (at, unit) in (0..).zip(&mut self.units) {
            // Every machine has a node, and so every unit a home.
            unit.node = homes.get(&unit.os).copied().unwrap_or(NodeIx(0));
            if let Some(node) = self.nodes.get_mut(unit.node.at()) {
                node.units.push(at);
            }
        }
    }

    fn assign_kinds(&mut self, topology: &Topology) {
        for (rank, kind) in (0..).zip(topology.cpu_kinds()) {
            let units = self.units.iter_mut();
            for unit in units.filter(|u| kind.contains_pu(u.os)) {
                unit.kind = rank;
            }
        }
    }

    /// Steps from the root to a unit.
    #[must_use]
    pub fn depth_of_unit(&self, unit: usize) -> u32 {
        self.vertices[self.leaves[unit] as usize].depth
    }

    /// The lowest vertex that covers both units.
    #[must_use]
    pub fn lowest_common_vertex(&self, a: usize, b: usize) -> u32 {
        let (mut x, mut y) = (self.leaves[a], self.leaves[b]);
        while x != y {
            // Parents come before their children, so the later one is no ancestor of the other.
            let later = if x > y { &mut x } else { &mut y };
            *later = self.vertices[*later as usize].parent.unwrap_or(0);
        }
        x
    }
}

impl<F: Fn(u32) -> bool> TopologyTreeBuilder<F> {
    /// Adds what lies below `object`; `above` are the levels collapsed on the way.
    fn add_object(
        &mut self,
        object: &TopologyObject,
        parent: Option<u32>,
        above: &mut Vec<TopologyLevel>,
    ) -> Option<u32> {
        let mut levels = std::mem::take(above);
        levels.extend(level_of(object));
        if numa_nodes::has_local_node(object, &self.homes) {
            levels.push(TopologyLevel::Node);
        }
        let children: Vec<_> = object
            .normal_children()
            .filter(|child| has_usable_pu(child, &self.usable))
            .collect();
        match children[..] {
            [] if object.object_type() == ObjectType::PU => {
                Some(self.tree.add_unit(object, parent, levels))
            }
            [] => None,
            [only] => self.add_object(only, parent, &mut levels),
            _ => {
                let first = self.tree.units.len() as u32;
                let me = self.tree.push_vertex(parent, levels);
                for child in children {
                    let below = self.add_object(child, Some(me), &mut Vec::new());
                    self.tree.vertices[me as usize].children.extend(below);
                }
                self.tree.vertices[me as usize].units = first..self.tree.units.len() as u32;
                Some(me)
            }
        }
    }
}

pub(super) fn has_usable_pu(object: &TopologyObject, usable: &impl Fn(u32) -> bool) -> bool {
    let set = object.cpuset();
    set.is_some_and(|set| {
        set.iter_set()
            .any(|pu| usable(u32_or_max(Some(usize::from(pu)))))
    })
}
