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
//! Deciding and acting are apart: a [`PlacementGuide`] receives what the program does and
//! answers with processing units and [`guide::PageBind`]s; it makes no system call.
mod exec_image;
mod followed_threads;
mod follower;
mod front;
pub mod guide;
mod handover;
pub mod matching;
pub mod outcome;
mod page_moves;
pub mod page_residency;
pub mod pinning_conflicts;
mod proc_poller;
pub mod progress;
mod ptrace_engine;
pub mod request;
pub mod rule_guide;
mod syscall_restart;

pub use front::run;
pub use guide::PlacementGuide;
pub use matching::ProfileGuide;
