//! A machine as people draw it: packages, nodes, caches and cores with their numbers and
//! sizes, only as far as they lead to units that may be used.
use super::object_index::{logical_index, u32_or_max};
use super::topology_tree::has_usable_pu;
use super::{SelectedMachine, TopologyTree};
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::types::ObjectType;
use hwlocality::object::TopologyObject;
use serde::Serialize;
use std::ops::Range;

/// One thing in a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutlineItem {
    /// As people call it: "Package", "L3".
    pub what: &'static str,
    /// hwloc's number among its like.
    pub logical: u32,
    /// The kernel's number, if it has one.
    pub os: Option<u32>,
    /// Of a cache or of a node's memory; 0 where it has none.
    pub bytes: u64,
}

/// What lies in one another without a choice (package, node, L3), and the parts below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutlinePart {
    /// Outermost first.
    pub items: Vec<OutlineItem>,
    /// Positions in [`TopologyTree::units`]; none for memory without PUs.
    pub units: Range<u32>,
    /// From the package down.
    pub parts: Vec<OutlinePart>,
}

impl OutlinePart {
    /// Whether both look the same but for the numbers.
    #[must_use]
    pub fn same_shape(&self, other: &OutlinePart, tree: &TopologyTree) -> bool {
        let sizes = |part: &OutlinePart| -> Vec<(&'static str, u64)> {
            part.items.iter().map(|i| (i.what, i.bytes)).collect()
        };
        let kinds = |part: &OutlinePart| -> Vec<u32> {
            let units = part.units.clone().map(|u| &tree.units[u as usize]);
            units.map(|u| u.kind).collect()
        };
        let pairs = || self.parts.iter().zip(&other.parts);
        self.parts.len() == other.parts.len()
            && sizes(self) == sizes(other)
            && kinds(self) == kinds(other)
            && pairs().all(|(a, b)| a.same_shape(b, tree))
    }
}

impl SelectedMachine {
    /// The machine from its root.
    #[must_use]
    pub fn outline(&self) -> OutlinePart {
        let used = self.tree.units.iter().map(|u| u.os).collect();
        let mut drawer = OutlineBuilder {
            tree: &self.tree,
            used,
            next: 0,
        };
        let mut root = drawer.build_part(self.topology.inner.root_object());
        for node in &self.tree.nodes {
            let item = node_item(node.node.0, Some(node.os), node.bytes);
            if !contains_item(&root, &item) {
                root.parts.push(memory_only_part(item, drawer.next));
            }
        }
        root
    }
}

fn node_item(logical: u32, os: Option<u32>, bytes: u64) -> OutlineItem {
    OutlineItem {
        what: "Node",
        logical,
        os,
        bytes,
    }
}

/// A node without units, drawn by itself.
fn memory_only_part(item: OutlineItem, at: u32) -> OutlinePart {
    OutlinePart {
        items: vec![item],
        units: at..at,
        parts: Vec::new(),
    }
}

fn contains_item(part: &OutlinePart, item: &OutlineItem) -> bool {
    part.items.contains(item) || part.parts.iter().any(|p| contains_item(p, item))
}

struct OutlineBuilder<'a> {
    tree: &'a TopologyTree,
    used: std::collections::BTreeSet<u32>,
    /// Position of the unit that comes next.
    next: u32,
}

impl OutlineBuilder<'_> {
    fn build_part(&mut self, object: &TopologyObject) -> OutlinePart {
        let first = self.next;
        let mut part = memory_part_of(object, first);
        let mut around = object;
        loop {
            self.attach_memory(around, &mut part);
            let used = &self.used;
            let children = around.normal_children();
            let below: Vec<_> = children
                .filter(|c| has_usable_pu(c, &|os| used.contains(&os)))
                .collect();
            match below[..] {
                [only] if only.object_type() != ObjectType::PU => {
                    part.items.extend(item_of_object(only));
                    around = only;
                }
                _ if below.iter().all(|c| c.object_type() == ObjectType::PU) => {
                    self.next += below.len() as u32;
                    break;
                }
                _ => {
                    for child in below {
                        let below = self.build_part(child);
                        part.parts.push(below);
                    }
                    break;
                }
            }
        }
        part.units = first..self.next;
        part
    }

    /// Nodes attached to the object: in line where they are somebody's own, else by
    /// themselves.
    fn attach_memory(&self, object: &TopologyObject, part: &mut OutlinePart) {
        for child in object.memory_children() {
            if child.object_type() != ObjectType::NUMANode {
                part.items.extend(item_of_object(child));
                self.attach_memory(child, part);
                continue;
            }
            let Some(node) = self.tree.nodes.get(child.logical_index()) else {
                continue;
            };
            let item = node_item(node.node.0, Some(node.os), node.bytes);
            if node.units.is_empty() {
                part.parts.push(memory_only_part(item, self.next));
            } else {
                part.items.push(item);
            }
        }
    }
}

fn memory_part_of(object: &TopologyObject, at: u32) -> OutlinePart {
    OutlinePart {
        items: item_of_object(object).into_iter().collect(),
        units: at..at,
        parts: Vec::new(),
    }
}

fn item_of_object(object: &TopologyObject) -> Option<OutlineItem> {
    let what = match object.object_type() {
        ObjectType::Machine => "Machine",
        ObjectType::Package => "Package",
        ObjectType::Die => "Die",
        ObjectType::Group => "Group",
        ObjectType::L5Cache => "L5",
        ObjectType::L4Cache => "L4",
        ObjectType::L3Cache => "L3",
        ObjectType::L2Cache => "L2",
        ObjectType::L1Cache => "L1",
        ObjectType::MemCache => "Memory cache",
        ObjectType::Core => "Core",
        ObjectType::PU => "PU",
        _ => return None,
    };
    let bytes = match object.attributes() {
        Some(ObjectAttributes::Cache(cache)) => cache.size().map_or(0, std::num::NonZeroU64::get),
        _ => 0,
    };
    let os = object.os_index();
    Some(OutlineItem {
        what,
        logical: logical_index(object),
        os: os.map(|os| u32_or_max(Some(os))),
        bytes,
    })
}
