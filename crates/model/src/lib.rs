//! The pure stages of hither: everything that is computed from a profile, without side effects.
//! The same input and seed give the same output on any machine.
//!
//! ```text
//! locality    which accesses are remote
//! topology    the machine: nodes, caches, processing units
//! metrics     profile -> figures, findings, a verdict
//! map         communication, pages, a machine -> threads to units, pages to nodes
//! simulate    recorded accesses, a machine, a placement -> misses, traffic, time, energy
//! rng         random numbers that are the same on every machine
//! units       durations, sizes, counts and shares as text
//! ```
//! `metrics`, `map` and `simulate` do not know each other; all of them know `topology`, and the
//! artefacts of `hither_profile` are what goes in and comes out.
//!
//! Which processing unit should each of four threads get, if 0 and 2, and 1 and 3, share data?
//!
//! ```
//! use hither_model::map::threads::{locality::LocalityPolicy, ThreadPolicy};
//! use hither_model::map::{CommGraph, PuDistances, ThreadProblem};
//! use hither_model::topology::{select_machine, MachineRestrictions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tree = select_machine(Some("pack:2 core:2 pu:1"), &MachineRestrictions::default())?.tree;
//! let comm = CommGraph::new(4, [(0, 2, 100), (1, 3, 100), (0, 1, 1)]);
//! let problem = ThreadProblem {
//!     tree: &tree,
//!     cost: &PuDistances::from_hops(&tree),
//!     comm: &comm,
//!     load: &[1; 4],
//!     capacity: 1,
//!     siblings: false,
//!     current: None,
//!     seed: 0,
//! };
//! let units = LocalityPolicy { fast: false }.place(&problem)?;
//! let package = |thread: usize| units[thread] / 2;
//! assert_eq!(package(0), package(2));
//! assert_eq!(package(1), package(3));
//! assert_ne!(package(0), package(1));
//! # Ok(())
//! # }
//! ```
//! `examples/map_matrix.rs` maps a matrix onto any machine that hwloc can describe.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
pub mod locality;
pub mod map;
pub mod metrics;
pub mod rng;
pub mod simulate;
pub mod topology;
pub mod units;
