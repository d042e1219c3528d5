//! What the tables take (kMAF 3.5.1).
use super::affinity::{SHARERS, SUB_BLOCK};
use super::PAGE;

/// Bytes of a counter of the NUMA vector.
const COUNTER: usize = 2;
/// Bytes of a thread's number in the sub-block vector.
const THREAD: usize = 2;
/// Bytes of an element of the sharing matrix.
const CELL: usize = 4;

/// Memory of a detector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// Entries in use, at most at a time.
    pub entries: usize,
    pub entry_bytes: usize,
    /// Of the whole table.
    pub table_bytes: usize,
}

impl Storage {
    /// Equations 7 and 8:
    ///
    ///   entry = counter * N + page / sub-block * thread id * sharers
    ///   table = entries * entry
    #[must_use]
    pub fn of_affinity_table(entries: usize, nodes: usize) -> Storage {
        let blocks = (PAGE / SUB_BLOCK) as usize;
        let entry_bytes = COUNTER * nodes + blocks * THREAD * SHARERS;
        Storage {
            entries,
            entry_bytes,
            table_bytes: entries * entry_bytes,
        }
    }
}

/// Equation 9: bytes of the matrix of so many threads.
#[must_use]
pub fn of_matrix(threads: usize) -> usize {
    threads * threads * CELL
}
