//! Starts the target under the tracer, collects, writes the profile.
pub mod collector;
pub mod naming;
