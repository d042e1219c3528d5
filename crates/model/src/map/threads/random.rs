//! A placement drawn from the seed, to compare others with: every unit gets as many threads
//! as any other or one more.
use super::slots::{check_fit, smt_ranks};
use super::ThreadPolicy;
use crate::map::{PuAssignment, ThreadProblem};
use crate::rng::Rng;

pub struct RandomPolicy;

impl ThreadPolicy for RandomPolicy {
    fn name(&self) -> &'static str {
        "random"
    }

    fn about(&self) -> &'static str {
        "units drawn from --seed, none shared without need (a baseline of SPCD)"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let mut left = check_fit(problem)?;
        let rank = smt_ranks(problem.tree);
        let mut draw = Rng::for_search(problem.seed);
        let mut slots = Vec::new();
        while left > 0 {
            // Every unit once, in any order, but of a core the first sibling before others.
            let mut units: Vec<u32> = (0..problem.tree.units.len() as u32).collect();
            draw.shuffle(&mut units);
            if !problem.siblings {
                units.sort_by_key(|&at| rank[at as usize]);
            }
            units.truncate(left);
            left -= units.len();
            slots.extend(units);
        }
        draw.shuffle(&mut slots);
        Ok(slots)
    }
}
