//! The groups a machine wants, from the leaves to the root, and how a policy that puts
//! threads together level by level fills them.
//!
//! A leaf of the shape is a slot of a unit, every other part is a cache or node with at
//! least two occupied parts. Parts of the same class can take one another's threads:
//!
//!   root      of two nodes            class 4 = \[2, 3\]
//!   |- node   of two cores            class 2 = \[1, 1\]
//!   |  |- core, both siblings used    class 1 = \[0, 0\]
//!   |  |  |- slot                     class 0
//!   ...
//!   |- node   of one core and one with a sibling less   class 3 = \[0, 1\]
//!
//! On a symmetric machine classes are levels. On any other, classes are what keeps a group
//! of three from a cache with two units. Two slots of a core and two cores of a node with a
//! slot each are different classes: they are as large, but not as close.
use crate::map::{CommGraph, PuAssignment};
use crate::topology::TopologyTree;
use std::collections::BTreeMap;

/// Number of parts in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupArity {
    /// As many as the machine has children.
    OfMachine,
    /// Two: pairs, pairs of pairs, and so on.
    Two,
}

struct ShapePart {
    class: usize,
    /// Of a slot.
    unit: Option<u32>,
    parts: Vec<usize>,
}

struct PartClass {
    /// Classes of the parts, ascending.
    parts: Vec<usize>,
    slots: usize,
    /// Of the vertex whose parts are joined, above its lowest unit.
    height: u32,
}

/// The groups that a machine wants when its units take given numbers of threads.
pub struct GroupingShape {
    parts: Vec<ShapePart>,
    classes: Vec<PartClass>,
    known: BTreeMap<(u32, Vec<usize>), usize>,
    /// `None` without threads.
    root: Option<usize>,
}

/// Groups of one class that are to be formed.
pub struct GroupingStage<'a> {
    /// Communication of the elements there are now: threads, and groups formed before.
    pub comm: &'a CommGraph,
    pub class: &'a [usize],
    /// Threads in each element.
    pub members: &'a [Vec<u32>],
    /// Classes of a group's elements, ascending.
    pub parts: &'a [usize],
    /// Threads of a group.
    pub slots: usize,
    /// How many groups; there are elements enough.
    pub groups: usize,
}

/// Elements of each group, positions in `GroupingStage::comm`; disjoint, of the classes asked for.
pub type ElementGroups = Vec<Vec<usize>>;

impl GroupingShape {
    /// `slots`: threads of each unit.
    pub fn new(tree: &TopologyTree, slots: &[u32], arity: GroupArity) -> GroupingShape {
        let slot = PartClass {
            parts: Vec::new(),
            slots: 1,
            height: 0,
        };
        let mut shape = GroupingShape {
            parts: Vec::new(),
            classes: vec![slot],
            known: BTreeMap::new(),
            root: None,
        };
        shape.root = shape.build_part(tree, 0, slots, arity).0;
        shape
    }

    /// The part that holds the slots below a vertex, if there are any, and its height.
    fn build_part(
        &mut self,
        tree: &TopologyTree,
        at: u32,
        slots: &[u32],
        arity: GroupArity,
    ) -> (Option<usize>, u32) {
        let vertex = &tree.vertices[at as usize];
        let (mut parts, mut height) = (Vec::new(), 0);
        if vertex.children.is_empty() {
            let unit = vertex.units.start;
            for _ in 0..slots[unit as usize] {
                parts.push(self.slot(unit));
            }
        }
        for &child in &vertex.children {
            let (part, below) = self.build_part(tree, child, slots, arity);
            parts.extend(part);
            height = height.max(below + 1);
        }
        while arity == GroupArity::Two && parts.len() > 2 {
            parts = self.join_in_pairs(parts, height);
        }
        let part = match parts[..] {
            [] => None,
            [only] => Some(only),
            _ => Some(self.join(parts, height)),
        };
        (part, height)
    }

    fn slot(&mut self, unit: u32) -> usize {
        self.parts.push(ShapePart {
            class: 0,
            unit: Some(unit),
            parts: Vec::new(),
        });
        self.parts.len() - 1
    }

    fn join(&mut self, parts: Vec<usize>, height: u32) -> usize {
        let mut classes: Vec<usize> = parts.iter().map(|&p| self.parts[p].class).collect();
        classes.sort_unstable();
        let key = (height, classes.clone());
        let class = self.known.get(&key).copied().unwrap_or_else(|| {
            let of = |c: &usize| &self.classes[*c];
            let class = PartClass {
                slots: classes.iter().map(|c| of(c).slots).sum(),
                height,
                parts: classes,
            };
            self.classes.push(class);
            self.known.insert(key, self.classes.len() - 1);
            self.classes.len() - 1
        });
        self.parts.push(ShapePart {
            class,
            unit: None,
            parts,
        });
        self.parts.len() - 1
    }

