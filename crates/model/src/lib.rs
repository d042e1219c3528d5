//! The pure stages of hither: computed from a profile, without effects.
//!
//! ```text
//! topology    the machine: nodes, caches, processing units
//! metrics     Profile -> figures, findings, a verdict
//! map         communication, pages, a machine -> threads to units, pages to nodes
//! simulate    recorded accesses, a machine, a placement -> misses, traffic, time, energy
//! units       durations, sizes, counts and shares as text
//! ```
#![forbid(unsafe_code)]
pub mod map;
pub mod metrics;
pub mod simulate;
pub mod topology;
pub mod units;
