//! What `hither auto` takes from other stages: who sits where from `map`, names from `trace`.
pub mod mapper;
pub mod structures;
