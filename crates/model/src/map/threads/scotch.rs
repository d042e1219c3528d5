//! Dual recursive bipartitioning by libscotch (Pellegrini and Roman, 1996), which OPT and
//! kMAF use to map threads. The graph has the threads alone, as the papers hand it over, so that fewer
//! threads than places are spread as libscotch spreads them. It balances loads only about: of threads on one
//! place all but the first go to the nearest that is free.
use super::ThreadPolicy;
use crate::map::search::search_space::SearchSpace;
use crate::map::{CommGraph, PuAssignment, ThreadProblem};
use hither_scotch::{map_graph, ScotchArch, ScotchGraph};
use std::fmt::Write;

/// The policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScotchPolicy;

/// Sums of weight times distance stay below this, libscotch's numbers having 32 bits.
const LIMIT: u128 = 1 << 30;
/// Most places of an irregular machine: libscotch keeps a table of domains x domains.
const MAX_PLACES: usize = 1024;

impl ThreadPolicy for ScotchPolicy {
    fn name(&self) -> &'static str {
        "scotch"
    }

    fn about(&self) -> &'static str {
        "dual recursive bipartitioning by libscotch, as OPT and kMAF use it"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let room = problem.unit_capacities();
        let space =
            SearchSpace::new(problem, &room).ok_or("there is no processing unit to map to")?;
        if problem.comm.threads() == 0 {
            return Ok(Vec::new());
        }
        let places = anchor_of_places(&space);
        if places.len() == 1 {
            return Ok(space.units(&[places[0]], problem.current));
        }
        let target = target_architecture(&space, &places)?;
        let source = source_graph(problem.comm, problem.cost.largest());
        let result = map_graph(&source, &target);
        let result = result.ok_or("libscotch cannot map this: use --policy locality")?;
        let anchors = resolve_conflicts(&result, &places, &space);
        Ok(space.units(&anchors, problem.current))
    }
}

/// The anchor of each place, depth first.
fn anchor_of_places(space: &SearchSpace) -> Vec<u32> {
    let anchors = (0..).zip(&space.vertex);
    anchors
        .flat_map(|(h, v)| std::iter::repeat_n(h, v.room as usize))
        .collect()
}

fn target_architecture(space: &SearchSpace, places: &[u32]) -> Result<ScotchArch, String> {
    if let Some((sizes, distances)) = tree_leaf_levels(space) {
        return Ok(ScotchArch::Tleaf { sizes, distances });
    }
    if places.len() > MAX_PLACES {
        return Err(format!(
            "libscotch takes irregular machines of at most {MAX_PLACES} places, this one has {}: use --policy locality",
            places.len()
        ));
    }
    Ok(ScotchArch::ArchFile(architecture_file(space, places)))
}

/// Children and distance per depth, if vertices of one depth are alike and distances follow
/// the tree.
fn tree_leaf_levels(space: &SearchSpace) -> Option<(Vec<i32>, Vec<i32>)> {
    let depths = space.vertex.iter().map(|v| v.depth).max()? as usize + 1;
    let mut levels: Vec<Option<(i32, i32)>> = vec![None; depths];
    for v in &space.vertex {
        let size = v.children.len() + v.room as usize;
        let here = (size as i32, v.cost as i32);
        let last = v.depth as usize + 1 == depths;
        let level = levels[v.depth as usize].get_or_insert(here);
        if *level != here || last != v.children.is_empty() || last != (v.room > 0) {
            return None;
        }
    }
    if space.cells.len() > 1 {
        return None;
    }
    Some(levels.into_iter().flatten().unzip())
}

/// An architecture file: places with the numbers of their domains, and their distances. Domain
/// 1 is the machine, and the halves of domain d are 2d and 2d + 1.
fn architecture_file(space: &SearchSpace, places: &[u32]) -> String {
    let mut domain = vec![0u64; places.len()];
    number_domains(space, places, 0..places.len(), 1, &mut domain);
    let most = domain.iter().copied().max().unwrap_or(1);
    let mut text = format!("deco 0\n{} {most}\n", places.len());
    for (place, domain) in domain.iter().enumerate() {
        let _ = writeln!(text, "{place} 1 {domain}");
    }
    for (i, &a) in places.iter().enumerate().skip(1) {
        for &b in &places[..i] {
            let d = space.distance(a as usize, b as usize).max(1);
            let _ = write!(text, "{d} ");
        }
        text.push('\n');
    }
    text
}

/// Halves a range of places where the distance across is largest, nearest to its middle.
fn number_domains(
    space: &SearchSpace,
    places: &[u32],
    range: std::ops::Range<usize>,
    domain: u64,
    of: &mut [u64],
) {
    if range.len() == 1 {
        of[range.start] = domain;
        return;
    }
    let middle = range.start.midpoint(range.end);
    let across = |at: usize| space.distance(places[at - 1] as usize, places[at] as usize);
    let cut = (range.start + 1..range.end)
        .min_by_key(|&at| (-across(at), at.abs_diff(middle)))
        .unwrap_or(middle);
    number_domains(space, places, range.start..cut, 2 * domain, of);
    number_domains(space, places, cut..range.end, 2 * domain + 1, of);
}

/// The communication with 32-bit weights.
fn source_graph(comm: &CommGraph, far: u32) -> ScotchGraph {
    let total: u128 = comm.pairs().map(|(_, _, w)| u128::from(w)).sum();
    let room = LIMIT / u128::from(far.max(1)) / 2;
    let scale = total.div_ceil(room).max(1);
    let mut source = ScotchGraph::default();
    source.start.push(0);
    for i in 0..comm.threads() {
        for (j, w) in comm.neighbours(i) {
            source.to.push(j as i32);
            source.weight.push((u128::from(w) / scale).max(1) as i32);
        }
        source.start.push(source.to.len() as i32);
    }
    source
}

/// Anchors by places; a thread whose place is taken gets the nearest free one.
fn resolve_conflicts(result: &[i32], places: &[u32], space: &SearchSpace) -> Vec<u32> {
    let mut taken = vec![false; places.len()];
    let mut anchors = vec![u32::MAX; result.len()];
    for (t, &place) in result.iter().enumerate() {
        if !std::mem::replace(&mut taken[place as usize], true) {
            anchors[t] = places[place as usize];
        }
    }
    for (t, &place) in result.iter().enumerate() {
        if anchors[t] != u32::MAX {
            continue;
        }
        let wish = places[place as usize] as usize;
        let free = (0..places.len()).filter(|&p| !taken[p]);
        let near = free.min_by_key(|&p| space.distance(wish, places[p] as usize));
        if let Some(p) = near {
            taken[p] = true;
            anchors[t] = places[p];
        }
    }
    anchors
}

#[cfg(test)]
mod tests;
