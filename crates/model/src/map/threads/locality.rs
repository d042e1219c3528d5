//! Threads that communicate next to one another: the default. Cuts the communication graph
//! from the root of the machine down, then improves the whole by swaps of threads and of
//! subtrees, by cutting parts anew, and by kicks. Work is bounded by counted steps, so the same problem and seed give
//! the same placement on any machine.
use super::ThreadPolicy;
use crate::map::search::kick::kick;
use crate::map::search::links::Links;
use crate::map::search::recut::recut;
use crate::map::search::relabel::relabel;
use crate::map::search::space::Space;
use crate::map::search::state::State;
use crate::map::search::subtrees::swap_subtrees;
use crate::map::search::swap::{dense, descend, FEW};
use crate::map::search::topdown::{Idle, TopDown};
use crate::map::{Assignment, Problem};
use crate::rng::Rng;

/// How hard to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locality {
    /// One start instead of a search from several.
    pub fast: bool,
}

impl ThreadPolicy for Locality {
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

    fn place(&self, problem: &Problem) -> Result<Assignment, String> {
        let room = problem.room();
        let space = Space::new(problem, &room).ok_or("there is no processing unit to map to")?;
        let links = Links::new(problem.comm, problem.cost.largest());
        let fresh = search(&space, &links, problem.seed, self.fast);
        let homes = match current_homes(problem, &space) {
            Some(current) => near(&space, &links, current, fresh),
            None => fresh,
        };
        Ok(space.units(&homes, problem.current))
    }
}

/// Where the threads are now, if every one has a unit that it may keep.
fn current_homes(problem: &Problem, space: &Space) -> Option<Vec<u32>> {
    let current = problem.current?;
    if current.len() != problem.comm.threads() {
        return None;
    }
    let home_of = space.home_of_units(problem.tree.units.len());
    let mut free = problem.room();
    for &unit in current {
        let free = free.get_mut(unit as usize)?;
        *free = free.checked_sub(1)?;
    }
    Some(current.iter().map(|&u| home_of[u as usize]).collect())
}

/// Threads stay where they are unless moving them pays: moving costs more than half a percent
/// of distance is worth. Then those are moved that local search moves, and only if that
/// does not get near the fresh placement either, all are, to the fresh one turned so that
/// it fits best.
fn near(space: &Space, links: &Links, current: Vec<u32>, mut fresh: Vec<u32>) -> Vec<u32> {
    let value = |homes: &[u32]| State::new(space, links, homes.to_vec(), false).value;
    let goal = value(&fresh);
    let good = |value: i64| i128::from(value) * 1000 <= i128::from(goal) * 1005;
    let mut state = State::new(space, links, current.clone(), true);
    if good(state.value) {
        return current;
    }
    descend(&mut state, DESCENT_STEPS);
    if good(state.value) {
        return state.at;
    }
    relabel(space, &mut fresh, &current);
    fresh
}

/// Steps of one local search. A step is one to two nanoseconds.
const DESCENT_STEPS: u64 = 30_000_000;
/// Steps of local search in a quick start.
const QUICK_STEPS: u64 = 10_000_000;
/// Starts at most.
const STARTS: usize = 16;
/// Starts that are improved before one is chosen.
const KEPT: usize = 2;
/// Threads from which on few starts fit in, and each had better be good.
const MANY: u64 = 512;

/// Steps that a whole search may take; small problems need fewer.
fn budget(threads: u64) -> u64 {
    let most = (34_000_000 + 70_000 * threads).min(125_000_000);
    most.min(60_000 * threads * threads)
}

/// How often each cut is tried in a start: of many threads as often as most of the budget
/// allows.
fn tries(links: &Links, budget: u64) -> usize {
    let n = links.len() as u64;
    if n < MANY {
        return 2;
    }
    let each = 2 * (10 * links.link.len() as u64 + 85 * n) * u64::from(n.ilog2());
    (budget * 7 / 10 / each).clamp(1, 10) as usize
}

fn search(space: &Space, links: &Links, seed: u64, fast: bool) -> Vec<u32> {
    let mut rng = Rng::new(seed);
    if fast {
        return quick(space, links, &mut rng);
    }
    let spare = space.vertex[0].capacity as usize > links.len();
    let ways: &[Idle] = if spare {
        &[Idle::Free, Idle::Even, Idle::Filled]
    } else {
        &[Idle::Free]
    };
    let budget = budget(links.len() as u64);
    let tries = tries(links, budget);
    let mut steps = 0;
    let mut found: Vec<(i64, Vec<u32>)> = Vec::new();
    for at in 0..STARTS {
        let (value, homes, cost) = start(space, links, ways[at % ways.len()], tries, &mut rng);
        found.push((value, homes));
        steps += cost;
        if steps + cost > budget * 4 / 10 {
            break;
        }
    }
    found.sort_by_key(|f| f.0);
    found.dedup_by_key(|f| f.0);
    found.truncate(KEPT);
    let left = budget.saturating_sub(steps).max(budget / 10);
    // Half of what is left goes to the best alone.
    let share = left / (found.len() as u64).max(1) / 2;
    let better = |(_, homes)| improved(space, links, homes, share, ways, &mut rng);
    let best = found.into_iter().map(better).min_by_key(|f| f.0);
    let homes = best.map(|b| b.1).unwrap_or_default();
    improved(space, links, homes, left / 2, ways, &mut rng).1
}

/// One start; swaps with whoever is where a thread's partners are, unless they are many.
fn quick(space: &Space, links: &Links, rng: &mut Rng) -> Vec<u32> {
    let mut top = TopDown::new(space, links, Idle::Free, 1);
    let homes = top.solve(rng);
    let dense = links.link.len() > FEW * links.len();
    let mut state = State::new(space, links, homes, dense);
    let limit = state.steps + QUICK_STEPS;
    descend(&mut state, limit);
    if swap_subtrees(&mut state, 64) {
        descend(&mut state, limit);
    }
    state.at
}

/// A placement cut from the top and taken to a local optimum: its value and the steps it took.
fn start(
    space: &Space,
    links: &Links,
    idle: Idle,
    tries: usize,
    rng: &mut Rng,
) -> (i64, Vec<u32>, u64) {
    let mut top = TopDown::new(space, links, idle, tries);
    let homes = top.solve(rng);
    let mut state = State::new(space, links, homes, true);
    descend(&mut state, DESCENT_STEPS);
    while swap_subtrees(&mut state, 64) {
        descend(&mut state, DESCENT_STEPS);
    }
    (state.value, state.at, 2 * top.steps + state.steps)
}

/// A placement after parts of it were cut anew, which takes most of the steps, and kicks.
fn improved(
    space: &Space,
    links: &Links,
    homes: Vec<u32>,
    steps: u64,
    ways: &[Idle],
    rng: &mut Rng,
) -> (i64, Vec<u32>) {
    let mut state = State::new(space, links, homes, dense(links));
    let begin = state.steps;
    recut(&mut state, rng, begin + steps * 7 / 10, ways);
    kick(&mut state, rng, begin + steps);
    (state.value, state.at)
}

#[cfg(test)]
mod tests;
