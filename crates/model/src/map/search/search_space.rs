//! Where threads can go, as the search sees it.
//!
//! Units below the same vertex, at the same distance from one another, are interchangeable:
//! a thread is placed at an *anchor*, the lowest vertex above several units that it may use, and
//! gets one of its units in the end. Vertices are numbered depth first, so a subtree is a
//! range. Distances follow the tree, except between *cells*, the largest vertices whose units
//! are alike to all others: of one NUMA node, when the cost has a matrix for nodes, and of one
//! depth, when hops are counted in a tree of several:
//!
//! ```text
//!   d(h, k) = top[cell h][cell k]             if the cells differ
//!             cost of the lowest common vertex  else
//! ```
use crate::map::{PuAssignment, ThreadProblem};
use crate::topology::TopologyTree;

/// No cell: a vertex above cells.
pub const NO_VERTEX: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub struct SearchVertex {
    /// Itself for the root.
    pub parent: u32,
    /// Vertices below, without units.
    pub children: Vec<u32>,
    /// Units that belong to this vertex alone, each with its capacity.
    pub units: Vec<(u32, u32)>,
    /// Threads that those units take.
    pub room: u32,
    /// Threads that all units below take.
    pub capacity: u32,
    /// One past the last vertex of the subtree.
    pub end: u32,
    pub depth: u32,
    /// Distance of two units whose lowest common vertex this is; above cells, of one such pair.
    pub cost: i64,
    pub cell: u32,
}

#[derive(Debug, Default)]
pub struct SearchSpace {
    pub vertex: Vec<SearchVertex>,
    /// The vertex of each cell.
    pub cells: Vec<u32>,
    /// cells x cells.
    pub top: Vec<i64>,
    /// Path from the root, a field of bits per depth; empty if that takes more than 64 bits,
    /// which only a tree without any regularity does.
    code: Vec<u64>,
    /// The depth of the field in which two codes differ first, by leading zeros.
    depth_of: Vec<u8>,
    /// depths x vertices: cost of a vertex' ancestor.
    up: Vec<i64>,
}

impl SearchSpace {
    /// The space of the units with `room`. `None` when there is none.
    #[must_use]
    pub fn new(problem: &ThreadProblem, room: &[u32]) -> Option<SearchSpace> {
        let mut space = SearchSpace::default();
        let build = SearchSpaceBuilder::new(problem, room);
        build.add_subtree(&mut space, 0, None)?;
        space.sum_capacities();
        space.make_cells(problem);
        space.make_codes();
        Some(space)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.vertex.len()
    }

    /// Distance of threads at two anchors; of two at the same, its cost.
    #[inline]
    #[must_use]
    pub fn distance(&self, h: usize, k: usize) -> i64 {
        if self.cells.len() > 1 {
            let (ch, ck) = (self.vertex[h].cell as usize, self.vertex[k].cell as usize);
            if ch != ck {
                return self.top[ch * self.cells.len() + ck];
            }
        }
        if self.code.is_empty() {
            return self.distance_by_walk(h, k);
        }
        let depth = self.depth_of[(self.code[h] ^ self.code[k]).leading_zeros() as usize];
        self.up[usize::from(depth) * self.vertex.len() + h]
    }

    fn distance_by_walk(&self, h: usize, k: usize) -> i64 {
        let (mut h, mut k) = (h, k);
        while h != k {
            // Parents come before their children, so the later one is no ancestor.
            let later = if h > k { &mut h } else { &mut k };
            *later = self.vertex[*later].parent as usize;
        }
        self.vertex[h].cost
    }

    /// Distance to the parent's cost: what a pair saves by meeting here.
    #[must_use]
    pub fn distance_step(&self, v: usize) -> i64 {
        self.vertex[self.vertex[v].parent as usize].cost - self.vertex[v].cost
    }

    /// Whether children of a vertex differ in distances or places, so that it matters which of them has which part.
    #[must_use]
    pub fn is_irregular(&self) -> bool {
        let shape = |&c: &u32| {
            (
                self.vertex[c as usize].cost,
                self.vertex[c as usize].capacity,
            )
        };
        self.vertex.iter().any(|v| {
            let mut shapes = v.children.iter().map(shape);
            let first = shapes.next();
            shapes.any(|other| Some(other) != first)
        })
    }

