//! Starts the target under the tracer, collects, writes the profile.
pub mod child;
pub mod collector;
pub mod elf;
pub mod hooks;
pub mod join;
pub mod launch;
pub mod mpi;
pub mod naming;
pub mod rank;
pub mod symbols;
pub mod target;
