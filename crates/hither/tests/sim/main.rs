//! `hither sim`: predictions of placements, from recordings made by hand and real ones.
#[allow(dead_code)] // Other tests use more of it.
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod given;
mod made;
mod names;
mod refused;
mod traced;
