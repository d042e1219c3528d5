//! Starts the target under the tracer, collects, writes the profile.
pub mod collector;
pub mod hooks;
pub mod join;
pub mod launch;
pub mod naming;
pub mod rank;
pub mod symbols;
