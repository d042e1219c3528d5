//! What a simulation is fed with: where a placement has threads and pages when, one address space
//! for all processes, windows in parts; and what its results are worth.
pub mod cut;
pub mod homes;
pub mod kernel;
pub mod plan;
pub mod space;
pub mod statistics;

#[cfg(test)]
mod tests;
