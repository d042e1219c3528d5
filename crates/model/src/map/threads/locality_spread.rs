//! `locality` on as many nodes, caches and cores as there are threads for: each part of the machine
//! gets its share of the threads, as `scatter` gives it, and which threads go where is decided by
//! what they communicate. For threads fewer than cores whose data does not fit the caches that they
//! would be packed on; with a thread for every core it is `locality`.
use super::locality::place_within;
use super::slots::{slots, SlotDistribution};
use super::ThreadPolicy;
use crate::map::{PuAssignment, ThreadProblem};

pub struct LocalitySpreadPolicy;

impl ThreadPolicy for LocalitySpreadPolicy {
    fn name(&self) -> &'static str {
        "locality-spread"
    }

    fn about(&self) -> &'static str {
        "threads spread evenly over nodes, caches and cores; within that, as locality"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let room = slots(problem, SlotDistribution::Even)?;
        if problem.comm.threads() == 0 {
            return Ok(PuAssignment::new());
        }
        place_within(problem, room, false)
    }
}
