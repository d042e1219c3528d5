//! How a run went, at the end.
use std::collections::BTreeMap;

use hither_profile::{Nanos, RunEnd};
use hither_sys::{Cpu, Pid, Tid};
use serde::Serialize;

/// A thread that lived at the end or was placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AutoThreadOutcome {
    pub pid: Pid,
    pub tid: Tid,
    pub cpu: Option<Cpu>,
    pub chose_itself: bool,
}

/// Time of hither by what it was spent on (kMAF, figure 12).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AutoOverhead {
    /// Processor time of hither, all in all.
    pub cpu: Nanos,
    pub injecting: Nanos,
    /// Reading and sorting records, tables and matrix.
    pub detecting: Nanos,
    pub mapping: Nanos,
    /// Moving threads and pages.
    pub migrating: Nanos,
    /// What the extra faults, and the records of all, cost the program, estimated.
    pub faulting: Nanos,
    /// Processor time of the program.
    pub target: Nanos,
}

/// A run that is over, or that was left.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AutoOutcome {
    pub command: Vec<String>,
    pub end: RunEnd,
    pub duration: Nanos,
    /// `adaptive`, `kmaf` or `spcd`; what mapped threads, and what was set of the mechanism.
    pub mechanism: String,
    pub policy: String,
    pub parameters: BTreeMap<String, f64>,
    pub samplers: Vec<String>,
    pub faults: u64,
    pub extra: u64,
    pub lost: u64,
    pub events: u64,
    /// Times that there were events enough to ask where threads belong.
    pub decisions: u64,
    /// Times that threads were mapped, and threads that were put elsewhere in all.
    pub mappings: u64,
    pub threads_moved: u64,
    pub pages_moved: u64,
    pub pages_refused: u64,
    /// Bytes that the program had at most, and those of the pages that faulted.
    pub memory: u64,
    pub memory_seen: u64,
    pub threads: Vec<AutoThreadOutcome>,
    /// Eq. 7, 8 and 9, in bytes.
    pub entries: usize,
    pub entry_bytes: usize,
    pub table_bytes: usize,
    pub matrix_bytes: usize,
    pub cost: AutoOverhead,
    pub notes: Vec<String>,
}
