//! Is what `hither sim` says true? Against other simulators and what papers measured.
mod cachegrind;
#[allow(dead_code)] // Other tests use more of it.
#[path = "../common/mod.rs"]
#[allow(dead_code)] // Other tests use more of it.
mod common;
mod papers;
