//! Metrics of a profile: communication, page usage, phases, suitability. Pure: no input or output,
//! no clock, the same report for the same profile. `docs/metrics.md` explains every value for its
//! readers.
pub mod allocation_paths;
pub mod belonging;
pub mod communication;
pub mod evidence;
pub mod exclusivity;
pub mod figures;
pub mod findings;
pub mod lasting_use;
pub mod memory_balance;
pub mod memory_traffic;
pub mod metrics_report;
pub mod node_assignment;
pub mod node_traffic;
pub mod page_access;
pub mod page_id;
pub mod page_map;
pub mod partner_changes;
pub mod partner_shares;
pub mod phase_detection;
pub mod placement_accuracy;
pub mod residence;
pub mod sharing;
pub mod stable_phases;
pub mod structure_rows;
pub mod structures;
pub mod thread_pairs;
pub mod thresholds;
pub mod verdict;

pub use metrics_report::{MetricsReport, MetricsSetup, ProfileAnalysis};
pub use page_id::PageSize;

#[cfg(test)]
mod tests;
