//! A line of JSON for each interval in which something happened.
use std::fs::File;
use std::io::Write;

use serde::Serialize;

use super::outcome::AutoOverhead;
use hither_sys::{Cpu, Node, Pid, Tid};

/// An interval of 100 ms, as a line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IntervalEvent {
    /// Milliseconds since the start.
    pub at: u64,
    /// Page faults in the interval, those of them that samplers caused, and records lost.
    pub faults: u64,
    pub extra: u64,
    pub lost: u64,
    /// Pairs of threads (kernel's ids) that share, with their events after ageing.
    pub pairs: Vec<(Tid, Tid, f64)>,
    /// Threads that were put on a unit.
    #[serde(rename = "seated")]
    pub pinned: Vec<(Tid, Cpu)>,
    pub pages_moved: u64,
    /// Of the faults those on pages that were known, and of these those on a node where the
    /// page is not, as far as is known: by first touch and by what was moved.
    pub known: u64,
    pub remote: u64,
    /// All threads that live.
    pub threads: Vec<ThreadSnapshot>,
    /// Since the start: threads and pages moved, and what it cost.
    pub all_threads_moved: u64,
    pub all_pages_moved: u64,
    pub cost: AutoOverhead,
    /// Per cent of the program's processor time that may be spent.
    pub budget: f64,
}

/// A thread that lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadSnapshot {
    pub pid: Pid,
    pub tid: Tid,
    pub name: String,
    /// The unit that it faulted on last, and its node.
    pub cpu: Option<Cpu>,
    pub node: Option<Node>,
    /// The unit that it was put on.
    #[serde(rename = "seat")]
    pub assigned_cpu: Option<Cpu>,
    pub chose_itself: bool,
}

/// A view of the running program that is updated as it runs.
pub trait LiveView {
    /// The state now; called every 100 ms.
    fn show_interval(&mut self, line: &IntervalEvent);
    /// This process is about to stop, or goes on.
    fn suspend(&mut self, stopping: bool);
}

/// Writes lines as they come.
#[derive(Debug, Default)]
pub struct EventLog(Option<File>);

impl EventLog {
    #[must_use]
    pub fn new(file: Option<File>) -> EventLog {
        EventLog(file)
    }

    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// A reader that is gone wants no more.
    pub fn write(&mut self, line: &IntervalEvent) {
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
