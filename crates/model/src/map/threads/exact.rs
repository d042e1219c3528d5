//! The best placement there is, by branch and bound, for a few threads: the yardstick for the
//! others. Threads are placed one by one, those that communicate most first; a branch ends
//! when what is placed, plus the least that the rest can cost, is no better than the best
//! known. Empty subtrees of one shape below the same vertex are the same to a thread, so
//! only the first is tried.
use super::locality::LocalityPolicy;
use super::ThreadPolicy;
use crate::map::search::csr_graph::CsrGraph;
use crate::map::search::search_space::{SearchSpace, NO_VERTEX};
use crate::map::search::subtrees::shape_numbers;
use crate::map::{PuAssignment, ThreadProblem};

/// The policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactPolicy;

/// Most threads it takes.
pub const MAX_EXACT_THREADS: usize = 10;
/// Placements of a thread that it tries before it gives up: some seconds.
const MAX_BRANCHES: u64 = 100_000_000;

impl ThreadPolicy for ExactPolicy {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn about(&self) -> &'static str {
        "the optimum, by branch and bound, for at most 10 threads"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let threads = problem.comm.threads();
        if threads > MAX_EXACT_THREADS {
            return Err(format!(
                "it takes at most {MAX_EXACT_THREADS} threads and there are {threads}: use --policy locality"
            ));
        }
        let room = problem.unit_capacities();
        let space =
            SearchSpace::new(problem, &room).ok_or("there is no processing unit to map to")?;
        let links = CsrGraph::new(problem.comm, problem.cost.largest());
        let known = LocalityPolicy { fast: true }.place(problem)?;
        let anchor_of = space.anchor_of_units(problem.tree.units.len());
        let known: Vec<u32> = known.iter().map(|&u| anchor_of[u as usize]).collect();
        let mut search = BranchAndBound::new(&space, &links, known);
        search.branch(0, 0);
        if search.tries >= MAX_BRANCHES {
            return Err(
                "this machine has too many different places for it: use --policy locality".into(),
            );
        }
        Ok(space.units(&search.best, problem.current))
    }
}

struct BranchAndBound<'a> {
    space: &'a SearchSpace,
    links: &'a CsrGraph,
    /// Threads, the one that communicates most first.
    order: Vec<u32>,
    kind: Vec<u32>,
    anchors: Vec<u32>,
    at: Vec<u32>,
    /// Threads below each vertex.
    below: Vec<u32>,
    /// Threads at each anchor itself.
    here: Vec<u32>,
    /// The smallest distance of two threads.
    nearest: i64,
    best: Vec<u32>,
    best_value: i64,
    tries: u64,
}

impl<'a> BranchAndBound<'a> {
    fn new(space: &'a SearchSpace, links: &'a CsrGraph, known: Vec<u32>) -> BranchAndBound<'a> {
        let n = links.len();
        let weight =
            |t: &u32| -> i64 { links.neighbours(*t as usize).iter().map(|l| l.weight).sum() };
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|t| std::cmp::Reverse(weight(t)));
        let anchors: Vec<u32> = (0..space.len() as u32)
            .filter(|&h| space.vertex[h as usize].room > 0)
            .collect();
        let vertices = space.vertex.iter();
        let nearest = vertices.filter(|v| v.capacity > 1).map(|v| v.cost);
        let cells = space.cells.len();
        let far = space.top.iter().enumerate();
        let far = far.filter(|(at, _)| at / cells != at % cells);
        let far = far.map(|(_, distance)| *distance);
        let mut search = BranchAndBound {
            space,
            links,
            order,
            kind: shape_numbers(space),
            anchors,
            at: known,
            below: vec![0; space.len()],
            here: vec![0; space.len()],
            nearest: nearest.chain(far).min().unwrap_or(0),
            best: Vec::new(),
            best_value: 0,
            tries: 0,
        };
        let costs = (0..n).map(|t| search.cost(t, search.at[t] as usize));
        search.best_value = costs.sum::<i64>() / 2;
        search.best.clone_from(&search.at);
        search.at.fill(NO_VERTEX);
        search
    }

    /// Cost of a thread at an anchor towards those that are placed.
    fn cost(&self, t: usize, h: usize) -> i64 {
        let placed = self.links.neighbours(t).iter();
        placed
            .filter(|l| self.at[l.to as usize] != NO_VERTEX)
            .map(|l| l.weight * self.space.distance(h, self.at[l.to as usize] as usize))
            .sum()
    }

    fn branch(&mut self, depth: usize, value: i64) {
        let Some(&t) = self.order.get(depth) else {
            if value < self.best_value {
                self.best_value = value;
                self.best.clone_from(&self.at);
            }
            return;
        };
        let mut options: Vec<(i64, u32)> = Vec::new();
        for &h in &self.anchors {
            if self.here[h as usize] < self.space.vertex[h as usize].room && self.is_canonical(h) {
                options.push((self.cost(t as usize, h as usize), h));
            }
        }
        options.sort_unstable();
        for (cost, h) in options {
            self.tries += 1;
            if self.tries >= MAX_BRANCHES {
                return;
            }
            self.place_thread(t, h, 1);
            if value + cost + self.lower_bound(depth + 1) < self.best_value {
                self.branch(depth + 1, value + cost);
            }
            self.place_thread(t, h, u32::MAX);
        }
    }

    fn place_thread(&mut self, t: u32, h: u32, add: u32) {
        self.at[t as usize] = if add == 1 { h } else { NO_VERTEX };
        self.here[h as usize] = self.here[h as usize].wrapping_add(add);
        let mut v = h as usize;
        loop {
            self.below[v] = self.below[v].wrapping_add(add);
            let parent = self.space.vertex[v].parent as usize;
            if parent == v {
                return;
            }
            v = parent;
        }
    }

    /// The least that threads from `depth` on add: their best anchors, one by one, and the
    /// smallest distance among themselves.
    fn lower_bound(&self, depth: usize) -> i64 {
        let mut sum = 0;
        for &t in &self.order[depth..] {
            let t = t as usize;
            let open = self.anchors.iter().map(|&h| h as usize);
            let open = open.filter(|&h| self.here[h] < self.space.vertex[h].room);
            sum += open.map(|h| self.cost(t, h)).min().unwrap_or(0);
            let rest = self.links.neighbours(t).iter();
            let rest = rest.filter(|l| l.to as usize > t && self.at[l.to as usize] == NO_VERTEX);
            sum += rest.map(|l| l.weight * self.nearest).sum::<i64>();
        }
        sum
    }

    /// Whether no other anchor is the same to a thread and comes before this one.
    fn is_canonical(&self, anchor: u32) -> bool {
        let mut v = anchor as usize;
        loop {
            let vertex = &self.space.vertex[v];
            let parent = vertex.parent as usize;
            if parent == v || self.space.vertex[parent].cell == NO_VERTEX {
                return true;
            }
            let same = |&s: &u32| {
                let s = s as usize;
                s < v && self.below[s] == 0 && self.kind[s] == self.kind[v]
            };
            if self.below[v] == 0 && self.space.vertex[parent].children.iter().any(same) {
                return false;
            }
            v = parent;
        }
    }
}

#[cfg(test)]
mod tests;
