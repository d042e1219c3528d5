//! Units in order: SMT siblings, then cores, then nodes, as `OMP_PROC_BIND=close` and
//! `likwid-pin` fill a machine. Communication plays no part.
use super::slots::check_fit;
use super::ThreadPolicy;
use crate::map::{PuAssignment, ThreadProblem};

pub struct CompactPolicy;

impl ThreadPolicy for CompactPolicy {
    fn name(&self) -> &'static str {
        "compact"
    }

    fn about(&self) -> &'static str {
        "next thread on the next unit: siblings, cores, nodes (OMP_PROC_BIND=close)"
    }

    /// Thread t on unit t. With more threads than units, each unit gets as many consecutive
    /// threads as any other or one more (OpenMP 5.2, 10.1.3).
    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let threads = check_fit(problem)?;
        let units = problem.tree.units.len();
        let at = |t| {
            if threads <= units {
                t
            } else {
                t * units / threads
            }
        };
        Ok((0..threads).map(|t| at(t) as u32).collect())
    }
}
