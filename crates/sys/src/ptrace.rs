//! Following other processes: ptrace(2) and the wait statuses of tracees, including real-time
//! signals, which nix cannot represent.
use std::io;
use std::time::Duration;

use crate::errno::check;
use nix::sys::ptrace::Options;
use nix::unistd::Pid;

pub use libc::user_regs_struct as Registers;

/// Why a thread stopped, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceeEvent {
    Exited(i32),
    Killed(i32),
    /// It is about to get this signal.
    Signal(i32),
    /// Its process is stopped by this signal, and it with it.
    GroupStop(i32),
    /// It was interrupted, or is at its very start, or a group stop is over.
    Trap,
    /// At the entry or exit of a system call.
    Syscall,
    /// It made a thread or a process; by vfork, it waits until that runs another program.
    Created {
        vfork: bool,
    },
    Exec,
    /// It is about to end.
    Exit,
    /// At the entry of a system call that the filter sends us.
    Seccomp,
}

const PTRACE_EVENT_STOP: i32 = 128;

/// Reads a status that wait(2) gave.
#[must_use]
pub fn decode_wait_status(status: i32) -> TraceeEvent {
    if libc::WIFEXITED(status) {
        return TraceeEvent::Exited(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return TraceeEvent::Killed(libc::WTERMSIG(status));
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK => TraceeEvent::Created { vfork: false },
        libc::PTRACE_EVENT_VFORK => TraceeEvent::Created { vfork: true },
        libc::PTRACE_EVENT_EXEC => TraceeEvent::Exec,
        libc::PTRACE_EVENT_EXIT => TraceeEvent::Exit,
        libc::PTRACE_EVENT_SECCOMP => TraceeEvent::Seccomp,
        PTRACE_EVENT_STOP if signal == libc::SIGTRAP => TraceeEvent::Trap,
        PTRACE_EVENT_STOP => TraceeEvent::GroupStop(signal),
        _ if signal == libc::SIGTRAP | 0x80 => TraceeEvent::Syscall,
        _ => TraceeEvent::Signal(signal),
    }
}

/// The next event of thread `tid`. `None`: none is there and `block` is not set.
///
/// # Errors
/// ECHILD when it is no tracee or child of ours.
pub fn wait(tid: i32, block: bool) -> io::Result<Option<(i32, TraceeEvent)>> {
    reap_thread(tid, if block { 0 } else { libc::WNOHANG })
}

/// The next event of thread `tid`, or of any that is followed; shows `last` threads that have
/// ended while there is still something of them to look at in /proc. `None`: none is there and
/// `block` is not set.
///
/// # Errors
/// ECHILD when there is no tracee or child to wait for.
pub fn wait_before_reap(
    tid: Option<i32>,
    block: bool,
    mut last: impl FnMut(i32),
) -> io::Result<Option<(i32, TraceeEvent)>> {
    let hang = if block { 0 } else { libc::WNOHANG };
    while let Some(tid) = peek_waitable(tid, hang, &mut last)? {
        // WNOHANG: if the process was killed in between, its first thread reports its exit
        // only after all the others.
        if let Some(event) = reap_thread(tid, libc::WNOHANG)? {
            return Ok(Some(event));
        }
    }
    Ok(None)
}

/// Waits for SIGCHLD, which the caller must hold back, and says which thread it tells of; 0
/// where the kernel does not say. `None`: none came in time. While one is pending, the kernel
/// drops those of other threads.
#[must_use]
pub fn next_sigchld(timeout: Duration) -> Option<i32> {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
    };
    // SAFETY: all-zero bytes are a valid sigset_t and siginfo_t; the calls write only to them,
    // and of SIGCHLD the process id is always there.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let mut info: libc::siginfo_t = std::mem::zeroed();
        (libc::sigtimedwait(&raw const set, &raw mut info, &raw const timeout) > 0)
            .then(|| info.si_pid())
    }
}

