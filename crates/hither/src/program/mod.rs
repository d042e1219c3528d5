//! The user's program, for every stage that starts one: what a command names, waiting for
//! it and passing signals on, whether it is a rank of an MPI job,
//! where its threads synchronise, what machine it runs on, and by what clocks.
pub mod child;
pub mod clock;
pub mod elf_header;
pub mod mpi;
pub mod sync_points;
pub mod target;
pub mod this_machine;
pub mod withheld_environment;
