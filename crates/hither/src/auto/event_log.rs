//! What is told of a run: a line for each interval in which something happened, for machines,
//! and how it all went, at the end.
use std::fs::File;
use std::io::Write;

use hither_profile::{Nanos, RunEnd};
use serde::Serialize;

use hither_sys::{Cpu, Node, Pid, Tid};

/// An interval of 100 ms, as a line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    /// Milliseconds since the start.
    pub at: u64,
    /// Page faults in the interval, those of them that samplers caused, and records lost.
    pub faults: u64,
    pub extra: u64,
    pub lost: u64,
    /// Pairs of threads (kernel's ids) that share, with their events after ageing.
    pub pairs: Vec<(Tid, Tid, f64)>,
    /// Threads that were put on a unit.
    pub seated: Vec<(Tid, Cpu)>,
    pub pages_moved: u64,
    /// Of the faults those on pages that were known, and of these those on a node where the
    /// page is not, as far as is known: by first touch and by what was moved.
    pub known: u64,
    pub remote: u64,
    /// All threads that live.
    pub threads: Vec<ThreadNow>,
    /// Since the start: threads and pages moved, and what it cost.
    pub all_threads_moved: u64,
    pub all_pages_moved: u64,
    pub cost: Cost,
    /// Per cent of the program's processor time that may be spent.
    pub budget: f64,
}

/// A thread that lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadNow {
    pub pid: Pid,
    pub tid: Tid,
    pub name: String,
    /// The unit that it faulted on last, and its node.
    pub cpu: Option<Cpu>,
    pub node: Option<Node>,
    /// The unit that it was put on.
    pub seat: Option<Cpu>,
    pub chose_itself: bool,
}

/// Who looks on while a program runs.
pub trait Watch {
    /// What is so now; every 100 ms.
    fn show(&mut self, line: &Line);
    /// This process is about to stop, or goes on.
    fn pause(&mut self, stopping: bool);
}

/// A thread that lived at the end or was placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadReport {
    pub pid: Pid,
    pub tid: Tid,
    pub cpu: Option<Cpu>,
    pub chose_itself: bool,
}

/// Time of hither by what it was spent on (kMAF, figure 12).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Processor time of hither, all in all.
    pub cpu: Nanos,
    pub injecting: Nanos,
    /// Reading and sorting records, tables and matrix.
    pub detecting: Nanos,
    pub mapping: Nanos,
    /// Moving threads and pages.
    pub migrating: Nanos,
    /// What the extra faults cost the program, estimated.
    pub faulting: Nanos,
    /// Processor time of the program.
    pub target: Nanos,
}

/// A run that is over, or that was left.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    pub command: Vec<String>,
    pub end: RunEnd,
    pub duration: Nanos,
    /// `kmaf` or `spcd`.
    pub mechanism: String,
    pub samplers: Vec<String>,
    pub faults: u64,
    pub extra: u64,
    pub lost: u64,
    pub events: u64,
    /// Times that threads were mapped, and threads that were put elsewhere in all.
    pub mappings: u64,
    pub threads_moved: u64,
    pub pages_moved: u64,
    pub pages_refused: u64,
    pub threads: Vec<ThreadReport>,
    /// Eq. 7, 8 and 9, in bytes.
    pub entries: usize,
    pub entry_bytes: usize,
    pub table_bytes: usize,
    pub matrix_bytes: usize,
    pub cost: Cost,
    pub notes: Vec<String>,
}

/// Writes lines as they come.
#[derive(Debug, Default)]
pub struct Journal(Option<File>);

impl Journal {
    #[must_use]
    pub fn new(file: Option<File>) -> Journal {
        Journal(file)
    }

    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// A reader that is gone wants no more.
    pub fn write(&mut self, line: &Line) {
        let Some(file) = &mut self.0 else {
            return;
        };
        let Ok(mut text) = serde_json::to_vec(line) else {
            return;
        };
        text.push(b'\n');
        if file.write_all(&text).is_err() {
            self.0 = None;
        }
    }
}
