//! What a placement achieves, for `--explain`: where communication happens, how many
//! accesses are remote, how evenly caches are used, and what moves.
use super::data::PlaceablePages;
use super::{CommGraph, PuDistances, ThreadProblem};
use crate::topology::{TopologyLevel, TopologyTree};
use hither_profile::{NodeIx, ThreadIx};
use serde::Serialize;
use std::collections::BTreeMap;

/// A run with its placement.
#[derive(Clone, Copy)]
pub struct PlacedRun<'a> {
    /// The machine.
    pub tree: &'a TopologyTree,
    /// Distances between its units.
    pub cost: &'a PuDistances,
    /// Communication between the threads.
    pub comm: &'a CommGraph,
    /// The unit of each thread.
    pub threads: &'a [u32],
    /// The pages and the node of each, where pages are known.
    pub pages: Option<(&'a PlaceablePages, &'a [NodeIx])>,
}

/// Communication by how close its threads are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelShare {
    /// "core", "L2", "L3", "node", "machine", ...
    pub level: &'static str,
    /// Share of the communication between threads that are inside the same one of these, 0 to 1;
    /// outer levels include inner ones.
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
pub struct PlacementQuality {
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
pub struct PlacementExplanation {
    /// `None` without a placement before.
    pub before: Option<PlacementQuality>,
    /// With the placement explained.
    pub after: PlacementQuality,
    /// Threads on another unit than before; all without a placement before.
    pub threads_moved: usize,
    /// Threads placed.
    pub threads: usize,
    /// Pages on another node than before; all without a placement before.
    pub pages_moved: usize,
    /// Pages placed.
    pub pages: usize,
}

/// Compares two placements of the same run. `placed`: the threads that are placed; the others are left to
/// the system, so that where they count as being says nothing of what moves.
#[must_use]
pub fn explain_placement(
    before: Option<&PlacedRun>,
    after: &PlacedRun,
    placed: &[ThreadIx],
) -> PlacementExplanation {
    let differing = |old: &[u32], new: &[u32]| {
        let same = old.iter().zip(new).filter(|(a, b)| a == b).count();
        new.len() - same
    };
    let units =
        |run: &PlacedRun| -> Vec<u32> { placed.iter().map(|t| run.threads[t.at()]).collect() };
    let nodes = |placed: &PlacedRun| -> Vec<u32> {
        placed
            .pages
            .map_or_else(Vec::new, |(_, nodes)| nodes.iter().map(|n| n.0).collect())
    };
    let (old_threads, old_pages) = match before {
        Some(before) => (units(before), nodes(before)),
        None => (Vec::new(), Vec::new()),
    };
    let new_pages = nodes(after);
    PlacementExplanation {
        before: before.map(placement_quality),
        after: placement_quality(after),
        threads_moved: differing(&old_threads, &units(after)),
        threads: placed.len(),
        pages_moved: differing(&old_pages, &new_pages),
        pages: new_pages.len(),
    }
}

/// What one placement achieves.
#[must_use]
pub fn placement_quality(placed: &PlacedRun) -> PlacementQuality {
    PlacementQuality {
        objective: mapping_objective(placed),
        communication: communication_by_level(placed),
        remote: placed.pages.and_then(|(pages, nodes)| {
            let nodes = nodes.iter().copied();
            let locality = pages.locality(nodes, placed.threads, placed.tree);
            locality.remote_share()
        }),
        caches: cache_balances(placed),
    }
}

fn mapping_objective(placed: &PlacedRun) -> u128 {
    let problem = ThreadProblem {
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
fn shared_levels(tree: &TopologyTree, vertex: u32) -> Vec<TopologyLevel> {
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

fn communication_by_level(placed: &PlacedRun) -> Vec<LevelShare> {
    let tree = placed.tree;
    // Events per lowest common vertex first: there are far fewer of those than pairs.
    let mut at_vertex = vec![0u128; tree.vertices.len()];
    for (i, j, events) in placed.comm.pairs() {
        let (a, b) = (placed.threads[i] as usize, placed.threads[j] as usize);
        at_vertex[tree.lowest_common_vertex(a, b) as usize] += u128::from(events);
    }
    let total: u128 = at_vertex.iter().sum();
    let mut inside: BTreeMap<TopologyLevel, (u128, u128)> = BTreeMap::new();
    for (vertex, events) in (0..).zip(at_vertex) {
        let levels = shared_levels(tree, vertex);
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
            level: level_name(level),
            inside: share(within),
            closest: share(here),
        });
    rows.collect()
}

fn is_cache(level: TopologyLevel) -> bool {
    matches!(
        level,
        TopologyLevel::L1
            | TopologyLevel::L2
            | TopologyLevel::L3
            | TopologyLevel::L4
            | TopologyLevel::L5
    )
}

fn cache_balances(placed: &PlacedRun) -> Vec<CacheBalance> {
    let tree = placed.tree;
    let mut on_unit = vec![0u128; tree.units.len()];
    for (i, j, events) in placed.comm.pairs() {
        // CommV: each event counts for both of its threads.
        on_unit[placed.threads[i] as usize] += u128::from(events);
        on_unit[placed.threads[j] as usize] += u128::from(events);
    }
    let mut by_level: BTreeMap<TopologyLevel, Vec<u128>> = BTreeMap::new();
    for vertex in &tree.vertices {
        let units = vertex.units.start as usize..vertex.units.end as usize;
        let sum: u128 = on_unit[units].iter().sum();
        for level in vertex.levels.iter().filter(|l| is_cache(**l)) {
            by_level.entry(*level).or_default().push(sum);
        }
    }
    let rows = by_level.into_iter().map(|(level, sums)| CacheBalance {
        level: level_name(level),
        caches: sums.len(),
        balance: percent_imbalance_u128(&sums),
    });
    rows.collect()
}

/// (max / mean - 1) * 100 % (Locality and Balance eq. 2).
fn percent_imbalance_u128(sums: &[u128]) -> f64 {
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
fn level_name(level: TopologyLevel) -> &'static str {
    match level {
        TopologyLevel::Machine => "machine",
        TopologyLevel::Node => "node",
        TopologyLevel::Package => "package",
        TopologyLevel::Group => "group",
        TopologyLevel::L5 => "L5",
        TopologyLevel::L4 => "L4",
        TopologyLevel::L3 => "L3",
        TopologyLevel::L2 => "L2",
        TopologyLevel::L1 => "L1",
        TopologyLevel::Core => "core",
        TopologyLevel::Pu => "pu",
    }
}

#[cfg(test)]
mod tests;
