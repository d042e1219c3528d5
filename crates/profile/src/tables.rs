//! The rows of a profile's tables, one struct per table. `docs/format.md` describes
//! every column for readers outside this crate.
use crate::ids::{ObjectIx, PageNo, ProcessIx, RegionIx, SliceIx, ThreadIx};
use serde::{Deserialize, Serialize};

/// Nanoseconds since the start of the run.
pub type Nanos = u64;
/// Bytes in a page of the `pages` table.
pub const PAGE_SIZE: u64 = 1 << PAGE_BITS;
/// Its log2.
pub const PAGE_BITS: u32 = 12;

/// Numbers of the pages [first, end) that a range of bytes lies in.
#[must_use]
pub fn pages_around(address: u64, length: u64) -> (u64, u64) {
    let end = address.saturating_add(length);
    (address >> PAGE_BITS, end.div_ceil(PAGE_SIZE))
}

/// One thread of the traced run. Row number = [`ThreadIx`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// The process it belongs to.
    pub process: ProcessIx,
    /// The kernel's thread id.
    pub tid: i32,
    /// Name, as the source or the kernel has it.
    pub name: String,
    /// The thread that created this one; `None` for the first of a process.
    pub creator: Option<ThreadIx>,
    /// Start, ns since the start of the run.
    pub start: Nanos,
    /// End, ns since the start of the run.
    pub end: Nanos,
    /// Instructions executed.
    pub instructions: u64,
    /// Memory accesses; with sampling, estimates for the whole run.
    pub reads: u64,
    /// Writes; with sampling, an estimate for the whole run.
    pub writes: u64,
    /// The first thread of the role that it takes, see [`crate::Profile::by_roles`]; `None` where
    /// it is the first itself, and in older profiles.
    pub role: Option<ThreadIx>,
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
    /// Start, ns since the start of the run.
    pub start: Nanos,
    /// Duration, ns.
    pub length: Nanos,
    /// Accesses of all threads in the slice; with sampling, an estimate for the skipped slices
    /// around it too.
    pub accesses: u64,
    /// Amount of communication C_A (OPT eq. 3) of the slice, T = threads alive in it; with
    /// sampling, an estimate as accesses are.
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
    /// Of its duration, what lay before `--from` or after `--until`, ns.
    pub paused: Nanos,
}

impl Slice {
    /// How long accesses counted, ns.
    #[must_use]
    pub fn counted_time(&self) -> Nanos {
        self.length.saturating_sub(self.paused)
    }
}

/// Communication of one pair of threads in one slice (or a run of slices merged to
/// keep within the size budget: then the first of them). Sparse, `i < j`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairComm {
    /// The slice.
    pub slice: SliceIx,
    /// The thread with the smaller number.
    pub i: ThreadIx,
    /// The other thread.
    pub j: ThreadIx,
    /// Communication events: what i credits j plus what j credits i, so that M\[i\]\[j\] = M\[j\]\[i\].
    pub events: u64,
    /// Coherence events among them, see [`crate::ProfileMeta::has_coherence`].
    pub coherence: u64,
}

/// Accesses of one thread to one page in one page slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PageUse {
    /// First slice of the page slice, see [`crate::ProfileMeta::page_slices`].
    pub slice: SliceIx,
    /// The region.
    pub region: RegionIx,
    /// Page in the region, from 0.
    pub page: PageNo,
    /// Pages right behind it that the row stands for too: the counts are those of all together, see
    /// [`crate::PageRows`].
    pub following: u32,
    /// The thread.
    pub thread: ThreadIx,
    /// Reads; with sampling, an estimate for the whole run.
    pub reads: u64,
    /// Writes; with sampling, an estimate for the whole run.
    pub writes: u64,
    /// Times it had to be brought into a private cache, see [`crate::TraceOptions::cache`]; an estimate.
    pub fetches: u64,
}

/// What one thread does with a line that several threads use, at least one of them writing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LineUse {
    /// The region.
    pub region: RegionIx,
    /// Of the line, bytes from the region's start.
    pub offset: u64,
    /// The thread.
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
    /// Estimate of those of them that write; 0 in older profiles, whose `write_mask` tells whether any do.
    pub writes: u64,
}

