//! Thread policies: one file each, one line in [`ALL`].
mod balance;
mod balanced_locality;
mod compact;
mod distance;
mod eagermap;
pub mod exact;
mod load_balance;
pub mod locality;
mod matching;
mod random;
mod scatter;
#[cfg(feature = "scotch")]
pub mod scotch;
pub(super) mod seats;
mod shape;

use super::{Assignment, Problem};

/// A way of placing threads.
pub trait ThreadPolicy: Sync {
    /// As `--policy` takes it.
    fn name(&self) -> &'static str;
    /// One line: what it does, and whose it is.
    fn about(&self) -> &'static str;
    /// A unit for every thread, none above capacity.
    ///
    /// # Errors
    /// A sentence that says why it cannot place this problem, and what can.
    fn place(&self, problem: &Problem) -> Result<Assignment, String>;
}

/// Every policy, in the order in which `hither map --list` shows them.
pub const ALL: &[&dyn ThreadPolicy] = &[
    &locality::Locality { fast: false },
    &locality::Locality { fast: true },
    &exact::Exact,
    #[cfg(feature = "scotch")]
    &scotch::Scotch,
    &matching::Matching,
    &eagermap::EagerMap,
    &distance::Distance,
    &balance::Balance,
    &balanced_locality::BalancedLocality,
    &load_balance::LoadBalance,
    &compact::Compact,
    &scatter::Scatter,
    &random::Random,
];

/// The policy of SPCD.
pub const MATCHING: matching::Matching = matching::Matching;

#[cfg(test)]
mod tests;
