//! Threads that communicate next to one another: the default. Cuts the communication graph
//! from the root of the machine down, then improves the whole by swaps of threads, of
//! subtrees, and by kicks. Work is bounded by counted steps, so the same problem and seed give
//! the same placement on any machine.
use super::ThreadPolicy;
use crate::map::search::kick::kick;
use crate::map::search::links::Links;
use crate::map::search::rng::Rng;
use crate::map::search::space::Space;
use crate::map::search::state::State;
use crate::map::search::subtrees::swap_subtrees;
use crate::map::search::swap::descend;
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
        let homes = search(&space, &links, problem.seed, self.fast);
        Ok(space.units(&homes, problem.current))
    }
}

fn search(space: &Space, links: &Links, seed: u64, fast: bool) -> Vec<u32> {
    let mut rng = Rng::new(seed);
    let mut top = TopDown {
        space,
        links,
        idle: Idle::Free,
        tries: if fast { 1 } else { 3 },
        steps: 0,
    };
    let homes = top.solve(&mut rng);
    let mut state = State::new(space, links, homes);
    let limit = if fast { 20_000_000 } else { 60_000_000 };
    descend(&mut state, limit);
    while swap_subtrees(&mut state) {
        descend(&mut state, limit);
    }
    if !fast {
        let limit = state.steps + 20_000_000;
        kick(&mut state, &mut rng, limit);
    }
    state.at
}
