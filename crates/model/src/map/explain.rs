//! What a placement achieves, for `--explain`: where communication happens, how many
//! accesses are remote, how evenly caches are used, and what moves.
use super::data::Pages;
use super::{Cost, Graph, Problem};
use crate::topology::{Level, Tree};
use hither_profile::NodeIx;
use serde::Serialize;
use std::collections::BTreeMap;

/// A run as it is placed, or was.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    /// The machine.
    pub tree: &'a Tree,
    /// Distances between its units.
    pub cost: &'a Cost,
    /// Communication between the threads.
    pub comm: &'a Graph,
    /// The unit of each thread.
    pub threads: &'a [u32],
    /// The pages and the node of each, where pages are known.
    pub pages: Option<(&'a Pages, &'a [NodeIx])>,
}

/// Communication by how close its threads are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelShare {
    /// "core", "L2", "L3", "node", "machine", ...
    pub level: &'static str,
    /// Share of the communication between threads that are both inside one of these, 0 to
    /// 1; loose levels contain close ones.
    pub inside: f64,
    /// Share for which this is the closest level that holds both threads; these add up to 1.
    pub closest: f64,
}

/// B_comm (Locality and Balance eq. 2) over the caches of a level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheBalance {
    /// Name of the level, as hwloc has it.
    pub level: &'static str,
    /// Caches of that level that have usable units, idle ones included.
    pub caches: usize,
    /// Per cent by which the busiest has more communication than the mean; 0 is even.
    pub balance: f64,
}

/// One placement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// Sum over i<j of M\[i\]\[j\] * d(unit of i, unit of j).
    pub objective: u128,
    /// Loosest first; levels that the machine has.
    pub communication: Vec<LevelShare>,
    /// Share of page accesses that come from another node than the page's, 0 to 1; `None`
    /// without accesses.
    pub remote: Option<f64>,
    /// Loosest first.
    pub caches: Vec<CacheBalance>,
}

/// Before and after, and what moves between.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// `None` when nothing is known about before.
    pub before: Option<State>,
    /// With the placement explained.
    pub after: State,
    /// Threads on another unit than before; all when nothing is known about before.
    pub threads_moved: usize,
    /// Threads placed.
    pub threads: usize,
    /// Pages on another node than before; all when nothing is known about before.
    pub pages_moved: usize,
    /// Pages placed.
    pub pages: usize,
}

/// Compares two placements of the same run.
#[must_use]
pub fn explain(before: Option<&Placed>, after: &Placed) -> Explanation {
    let differing = |old: &[u32], new: &[u32]| {
        let same = old.iter().zip(new).filter(|(a, b)| a == b).count();
        new.len() - same
    };
    let nodes = |placed: &Placed| -> Vec<u32> {
        placed
            .pages
            .map_or_else(Vec::new, |(_, nodes)| nodes.iter().map(|n| n.0).collect())
    };
    let (old_threads, old_pages) = match before {
        Some(before) => (before.threads, nodes(before)),
        None => (&[][..], Vec::new()),
    };
    let new_pages = nodes(after);
    Explanation {
        before: before.map(state),
        after: state(after),
        threads_moved: differing(old_threads, after.threads),
        threads: after.threads.len(),
        pages_moved: differing(&old_pages, &new_pages),
        pages: new_pages.len(),
    }
}

/// What one placement achieves.
#[must_use]
pub fn state(placed: &Placed) -> State {
    State {
        objective: objective(placed),
        communication: communication(placed),
        remote: placed
            .pages
            .and_then(|(pages, nodes)| remote(placed, pages, nodes)),
        caches: caches(placed),
    }
}

fn objective(placed: &Placed) -> u128 {
    let problem = Problem {
        tree: placed.tree,
        cost: placed.cost,
        comm: placed.comm,
        load: &[],
        capacity: u32::MAX,
        siblings: true,
        current: None,
        seed: 0,
    };
    problem.objective(placed.threads)
}

