//! Starting and watching programs: what std and nix leave to `unsafe`.
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::OnceLock;

use crate::errno::{check, owned_fd};
use nix::sys::resource::{getrlimit, setrlimit, Resource, RLIM_INFINITY};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::unistd::Pid;

/// Whether SIGPIPE was ignored when this program started. Rust's runtime ignores it
/// before `main`, so the answer must be taken earlier.
static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether SIGCHLD was ignored before [`reap_children`].
static SIGCHLD_IGNORED: AtomicBool = AtomicBool::new(false);

/// Standard streams that were closed when this program started, a bit each. Rust's runtime
/// opens /dev/null in their place before `main`.
static CLOSED_STREAMS: AtomicU8 = AtomicU8::new(0);

extern "C" fn record_start() {
    SIGPIPE_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    let closed = (0..3).filter(|&fd| {
        // SAFETY: asks for the flags of a descriptor, open or not.
        (unsafe { libc::fcntl(fd, libc::F_GETFD) }) < 0
    });
    CLOSED_STREAMS.store(closed.fold(0, |all, fd| all | 1 << fd), Ordering::Relaxed);
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all-zero bytes are a valid sigaction, and sigaction with a null new action
    // only writes the old one to the place it is given.
    let old = unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut old);
        old
    };
    old.sa_sigaction == libc::SIG_IGN
}

fn set_ignored(signal: libc::c_int, ignored: bool) {
    let action = if ignored {
        libc::SIG_IGN
    } else {
        libc::SIG_DFL
    };
    // SAFETY: signal is async-signal-safe and installs no handler of ours.
    unsafe { libc::signal(signal, action) };
}

#[used]
#[link_section = ".init_array"]
static RECORD_START: extern "C" fn() = record_start;

/// Makes sure that children can be waited for: where SIGCHLD is ignored, as some
/// programs leave it to those they start, their exit statuses would be lost.
pub fn reap_children() {
    if is_ignored(libc::SIGCHLD) {
        SIGCHLD_IGNORED.store(true, Ordering::Relaxed);
        set_ignored(libc::SIGCHLD, false);
    }
}

/// The limit on file sizes as [`lift_file_size_limit`] found it: soft, hard.
static FILE_LIMIT: OnceLock<(u64, u64)> = OnceLock::new();
static SIGXFSZ_IGNORED: AtomicBool = AtomicBool::new(false);

/// Lifts the limit on file sizes (`ulimit -f`) as far as it goes: it is meant for the
/// program that is traced, yet holds for the shared segment and the profile too. Where
/// it cannot be lifted, too large a write fails instead of killing this process.
pub fn lift_file_size_limit() {
    SIGXFSZ_IGNORED.store(is_ignored(libc::SIGXFSZ), Ordering::Relaxed);
    set_ignored(libc::SIGXFSZ, true);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_FSIZE) else {
        return;
    };
    if FILE_LIMIT.set((soft, hard)).is_ok()
        && setrlimit(Resource::RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY).is_err()
    {
        // The hard limit is for the superuser to lift; less than it can always be had.
        let _ = setrlimit(Resource::RLIMIT_FSIZE, hard, hard);
    }
}

/// Lets this process, and what it starts, have as many descriptors as it may.
pub fn lift_descriptor_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Files that DynamoRIO keeps for itself by showing the program a lower hard limit
/// (its option -steal_fds).
const STEAL_FDS: u64 = 96;

/// Lets DynamoRIO's program see the limit on open files that it would see without it,
/// where this user may: hence no error.
pub fn make_room_for_hidden_files(command: &mut Command) {
    let make_room = || {
        if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard + STEAL_FDS);
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes two system calls.
    unsafe { command.pre_exec(make_room) };
}