/// Whose turn it is, `tid` or any.
fn peek_waitable(
    tid: Option<i32>,
    hang: i32,
    last: &mut impl FnMut(i32),
) -> io::Result<Option<i32>> {
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL | hang;
    let (which, id) = match tid {
        Some(tid) => (libc::P_PID, tid.unsigned_abs()),
        None => (libc::P_ALL, 0),
    };
    loop {
        // SAFETY: all-zero bytes are a valid siginfo_t, which waitid fills in; of what it
        // fills in for a child, the process id and the code are always there.
        let (got, tid, code) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let got = libc::waitid(which, id, &raw mut info, flags);
            (got, info.si_pid(), info.si_code)
        };
        match (got, tid) {
            (0, 0) => return Ok(None),
            (0, tid) => {
                if code != libc::CLD_TRAPPED && code != libc::CLD_STOPPED {
                    last(tid);
                }
                return Ok(Some(tid));
            }
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

fn reap_thread(tid: i32, hang: i32) -> io::Result<Option<(i32, TraceeEvent)>> {
    let mut status = 0;
    loop {
        // SAFETY: waitpid only writes the status to the place it is given.
        let got = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | hang) };
        match got {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            tid => return Ok(Some((tid, decode_wait_status(status)))),
        }
    }
}

/// What a child of ours that others may follow did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildStateChange {
    Exited(i32),
    Killed(i32),
    Stopped(i32),
    Continued,
}

/// The next change of child `pid`, without waiting for one.
///
/// # Errors
/// ECHILD when it is no child of ours.
pub fn child_state_change(pid: i32) -> io::Result<Option<ChildStateChange>> {
    let mut status = 0;
    let flags = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    // SAFETY: waitpid only writes the status to the place it is given.
    match unsafe { libc::waitpid(pid, &raw mut status, flags) } {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ if libc::WIFCONTINUED(status) => Ok(Some(ChildStateChange::Continued)),
        _ => Ok(Some(match decode_wait_status(status) {
            TraceeEvent::Exited(status) => ChildStateChange::Exited(status),
            TraceeEvent::Killed(signal) => ChildStateChange::Killed(signal),
            _ => ChildStateChange::Stopped(libc::WSTOPSIG(status)),
        })),
    }
}

/// Follows `pid` and all that it creates from here on. If we end, so do they: a program
/// whose system calls wait for an answer of ours could not go on.
///
/// # Errors
/// EPERM when it has a tracer already or ptrace is not permitted; ESRCH when it is gone.
pub fn seize(pid: i32) -> io::Result<()> {
    Ok(nix::sys::ptrace::seize(
        Pid::from_raw(pid),
        ptrace_options(true),
    )?)
}

/// Whether a stopped thread stops once more at its end, from where its memory can still be
/// seen. Those that it creates take after it.
///
/// # Errors
/// As [`resume`].
pub fn set_trace_exit(tid: i32, stops: bool) -> io::Result<()> {
    Ok(nix::sys::ptrace::setoptions(
        Pid::from_raw(tid),
        ptrace_options(stops),
    )?)
}

fn ptrace_options(stop_at_end: bool) -> Options {
    let at_end = if stop_at_end {
        Options::PTRACE_O_TRACEEXIT
    } else {
        Options::empty()
    };
    at_end
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_EXITKILL
}

/// How far a thread goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeMode {
    /// To whatever happens next.
    Cont,
    /// To the entry or exit of a system call at most.
    Syscall,
}

fn ptrace_request(kind: libc::c_uint, tid: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: used only with requests whose data is a number for the kernel, or a pointer
    // that the caller keeps valid for the size that it names in `address`.
    check(unsafe { libc::ptrace(kind, tid, address, data) }).map(drop)
}

/// Lets a stopped thread go on, delivering `signal` to it unless 0.
///
/// # Errors
/// ESRCH when it is not stopped or was killed, as with all that follow.
pub fn resume(tid: i32, until: ResumeMode, signal: i32) -> io::Result<()> {
    let kind = match until {
        ResumeMode::Cont => libc::PTRACE_CONT,
        ResumeMode::Syscall => libc::PTRACE_SYSCALL,
    };
    ptrace_request(kind, tid, 0, usize::try_from(signal).unwrap_or(0))
}

