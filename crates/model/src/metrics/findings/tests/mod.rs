//! Finders on profiles made by hand, on the two sides of each threshold.
mod data;
mod gains;
mod lines;
mod made;
mod owners;
mod places;
mod processes;
mod repeated;
mod traffic;

pub use made::Made;
