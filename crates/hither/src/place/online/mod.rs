//! Finds a placement while the program runs, and applies it.
pub mod analysis;
