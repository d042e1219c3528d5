//! Is what `hither sim` says true? Against other simulators and what papers measured.
mod cachegrind;
#[path = "../common/mod.rs"]
mod common;
mod papers;
