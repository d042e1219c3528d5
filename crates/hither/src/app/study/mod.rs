//! What placements of a recorded run would do, on this machine or another.
//!
//! ```text
//! Recording, Model --> plans --> replay, several at a time --> forecast --> verdict
//!                        ^         ^
//!               app/map -/         \- warm: how much only warms the caches
//! ```
mod candidates;
mod forecast;
pub mod options;
mod placement_study;
mod predict;
pub mod progress;
mod race;
mod replay;
pub mod run_recording;
mod shared_starts;
pub mod sim_machine;
mod structures;
pub mod verdict;
mod warm_up;

pub use predict::{forecast, forecast_with_seed_error};
