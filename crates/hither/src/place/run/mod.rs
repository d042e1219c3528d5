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
//! answers with processing units and [`Bind`]s; it makes no system call.
pub mod guide;
pub mod outcome;
pub mod readback;
pub mod recognise;

pub use guide::{Bind, Guide};
pub use outcome::Outcome;
pub use recognise::Recogniser;

use crate::program::target::Target;
use anyhow::Result;
use guide::Node;
use hither_profile::Nanos;
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
    /// The program exists and has not run yet.
    fn started(&mut self, pid: guide::Pid) -> Result<()>;
    /// The phase that holds now, `at` being the time since the start. Called some hundred
    /// times a second at most.
    fn phase(&mut self, at: Nanos) -> usize;
    /// How progress was followed, for the user.
    fn note(&self) -> Option<String>;
}

/// Starts the program, follows it to its end.
///
/// # Errors
/// When it cannot be started or followed at all.
pub fn run(request: Request, guide: Box<dyn Guide>) -> Result<Outcome> {
    let _ = (request, guide);
    anyhow::bail!("not built yet")
}
