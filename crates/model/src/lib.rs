//! The pure stages of hither: computed from a profile, without effects.
//!
//! ```text
//! topology    the machine: nodes, caches, processing units
//! metrics     Profile -> figures, findings, a verdict
//! map         communication, pages, a machine -> threads to units, pages to nodes
//! rng         random numbers that are the same on every machine
//! simulate    recorded accesses, a machine, a placement -> misses, traffic, time, energy
//! ```
#![forbid(unsafe_code)]
pub mod map;
pub mod metrics;
pub mod rng;
pub mod simulate;
pub mod topology;
