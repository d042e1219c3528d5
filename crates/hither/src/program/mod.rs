//! The user's program, for every stage that starts one: what a command names, waiting for
//! it and passing signals on, whether it is a rank of an MPI job,
//! where its threads synchronise, what machine it runs on.
pub mod child;
pub mod elf;
pub mod machine;
pub mod mpi;
pub mod sync;
pub mod target;
