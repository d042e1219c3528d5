//! Predicting what a placement does: burst traces, a machine and a placement -> counts, time and
//! energy. Pure: the same input and seed give the same output.
pub mod file;
pub mod machine;
pub mod outcome;
pub mod replay;

use hither_profile::bursts::{Access, Piece};

/// What the threads of a window did, decoded a piece at a time. One for each simulation: several
/// read the same trace at the same time.
pub trait Source {
    /// Threads that have pieces in this window, each a position in `Setup::units`.
    fn threads(&self) -> &[u32];
    /// The next piece of a thread of [`Source::threads`], its accesses in `into` (which is cleared
    /// first): addresses are of one address space for all processes (shared memory has one
    /// address, other processes' memory lies apart). `None` at the end.
    fn next(&mut self, thread: u32, into: &mut Vec<Access>) -> Option<Piece>;
}

/// Where things are.
pub struct Setup<'a> {
    pub machine: &'a machine::Machine,
    /// By thread of the profile: its unit, a position in `Machine::units`. Several threads of one
    /// unit take turns.
    pub units: &'a [u32],
    /// The node of the page (address / 4096) that holds an address; `None`: whoever touches it
    /// first has it.
    pub home: &'a dyn Fn(u64) -> Option<u32>,
    /// Model time; without it caches and traffic only, threads in turn access by access.
    pub timed: bool,
}
