//! From a placement to a program that runs so: which machine it fits, what other launchers
//! want to hear, and finding it while the program runs.
pub mod formats;
mod identity;
pub mod online;
pub mod run;

pub use identity::identity;
