//! Load balance (Locality and Balance, section 4): balance, with the work of a thread in the
//! place of its communication: its instructions, as the authors count it.
use super::balance::balance_amounts;
use super::ThreadPolicy;
use crate::map::{PuAssignment, ThreadProblem};

pub struct LoadBalancePolicy;

impl ThreadPolicy for LoadBalancePolicy {
    fn name(&self) -> &'static str {
        "load-balance"
    }

    fn about(&self) -> &'static str {
        "evens out the work of units; communication plays no part (Locality and Balance)"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let (known, threads) = (problem.load.len(), problem.comm.threads());
        if known != threads {
            return Err(format!(
                "it needs the work of {threads} threads, but the input has that of {known}; give it with --load, or a profile"
            ));
        }
        let load: Vec<u128> = problem.load.iter().map(|&work| work.into()).collect();
        balance_amounts(problem, &load)
    }
}
