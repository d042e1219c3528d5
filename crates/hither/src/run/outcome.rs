//! What was asked and what was got: printed at the end, and `--export-json`.
use hither_profile::{Nanos, RegionIx, RunEnd, ThreadIx};
use hither_sys::{Cpu, Node, Pid, Tid};
use serde::{Deserialize, Serialize};

/// A run that is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    pub command: Vec<String>,
    /// How the program ended.
    pub end: RunEnd,
    pub duration: Nanos,
    /// How the program was followed.
    pub method: FollowMethod,
    pub threads: Vec<ThreadOutcome>,
    pub regions: Vec<RegionOutcome>,
    /// Phases entered after the first, in order.
    pub phases: Vec<PhaseOutcome>,
    pub cost: CostOutcome,
    /// What differed from what was asked, and what could not be done: a sentence each.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FollowMethod {
    /// Every thread before its first instruction.
    #[default]
    Ptrace,
    /// From outside, by reading /proc repeatedly; pages are not placed.
    Polling,
}

/// A thread, by order of creation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadOutcome {
    pub pid: Pid,
    pub tid: Tid,
    pub name: String,
    /// The thread of the profile it was recognised as.
    pub thread: Option<ThreadIx>,
    /// Where it was to run last; `None`: wherever it may.
    pub asked: Option<Cpu>,
    /// Where the kernel last ran it, and the mask it had then; `None` when it was killed
    /// before anybody could look.
    pub ran: Option<Cpu>,
    pub allowed: Option<String>,
    /// Times that the kernel moved it from one unit to another, where it counts that.
    pub migrations: Option<u64>,
    /// It chose its units itself, which was let be.
    pub chose_itself: bool,
}

/// A region with placed pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionOutcome {
    pub pid: Pid,
    pub region: Option<RegionIx>,
    pub name: String,
    pub nearest: bool,
    /// Pages of 4 KiB that were asked for somewhere.
    pub asked: u64,
    /// Those of them that have memory, by node: `[node, pages]`.
    pub nodes: Vec<(Node, u64)>,
    /// Those of them with memory on the node asked for.
    pub right: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseOutcome {
    pub phase: usize,
    pub at: Nanos,
    pub threads_moved: u64,
    pub pages_moved: u64,
}

/// What following cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostOutcome {
    /// CPU nanoseconds of hither while the program ran.
    pub cpu: Nanos,
    /// Stops of the program that hither handled.
    pub stops: u64,
    /// Mappings that it looked at.
    pub mappings: u64,
    /// System calls made on the program's behalf.
    pub injected: u64,
}
