//! Chores: `cargo xtask help`.
fn main() {}
