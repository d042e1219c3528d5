//! The rows of a profile's tables, one struct per table. `docs/format.md` describes
//! every column for readers outside this crate.
use crate::ids::{ObjectIx, PageNo, ProcessIx, RegionIx, SliceIx, ThreadIx};
use serde::{Deserialize, Serialize};

/// Nanoseconds since the start of the run.
pub type Nanos = u64;
/// Bytes in a page of the `pages` table.
pub const PAGE_SIZE: u64 = 4096;

/// One thread of the traced run. Row number = [`ThreadIx`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    pub process: ProcessIx,
    /// The kernel's thread id.
    pub tid: i32,
    pub name: String,
    /// The thread that created this one; `None` for the first of a process.
    pub creator: Option<ThreadIx>,
    pub start: Nanos,
    pub end: Nanos,
    pub instructions: u64,
    /// Memory accesses; with sampling, estimates for the whole run.
    pub reads: u64,
    pub writes: u64,
}

impl Thread {
    /// All memory accesses of the thread.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }
}

/// One slice of time. Row number = [`SliceIx`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slice {
    pub start: Nanos,
    pub length: Nanos,
    /// Accesses of all threads in the slice.
    pub accesses: u64,
    /// Amount of communication C_A (OPT eq. 3) of the slice, T = threads alive in it.
    pub amount: f64,
    /// Heterogeneity C_H (OPT eq. 1, 2) of the slice, T = threads alive in it.
    pub heterogeneity: f64,
    /// Threads alive in the slice (the T of the two values above).
    pub threads: u32,
    /// Synchronisation points passed: pthread_barrier_wait, OpenMP barriers, OpenMP
    /// parallel regions, MPI_Barrier, summed over threads; whatever of the run is traced.
    pub sync: [u64; 4],
    /// False when sampling skipped the slice: its counts are zero.
    pub traced: bool,
}

/// Communication of one pair of threads in one slice (or a run of slices merged to
/// keep within the size budget: then the first of them). Sparse, `i < j`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairComm {
    pub slice: SliceIx,
    pub i: ThreadIx,
    pub j: ThreadIx,
    /// Communication events: what i owes j plus what j owes i, so that M[i][j] = M[j][i].
    pub events: u64,
}

/// Accesses of one thread to one page in one page slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PageUse {
    /// First slice of the page slice, see [`crate::ProfileMeta::page_slices`].
    pub slice: SliceIx,
    pub region: RegionIx,
    pub page: PageNo,
    pub thread: ThreadIx,
    pub reads: u64,
    pub writes: u64,
}

/// What one thread does with a line that several threads use, at least one of them writing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LineUse {
    pub region: RegionIx,
    /// Of the line, bytes from the region's start.
    pub offset: u64,
    pub thread: ThreadIx,
    /// Accesses that were looked at: the masks tell what these touched.
    pub seen: u64,
    /// The bytes it reads: bit n is the n-th 64th of the line, a byte in lines of 64. Bytes that
    /// less than 1 in 256 of the accesses touch are left out.
    pub read_mask: u64,
    /// The same of those it writes.
    pub write_mask: u64,
    /// Estimate of its accesses to the line in slices in which others used it as well.
    pub accesses: u64,
}

/// A thread was put on a processing unit while it ran (`hither auto`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadMove {
    pub at: Nanos,
    pub thread: ThreadIx,
    /// Unit and its node, by the kernel's numbers.
    pub pu: u32,
    pub node: u32,
}

/// A page was moved to a node while the program ran (`hither auto`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PageMove {
    pub at: Nanos,
    pub region: RegionIx,
    pub page: PageNo,
    /// By the kernel's number.
    pub node: u32,
}

/// Who touched a page first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PageFirstTouch {
    pub region: RegionIx,
    pub page: PageNo,
    pub thread: ThreadIx,
    pub slice: SliceIx,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegionKind {
    /// A segment of an ELF file (program, library).
    Elf,
    /// The heap grown by brk.
    Brk,
    /// The n-th anonymous or private mapping of its size by its thread.
    #[default]
    Mmap,
    /// The stack of a thread.
    Stack,
    /// A mapping of a file or memory that processes share.
    Shared,
    /// Anything else (vdso, pages nothing is known about).
    Other,
}

/// One region of an address space. Row number = [`RegionIx`]. A page is named by
/// (region, page number in it), which stays valid from run to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    pub kind: RegionKind,
    /// Owner; for [`RegionKind::Shared`] the first process that mapped it.
    pub process: ProcessIx,
    /// Thread that mapped it, or whose stack it is.
    pub thread: Option<ThreadIx>,
    /// Which mapping of this size by this thread (0..), for [`RegionKind::Mmap`].
    pub ordinal: u32,
    /// Bytes.
    pub size: u64,
    /// Path of the file mapped, or an empty string.
    pub file: String,
    /// Offset of the region in that file, or address relative to the module's base.
    pub file_offset: u64,
    /// Address in this run; for orientation only.
    pub address: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectKind {
    #[default]
    Static,
    Heap,
    Mmap,
    Stack,
    Shared,
}

/// A data structure. Row number = [`ObjectIx`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// The variable, else `file:line (function)`.
    pub name: String,
    /// Type with dimensions as in the source (`double [64][64]`), or empty.
    pub type_name: String,
    pub kind: ObjectKind,
    /// Bytes, summed over `count` blocks.
    pub size: u64,
    /// Blocks allocated at this site (1 for statics).
    pub count: u64,
    /// Declaration or allocation site.
    pub file: String,
    pub line: u32,
    pub function: String,
    pub process: ProcessIx,
    /// Thread that allocated it; `None` for statics.
    pub owner: Option<ThreadIx>,
    pub reads: u64,
    pub writes: u64,
    /// True when reads and writes are estimated from samples (it shares pages).
    pub estimated: bool,
}

/// A byte range of a region that belongs to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObjectRange {
    pub object: ObjectIx,
    pub region: RegionIx,
    /// Bytes from the region's start.
    pub offset: u64,
    pub length: u64,
}

/// A field of a structure, or of the elements of an array of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectMember {
    pub object: ObjectIx,
    pub name: String,
    pub type_name: String,
    /// Bytes from the start of the structure.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// Accesses that one source line makes to one object, from samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceSite {
    pub object: Option<ObjectIx>,
    pub file: String,
    pub line: u32,
    pub function: String,
    pub reads: u64,
    pub writes: u64,
}

/// A process image of the run. Row number = [`ProcessIx`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    pub pid: i32,
    pub parent: Option<ProcessIx>,
    pub executable: String,
    /// Its number among the ranks of an MPI job on this host, where its environment told.
    #[serde(default)]
    pub rank: Option<u32>,
    pub start: Nanos,
    pub end: Nanos,
}
