//! From a placement to a program that runs so: which machine it fits, and what other
//! launchers want to hear.
pub mod formats;
mod identity;
// Not reached by a verb yet.
#[allow(dead_code)]
pub mod online;
pub mod run;

pub use identity::identity;
