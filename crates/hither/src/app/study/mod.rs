//! What placements of a recorded run would do, on this machine or another.
//!
//! ```text
//! Recording, Model --> plans --> replay, several at a time --> forecast --> verdict
//!                        ^         ^
//!               app/map -/         \- warm: how much only warms the caches
//! ```
mod forecast;
pub mod model;
pub mod options;
mod plans;
mod predict;
pub mod progress;
pub mod recorded;
mod replay;
mod structures;
mod verdict;
pub mod wanted;
mod warm;

pub use predict::forecast;
