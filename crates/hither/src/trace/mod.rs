//! Starts the target under the tracer, collects, writes the profile.
#[allow(dead_code)] // Until the collector asks.
pub mod naming;
#[allow(dead_code, unused_imports)] // Likewise.
pub mod symbols;
