//! Cutting a set of threads in two with as little communication across as possible, and a
//! given number on the left: multilevel, with the sizes exact at the finest level.
use super::coarsen::{coarsen_once, WeightedGraph};
use super::csr_graph::CsrGraph;
use super::fm_refinement::{FmRefinement, WeightRange};
use crate::rng::Rng;

/// Vertices at which coarsening stops.
const COARSEST_VERTICES: usize = 48;
/// Vertices of which all bisections are looked at.
const EXHAUSTIVE_VERTICES: usize = 8;
/// Starts on the coarsest graph.
const INITIAL_TRIES: usize = 3;

/// Which vertices go left; `tries` times, the best kept. Adds what it did to `steps`.
#[must_use]
pub fn multilevel_bisection(
    links: CsrGraph,
    range: WeightRange,
    tries: usize,
    rng: &mut Rng,
    steps: &mut u64,
) -> Vec<bool> {
    let n = links.len();
    if n <= EXHAUSTIVE_VERTICES {
        *steps += 4 << n;
        return exhaustive_bisection(&links, range);
    }
    let graph = WeightedGraph {
        links,
        weight: vec![1; n],
    };
    let mut best: Option<((u32, i64), Vec<bool>)> = None;
    for _ in 0..tries.max(1) {
        let (left, cut) = bisect_once(&graph, range, rng, steps);
        let weight = left.iter().filter(|l| **l).count() as u32;
        let key = (range.distance_from(weight), cut);
        if best.as_ref().is_none_or(|(k, _)| key < *k) {
            best = Some((key, left));
        }
        if key == (0, 0) {
            break;
        }
    }
    best.map(|(_, left)| left).unwrap_or_default()
}

fn bisect_once(
    graph: &WeightedGraph,
    range: WeightRange,
    rng: &mut Rng,
    steps: &mut u64,
) -> (Vec<bool>, i64) {
    let n = graph.weight.len();
    let small = range
        .low
        .max(range.high.min(n as u32 - range.low.min(n as u32)));
    let heaviest = (n as u32 / 16).min(small / 3).max(2);
    let mut levels: Vec<(WeightedGraph, Vec<u32>)> = Vec::new();
    loop {
        let finest = levels.last().map_or(graph, |l| &l.0);
        if finest.weight.len() <= COARSEST_VERTICES {
            break;
        }
        *steps += (4 * finest.links.link.len() + 24 * finest.weight.len()) as u64;
        match coarsen_once(finest, heaviest, rng) {
            Some(level) => levels.push(level),
            None => break,
        }
    }
    let coarsest = levels.last().map_or(graph, |l| &l.0);
    let (mut left, mut cut) = initial_bisection(coarsest, range, rng, steps);
    while let Some((_, group)) = levels.pop() {
        let finer = levels.last().map_or(graph, |l| &l.0);
        let sides = group.iter().map(|&g| left[g as usize]).collect();
        let (l, c, s) = FmRefinement::new(finer, range, sides).run();
        (left, cut) = (l, c);
        *steps += s;
    }
    (left, cut)
}

/// The best of some grown and refined starts.
fn initial_bisection(
    graph: &WeightedGraph,
    range: WeightRange,
    rng: &mut Rng,
    steps: &mut u64,
) -> (Vec<bool>, i64) {
    let n = graph.weight.len();
    let mut best: Option<((u32, i64), Vec<bool>)> = None;
    let links = |v| {
        graph
            .links
            .neighbours(v)
            .iter()
            .map(|l| l.weight)
            .sum::<i64>()
    };
    let alone: Vec<i64> = (0..n).map(|v| -links(v)).collect();
    for _ in 0..INITIAL_TRIES.min(n) {
        let grown = greedy_graph_growing(graph, range, alone.clone(), rng);
        let (left, cut, s) = FmRefinement::new(graph, range, grown).run();
        *steps += s + (graph.links.link.len() + n * n / 4) as u64;
        let weights = left.iter().zip(&graph.weight);
        let weight = weights.filter(|(l, _)| **l).map(|(_, w)| *w).sum();
        let key = (range.distance_from(weight), cut);
        if best.as_ref().is_none_or(|(k, _)| key < *k) {
            best = Some((key, left));
        }
    }
    best.map_or_else(|| (vec![false; n], 0), |(key, left)| (left, key.1))
}

/// A left side grown from a random vertex, each time by the vertex with most links into it
/// and fewest out of it. `gain` is minus each vertex' links.
fn greedy_graph_growing(
    graph: &WeightedGraph,
    range: WeightRange,
    mut gain: Vec<i64>,
    rng: &mut Rng,
) -> Vec<bool> {
    let n = graph.weight.len();
    let target = (range.low + range.high).div_ceil(2);
    let mut left = vec![false; n];
    let mut outside: Vec<u32> = (0..n as u32).collect();
    let mut weight = 0;
    let mut next = Some(rng.below(n));
    while let Some(at) = next.filter(|_| weight < target) {
        let v = outside.swap_remove(at) as usize;
        left[v] = true;
        weight += graph.weight[v];
        for l in graph.links.neighbours(v) {
            gain[l.to as usize] += 2 * l.weight;
        }
        let fits = |at: &usize| weight + graph.weight[outside[*at] as usize] <= range.high;
        let places = (0..outside.len()).filter(fits);
        next = places.max_by_key(|&at| gain[outside[at] as usize]);
    }
    left
}

/// The best of all bisections, each made from the one before by one vertex (a Gray code).
fn exhaustive_bisection(links: &CsrGraph, range: WeightRange) -> Vec<bool> {
    let n = links.len();
    let mut weight = [[0; EXHAUSTIVE_VERTICES]; EXHAUSTIVE_VERTICES];
    for (v, row) in weight.iter_mut().enumerate().take(n) {
        for l in links.neighbours(v) {
            row[l.to as usize] = l.weight;
        }
    }
    // +1 for a vertex that is left, -1 for one that is not.
    let mut side = [-1i64; EXHAUSTIVE_VERTICES];
    let (mut cut, mut size) = (0, 0);
    let mut best = (range.distance_from(0), 0, side);
    for step in 1..1u32 << n {
        let v = step.trailing_zeros() as usize;
        let same: i64 = weight[v].iter().zip(&side).map(|(w, s)| w * s).sum();
        cut += same * side[v];
        side[v] = -side[v];
        size = if side[v] > 0 { size + 1 } else { size - 1 };
        if (range.distance_from(size), cut) < (best.0, best.1) {
            best = (range.distance_from(size), cut, side);
        }
    }
    best.2[..n].iter().map(|&s| s > 0).collect()
}
