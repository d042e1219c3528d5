//! Burst traces: for short windows of a run, every access of every thread, in order.
//!
//! `bursts.bin` of a profile, written while the program ran (`hither trace --bursts`) and read
//! piece by piece: a window may hold more than fits into memory.
//!
//! ```text
//! framing.rs: numbers and frames    block.rs: what is the same each time a block runs
//!          \                         /
//!   io/burst_writer.rs: the file, growing    reader.rs, block_tables.rs: the file, complete or not
//!   encode.rs: accesses -> code     decode.rs: code -> accesses
//! ```
mod block;
mod block_tables;
mod decode;
mod encode;
pub(crate) mod framing;
mod reader;

pub use block::{
    access_source, register_source, BasicBlock, BlockAccess, RegisterChange, ValueSources,
    MAX_BLOCKS, MAX_BLOCK_ACCESSES, MAX_SITES, NO_SOURCE, REGISTER_COUNT,
};
pub use decode::{MAX_LOCALS, MAX_LOCAL_SITES};
pub use encode::{PieceCode, PieceEncoder};
pub(crate) use framing::BURSTS_FILE;
pub use framing::{
    CUT, FRESH, MAX_ACCESSES, MAX_EXECUTIONS, MAX_PLACES, MAX_REACH, MAX_WINDOWS, WAITED,
};
pub use reader::{BurstTrace, PieceDecoder};

use crate::ids::{PageNo, ProcessIx, RegionIx, ThreadIx};
use crate::tables::Nanos;

/// An access as the program made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurstAccess {
    /// Virtual address in the thread's process.
    pub address: u64,
    /// Bytes, at least 1. An instruction that touches a range (`rep movs`) is one access for
    /// each direction.
    pub bytes: u32,
    /// Whether it writes.
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
pub struct BurstPiece {
    /// The thread that made them.
    pub thread: ThreadIx,
    /// Its process.
    pub process: ProcessIx,
    /// When its first access was made, and when it was complete.
    pub start: Nanos,
    /// When it was complete, ns since the start of the run.
    pub end: Nanos,
    /// The thread had waited in the kernel just before: it goes on no earlier than all that other
    /// threads had done by `start`.
    pub waited: bool,
    /// Memory accesses.
    pub accesses: u64,
    /// Instructions executed.
    pub instructions: u64,
}

impl BurstPiece {
    /// What no tracer can have seen a reader refuses.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.accesses <= MAX_ACCESSES as u64
            && self.instructions < u64::from(MAX_EXECUTIONS) << 16
            && self.start <= self.end
            && self.end < 1 << 62
    }
}

/// A window: from `start` on each thread that ran was recorded for a while.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BurstWindow {
    /// Start, ns since the start of the run.
    pub start: Nanos,
    /// When it was complete, ns since the start of the run.
    pub end: Nanos,
    /// There was no room for all that some thread did: its pieces end early.
    pub cut: bool,
    /// Sorted by start; those of one thread in its order.
    pub pieces: Vec<BurstPiece>,
}

/// Pages of a process, side by side, and their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedPages {
    /// Its process.
    pub process: ProcessIx,
    /// Address of the first, in pages of 4096 bytes.
    pub page: u64,
    /// Number of pages.
    pub pages: u64,
    /// The region.
    pub region: RegionIx,
    /// The first page, in the region.
    pub first: PageNo,
}
