//! Why page faults cannot be observed, or a process not be joined, in a sentence that says
//! what to do.
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use anyhow::{bail, Result};
use nix::errno::Errno;

use crate::follow::procfs;
use hither_sys::proc_text::proc_field;
use hither_sys::Pid;

const PERF_EVENT_PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const ANYWAY: &str = "hither trace, map and run work without";

/// What an error of perf_event_open(2) or of mapping its buffer means here.
pub fn explain_observe_error(error: &io::Error) -> String {
    if error.raw_os_error() == Some(Errno::ESRCH as i32) {
        return "there is no process of this id any more".to_owned();
    }
    let paranoid = fs::read_to_string(PERF_EVENT_PARANOID).unwrap_or_default();
    let root = nix::unistd::geteuid().is_root();
    let (what, fix) = error_reason(error, paranoid.trim().parse().ok(), root);
    format!("page faults cannot be observed: {what}; {fix} ({ANYWAY}; see `hither doctor`)")
}

fn error_reason(error: &io::Error, paranoid: Option<i32>, root: bool) -> (String, &'static str) {
    let errno = error.raw_os_error().map(Errno::from_raw);
    let (what, fix) = match (errno, paranoid) {
        (Some(Errno::EACCES | Errno::EPERM), Some(level)) if level > 2 && !root => (
            format!("kernel.perf_event_paranoid is {level}"),
            "be root, or sudo sysctl kernel.perf_event_paranoid=2",
        ),
        (Some(Errno::EACCES | Errno::EPERM), _) => (
            format!("this container or sandbox forbids perf_event_open ({error})"),
            "in docker: --cap-add PERFMON --security-opt seccomp=unconfined",
        ),
        (Some(Errno::ENOSYS | Errno::ENOENT | Errno::EOPNOTSUPP), _) => (
            format!("this kernel has no perf events ({error})"),
            "boot one with CONFIG_PERF_EVENTS, outside of gVisor and the like",
        ),
        (Some(Errno::EMFILE), _) => (
            "each thread needs a descriptor for each processing unit, and there are not so many"
                .to_owned(),
            "raise the limit with ulimit -n",
        ),
        _ => (error.to_string(), "free memory, or be root"),
    };
    (what, fix)
}

/// Refuses processes that cannot be joined.
///
/// # Errors
/// When there is none of this id, it is the kernel's, or another user's.
pub fn check(pid: Pid) -> Result<()> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| proc_field(&status, name).unwrap_or("");
    let process = field("Tgid");
    if process.is_empty() || field("State").starts_with(['Z', 'X']) {
        bail!("there is no process {pid}");
    }
    if process != pid.to_string() {
        bail!("{pid} is a thread of process {process}; join that with --pid {process}");
    }
    if procfs::is_kernel_thread(pid) {
        bail!("process {pid} belongs to the kernel; only programs can be joined");
    }
    // It is about to end.
    if field("VmSize").is_empty() {
        bail!("there is no process {pid} any more");
    }
    let (own, owner) = (nix::unistd::geteuid(), fs::metadata(format!("/proc/{pid}")));
    let owner = owner.map(|folder| folder.uid());
    if !own.is_root() && owner.is_ok_and(|owner| owner != own.as_raw()) {
        let of = field("Uid").split_whitespace().next().unwrap_or("another");
        bail!("process {pid} belongs to user {of}; join it as that user or as root");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons() {
        let check = |errno, paranoid, root, expected: &str| {
            let (what, fix) = error_reason(&io::Error::from_raw_os_error(errno), paranoid, root);
            assert!(format!("{what}; {fix}").contains(expected), "{what}; {fix}");
        };
        use nix::libc::{EACCES, EMFILE, ENOSYS, EPERM};
        check(EACCES, Some(3), false, "perf_event_paranoid=2");
        check(EACCES, Some(4), false, "is 4");
        check(EPERM, Some(2), false, "container");
        // To root the level says nothing.
        check(EACCES, Some(4), true, "container");
        check(ENOSYS, None, true, "CONFIG_PERF_EVENTS");
        check(EMFILE, Some(2), true, "ulimit -n");
    }

    #[test]
    fn processes() {
        assert!(check(std::process::id().cast_signed()).is_ok());
        let message = |pid| check(pid).expect_err("refused").to_string();
        assert!(message(i32::MAX - 1).contains("no process"));
        let thread = std::thread::spawn(|| {
            let own = nix::unistd::gettid().as_raw();
            check(own).expect_err("refused").to_string()
        });
        assert!(thread.join().expect("join").contains("is a thread of"));
    }
}
