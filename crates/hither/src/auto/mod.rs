//! Finds a placement while the program runs, and applies it: what kMAF and SPCD do inside a
//! kernel, from outside of it. Only the samplers `move` and `write-protect` stop the program
//! for a moment and enter it.
//!
//! ```text
//!  program --page faults--> observer --> analysis --> Mapper --> sched_setaffinity
//!     ^                                    |    `--> pages  --> move_pages
//!     |                                    v
//!     `--- takes pages away --- samplers <-- controller
//! ```
//! One thread does it all: `engine` every 10 ms. The `restore_helper` undoes what must not outlive
//! hither. An [`OnlineMapper`], which `app` provides, computes the mapping.
mod address_spaces;
mod affinity_proxy;
pub mod analysis;
mod attach;
mod engine;
pub mod event_log;
mod filter_trigger;
pub mod mechanism;
mod memory_peak;
mod observed_runs;
mod observer;
pub mod outcome;
mod page_migration;
mod pinned_threads;
pub mod profile_builder;
mod remap_trigger;
pub mod request;
mod restore_helper;
mod sample_candidates;
pub mod sampler;
mod session;
mod state;
mod sysctls;
mod taken_pages;
mod thread_table;
mod unobservable;

pub use attach::{process_tree, ProcessTree};
pub use session::{allowed_cpus, attach, run};
pub use unobservable::check as check_joinable;
