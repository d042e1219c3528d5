//! Places threads that communicate next to one another. Cuts the communication graph
//! from the root of the machine down, then improves the whole by swaps of threads and of subtrees,
//! by cutting parts again, and by kicks. Work is bounded by counted steps, so the same problem and
//! seed give the same placement on any machine.
use super::ThreadPolicy;
use crate::map::search::csr_graph::CsrGraph;
use crate::map::search::iterated_local_search::iterated_local_search;
use crate::map::search::local_search::{descend_to_optimum, prefers_table, MAX_REQUEUED_PARTNERS};
use crate::map::search::recursive_bisection::{IdlePlaces, RecursiveBisection};
use crate::map::search::recut::recut_subtrees;
use crate::map::search::relabel::relabel_to_current;
use crate::map::search::search_space::{SearchSpace, SearchVertex};
use crate::map::search::search_state::SearchState;
use crate::map::search::subtrees::swap_subtrees;
use crate::map::{PuAssignment, ThreadProblem};
use crate::rng::Rng;

/// How hard to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalityPolicy {
    /// One start instead of a search from several.
    pub fast: bool,
}

impl ThreadPolicy for LocalityPolicy {
    fn name(&self) -> &'static str {
        if self.fast {
            "locality-fast"
        } else {
            "locality"
        }
    }

    fn about(&self) -> &'static str {
        if self.fast {
            "as locality, from one start: a fraction of the time for about 1 % more distance"
        } else {
            "threads that communicate close together: recursive cuts, then local search"
        }
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        place_within(problem, problem.unit_capacities(), self.fast)
    }
}

/// The search, with `room` for so many threads on each unit.
pub(super) fn place_within(
    problem: &ThreadProblem,
    room: Vec<u32>,
    fast: bool,
) -> Result<PuAssignment, String> {
    let space = SearchSpace::new(problem, &room).ok_or("there is no processing unit to map to")?;
    let links = CsrGraph::new(problem.comm, problem.cost.largest());
    let fresh = multi_start_search(&space, &links, problem.seed, fast);
    let anchors = match current_anchors(problem, &space, room) {
        Some(current) => placement_near_current(&space, &links, current, fresh),
        None => fresh,
    };
    Ok(space.units(&anchors, problem.current))
}

/// Where the threads are now, if every one has a unit that it may keep.
fn current_anchors(
    problem: &ThreadProblem,
    space: &SearchSpace,
    mut free: Vec<u32>,
) -> Option<Vec<u32>> {
    let current = problem.current?;
    if current.len() != problem.comm.threads() {
        return None;
    }
    let anchor_of = space.anchor_of_units(problem.tree.units.len());
    for &unit in current {
        let free = free.get_mut(unit as usize)?;
        *free = free.checked_sub(1)?;
    }
    Some(current.iter().map(|&u| anchor_of[u as usize]).collect())
}

/// Threads stay where they are unless moving them gains more than half a percent of the distance,
/// because moving has a cost. Then local search moves single threads, and only if the result is not
/// close to that of a new placement all move to the new one, relabelled so that most stay.
fn placement_near_current(
    space: &SearchSpace,
    links: &CsrGraph,
    current: Vec<u32>,
    mut fresh: Vec<u32>,
) -> Vec<u32> {
    let value = |anchors: &[u32]| SearchState::new(space, links, anchors.to_vec(), false).value;
    let goal = value(&fresh);
    let good = |value: i64| i128::from(value) * 1000 <= i128::from(goal) * 1005;
    let mut state = SearchState::new(space, links, current.clone(), true);
    if good(state.value) {
        return current;
    }
    descend_to_optimum(&mut state, DESCENT_STEPS);
    if good(state.value) {
        return state.at;
    }
    relabel_to_current(space, &mut fresh, &current);
    fresh
}

/// Steps of one local search. A step is one to two nanoseconds.
const DESCENT_STEPS: u64 = 30_000_000;
/// Steps of local search in a quick start.
const QUICK_STEPS: u64 = 10_000_000;
/// Starts at most.
const STARTS: usize = 16;
/// Threads up to which, where parts of the machine differ, starts at random are taken as well: cuts look at
/// what lies between parts, not at which part of the machine is the nearer one.
const FEW: u64 = 16;
/// Starts that are improved before one is chosen.
const KEPT: usize = 2;
/// Threads from which on few starts fit in, and each had better be good.
const MANY: u64 = 512;

/// Steps that a whole search may take; small problems need fewer.
fn step_budget(threads: u64) -> u64 {
    let most = (34_000_000 + 70_000 * threads).min(125_000_000);
    most.min(60_000 * threads * threads)
}

/// How often each cut is tried in a start: of many threads as often as most of the budget
/// allows.
fn bisection_tries(links: &CsrGraph, budget: u64) -> usize {
    let n = links.len() as u64;
    if n < MANY {
        return 2;
    }
    let each = 2 * (10 * links.link.len() as u64 + 85 * n) * u64::from(n.ilog2());
    (budget * 7 / 10 / each).clamp(1, 10) as usize
}