    fn sum_capacities(&mut self) {
        for v in (0..self.vertex.len()).rev() {
            let below: u32 = self.vertex[v]
                .children
                .iter()
                .map(|&c| self.vertex[c as usize].capacity)
                .sum();
            self.vertex[v].room = self.vertex[v].units.iter().map(|u| u.1).sum();
            self.vertex[v].capacity = below + self.vertex[v].room;
            let last = self.vertex[v].children.last();
            self.vertex[v].end = last.map_or(v as u32 + 1, |&c| self.vertex[c as usize].end);
        }
    }

    fn make_cells(&mut self, problem: &ThreadProblem) {
        let (tree, cost) = (problem.tree, problem.cost);
        let some_unit = |space: &SearchSpace, v: usize| {
            let range = v..space.vertex[v].end as usize;
            let mut units = range.flat_map(|w| space.vertex[w].units.iter());
            units.next().map_or(0, |u| u.0 as usize)
        };
        let mut at = 0;
        while at < self.vertex.len() {
            if !self.has_units_alike(problem, at) {
                self.vertex[at].cell = NO_VERTEX;
                at += 1;
                continue;
            }
            let end = self.vertex[at].end as usize;
            for v in at..end {
                self.vertex[v].cell = self.cells.len() as u32;
            }
            self.cells.push(at as u32);
            at = end;
        }
        for &a in &self.cells {
            for &b in &self.cells {
                let far = cost.distance(
                    tree,
                    some_unit(self, a as usize),
                    some_unit(self, b as usize),
                );
                let near = self.vertex[a as usize].cost;
                let d = if a == b { near } else { i64::from(far) };
                self.top.push(d);
            }
        }
    }

    fn has_units_alike(&self, problem: &ThreadProblem, v: usize) -> bool {
        let range = v..self.vertex[v].end as usize;
        let units = range.flat_map(|w| self.vertex[w].units.iter().map(|u| u.0));
        are_alike(problem, units)
    }

    fn make_codes(&mut self) {
        let depths = self.vertex.iter().map(|v| v.depth).max().unwrap_or(0) as usize + 1;
        let mut most = vec![0usize; depths];
        for v in &self.vertex {
            most[v.depth as usize] = most[v.depth as usize].max(v.children.len());
        }
        // Children count from 1: 0 in a field stands for the vertex itself.
        let bits = |children: usize| usize::BITS - children.leading_zeros();
        if most.iter().map(|&m| bits(m)).sum::<u32>() > 64 {
            return;
        }
        self.depth_of = vec![depths as u8; 65];
        let mut shift = 64;
        let mut shifts = Vec::new();
        for (depth, &children) in most.iter().enumerate() {
            for bit in 0..bits(children) {
                self.depth_of[(64 - shift + bit) as usize] = depth as u8;
            }
            shift -= bits(children);
            shifts.push(shift);
        }
        let n = self.vertex.len();
        self.code = vec![0; n];
        self.up = vec![0; (depths + 1) * n];
        for v in 0..n {
            let at = self.vertex[v].depth as usize;
            for (i, &c) in (1u64..).zip(&self.vertex[v].children) {
                self.code[c as usize] = self.code[v] | i << shifts[at];
            }
            let parent = self.vertex[v].parent as usize;
            for depth in 0..at {
                self.up[depth * n + v] = self.up[depth * n + parent];
            }
            self.up[at * n + v] = self.vertex[v].cost;
            self.up[depths * n + v] = self.vertex[v].cost;
        }
    }

    /// The anchor of each unit, [`NO_VERTEX`] for units that may not be used.
    #[must_use]
    pub fn anchor_of_units(&self, units: usize) -> Vec<u32> {
        let mut anchor = vec![NO_VERTEX; units];
        for (h, v) in self.vertex.iter().enumerate() {
            for &(unit, _) in &v.units {
                anchor[unit as usize] = h as u32;
            }
        }
        anchor
    }

    /// A unit for each thread at its anchor: the one it had where that is possible, else the
    /// first that is free.
    #[must_use]
    pub fn units(&self, anchors: &[u32], current: Option<&[u32]>) -> PuAssignment {
        let units = self.vertex.iter().flat_map(|v| &v.units);
        let most = units.map(|u| u.0 + 1).max().unwrap_or(0) as usize;
        let anchor_of = self.anchor_of_units(most);
        let mut free = vec![0u32; most];
        for v in &self.vertex {
            for &(unit, capacity) in &v.units {
                free[unit as usize] = capacity;
            }
        }
        let mut result = vec![NO_VERTEX; anchors.len()];
        for (t, &anchor) in anchors.iter().enumerate() {
            let had = current.and_then(|c| c.get(t)).copied().unwrap_or(NO_VERTEX) as usize;
            if had < most && anchor_of[had] == anchor && free[had] > 0 {
                free[had] -= 1;
                result[t] = had as u32;
            }
        }
        let mut next = vec![0usize; self.vertex.len()];
        for (t, &anchor) in anchors.iter().enumerate() {
            let units = &self.vertex[anchor as usize].units;
            while result[t] == NO_VERTEX {
                let unit = units[next[anchor as usize]].0;
                if free[unit as usize] > 0 {
                    free[unit as usize] -= 1;
                    result[t] = unit;
                } else {
                    next[anchor as usize] += 1;
                }
            }
        }
        result
    }
}

