//! Starts the target under the tracer, collects, writes the profile.
pub mod naming;
#[allow(dead_code)] // Until the collector asks.
pub mod symbols;