    /// Joins parts of one class in pairs; where all differ, the first two.
    fn join_in_pairs(&mut self, mut parts: Vec<usize>, height: u32) -> Vec<usize> {
        parts.sort_by_key(|&p| self.parts[p].class);
        let differ = |pair: &[usize]| self.parts[pair[0]].class != self.parts[pair[1]].class;
        let mut any = parts.windows(2).all(differ);
        let mut halved = Vec::new();
        let mut rest = parts.into_iter().peekable();
        while let Some(part) = rest.next() {
            let class = self.parts[part].class;
            match rest.next_if(|&next| any || self.parts[next].class == class) {
                Some(next) => halved.push(self.join(vec![part, next], height)),
                None => halved.push(part),
            }
            any = false;
        }
        halved
    }

    /// The units of the threads that `comm` is about, when `group` forms the groups of each
    /// class in turn, the closest first.
    pub fn assign_units(
        &self,
        comm: &CommGraph,
        group: impl Fn(&GroupingStage) -> ElementGroups,
    ) -> PuAssignment {
        let mut wanted = vec![0; self.classes.len()];
        for part in &self.parts {
            wanted[part.class] += 1;
        }
        let mut order: Vec<usize> = (1..self.classes.len()).collect();
        // A class is numbered after those of its parts, which are no higher.
        order.sort_by_key(|&class| (self.classes[class].height, class));
        let mut pool = ElementPool::new(comm.clone());
        for class in order {
            let groups = group(&GroupingStage {
                comm: &pool.comm,
                class: &pool.class,
                members: &pool.members,
                parts: &self.classes[class].parts,
                slots: self.classes[class].slots,
                groups: wanted[class],
            });
            pool.replace_by_groups(groups, class);
        }
        let mut units = vec![0; comm.threads()];
        if let Some(root) = self.root {
            self.slot_group(root, pool.element[0], &pool, &mut units);
        }
        units
    }

    fn slot_group(&self, part: usize, group: usize, pool: &ElementPool, units: &mut [u32]) {
        let part = &self.parts[part];
        if let Some(unit) = part.unit {
            units[group] = unit;
            return;
        }
        let mut left = pool.formed[group].1.clone();
        for &below in &part.parts {
            let fits = |g: &usize| pool.formed[*g].0 == self.parts[below].class;
            if let Some(at) = left.iter().position(fits) {
                self.slot_group(below, left.remove(at), pool, units);
            }
        }
    }
}

/// What there is to form groups of.
struct ElementPool {
    comm: CommGraph,
    class: Vec<usize>,
    members: Vec<Vec<u32>>,
    /// Position in `formed`.
    element: Vec<usize>,
    /// Class and elements of every group ever formed; the threads come first.
    formed: Vec<(usize, Vec<usize>)>,
}

impl ElementPool {
    fn new(comm: CommGraph) -> ElementPool {
        let threads = comm.threads();
        ElementPool {
            class: vec![0; threads],
            members: (0..threads as u32).map(|thread| vec![thread]).collect(),
            element: (0..threads).collect(),
            formed: vec![(0, Vec::new()); threads],
            comm,
        }
    }

    /// Puts groups in the place of their elements, before what is still single.
    fn replace_by_groups(&mut self, groups: ElementGroups, class: usize) {
        let mut now = ElementPool {
            comm: CommGraph::default(),
            class: vec![class; groups.len()],
            members: Vec::new(),
            element: Vec::new(),
            formed: std::mem::take(&mut self.formed),
        };
        let mut place = vec![u32::MAX; self.class.len()];
        for (members, at) in groups.into_iter().zip(0..) {
            for &member in &members {
                place[member] = at;
            }
            let threads = members.iter().flat_map(|m| self.members[*m].clone());
            now.members.push(threads.collect());
            now.element.push(now.formed.len());
            let elements = members.iter().map(|m| self.element[*m]);
            now.formed.push((class, elements.collect()));
        }
        for (single, place) in place.iter_mut().enumerate() {
            if *place == u32::MAX {
                *place = now.class.len() as u32;
                now.class.push(self.class[single]);
                now.members.push(std::mem::take(&mut self.members[single]));
                now.element.push(self.element[single]);
            }
        }
        now.comm = contract_graph(&self.comm, &place, now.class.len());
        *self = now;
    }
}

/// Communication of groups: the sum over their members (SPCD eq. 1). `group`: of each thread or
/// group that `comm` is about.
pub fn contract_graph(comm: &CommGraph, group: &[u32], groups: usize) -> CommGraph {
    let mut members = vec![Vec::new(); groups];
    for (member, &of) in group.iter().enumerate() {
        members[of as usize].push(member);
    }
    // Summed row by row, which is faster than sorting all pairs of members.
    let (mut sum, mut partners, mut pairs) = (vec![0u64; groups], Vec::new(), Vec::new());
    for (members, of) in members.iter().zip(0u32..) {
        let rows = members.iter().flat_map(|&member| comm.neighbours(member));
        for (partner, events) in rows.filter(|(partner, _)| group[*partner] > of) {
            let with = group[partner];
            if sum[with as usize] == 0 {
                partners.push(with);
            }
            sum[with as usize] = sum[with as usize].saturating_add(events);
        }
        let row = partners.drain(..);
        pairs.extend(row.map(|with| (of, with, std::mem::take(&mut sum[with as usize]))));
    }
    CommGraph::new(groups, pairs)
}
