//! Distance (Locality and Balance, section 4): threads that communicate end up far apart.
//! The matrix is turned over, every cell subtracted from the greatest, and given to the
//! algorithm of the locality policy, which is EagerMap there.
use super::eagermap::eager_groups;
use super::grouping_shape::{GroupArity, GroupingShape, GroupingStage};
use super::slots::{slots, SlotDistribution};
use super::ThreadPolicy;
use crate::map::{PuAssignment, ThreadProblem};

pub struct DistancePolicy;

impl ThreadPolicy for DistancePolicy {
    fn name(&self) -> &'static str {
        "distance"
    }

    fn about(&self) -> &'static str {
        "puts threads that communicate far apart (Locality and Balance)"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let slots = slots(problem, SlotDistribution::Even)?;
        let shape = GroupingShape::new(problem.tree, &slots, GroupArity::OfMachine);
        let greatest = problem.comm.pairs().map(|(_, _, events)| events).max();
        let greatest = u128::from(greatest.unwrap_or(0));
        // The sum of the turned cells between two sets of a and b threads is
        // a b max(M) - M summed over them, so the turned matrix need not be made.
        let score = |stage: &GroupingStage, events: u128, threads: usize, element: usize| {
            let cells = threads as u128 * stage.members[element].len() as u128;
            (cells * greatest).saturating_sub(events)
        };
        Ok(shape.assign_units(problem.comm, |stage| eager_groups(stage, score)))
    }
}
