//! The only crate of hither with `unsafe` code: shared memory and system calls.
pub mod probe;
pub mod process;
