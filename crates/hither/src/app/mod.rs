//! The stages joined: what a verb does, with typed options, without arguments and printing.
//!
//! ```text
//! map      profile, machine -> placement
//! study    recording, machines, placements (of map) -> forecast
//! best     map with the policies that a study finds to be the fastest
//! ```
pub mod best;
pub mod map;
pub mod study;
pub mod text;