/// Leaves a thread in the group stop that it reported.
///
/// # Errors
/// As [`resume`].
pub fn listen(tid: i32) -> io::Result<()> {
    ptrace_request(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Stops a thread soon; one that is stopped stops again when it is let go.
///
/// # Errors
/// As [`resume`].
pub fn interrupt(tid: i32) -> io::Result<()> {
    ptrace_request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// PTRACE_GETEVENTMSG: the thread created, or the thread that called exec.
///
/// # Errors
/// As [`resume`].
pub fn event_message(tid: i32) -> io::Result<i32> {
    let message = nix::sys::ptrace::getevent(Pid::from_raw(tid))?;
    i32::try_from(message).map_err(io::Error::other)
}

/// # Errors
/// As [`resume`].
pub fn registers(tid: i32) -> io::Result<Registers> {
    Ok(nix::sys::ptrace::getregs(Pid::from_raw(tid))?)
}

/// # Errors
/// As [`resume`].
pub fn set_registers(tid: i32, registers: &Registers) -> io::Result<()> {
    Ok(nix::sys::ptrace::setregs(Pid::from_raw(tid), *registers)?)
}

const PTRACE_GETSIGMASK: libc::c_uint = 0x420a;
const PTRACE_SETSIGMASK: libc::c_uint = 0x420b;

/// The signals that a stopped thread blocks, bit n-1 for signal n.
///
/// # Errors
/// As [`resume`].
pub fn signal_mask(tid: i32) -> io::Result<u64> {
    let mut mask = 0u64;
    ptrace_request(PTRACE_GETSIGMASK, tid, 8, (&raw mut mask) as usize)?;
    Ok(mask)
}

/// # Errors
/// As [`resume`].
pub fn set_signal_mask(tid: i32, mask: u64) -> io::Result<()> {
    ptrace_request(PTRACE_SETSIGMASK, tid, 8, (&raw const mask) as usize)
}

/// Whether `tid` is a thread of process `pid`.
#[must_use]
pub fn is_thread_of(tid: i32, pid: i32) -> bool {
    // SAFETY: tgkill with signal 0 sends nothing and touches no memory.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) == 0 }
}

const KCMP_VM: libc::c_int = 1;

/// Whether two processes run in the same memory; `None` where the kernel does not tell.
#[must_use]
pub fn shares_memory(one: i32, other: i32) -> Option<bool> {
    // SAFETY: kcmp takes numbers only.
    match unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) } {
        -1 => None,
        order => Some(order == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: i32, expected: TraceeEvent) {
        assert_eq!(decode_wait_status(status), expected);
    }

    #[test]
    fn statuses() {
        let stopped = |signal: i32, event: i32| event << 16 | signal << 8 | 0x7f;
        check(7 << 8, TraceeEvent::Exited(7));
        check(9, TraceeEvent::Killed(9));
        check(139, TraceeEvent::Killed(11));
        check(stopped(10, 0), TraceeEvent::Signal(10));
        check(stopped(40, 0), TraceeEvent::Signal(40));
        check(stopped(5, 0), TraceeEvent::Signal(5));
        check(stopped(5 | 0x80, 0), TraceeEvent::Syscall);
        check(stopped(5, 128), TraceeEvent::Trap);
        check(stopped(20, 128), TraceeEvent::GroupStop(20));
        check(stopped(5, 1), TraceeEvent::Created { vfork: false });
        check(stopped(5, 2), TraceeEvent::Created { vfork: true });
        check(stopped(5, 3), TraceeEvent::Created { vfork: false });
        check(stopped(5, 4), TraceeEvent::Exec);
        check(stopped(5, 6), TraceeEvent::Exit);
        check(stopped(5, 7), TraceeEvent::Seccomp);
    }

    #[test]
    fn threads_and_their_process() {
        let pid = i32::try_from(std::process::id()).expect("pid");
        assert!(is_thread_of(pid, pid));
        assert!(is_thread_of(nix::unistd::gettid().as_raw(), pid));
        assert!(!is_thread_of(1, pid));
        assert_ne!(shares_memory(pid, pid), Some(false));
    }
}