/// A thread was put on a processing unit while it ran (`hither auto`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadMove {
    /// When, ns since the start of the run.
    pub at: Nanos,
    /// The thread.
    pub thread: ThreadIx,
    /// Unit and its node, by the kernel's numbers.
    pub pu: u32,
    /// NUMA node, by the kernel's number.
    pub node: u32,
}

/// A page was moved to a node while the program ran (`hither auto`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PageMove {
    /// When, ns since the start of the run.
    pub at: Nanos,
    /// The region.
    pub region: RegionIx,
    /// Page in the region, from 0.
    pub page: PageNo,
    /// By the kernel's number.
    pub node: u32,
}

/// First touch of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PageFirstTouch {
    /// The region.
    pub region: RegionIx,
    /// Page in the region, from 0.
    pub page: PageNo,
    /// Pages right behind it that the row stands for too.
    pub following: u32,
    /// The thread.
    pub thread: ThreadIx,
    /// The slice.
    pub slice: SliceIx,
}

/// What a region of an address space is.
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
    /// What it is.
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
    /// Address in this run, which says what regions have a large page in common; 0 where unknown.
    pub address: u64,
}

impl Region {
    /// The path of the file mapped without what the kernel adds to it, `memfd:NAME` of memory that has only a name;
    /// or an empty string.
    #[must_use]
    pub fn shown_file(&self) -> &str {
        let file = self.file.strip_suffix(" (deleted)").unwrap_or(&self.file);
        match file.strip_prefix('/') {
            Some(name) if name.starts_with("memfd:") => name,
            _ => file,
        }
    }

    /// The file whose pages, in the page cache, are mapped here; `None` for memory of the program's own, also
    /// under a name (/dev/shm, memfd_create), and where a redacted name does not tell these apart.
    #[must_use]
    pub fn mapped_file(&self) -> Option<&str> {
        let is_file = match self.kind {
            RegionKind::Mmap => !self.file.is_empty(),
            RegionKind::Shared => self.file.starts_with('/'),
            _ => false,
        };
        (is_file && !is_in_memory(&self.file)).then_some(self.file.as_str())
    }
}

/// Whether the path of a mapped file is that of memory: /dev/shm, memfd_create, System V.
#[must_use]
pub fn is_in_memory(path: &str) -> bool {
    ["/dev/", "/memfd:", "/SYSV"]
        .iter()
        .any(|start| path.starts_with(start))
}

/// What a data structure is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectKind {
    /// A global or static variable.
    #[default]
    Static,
    /// Blocks of one allocation site.
    Heap,
    /// An anonymous mapping, or all of a site.
    Mmap,
    /// A thread's stack.
    Stack,
    /// Memory that processes share.
    Shared,
    /// The copies of a thread-local variable that all threads have.
    ThreadLocal,
}

/// A data structure. Row number = [`ObjectIx`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// The variable, else `file:line (function)`.
    pub name: String,
    /// Type with dimensions as in the source (`double [64][64]`), or empty.
    pub type_name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// Bytes: of a site, of its blocks that lived at the same time, at most.
    pub size: u64,
    /// Blocks allocated at this site (1 for statics).
    pub count: u64,
    /// Bytes of all these blocks together; 0 for others than heap blocks, and in older profiles.
    pub allocated: u64,
    /// Bytes of the smallest of them.
    pub smallest: u64,
    /// Bytes of the largest of them.
    pub largest: u64,
    /// Declaration or allocation site.
    pub file: String,
    /// Line there; 0 where unknown.
    pub line: u32,
    /// Function; empty where unknown.
    pub function: String,
    /// The process it belongs to.
    pub process: ProcessIx,
    /// Thread that allocated it; `None` for statics.
    pub owner: Option<ThreadIx>,
    /// Reads; with sampling, an estimate for the whole run.
    pub reads: u64,
    /// Writes; with sampling, an estimate for the whole run.
    pub writes: u64,
    /// Times it had to be brought into a private cache, see [`crate::TraceOptions::cache`]; an estimate.
    pub fetches: u64,
    /// True when it shares one symbol with other variables, and they its reads and writes.
    pub estimated: bool,
}