/// All levels that a pair of units with this lowest common vertex shares, the closest last.
fn shared(tree: &Tree, vertex: u32) -> Vec<Level> {
    let mut levels = Vec::new();
    let mut at = Some(vertex);
    while let Some(v) = at {
        let vertex = &tree.vertices[v as usize];
        levels.extend(&vertex.levels);
        at = vertex.parent;
    }
    levels.sort_unstable();
    levels.dedup();
    levels
}

fn communication(placed: &Placed) -> Vec<LevelShare> {
    let tree = placed.tree;
    // Events per lowest common vertex first: there are far fewer of those than pairs.
    let mut at_vertex = vec![0u128; tree.vertices.len()];
    for (i, j, events) in placed.comm.pairs() {
        let (a, b) = (placed.threads[i] as usize, placed.threads[j] as usize);
        at_vertex[tree.common(a, b) as usize] += u128::from(events);
    }
    let total: u128 = at_vertex.iter().sum();
    let mut inside: BTreeMap<Level, (u128, u128)> = BTreeMap::new();
    for (vertex, events) in (0..).zip(at_vertex) {
        let levels = shared(tree, vertex);
        for level in &levels {
            let sums = inside.entry(*level).or_default();
            sums.0 += events;
            sums.1 += if levels.last() == Some(level) {
                events
            } else {
                0
            };
        }
    }
    let share = |part: u128| part as f64 / total.max(1) as f64;
    let rows = inside
        .into_iter()
        .map(|(level, (within, here))| LevelShare {
            level: name(level),
            inside: share(within),
            closest: share(here),
        });
    rows.collect()
}

fn remote(placed: &Placed, pages: &Pages, nodes: &[NodeIx]) -> Option<f64> {
    let (mut far, mut all) = (0u128, 0u128);
    for (page, node) in nodes.iter().enumerate() {
        for u in pages.uses(page) {
            let Some(&unit) = placed.threads.get(u.thread.at()) else {
                continue;
            };
            let accesses = u128::from(u.accesses);
            all += accesses;
            if placed.tree.units[unit as usize].node != *node {
                far += accesses;
            }
        }
    }
    (all > 0).then(|| far as f64 / all as f64)
}

fn is_cache(level: Level) -> bool {
    matches!(
        level,
        Level::L1 | Level::L2 | Level::L3 | Level::L4 | Level::L5
    )
}

fn caches(placed: &Placed) -> Vec<CacheBalance> {
    let tree = placed.tree;
    let mut on_unit = vec![0u128; tree.units.len()];
    for (i, j, events) in placed.comm.pairs() {
        // CommV: each event counts for both of its threads.
        on_unit[placed.threads[i] as usize] += u128::from(events);
        on_unit[placed.threads[j] as usize] += u128::from(events);
    }
    let mut by_level: BTreeMap<Level, Vec<u128>> = BTreeMap::new();
    for vertex in &tree.vertices {
        let units = vertex.units.start as usize..vertex.units.end as usize;
        let sum: u128 = on_unit[units].iter().sum();
        for level in vertex.levels.iter().filter(|l| is_cache(**l)) {
            by_level.entry(*level).or_default().push(sum);
        }
    }
    let rows = by_level.into_iter().map(|(level, sums)| CacheBalance {
        level: name(level),
        caches: sums.len(),
        balance: balance(&sums),
    });
    rows.collect()
}

/// (max / mean - 1) * 100 % (Locality and Balance eq. 2).
fn balance(sums: &[u128]) -> f64 {
    let (max, total) = (
        sums.iter().max().copied().unwrap_or(0),
        sums.iter().sum::<u128>(),
    );
    if total == 0 {
        return 0.0;
    }
    // Rounding must not make a perfect balance negative.
    ((max as f64 * sums.len() as f64 / total as f64 - 1.0) * 100.0).max(0.0)
}

/// As users write it.
fn name(level: Level) -> &'static str {
    match level {
        Level::Machine => "machine",
        Level::Node => "node",
        Level::Package => "package",
        Level::Group => "group",
        Level::L5 => "L5",
        Level::L4 => "L4",
        Level::L3 => "L3",
        Level::L2 => "L2",
        Level::L1 => "L1",
        Level::Core => "core",
        Level::Pu => "pu",
    }
}

#[cfg(test)]
mod tests;