/// Makes `command` start its program with signal mask `mask` and with the other signals
/// and limits as this program found them, whatever Rust's runtime and we made of them.
pub fn restore_signals_and_limits(command: &mut Command, mask: SigSet) {
    // Keeps the linker from dropping the recorder.
    std::hint::black_box(&RECORD_START);
    let restore = move || {
        set_ignored(libc::SIGPIPE, SIGPIPE_IGNORED.load(Ordering::Relaxed));
        if SIGCHLD_IGNORED.load(Ordering::Relaxed) {
            set_ignored(libc::SIGCHLD, true);
        }
        if let Some(&(soft, hard)) = FILE_LIMIT.get() {
            set_ignored(libc::SIGXFSZ, SIGXFSZ_IGNORED.load(Ordering::Relaxed));
            setrlimit(Resource::RLIMIT_FSIZE, soft, hard)?;
        }
        nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes async-signal-safe system
    // calls and allocates nothing.
    unsafe { command.pre_exec(restore) };
}

/// Makes `command` start its program without the standard streams that were closed when
/// this program started.
pub fn close_streams(command: &mut Command) {
    std::hint::black_box(&RECORD_START);
    let close = || {
        let closed = CLOSED_STREAMS.load(Ordering::Relaxed);
        for fd in (0..3).filter(|fd| closed >> fd & 1 == 1) {
            // SAFETY: nothing between fork and exec uses the standard streams any more.
            unsafe { libc::close(fd) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes three system calls at most.
    unsafe { command.pre_exec(close) };
}

/// Whether the file of this program gave it rights that its user has not: a set-user-id bit or
/// capabilities.
#[must_use]
pub fn has_more_rights_than_its_user() -> bool {
    // SAFETY: getauxval reads what the kernel left at the start of the process, and touches no memory
    // of ours.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Splits off a process of its own session, so that signals to our process group pass
/// it by. Returns its id here and `None` there.
///
/// # Errors
/// When this process has several threads, since locks that the others hold would stay
/// locked in the copy, or when the kernel makes no process.
pub fn split_off() -> io::Result<Option<Pid>> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("several threads run already"));
    }
    // SAFETY: this is the only thread, so the copy finds no lock held and no
    // half-changed data; neither side shares memory with the other afterwards.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { child } => Ok(Some(child)),
        nix::unistd::ForkResult::Child => {
            nix::unistd::setsid()?;
            Ok(None)
        }
    }
}

/// Splits off a process of its own session that does `work` and ends with the status that
/// it returns.
///
/// # Errors
/// As [`split_off`].
pub fn fork_off(work: impl FnOnce() -> u8) -> io::Result<Pid> {
    match split_off()? {
        Some(child) => Ok(child),
        None => end_copy(work),
    }
}

/// Makes a copy of this process, in which only the calling thread goes on, whatever others there are.
/// Returns its id here and `None` there. The copy must end by [`end_copy`], and neither print nor take
/// locks that another thread may have held.
///
/// # Errors
/// When the kernel makes no process.
pub fn fork_copy() -> io::Result<Option<Pid>> {
    // SAFETY: the C library takes its own locks of memory around a fork, so that the copy can
    // allocate. Data that another thread was changing behind a lock stays locked there: it is not
    // seen half changed, at worst waited for.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { child } => Ok(Some(child)),
        nix::unistd::ForkResult::Child => Ok(None),
    }
}

/// Does `work` in a copy of a process and ends it with the status that it returns.
pub fn end_copy(work: impl FnOnce() -> u8) -> ! {
    let work = std::panic::AssertUnwindSafe(work);
    // 101 is how Rust programs end that panic.
    let status = std::panic::catch_unwind(work).unwrap_or(101);
    // SAFETY: ends this process, a copy that must never go on into what its original does,
    // without running what that has registered for its end.
    unsafe { libc::_exit(status.into()) }
}

/// Sends a signal by its number, real-time ones included.
///
/// # Errors
/// ESRCH, EPERM.
pub fn send_signal(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: kill takes two numbers.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// A descriptor that becomes readable when process `pid` ends.
///
/// # Errors
/// As pidfd_open(2): no such process, or a kernel before 5.3.
pub fn pidfd(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and touches no memory of ours.
    owned_fd(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })
}

/// Whether the file has capabilities (security.capability), which exec grants.
#[must_use]
pub fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    let name = c"security.capability";
    // SAFETY: both strings end with NUL, and a size of 0 makes the kernel only report
    // the attribute's length and write nothing.
    let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) };
    length > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pidfd_tells_of_the_end() {
        let mut child = Command::new("sleep").arg("0").spawn().expect("spawn");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("pid"));
        let fd = pidfd(pid).expect("pidfd");
        let mut set = [nix::poll::PollFd::new(
            std::os::fd::AsFd::as_fd(&fd),
            nix::poll::PollFlags::POLLIN,
        )];
        assert_eq!(nix::poll::poll(&mut set, 10_000u16).expect("poll"), 1);
        child.wait().expect("wait");
        assert!(pidfd(Pid::from_raw(i32::MAX - 1)).is_err());
    }

    #[test]
    fn the_program_started_gets_the_mask_asked_for() {
        let mut mask = SigSet::empty();
        mask.add(nix::sys::signal::Signal::SIGUSR1);
        let mut command = Command::new("grep");
        command.args(["SigBlk", "/proc/self/status"]);
        restore_signals_and_limits(&mut command, mask);
        let out = command.output().expect("grep");
        assert_eq!(
            String::from_utf8_lossy(&out.stdout).trim(),
            "SigBlk:\t0000000000000200"
        );
    }

    #[test]
    fn a_plain_file_has_no_capabilities() {
        assert!(!has_capabilities(Path::new("/bin/sh")));
        assert!(!has_capabilities(Path::new("/nonexistent")));
    }
}
