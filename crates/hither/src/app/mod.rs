//! The stages joined: what a verb does, with typed options, without arguments and printing.
//!
//! ```text
//! assessment   profile, placement -> figures, findings, verdict: what report and check share
//! map      profile, machine -> placement
//! study    recording, machines, placements (of map) -> forecast
//! best     map with the policies that a study finds to be the fastest
//! ```
pub mod assessment;
pub mod best;
pub mod map;
pub mod study;
pub mod text;
