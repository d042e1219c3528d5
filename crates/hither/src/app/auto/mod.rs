//! What `hither auto` takes from other stages: thread placement from `map`, names from `trace`.
pub mod incremental_mapper;
pub mod structures;
