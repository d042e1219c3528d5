//! What `hither run` is to do, checked against this machine before anything is started.
mod machine;
mod options;
mod plan;
pub mod policy;
mod surroundings;

pub use options::RunOptions;
pub use plan::{PlacementOrigin, RulePlan, RunPlan};
