//! What decides where threads and pages go: it receives every event of the followed program,
//! in order, and answers what to do. Neither this nor an implementation makes system calls.
use crate::follow::proc_maps::MemoryMapping;
use hither_profile::{RegionIx, ThreadIx};
use hither_sys::{Cpu, Node, Pid, Tid};

/// Bytes of an address space, in whole pages, that belong on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageBind {
    pub start: u64,
    pub length: u64,
    pub node: Node,
}

/// What starts in a process: found at fork of nothing, at each exec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecImage {
    /// Path of the program, links resolved (/proc/PID/exe).
    pub executable: String,
    /// Its rank among those of an MPI job on this host, where its environment tells.
    pub rank: Option<u32>,
    /// What is mapped already.
    pub mappings: Vec<MemoryMapping>,
    /// Stack pointer at the first instruction.
    pub stack_pointer: u64,
    /// Soft limit of the stack in bytes, `u64::MAX` for none.
    pub stack_limit: u64,
}

/// What is to be done for a thread that starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitialPlacement {
    /// The thread of the profile it was recognised as.
    pub thread: Option<ThreadIx>,
    /// Where it is to run; `None`: wherever it may.
    pub cpu: Option<Cpu>,
    /// Pages to bind in its process now.
    pub binds: Vec<PageBind>,
}

/// Which phase the threads are placed for, and which the pages: threads may move more often
/// (OPT 6.2.2, 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivePhases {
    pub threads: usize,
    pub pages: usize,
}

/// What a change of phase asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseChange {
    pub threads: Vec<(Tid, Cpu)>,
    /// Pages to bind and, where they have memory already, to move; by process.
    pub pages: Vec<(Pid, Vec<PageBind>)>,
}

/// A region as it was found and asked for, for the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecognisedRegion {
    pub pid: Pid,
    /// The region of the placement, where there is one.
    pub region: Option<RegionIx>,
    /// For people: `app .data`, `heap`, `mapping 2 of 64 MiB by thread 0`.
    pub name: String,
    /// It is not quite the region of the profile: another size or number.
    pub nearest: bool,
    /// It was inherited by fork: a page not written since is still the parent's.
    pub copied: bool,
    /// Where its pages are now, those that were placed.
    pub binds: Vec<PageBind>,
}

/// Decides where threads and pages go.
pub trait PlacementGuide {
    /// The program's first image, at its first instruction.
    fn program_started(&mut self, pid: Pid, image: &ExecImage) -> InitialPlacement;
    /// `creator` made a thread of its process, whose stack pointer is at `stack_pointer`.
    fn thread_created(&mut self, creator: Tid, tid: Tid, stack_pointer: u64) -> InitialPlacement;
    /// `creator` made a process with a copy of its memory or, when `shares`, one that runs in
    /// its creator's memory until it calls exec (vfork, posix_spawn).
    fn process_forked(&mut self, creator: Tid, pid: Pid, shares: bool) -> InitialPlacement;
    /// Process `pid` runs another program now; `tid` called exec, and is `pid` from here on.
    fn process_execed(&mut self, pid: Pid, tid: Tid, image: &ExecImage) -> InitialPlacement;
    /// A thread is ending. What [`PlacementGuide::recognised_regions`] tells of its process is to be asked before
    /// its last thread ends.
    fn thread_ended(&mut self, tid: Tid);
    /// mmap and shmat.
    fn mapped(&mut self, tid: Tid, mapping: &MemoryMapping) -> Vec<PageBind>;
    /// munmap and shmdt. Allocators that map more than they need and give head and tail back
    /// at once are recognised only then: the pages to bind may have memory already.
    fn unmapped(&mut self, tid: Tid, address: u64, length: u64) -> Vec<PageBind>;
    /// mremap, from (address, length) to (address, length): what belongs in the whole of the
    /// new range.
    fn remapped(&mut self, tid: Tid, old: (u64, u64), new: (u64, u64)) -> Vec<PageBind>;
    /// The end of the heap is at `end` now. The first call of an image tells its start.
    fn heap_moved(&mut self, tid: Tid, end: u64) -> Vec<PageBind>;
    /// Phases there are; they are numbered from 0, in which the program starts.
    fn phase_count(&self) -> usize;
    /// From here on the threads are placed as in one phase, and the pages as the moves of all
    /// phases up to another leave them: phases between may have been skipped.
    fn enter_phases(&mut self, holding: ActivePhases) -> PhaseChange;
    /// The regions of a process that were recognised, and where their pages belong now.
    fn recognised_regions(&self, pid: Pid) -> Vec<RecognisedRegion>;
    /// The shortest mapping in bytes that is worth stopping at; `None`: none is.
    fn smallest_mapping(&self) -> Option<u64>;
    /// Remarks for the user, at the end: a sentence each.
    fn notes(&self) -> Vec<String>;
}
