//! Starts the target under the tracer, collects, writes the profile.
pub mod collector;
pub mod hooks;
pub mod launch;
pub mod leader_split;
pub mod rank_join;
pub mod symbolizer;
pub mod symbolizer_process;
pub mod symbols;
pub mod unsupported;
