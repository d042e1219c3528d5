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
use super::Topology;
use hither_profile::{NodeIx, PuIx};
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::types::ObjectType;
use hwlocality::object::TopologyObject;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;

/// A kind of sharing, from the loosest to the closest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Machine,
    /// A NUMA node is the closest that serves everything below.
    Node,
    Package,
    Group,
    L5,
    L4,
    L3,
    L2,
    L1,
    Core,
    Pu,
}

/// A processing unit that may be used. Its position in [`Tree::units`] is its number in
/// everything that maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// hwloc's logical index in the whole machine.
    pub pu: PuIx,
    /// The kernel's number.
    pub os: u32,
    /// The nearest node with memory.
    pub node: NodeIx,
    /// Cores are numbered 0.. in the order of units.
    pub core: u32,
}

/// A set of units that share something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// `None` for the root.
    pub parent: Option<u32>,
    /// Outermost first; several where levels were collapsed.
    pub levels: Vec<Level>,
    /// Positions in [`Tree::units`].
    pub units: Range<u32>,
    /// In the order of their units; none for a unit.
    pub children: Vec<u32>,
    /// 0 for the root.
    pub depth: u32,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
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
pub struct Tree {
    pub units: Vec<Unit>,
    /// The root first, every parent before its children.
    pub vertices: Vec<Vertex>,
    /// By logical index, those without units included.
    pub nodes: Vec<Node>,
    /// The vertex of each unit.
    leaves: Vec<u32>,
}

fn level_of(object: &TopologyObject) -> Option<Level> {
    Some(match object.object_type() {
        ObjectType::Machine => Level::Machine,
        ObjectType::Package => Level::Package,
        ObjectType::Group => Level::Group,
        ObjectType::L5Cache => Level::L5,
        ObjectType::L4Cache => Level::L4,
        ObjectType::L3Cache => Level::L3,
        ObjectType::L2Cache => Level::L2,
        ObjectType::L1Cache => Level::L1,
        ObjectType::Core => Level::Core,
        ObjectType::PU => Level::Pu,
        _ => return None,
    })
}

fn logical(object: &TopologyObject) -> u32 {
    u32::try_from(object.logical_index()).unwrap_or(u32::MAX)
}

fn number(index: Option<usize>) -> u32 {
    index
        .and_then(|i| u32::try_from(i).ok())
        .unwrap_or(u32::MAX)
}

impl Tree {
    /// The tree over the units for which `usable` (by the kernel's number) holds.
    /// `None` when there are none.
    #[must_use]
    pub fn new(topology: &Topology, usable: impl Fn(u32) -> bool) -> Option<Tree> {
        let mut tree = Tree {
            units: Vec::new(),
            vertices: Vec::new(),
            nodes: Vec::new(),
            leaves: Vec::new(),
        };
        let root = topology.inner.root_object();
        tree.grow(root, &usable, None, &mut Vec::new())?;
        tree.number_cores();
        tree.assign_nodes(topology);
        Some(tree)
    }

    /// Adds what lies below `object`; `above` are the levels collapsed on the way.
    fn grow(
        &mut self,
        object: &TopologyObject,
        usable: &impl Fn(u32) -> bool,
        parent: Option<u32>,
        above: &mut Vec<Level>,
    ) -> Option<u32> {
        let mut levels = std::mem::take(above);
        levels.extend(level_of(object));
        if object.memory_arity() > 0 && !levels.contains(&Level::Node) {
            levels.push(Level::Node);
        }
        let children: Vec<_> = object
            .normal_children()
            .filter(|child| covers(child, usable))
            .collect();
        match children[..] {
            [] if object.object_type() == ObjectType::PU => Some(self.leaf(object, parent, levels)),
            [] => None,
            [only] => self.grow(only, usable, parent, &mut levels),
            _ => {
                let first = self.units.len() as u32;
                let me = self.push(parent, levels);
                for child in children {
                    let below = self.grow(child, usable, Some(me), &mut Vec::new());
                    self.vertices[me as usize].children.extend(below);
                }
                self.vertices[me as usize].units = first..self.units.len() as u32;
                Some(me)
            }
        }
    }

    fn push(&mut self, parent: Option<u32>, levels: Vec<Level>) -> u32 {
        let depth = parent.map_or(0, |p| self.vertices[p as usize].depth + 1);
        self.vertices.push(Vertex {
            parent,
            levels,
            units: 0..0,
            children: Vec::new(),
            depth,
        });
        (self.vertices.len() - 1) as u32
    }

    fn leaf(&mut self, object: &TopologyObject, parent: Option<u32>, levels: Vec<Level>) -> u32 {
        let at = self.units.len() as u32;
        let me = self.push(parent, levels);
        self.vertices[me as usize].units = at..at + 1;
        self.leaves.push(me);
        let core = object.first_ancestor_with_type(ObjectType::Core);
        self.units.push(Unit {
            pu: PuIx(logical(object)),
            os: number(object.os_index()),
            node: NodeIx(0),
            core: core.map_or(u32::MAX - at, logical),
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

    /// Every unit gets the first node that serves it: hwloc puts ordinary memory before
    /// what is attached beside it.
    fn assign_nodes(&mut self, topology: &Topology) {
        for object in topology.inner.objects_with_type(ObjectType::NUMANode) {
            let node = NodeIx(logical(object));
            let bytes = match object.attributes() {
                Some(ObjectAttributes::NUMANode(memory)) => {
                    memory.local_memory().map_or(0, NonZeroU64::get)
                }
                _ => 0,
            };
            let served: Vec<u32> = (0..)
                .zip(&self.units)
                .filter(|(_, unit)| {
                    object
                        .cpuset()
                        .is_some_and(|set| set.is_set(unit.os as usize))
                })
                .map(|(at, _)| at)
                .collect();
            let free = |at: &u32| !self.nodes.iter().any(|n: &Node| n.units.contains(at));
            let units: Vec<u32> = served.into_iter().filter(free).collect();
            for &at in &units {
                self.units[at as usize].node = node;
            }
            self.nodes.push(Node {
                node,
                os: number(object.os_index()),
                bytes,
                units,
            });
        }
    }

    /// The vertex that covers unit `at` alone.
    #[must_use]
    pub fn leaf_of(&self, at: usize) -> &Vertex {
        &self.vertices[self.leaves[at] as usize]
    }

    /// The lowest vertex that covers both units.
    #[must_use]
    pub fn common(&self, a: usize, b: usize) -> u32 {
        let (mut x, mut y) = (self.leaves[a], self.leaves[b]);
        while x != y {
            // Parents come before their children, so the later one is no ancestor of the other.
            let later = if x > y { &mut x } else { &mut y };
            *later = self.vertices[*later as usize].parent.unwrap_or(0);
        }
        x
    }
}

fn covers(object: &TopologyObject, usable: &impl Fn(u32) -> bool) -> bool {
    let set = object.cpuset();
    set.is_some_and(|set| {
        set.iter_set()
            .any(|pu| usable(number(Some(usize::from(pu)))))
    })
}
