//! Threads that communicate next to one another: the default. Cuts the communication graph
//! from the root of the machine down, then improves the whole by swaps of threads, of
//! subtrees, and by kicks. Work is bounded by counted steps, so the same problem and seed give
//! the same placement on any machine.
use super::ThreadPolicy;
use crate::map::search::kick::kick;
use crate::map::search::links::Links;
use crate::map::search::relabel::relabel;
use crate::map::search::rng::Rng;
use crate::map::search::space::Space;
use crate::map::search::state::State;
use crate::map::search::subtrees::swap_subtrees;
use crate::map::search::swap::{descend, FEW};
use crate::map::search::topdown::{Idle, TopDown};
use crate::map::{Assignment, Problem};

/// How hard to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locality {
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
    descend(&mut state, START_STEPS);
    if good(state.value) {
        return state.at;
    }
    relabel(space, &mut fresh, &current);
    fresh
}

/// Steps that all starts may take, and those that kicks may take after them. A step is up to
/// two nanoseconds.
const START_STEPS: u64 = 30_000_000;
const KICK_STEPS: u64 = 30_000_000;
/// Steps of local search in a quick start.
const QUICK_STEPS: u64 = 10_000_000;
const STARTS: usize = 16;
/// Starts that are kicked before one is chosen.
const KEPT: usize = 3;

fn search(space: &Space, links: &Links, seed: u64, fast: bool) -> Vec<u32> {
    let n = links.len() as u64;
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
    let mut steps = 0;
    let mut found: Vec<(i64, Vec<u32>)> = Vec::new();
    for at in 0..STARTS {
        let (value, homes, cost) = start(space, links, ways[at % ways.len()], 3, &mut rng);
        found.push((value, homes));
        steps += cost;
        // Small problems are done long before.
        if steps + cost > START_STEPS || (at >= KEPT && steps > 200_000 * n) {
            break;
        }
    }
    found.sort_by_key(|f| f.0);
    found.dedup_by_key(|f| f.0);
    found.truncate(KEPT);
    let limit = KICK_STEPS.min(20_000 * n * n);
    let mut best: Option<(i64, Vec<u32>)> = None;
    let share = limit / (2 * found.len() as u64).max(1);
    for (_, homes) in found {
        let better = kicked(space, links, homes, share, &mut rng);
        if best.as_ref().is_none_or(|b| better.0 < b.0) {
            best = Some(better);
        }
    }
    let homes = best.map(|b| b.1).unwrap_or_default();
    kicked(space, links, homes, limit / 2, &mut rng).1
}

/// One start; swaps with whoever is where a thread's partners are, unless they are many.
fn quick(space: &Space, links: &Links, rng: &mut Rng) -> Vec<u32> {
    let mut top = TopDown {
        space,
        links,
        idle: Idle::Free,
        tries: 1,
        steps: 0,
    };
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

/// A placement cut from the top and taken to a local optimum: its value and what it took.
fn start(
    space: &Space,
    links: &Links,
    idle: Idle,
    tries: usize,
    rng: &mut Rng,
) -> (i64, Vec<u32>, u64) {
    let mut top = TopDown {
        space,
        links,
        idle,
        tries,
        steps: 0,
    };
    let homes = top.solve(rng);
    let mut state = State::new(space, links, homes, true);
    descend(&mut state, START_STEPS);
    while swap_subtrees(&mut state, 160) {
        descend(&mut state, START_STEPS);
    }
    (state.value, state.at, top.steps + state.steps)
}

fn kicked(
    space: &Space,
    links: &Links,
    homes: Vec<u32>,
    steps: u64,
    rng: &mut Rng,
) -> (i64, Vec<u32>) {
    let mut state = State::new(space, links, homes, true);
    let limit = state.steps + steps;
    kick(&mut state, rng, limit);
    (state.value, state.at)
}

#[cfg(test)]
mod tests;
