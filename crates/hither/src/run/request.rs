//! What `hither run` is asked to do.
use std::ffi::OsString;

use hither_sys::{Node, Pid};
use nix::libc;
use serde::{Deserialize, Serialize};

use super::outcome::FollowMethod;
use super::progress::PhaseFollower;
use crate::program::target::TargetProgram;

/// What to run and how.
pub struct RunRequest {
    pub target: TargetProgram,
    /// As the user typed it.
    pub command: Vec<OsString>,
    /// Bind pages to their nodes strictly instead of preferring them.
    pub strict: bool,
    /// The memory policy that the program starts with.
    pub memory: Option<MemoryPolicy>,
    /// Which phase holds when, where there are several.
    pub progress: Option<Box<PhaseFollower>>,
    /// Environment variables that the program gets besides ours.
    pub environment: Vec<(OsString, OsString)>,
    /// How to follow it. `None`: by ptrace, by polling where that is forbidden.
    pub method: Option<FollowMethod>,
}

/// A memory policy of a whole process, as set_mempolicy(2) knows them. Children inherit it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    Interleave(Vec<Node>),
    Bind(Vec<Node>),
    Preferred(Node),
    Local,
}

impl MemoryPolicy {
    /// MPOL_* and the nodes, a bit each, as set_mempolicy(2) takes them.
    #[must_use]
    pub fn for_kernel(&self) -> (i32, Vec<u64>) {
        let bits = |nodes: &[Node]| {
            let last = nodes.iter().map(|node| node.0 as usize).max();
            let mut words = vec![0u64; last.unwrap_or(0) / 64 + 1];
            for node in nodes {
                words[node.0 as usize / 64] |= 1 << (node.0 % 64);
            }
            words
        };
        match self {
            MemoryPolicy::Preferred(node) => (libc::MPOL_PREFERRED, bits(&[*node])),
            MemoryPolicy::Bind(nodes) => (libc::MPOL_BIND, bits(nodes)),
            MemoryPolicy::Interleave(nodes) => (libc::MPOL_INTERLEAVE, bits(nodes)),
            MemoryPolicy::Local => (libc::MPOL_LOCAL, Vec::new()),
        }
    }
}

/// Why a program cannot be followed, though it can be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum FollowRefusal {
    #[error("{tracer} (process {pid}) follows the program already, and only one can; start hither run without it")]
    Traced { tracer: String, pid: Pid },
    #[error("this system does not let hither follow programs (ptrace: {0}); allow it, or use --method polling")]
    Forbidden(String),
}