fn multi_start_search(space: &SearchSpace, links: &CsrGraph, seed: u64, fast: bool) -> Vec<u32> {
    let mut rng = Rng::for_search(seed);
    if fast {
        return quick_start(space, links, &mut rng);
    }
    let spare = space.vertex[0].capacity as usize > links.len();
    let ways: &[IdlePlaces] = if spare {
        &[IdlePlaces::Free, IdlePlaces::Even, IdlePlaces::Filled]
    } else {
        &[IdlePlaces::Free]
    };
    let budget = step_budget(links.len() as u64);
    let tries = bisection_tries(links, budget);
    let mut steps = 0;
    let mut found: Vec<(i64, Vec<u32>)> = Vec::new();
    for at in 0..STARTS {
        let (value, anchors, cost) =
            bisection_start(space, links, ways[at % ways.len()], tries, &mut rng);
        found.push((value, anchors));
        steps += cost;
        if steps + cost > budget * 4 / 10 {
            break;
        }
    }
    while links.len() as u64 <= FEW && space.is_irregular() && steps < budget * 6 / 10 {
        let (value, anchors, cost) = descend(space, links, scattered(space, links, &mut rng));
        found.push((value, anchors));
        steps += cost;
    }
    found.sort_by_key(|f| f.0);
    found.dedup_by_key(|f| f.0);
    found.truncate(KEPT);
    let left = budget.saturating_sub(steps).max(budget / 10);
    // Half of what is left goes to the best alone.
    let share = left / (found.len() as u64).max(1) / 2;
    let better = |(_, anchors)| recut_and_kick(space, links, anchors, share, ways, &mut rng);
    let best = found.into_iter().map(better).min_by_key(|f| f.0);
    let anchors = best.map(|b| b.1).unwrap_or_default();
    recut_and_kick(space, links, anchors, left / 2, ways, &mut rng).1
}

/// One start; swaps a thread with those near its partners, unless these are many.
fn quick_start(space: &SearchSpace, links: &CsrGraph, rng: &mut Rng) -> Vec<u32> {
    let mut top = RecursiveBisection::new(space, links, IdlePlaces::Free, 1);
    let anchors = top.place_threads(rng);
    let dense = links.link.len() > MAX_REQUEUED_PARTNERS * links.len();
    let mut state = SearchState::new(space, links, anchors, dense);
    let limit = state.steps + QUICK_STEPS;
    descend_to_optimum(&mut state, limit);
    if swap_subtrees(&mut state, 64) {
        descend_to_optimum(&mut state, limit);
    }
    state.at
}

/// A placement cut from the top and taken to a local optimum: its value and the steps it took.
fn bisection_start(
    space: &SearchSpace,
    links: &CsrGraph,
    idle: IdlePlaces,
    tries: usize,
    rng: &mut Rng,
) -> (i64, Vec<u32>, u64) {
    let mut top = RecursiveBisection::new(space, links, idle, tries);
    let anchors = top.place_threads(rng);
    let (value, anchors, steps) = descend(space, links, anchors);
    (value, anchors, 2 * top.steps + steps)
}

/// A placement taken to a local optimum: its value and the steps it took.
fn descend(space: &SearchSpace, links: &CsrGraph, anchors: Vec<u32>) -> (i64, Vec<u32>, u64) {
    let mut state = SearchState::new(space, links, anchors, true);
    descend_to_optimum(&mut state, DESCENT_STEPS);
    while swap_subtrees(&mut state, 64) {
        descend_to_optimum(&mut state, DESCENT_STEPS);
    }
    (state.value, state.at, state.steps.max(1))
}

/// Each thread on any place.
fn scattered(space: &SearchSpace, links: &CsrGraph, rng: &mut Rng) -> Vec<u32> {
    let places =
        |(anchor, v): (usize, &SearchVertex)| std::iter::repeat_n(anchor as u32, v.room as usize);
    let mut free: Vec<u32> = space.vertex.iter().enumerate().flat_map(places).collect();
    let any = |_| free.swap_remove(rng.below(free.len()));
    (0..links.len()).map(any).collect()
}

/// A placement after parts of it were cut again, which takes most of the steps, and kicks.
fn recut_and_kick(
    space: &SearchSpace,
    links: &CsrGraph,
    anchors: Vec<u32>,
    steps: u64,
    ways: &[IdlePlaces],
    rng: &mut Rng,
) -> (i64, Vec<u32>) {
    let mut state = SearchState::new(space, links, anchors, prefers_table(links));
    let begin = state.steps;
    recut_subtrees(&mut state, rng, begin + steps * 7 / 10, ways);
    iterated_local_search(&mut state, rng, begin + steps);
    (state.value, state.at)
}

#[cfg(test)]
mod tests;
