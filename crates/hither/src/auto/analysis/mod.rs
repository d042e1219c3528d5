//! From page faults to the communication matrix and the node of each page. Pure: no system
//! calls and no clock; the same faults in the same order give the same answers.
//!
//! ```text
//!  Access --> Detector: affinity table (kMAF) or table of regions (SPCD) --> SharingMatrix
//!                `--> node on which the page belongs (kMAF, eq. 6)
//! ```
pub mod affinity_settings;
pub mod affinity_table;
pub mod fault_rate;
pub mod region_table;
pub mod sharing_matrix;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use hither_profile::{Nanos, NodeIx};
use sharing_matrix::SharingMatrix;

/// A thread that lives: its row in the matrix. Numbers of threads that ended are given out
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharerId(pub u16);

impl SharerId {
    #[must_use]
    pub fn at(self) -> usize {
        usize::from(self.0)
    }
}

/// Something that is made of pages: the private memory of a process, or a file or piece of
/// shared memory, in whatever process and at whatever address it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryObject(pub u32);

/// A page of 4 KiB: of private memory its address / 4096, else its offset / 4096.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectPage {
    pub object: MemoryObject,
    pub number: u64,
}

/// A page fault, which tells of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultAccess {
    pub thread: SharerId,
    /// The node of the processor that it happened on.
    pub node: NodeIx,
    pub page: ObjectPage,
    /// Byte within the page.
    pub offset: u16,
    pub at: Nanos,
    /// The page may have been taken by a sampler or by the kernel. Else, if it was accessed before,
    /// memory there is new.
    pub was_taken: bool,
}

/// What an access told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessObservation {
    /// The page had been accessed before: the fault is one that a sampler caused.
    pub known: bool,
    /// A page that had been accessed before was given back since.
    pub is_new_memory: bool,
    /// Threads that are known to use the page, though perhaps different parts of it.
    pub users: usize,
    /// The node on which the page belongs, where that is clear.
    pub belongs: Option<NodeIx>,
}

/// Elements of a table (SPCD III.B.1): 1 GB of address space in pages of 4 KiB. It is the
/// upper bound of both tables; of two entries that fall on one element the later overwrites
/// the earlier.
pub const TABLE_ENTRIES: usize = 256_000;

/// As the hash function of Linux: 2^64 divided by the golden ratio.
pub const GOLDEN_RATIO_64: u64 = 0x61C8_8646_80B5_83EB;

/// The element of a table of `elements` to which a page or region hashes.
fn element(object: MemoryObject, number: u64, elements: usize) -> usize {
    let key = (number ^ u64::from(object.0).rotate_right(20)).wrapping_mul(GOLDEN_RATIO_64);
    ((u128::from(key) * elements as u128) >> 64) as usize
}

/// Milliseconds by which a record may come after later ones.
const LATE: u32 = 10_000;

/// The millisecond of an access. Wraps after 49 days, as what it is compared with does.
fn milliseconds(at: Nanos) -> u32 {
    (at / 1_000_000) as u32
}

/// Milliseconds since `then`; what comes a little out of order is of now.
fn age_ms(then: u32, now: u32) -> u32 {
    match now.wrapping_sub(then) {
        before if before > u32::MAX - LATE => 0,
        since => since,
    }
}

/// Whether each sharer is among these, for tables in which each entry is to be asked.
fn marks(sharers: &[SharerId]) -> Vec<bool> {
    let most = sharers.iter().map(|sharer| sharer.at() + 1).max();
    let mut marks = vec![false; most.unwrap_or(0)];
    sharers.iter().for_each(|sharer| marks[sharer.at()] = true);
    marks
}

/// Objects as tables number them, from 1.
fn object_numbers(objects: &[MemoryObject]) -> HashSet<u32> {
    objects
        .iter()
        .map(|object| object.0.wrapping_add(1))
        .collect()
}

/// Makes communication out of accesses.
pub trait SharingDetector {
    /// Takes in an access and adds what it tells of communication to the matrix.
    fn access(&mut self, access: &FaultAccess, matrix: &mut SharingMatrix) -> AccessObservation;
    /// Whether others are known to use the page.
    fn is_used_by_others(&self, page: ObjectPage, who: SharerId) -> bool;
    /// The page was moved to the node on which it belonged.
    fn page_migrated(&mut self, page: ObjectPage);
    /// These threads are gone; their numbers will stand for others.
    fn forget_sharers(&mut self, gone: &[SharerId]);
    /// These objects are gone.
    fn forget_objects(&mut self, gone: &[MemoryObject]);
    /// What it takes.
    fn footprint(&self) -> DetectorFootprint;
}

/// Bytes of a counter of the NUMA vector.
const COUNTER: usize = 2;
/// Bytes of a thread's number.
const THREAD: usize = 2;
/// Bytes of a sharer in the sub-block vector: its number, when it was seen, and how.
const SHARER: usize = 8;
/// Bytes of an element of the sharing matrix.
const CELL: usize = 4;

/// Memory of a detector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetectorFootprint {
    /// Entries in use, at most at a time.
    pub entries: usize,
    pub entry_bytes: usize,
    /// Of the whole table.
    pub table_bytes: usize,
}

impl DetectorFootprint {
    /// Equations 7 and 8, with what is kept besides the sharers' numbers: when and how they
    /// were seen, and who touched a page first.
    ///
    ///   entry = counter * N + page / sub-block * sharer * sharers + thread id
    ///   table = entries * entry
    ///
    /// `sharers`: of all sub-blocks of a page together.
    #[must_use]
    pub fn of_affinity_table(entries: usize, nodes: usize, sharers: usize) -> DetectorFootprint {
        let entry_bytes = COUNTER * nodes + SHARER * sharers + THREAD;
        DetectorFootprint {
            entries,
            entry_bytes,
            table_bytes: entries * entry_bytes,
        }
    }
}

/// Equation 9: bytes of the matrix of this many threads.
#[must_use]
pub fn of_matrix(threads: usize) -> usize {
    threads * threads * CELL
}
