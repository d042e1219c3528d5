//! Burst traces: for short windows of a run, every access of every thread, in order.
//!
//! `bursts.bin` of a profile, written while the program ran (`hither trace --bursts`) and read
//! piece by piece: a window may hold more than fits into memory.
use crate::ids::{ProcessIx, ThreadIx};
use crate::tables::Nanos;

/// An access as the program made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Virtual address in the thread's process.
    pub address: u64,
    /// Bytes, at least 1. An instruction that touches a range (`rep movs`) is one access for
    /// each direction.
    pub bytes: u32,
    pub write: bool,
    /// Instructions executed since the thread's previous access, the one that makes this access
    /// included; 0 for the second access of one instruction.
    pub after: u32,
    /// The address was computed from what the thread's n-th access before this one read;
    /// 0 where it depends on nothing that was read lately.
    pub depends: u32,
}

/// Accesses of one thread that were recorded together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub thread: ThreadIx,
    pub process: ProcessIx,
    /// When its first access was made, and when it was complete.
    pub start: Nanos,
    pub end: Nanos,
    /// The thread had waited in the kernel just before: it goes on no earlier than all that other
    /// threads had done by `start`.
    pub waited: bool,
    pub accesses: u64,
    pub instructions: u64,
}

/// A window: from `start` on each thread that ran was recorded for a while.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    pub start: Nanos,
    pub end: Nanos,
    /// Sorted by start; those of one thread in its order.
    pub pieces: Vec<Piece>,
}
