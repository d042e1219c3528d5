//! What `hither auto` takes from other stages: who sits where from `map`, names from `trace`.
pub mod incremental_mapper;
pub mod structures;
