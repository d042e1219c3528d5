//! Distance (Locality and Balance, section 4): threads that communicate end up far apart.
//! The matrix is turned over, every cell subtracted from the greatest, and given to the
//! algorithm of the locality policy, which is EagerMap there.
use super::eagermap::eager;
use super::seats::{seats, Fill};
use super::shape::{Arity, Shape, Stage};
use super::ThreadPolicy;
use crate::map::{Assignment, Problem};

pub struct Distance;

impl ThreadPolicy for Distance {
    fn name(&self) -> &'static str {
        "distance"
    }

    fn about(&self) -> &'static str {
        "puts threads that communicate far apart (Locality and Balance)"
    }

    fn place(&self, problem: &Problem) -> Result<Assignment, String> {
        let seats = seats(problem, Fill::Even)?;
        let shape = Shape::new(problem.tree, &seats, Arity::OfMachine);
        let greatest = problem.comm.pairs().map(|(_, _, events)| events).max();
        let greatest = u128::from(greatest.unwrap_or(0));
        // The sum of the turned cells between two sets of a and b threads is
        // a b max(M) - M summed over them, so the turned matrix need not be made.
        let score = |stage: &Stage, events: u128, threads: usize, element: usize| {
            let cells = threads as u128 * stage.members[element].len() as u128;
            (cells * greatest).saturating_sub(events)
        };
        Ok(shape.fill(problem.comm, |stage| eager(stage, score)))
    }
}
