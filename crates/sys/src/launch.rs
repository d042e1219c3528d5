//! Starting a program that another process follows from before its first instruction.
//!
//! ```text
//! child:     my process id -->            go -> policy, filter, errno --> exec
//! follower:                -> attach --> go                               (reads errno)
//! ```
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::unistd::Pid;

use crate::errno::check;
use crate::seccomp::{self, SockFilter};

/// What the child does before it becomes the program.
pub struct ChildSetup {
    /// Its end of the connection to the follower.
    pub gate: UnixStream,
    pub follower: Pid,
    /// MPOL_* and the nodes, a bit each.
    pub policy: Option<(i32, Vec<u64>)>,
    pub filter: Vec<SockFilter>,
}

/// Makes `command` wait for its follower, then start under `start`'s policy and filter.
pub fn wait_for_follower(command: &mut Command, start: ChildSetup) {
    let prepare = move || {
        // The security module yama lets ancestors follow, and whom one names.
        // SAFETY: takes numbers only.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, start.follower.as_raw(), 0, 0, 0) };
        let mut gate = &start.gate;
        gate.write_all(&nix::unistd::getpid().as_raw().to_ne_bytes())?;
        if gate.read(&mut [0])? == 0 {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        if let Some((mode, nodes)) = &start.policy {
            set_mempolicy(*mode, nodes)?;
        }
        let filtered = seccomp::install_filter(&start.filter);
        let error = filtered.err().and_then(|e| e.raw_os_error()).unwrap_or(0);
        gate.write_all(&error.to_ne_bytes())
    };
    // SAFETY: between fork and exec the closure only makes async-signal-safe system
    // calls and allocates nothing; an io::Error of a number needs no memory.
    unsafe { command.pre_exec(prepare) };
}

/// Sets the memory policy of this process: a mode MPOL_* and the nodes, a bit each.
///
/// # Errors
/// EINVAL when the nodes are not there or not allowed.
pub fn set_mempolicy(mode: i32, nodes: &[u64]) -> io::Result<()> {
    // Without nodes there must be no pointer to them either.
    let (at, bits) = match nodes {
        [] => (std::ptr::null(), 0),
        nodes => (nodes.as_ptr(), nodes.len() * 64 + 1),
    };
    // SAFETY: the kernel reads as many bits of the nodes as there are (it takes one more
    // than it reads), and writes nothing.
    let got = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, at, bits) };
    check(got).map(drop)
}

/// Keeps nothing of what this process was given but the descriptors `keep`: no stdio, no
/// folder. A process that reads a pipe to its end must not wait for ours.
///
/// # Errors
/// When /dev/null cannot be opened.
pub fn release_inherited_files(keep: &[RawFd]) -> io::Result<()> {
    std::env::set_current_dir("/")?;
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    for fd in 0..3 {
        // SAFETY: dup2 replaces one of our descriptors, which std never closes.
        check(unsafe { libc::dup2(null.as_raw_fd(), fd) })?;
    }
    drop(null);
    let mut keep: Vec<u32> = keep
        .iter()
        .filter_map(|&fd| u32::try_from(fd).ok())
        .collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > first {
            // SAFETY: closes descriptors that this process, freshly forked, uses no more;
            // it leaves without dropping their owners.
            unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
        }
        first = first.max(fd.saturating_add(1));
    }
    Ok(())
}

/// Nanoseconds of processor time that a prompt process asks for at once: the least that
/// the kernel allows.
const MIN_SCHED_SLICE_NS: u64 = 100_000;

/// Asks the scheduler for a short slice (sched_setattr, EEVDF): the calling thread then runs
/// soon after it is woken even on busy CPUs; it does little, and another waits for it. No error
/// where kernel or rights do not allow it.
pub fn request_short_slice() {
    request_short_slice_for(0);
}

/// The same for thread `tid` of another process that works for us.
pub fn request_short_slice_for(tid: i32) {
    for nice in [-10, 0] {
        let attributes = libc::sched_attr {
            size: u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0),
            sched_policy: 0,
            sched_flags: 0,
            sched_nice: nice,
            sched_priority: 0,
            // Linux 6.12 and later: the length of a slice.
            sched_runtime: MIN_SCHED_SLICE_NS,
            sched_deadline: 0,
            sched_period: 0,
        };
        // SAFETY: the kernel reads as many bytes of the attributes as they say they have.
        let got = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) };
        if got == 0 {
            return;
        }
    }
}
