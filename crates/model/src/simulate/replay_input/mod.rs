//! The input of a simulation: where a placement has threads and pages over time, one address space
//! for all processes, windows in parts, what was used before them; and the confidence intervals of its results.
pub mod cache_warming;
pub mod linux_scheduler;
pub mod page_homes;
pub mod partitioned_source;
pub mod ratio_estimator;
pub mod replay_plan;
pub mod replay_space;

#[cfg(test)]
mod tests;
