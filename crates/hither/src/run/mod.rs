//! Starts a program and keeps its threads and pages where they are wanted (OPT 6.2.2-6.4).
//!
//! ```text
//!  the user's shell
//!      |  exit status, job control
//!    front ------- pipe: outcome ------- follower (a process of its own session)
//!      | parent                             | ptrace, waits for stops
//!    program, its threads, its children ----+
//! ```
//! The front is the hither that the user started: it starts the program as its child, in
//! its process group, passes signals on and returns its status. The follower attaches to
//! it before its first instruction and to all it creates, and lives on after the front
//! while a daemon does.
//!
//! Who decides and who acts are apart: a [`Guide`] is told what the program does and
//! answers with processing units and [`guide::Bind`]s; it makes no system call.
mod calls;
mod engine;
mod exec_image;
mod followed_threads;
mod follower;
pub mod front;
pub mod guide;
mod lives;
pub mod matching;
mod moves;
mod mremap;
pub mod outcome;
pub mod page_residency;
pub mod pinning_conflicts;
pub mod proc_poller;
pub mod progress;
pub mod rule_guide;
mod tick;

pub use self::matching::Recogniser;
pub use front::run;
pub use guide::Guide;
pub use outcome::{Method, Outcome};

use crate::follow::proc_maps::Mapping;
use crate::program::target::Target;
use anyhow::Result;
use hither_profile::Nanos;
use hither_sys::{Node, Pid};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;

/// What to run and how.
pub struct Request {
    pub target: Target,
    /// As the user typed it.
    pub command: Vec<OsString>,
    /// Bind pages to their nodes strictly instead of preferring them.
    pub strict: bool,
    /// The memory policy that the program starts with.
    pub memory: Option<MemoryPolicy>,
    /// Which phase holds when, where there are several.
    pub progress: Option<Box<dyn Progress>>,
    /// Environment variables that the program gets besides ours.
    pub environment: Vec<(OsString, OsString)>,
    /// How to follow it. `None`: by ptrace, by polling where that is forbidden.
    pub method: Option<Method>,
}

/// A memory policy of a whole process, as set_mempolicy(2) knows them. Children inherit it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    Interleave(Vec<Node>),
    Bind(Vec<Node>),
    Preferred(Node),
    Local,
}

/// Tells how far the program has come.
pub trait Progress {
    /// The program exists and has not run yet. Called first of all.
    fn started(&mut self, pid: Pid) -> Result<()>;
    /// A process is at the first instruction of a program: the first one, and after each
    /// exec.
    fn image(&mut self, _pid: Pid, _image: &guide::Image) {}
    /// A process mapped a part of a file that can be executed.
    fn mapped(&mut self, _pid: Pid, _mapping: &Mapping) {}
    /// Whether it wants to know of such mappings.
    fn wants_mappings(&self) -> bool {
        false
    }
    /// What is to hold now, `at` being the time since the start. Wants to be called some
    /// dozens of times a second.
    fn phase(&mut self, at: Nanos) -> guide::Holding;
    /// Whether nothing will change any more.
    fn is_over(&self) -> bool {
        false
    }
    /// How progress was followed, for the user.
    fn note(&self) -> Option<String>;
}

/// Why a program cannot be followed, though it can be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refused {
    #[error("{tracer} (process {pid}) follows the program already, and only one can; start hither run without it")]
    Traced { tracer: String, pid: Pid },
    #[error("this system does not let hither follow programs (ptrace: {0}); allow it, or use --method polling")]
    Forbidden(String),
}

impl MemoryPolicy {
    /// MPOL_* and the nodes, a bit each, as set_mempolicy(2) takes them.
    fn for_kernel(&self) -> (i32, Vec<u64>) {
        let bits = |nodes: &[Node]| {
            let last = nodes.iter().map(|node| node.0 as usize).max();
            let mut words = vec![0u64; last.unwrap_or(0) / 64 + 1];
            for node in nodes {
                words[node.0 as usize / 64] |= 1 << (node.0 % 64);
            }
            words
        };
        match self {
            MemoryPolicy::Preferred(node) => (1, bits(&[*node])),
            MemoryPolicy::Bind(nodes) => (2, bits(nodes)),
            MemoryPolicy::Interleave(nodes) => (3, bits(nodes)),
            MemoryPolicy::Local => (4, Vec::new()),
        }
    }
}
