//! Profile -> what it means: communication, page usage, phases, suitability. Pure: no
//! input or output, no clock, the same report for the same profile. `docs/metrics.md`
//! explains every value for its readers.
pub mod assignment;
pub mod communication;
pub mod exclusivity;
pub mod figures;
pub mod findings;
pub mod ground;
pub mod pages;
pub mod phases;
pub mod placement;
pub mod report;
pub mod structures;
pub mod verdict;

pub use pages::PageSize;
pub use report::{MetricsReport, MetricsSetup, ProfileAnalysis};

#[cfg(test)]
mod tests;
