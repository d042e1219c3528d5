//! Thread policies: one file each, one line in [`THREAD_POLICIES`].
mod balance;
mod balanced_locality;
mod compact;
mod distance;
mod eagermap;
pub mod exact;
mod grouping_shape;
mod load_balance;
pub mod locality;
mod locality_spread;
mod matching;
mod random;
mod scatter;
#[cfg(feature = "scotch")]
pub mod scotch;
pub(super) mod slots;

use super::{PuAssignment, ThreadProblem};

/// A way of placing threads.
pub trait ThreadPolicy: Sync {
    /// As `--policy` takes it.
    fn name(&self) -> &'static str;
    /// One line: what it does, and where it comes from.
    fn about(&self) -> &'static str;
    /// A unit for every thread, none above `problem.capacity`. Unless `problem.siblings` asks for
    /// it, no core and no unit has two threads while another has none. The same problem gives
    /// the same placement.
    ///
    /// # Errors
    /// A sentence that says why it cannot place this problem, and what can.
    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String>;
}

/// Every policy, in the order in which `hither map --list` shows them.
pub const THREAD_POLICIES: &[&dyn ThreadPolicy] = &[
    &locality::LocalityPolicy { fast: false },
    &locality::LocalityPolicy { fast: true },
    &locality_spread::LocalitySpreadPolicy,
    &exact::ExactPolicy,
    #[cfg(feature = "scotch")]
    &scotch::ScotchPolicy,
    &matching::MatchingPolicy,
    &eagermap::EagerMapPolicy,
    &distance::DistancePolicy,
    &balance::BalancePolicy,
    &balanced_locality::BalancedLocalityPolicy,
    &load_balance::LoadBalancePolicy,
    &compact::CompactPolicy,
    &scatter::ScatterPolicy,
    &random::RandomPolicy,
];

#[cfg(test)]
mod tests;
