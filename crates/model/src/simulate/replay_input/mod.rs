//! What a simulation is fed with: where a placement has threads and pages when, one address space
//! for all processes, windows in parts; and what its results are worth.
pub mod linux_scheduler;
pub mod page_homes;
pub mod partitioned_source;
pub mod ratio_estimator;
pub mod replay_plan;
pub mod replay_space;

#[cfg(test)]
mod tests;
