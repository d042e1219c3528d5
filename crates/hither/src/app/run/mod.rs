//! What `hither run` is to do, checked against this machine before anything is started.
mod launch_conditions;
mod machine;
mod options;
mod plan;
pub mod policy;

pub use options::RunOptions;
pub use plan::{PlacementOrigin, RulePlan, RunPlan};
