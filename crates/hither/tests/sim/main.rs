//! `hither sim`: predictions of placements, from recordings made by hand and real ones.
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod made;
