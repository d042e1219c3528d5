//! Is what `hither sim` says true? Against other simulators and what papers measured.
mod cachegrind;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../common/mod.rs"]
mod common;
mod papers;