struct SearchSpaceBuilder<'a> {
    tree: &'a TopologyTree,
    room: &'a [u32],
    problem: &'a ThreadProblem<'a>,
    /// Units with room before each unit.
    before: Vec<u32>,
}

impl<'a> SearchSpaceBuilder<'a> {
    fn new(problem: &'a ThreadProblem<'a>, room: &'a [u32]) -> Self {
        let mut before = vec![0];
        for &r in room {
            before.push(before[before.len() - 1] + u32::from(r > 0));
        }
        SearchSpaceBuilder {
            tree: problem.tree,
            room,
            problem,
            before,
        }
    }

    fn usable_units(&self, v: u32) -> u32 {
        let units = &self.tree.vertices[v as usize].units;
        self.before[units.end as usize] - self.before[units.start as usize]
    }

    /// Adds what lies below `v` of the tree, vertices with one usable child left out.
    fn add_subtree(&self, space: &mut SearchSpace, v: u32, parent: Option<u32>) -> Option<()> {
        let mut v = v;
        let children = loop {
            let below = &self.tree.vertices[v as usize].children;
            let usable: Vec<u32> = below
                .iter()
                .copied()
                .filter(|&c| self.usable_units(c) > 0)
                .collect();
            match usable[..] {
                [only] => v = only,
                _ => break usable,
            }
        };
        if children.is_empty() {
            return self.leaf(space, v, parent);
        }
        let (tree, cost) = (self.tree, self.problem.cost);
        let first = |child: u32| self.units_with_room(child).next().unwrap_or(0) as usize;
        let apart = cost.distance(tree, first(children[0]), first(children[1]));
        let me = push_vertex(space, parent, i64::from(apart));
        let mixed = !are_alike(self.problem, self.units_with_room(v));
        for child in children {
            let leaf = self.usable_units(child) == 1 && !mixed;
            let below = if leaf {
                self.single_unit_below(child)
            } else {
                None
            };
            match below {
                Some(unit) => space.vertex[me as usize].units.push((unit, 1)),
                None => self.add_subtree(space, child, Some(me))?,
            }
        }
        Some(())
    }

    fn units_with_room(&self, v: u32) -> impl Iterator<Item = u32> + '_ {
        let units = self.tree.vertices[v as usize].units.clone();
        units.filter(|&u| self.room[u as usize] > 0)
    }

    /// The only usable unit below `v`, if one thread can use it: it is as near to its parent's
    /// other units as they are to it.
    fn single_unit_below(&self, v: u32) -> Option<u32> {
        self.units_with_room(v)
            .find(|&u| self.room[u as usize] == 1)
    }

    /// A unit that is an anchor by itself.
    fn leaf(&self, space: &mut SearchSpace, v: u32, parent: Option<u32>) -> Option<()> {
        let unit = self.units_with_room(v).next()?;
        let anchor = push_vertex(space, parent, 0);
        space.vertex[anchor as usize]
            .units
            .push((unit, self.room[unit as usize]));
        Some(())
    }
}

/// Whether distances among the units, and to all others, follow the tree.
fn are_alike(problem: &ThreadProblem, mut units: impl Iterator<Item = u32>) -> bool {
    let Some(first) = units.next() else {
        return true;
    };
    units.all(|u| {
        let (first, other) = (first as usize, u as usize);
        problem.cost.alike(problem.tree, first, other)
    })
}

fn push_vertex(space: &mut SearchSpace, parent: Option<u32>, cost: i64) -> u32 {
    let me = space.vertex.len() as u32;
    let depth = parent.map_or(0, |p| space.vertex[p as usize].depth + 1);
    if let Some(parent) = parent {
        space.vertex[parent as usize].children.push(me);
    }
    space.vertex.push(SearchVertex {
        parent: parent.unwrap_or(me),
        depth,
        cost,
        ..SearchVertex::default()
    });
    me
}