impl Object {
    /// Begins the names of literals, which have none of their own: the file follows.
    pub const CONSTANTS_OF: &'static str = "constants of ";
    /// Begins the name of blocks that a library keeps for itself: its name follows.
    pub const BLOCKS_OF: &'static str = "blocks of ";
}

/// One of the call paths by which the blocks of an object are allocated.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AllocationPath {
    /// The data structure.
    #[serde(skip)]
    pub object: ObjectIx,
    /// `function (file:line)` of each call, the outermost first, separated by `;`: a folded stack.
    #[serde(skip)]
    pub path: String,
    /// Blocks allocated by it.
    pub count: u64,
    /// Bytes of its blocks that lived at the same time, at most.
    pub size: u64,
    /// Bytes of all its blocks together.
    pub allocated: u64,
    /// Bytes of the smallest of them.
    pub smallest: u64,
    /// Bytes of the largest of them.
    pub largest: u64,
    /// Reads of its blocks; with sampling, an estimate for the whole run.
    pub reads: u64,
    /// Writes to its blocks; with sampling, an estimate for the whole run.
    pub writes: u64,
    /// Times it had to be brought into a private cache, see [`crate::TraceOptions::cache`]; an estimate.
    pub fetches: u64,
}

/// A byte range of a region that belongs to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObjectRange {
    /// The data structure.
    pub object: ObjectIx,
    /// The region.
    pub region: RegionIx,
    /// Bytes from the region's start.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// A field of a structure, or of the elements of an array of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectMember {
    /// The data structure.
    pub object: ObjectIx,
    /// Name, as the source or the kernel has it.
    pub name: String,
    /// Type as in the source, or empty.
    pub type_name: String,
    /// Bytes from the start of the structure.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// Accesses that one source line makes to one object, from samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceSite {
    /// The data structure.
    pub object: Option<ObjectIx>,
    /// Source file.
    pub file: String,
    /// Line there; 0 where unknown.
    pub line: u32,
    /// Function; empty where unknown.
    pub function: String,
    /// Function of a library that accesses on behalf of this line, such as memset; empty where the
    /// line itself does.
    pub callee: String,
    /// Reads; with sampling, an estimate for the whole run.
    pub reads: u64,
    /// Writes; with sampling, an estimate for the whole run.
    pub writes: u64,
    /// Times it had to be brought into a private cache, see [`crate::TraceOptions::cache`]; an estimate.
    pub fetches: u64,
}

impl SourceSite {
    /// The function for people: `main`, or `main, in memset`.
    #[must_use]
    pub fn function_and_callee(&self) -> String {
        match (self.function.as_str(), self.callee.as_str()) {
            (function, "") => function.to_owned(),
            ("", callee) => format!("in {callee}"),
            (function, callee) => format!("{function}, in {callee}"),
        }
    }
}

/// A source line whose accesses were the first to pages of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FirstTouchLine {
    /// The data structure.
    pub object: ObjectIx,
    /// Thread that touched.
    pub thread: ThreadIx,
    /// Source file; for a library's function without source, such as memset, that of its caller.
    pub file: String,
    /// Line there; 0 where unknown.
    pub line: u32,
    /// Function; empty where unknown.
    pub function: String,
    /// The calls that led there, as of an [`AllocationPath`]; empty in older profiles.
    pub path: String,
    /// It was in a parallel region, or by another thread than the first of its process.
    pub in_parallel: bool,
    /// Pages.
    pub pages: u64,
}

/// A thread that accesses an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectThread {
    /// The data structure.
    pub object: ObjectIx,
    /// The thread.
    pub thread: ThreadIx,
}

/// A line of a source file, kept because a report may quote it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceText {
    /// Source file.
    pub file: String,
    /// Line there, from 1.
    pub line: u32,
    /// What it says, without its end; the rest of a long line is left out.
    pub text: String,
}

/// A process image of the run. Row number = [`ProcessIx`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// The kernel's process id.
    pub pid: i32,
    /// The process that forked it; `None` for the first.
    pub parent: Option<ProcessIx>,
    /// Path of the program.
    pub executable: String,
    /// Its number among the ranks of an MPI job on this host, where its environment told.
    #[serde(default)]
    pub rank: Option<u32>,
    /// Start, ns since the start of the run.
    pub start: Nanos,
    /// End, ns since the start of the run.
    pub end: Nanos,
}
