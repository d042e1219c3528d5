//! Whether a process may have an agent, from what the kernel says of it.
use std::fs;

use super::movable_regions;
use crate::auto::affinity_proxy::is_unfiltered;
use hither_sys::proc_text::{proc_field, soft_limit, stat_field};
use hither_sys::{Pid, Tid};

/// A bit of a set of capabilities.
const CAP_SYS_PTRACE: u32 = 19;

/// Why a process may have none.
#[derive(Debug, PartialEq, Eq)]
pub enum AgentRefusal {
    Now(String),
    /// Unless it is otherwise in a while.
    Perhaps(String),
}

/// Whether no debugger or userfaultfd of others is at work in the process, and nothing accesses
/// its memory without page faults as threads do.
///
/// # Errors
/// What it is.
pub fn is_undisturbed(pid: Pid) -> Result<(), AgentRefusal> {
    let unfit = |why: &str| Err(AgentRefusal::Now(why.to_owned()));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    if proc_field(&status, "TracerPid").is_some_and(|tracer| tracer != "0") {
        return unfit("somebody else follows it already");
    }
    if !is_unfiltered(&status) {
        return unfit("a filter forbids it system calls");
    }
    let fds = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(fds) => fds,
        Err(e) => return unfit(&format!("it may not be looked into ({e}): it has rights that hither has not; be root to sample it")),
    };
    let mut links = fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    if links.any(|to| to.to_string_lossy().contains("[userfaultfd]")) {
        return unfit("it watches page faults itself");
    }
    if movable_regions::has_devices(&movable_regions::read(pid)) {
        return unfit("devices reach into its memory");
    }
    Ok(())
}

/// Whether the process itself may have told what `move` needs to be told of: faults in system calls, and forks. Where it
/// may not, hither lends it no userfaultfd that tells: the program could use it for what its user
/// may not do, as all that a thread in it has is the program's.
pub fn may_watch_the_kernel(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let effective = proc_field(&status, "CapEff");
    let effective = effective.and_then(|set| u64::from_str_radix(set, 16).ok());
    let users = |of: &str| fs::read_link(format!("/proc/{of}/ns/user")).ok();
    effective.is_some_and(|set| set >> CAP_SYS_PTRACE & 1 == 1)
        && users("self").is_some_and(|own| users(&pid.to_string()) == Some(own))
}

/// What a thread may do, as the kernel says it.
#[must_use]
pub fn credentials(pid: Pid, tid: Tid) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    let is = |line: &&str| {
        ["Uid:", "Gid:", "Groups:", "Cap"]
            .iter()
            .any(|of| line.starts_with(of))
    };
    status.lines().filter(is).map(str::to_owned).collect()
}

/// Whether it leaves a core file when it crashes.
pub fn leaves_core(pid: Pid) -> bool {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    soft_limit(&limits, "Max core file size") != Some("0")
}

/// Whether a thread goes before all others that are not such.
pub fn is_real_time(pid: Pid, tid: Tid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    // 0: normal, 3: batch.
    !["0", "3"].contains(&stat_field(&stat, 41).unwrap_or("0"))
}
