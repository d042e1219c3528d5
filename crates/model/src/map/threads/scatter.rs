//! Places consecutive threads far from one another: over nodes first, then packages, caches and
//! cores, and over siblings when every core has a thread. The opposite of compact (Locality and
//! Balance, section 4; `OMP_PROC_BIND=spread`, likwid's scatter). Communication plays no part.
use super::slots::{check_fit, smt_ranks};
use super::ThreadPolicy;
use crate::map::{PuAssignment, ThreadProblem};
use crate::topology::TopologyTree;

pub struct ScatterPolicy;

impl ThreadPolicy for ScatterPolicy {
    fn name(&self) -> &'static str {
        "scatter"
    }

    fn about(&self) -> &'static str {
        "next thread on another node, package, cache, core; siblings last (likwid's scatter)"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let (threads, rank) = (check_fit(problem)?, smt_ranks(problem.tree));
        let last = rank.iter().max().map_or(0, |r| r + 1);
        let order: Vec<u32> = (0..last)
            .flat_map(|round| scattered_units(problem.tree, 0, &|at| rank[at as usize] == round))
            .collect();
        Ok(order.iter().copied().cycle().take(threads).collect())
    }
}

/// The units below a vertex that are `wanted`, one of each child in turn.
fn scattered_units(tree: &TopologyTree, vertex: u32, wanted: &impl Fn(u32) -> bool) -> Vec<u32> {
    let vertex = &tree.vertices[vertex as usize];
    if vertex.children.is_empty() {
        return vertex.units.clone().filter(|at| wanted(*at)).collect();
    }
    let children = vertex.children.iter();
    let below: Vec<Vec<u32>> = children
        .map(|v| scattered_units(tree, *v, wanted))
        .collect();
    let longest = below.iter().map(Vec::len).max().unwrap_or(0);
    let turn = |n: usize| below.iter().filter_map(move |units| units.get(n).copied());
    (0..longest).flat_map(turn).collect()
}
