//! Is it true? The real tracer on the programs of `workloads/`, whose head comments give
//! what to expect as formulas of their arguments. Names in the tests are those of the
//! formulas: N threads, R rounds, W words per round.
//!
//! What is shared in one slice and read in the next does not count as communication, so a
//! cell may miss one round per slice; slices are wall time and their number is taken from
//! the profile. Counts per page and thread have no such excuse and must match exactly.
mod bursts;
mod ends;
mod fetches;
mod kinds;
mod lines;
mod locals;
mod openmp;
mod options;
mod oracle;
mod parts;
mod repeat;
mod run;
mod sampled;
mod shared;
mod slices;
mod structures;
mod threads;
mod view;
#[path = "../common/workloads.rs"]
mod workloads;
