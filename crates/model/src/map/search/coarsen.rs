//! Coarsening: vertices that communicate much with each other become one (heavy-edge matching;
//! Karypis and Kumar, "A fast and high quality multilevel scheme", 1998).
use super::csr_graph::CsrGraph;
use crate::rng::Rng;

/// A graph with vertex weights.
pub struct WeightedGraph {
    pub links: CsrGraph,
    pub weight: Vec<u32>,
}

/// The next coarser graph and the group of each vertex; `None` when it would hardly be
/// smaller.
#[must_use]
pub fn coarsen_once(
    graph: &WeightedGraph,
    heaviest: u32,
    rng: &mut Rng,
) -> Option<(WeightedGraph, Vec<u32>)> {
    let n = graph.weight.len();
    let (group, groups) = heavy_edge_matching(graph, heaviest, rng);
    if groups * 20 > n * 19 {
        return None;
    }
    let mut weight = vec![0; groups];
    for (v, &g) in group.iter().enumerate() {
        weight[g as usize] += graph.weight[v];
    }
    let links = graph.links.contract_groups(&group, groups);
    Some((WeightedGraph { links, weight }, group))
}

const FREE: u32 = u32::MAX;

/// Pairs of vertices, each no heavier than `heaviest`: in random order, every vertex with the
/// free partner that it communicates with most. Vertices left over are paired with others left over
/// at the same partner; otherwise every star would stop the coarsening.
fn heavy_edge_matching(graph: &WeightedGraph, heaviest: u32, rng: &mut Rng) -> (Vec<u32>, usize) {
    let n = graph.weight.len();
    let mut order: Vec<u32> = (0..n as u32).collect();
    rng.shuffle(&mut order);
    let mut group = vec![FREE; n];
    let mut groups = 0;
    let mut alone = vec![FREE; n];
    for &v in &order {
        let v = v as usize;
        if group[v] != FREE {
            continue;
        }
        let fits = |u: usize| graph.weight[u] + graph.weight[v] <= heaviest;
        let mut best = (0, FREE);
        for l in graph.links.neighbours(v) {
            let u = l.to as usize;
            if l.weight > best.0 && group[u] == FREE && fits(u) {
                best = (l.weight, l.to);
            }
        }
        if best.1 == FREE {
            best.1 = two_hop_partner(graph, v, &group, &mut alone)
                .filter(|&u| fits(u as usize))
                .unwrap_or(FREE);
        }
        if best.1 != FREE {
            group[best.1 as usize] = groups;
            group[v] = groups;
            groups += 1;
        }
    }
    for g in group.iter_mut().filter(|g| **g == FREE) {
        *g = groups;
        groups += 1;
    }
    (group, groups as usize)
}

/// Another vertex that found no partner and communicates most with the same vertex as `v` does; if
/// there is none, `v` waits there for the next.
fn two_hop_partner(
    graph: &WeightedGraph,
    v: usize,
    group: &[u32],
    alone: &mut [u32],
) -> Option<u32> {
    let at = graph
        .links
        .neighbours(v)
        .iter()
        .max_by_key(|l| l.weight)?
        .to as usize;
    let waiting = std::mem::replace(&mut alone[at], v as u32);
    (waiting != FREE && group[waiting as usize] == FREE && waiting as usize != v).then_some(waiting)
}
