//! What it takes, besides [`crate::ptrace`], to have a thread of another process make system
//! calls and go on as if nothing had been.
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use linux_raw_sys::general::{
    UFFD_FEATURE_EVENT_FORK, UFFD_FEATURE_EVENT_REMAP, UFFD_FEATURE_EVENT_REMOVE,
    UFFD_FEATURE_EVENT_UNMAP, UFFD_FEATURE_MOVE,
};
use nix::sys::ptrace::Options;
use nix::unistd::Pid;

use crate::errno::{check, owned_fd};
use crate::userfaultfd;

/// Follows one thread, and nothing that it creates. If we end, it goes on.
///
/// # Errors
/// EPERM when it has a tracer already or ptrace is not permitted; ESRCH when it is gone.
pub fn seize_thread(tid: i32) -> io::Result<()> {
    let tid = Pid::from_raw(tid);
    Ok(nix::sys::ptrace::seize(
        tid,
        Options::PTRACE_O_TRACESYSGOOD,
    )?)
}

/// Lets a stopped thread go for good, with `signal` unless 0.
///
/// # Errors
/// ESRCH when it was killed.
pub fn detach(tid: i32, signal: i32) -> io::Result<()> {
    let signal = usize::try_from(signal).unwrap_or(0);
    // SAFETY: this request takes numbers only.
    check(unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, 0usize, signal) }).map(drop)
}

const PTRACE_GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;

/// struct ptrace_rseq_configuration
#[repr(C)]
#[derive(Default)]
struct PtraceRseqConfiguration {
    pointer: u64,
    size: u32,
    signature: u32,
    flags: u32,
    pad: u32,
}

/// The address of a stopped thread's struct rseq; `None` when it has none.
///
/// # Errors
/// EIO or EINVAL on kernels that know nothing of it; ESRCH.
pub fn rseq_address(tid: i32) -> io::Result<Option<u64>> {
    let mut configuration = PtraceRseqConfiguration::default();
    let size = size_of::<PtraceRseqConfiguration>();
    // SAFETY: the kernel writes `size` bytes at most into the configuration, which has them.
    let got = unsafe {
        libc::ptrace(
            PTRACE_GET_RSEQ_CONFIGURATION,
            tid,
            size,
            &raw mut configuration,
        )
    };
    check(got)?;
    Ok((configuration.pointer != 0).then_some(configuration.pointer))
}

/// Where a thread says which locks it holds that others are to be told of at its end: in
/// glibc, a few bytes from the word that the kernel clears then. `None`: it never said.
///
/// # Errors
/// ESRCH, EPERM.
pub fn robust_list_address(tid: i32) -> io::Result<Option<u64>> {
    let (mut head, mut length) = (0u64, 0usize);
    // SAFETY: the kernel writes a pointer and a size to the two places; the pointer is of
    // the other process and is never followed here.
    let got = unsafe {
        libc::syscall(
            libc::SYS_get_robust_list,
            tid,
            &raw mut head,
            &raw mut length,
        )
    };
    check(got)?;
    Ok((head != 0).then_some(head))
}

/// Linux 6.9
const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;

/// A copy of descriptor `fd` in the table of thread `tid`, which may be its own.
///
/// # Errors
/// EINVAL before Linux 6.9; ESRCH, EPERM, EBADF.
pub fn copy_descriptor(tid: i32, fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let thread = owned_fd(unsafe { libc::syscall(libc::SYS_pidfd_open, tid, PIDFD_THREAD) })?;
    // SAFETY: takes numbers only.
    owned_fd(unsafe { libc::syscall(libc::SYS_pidfd_getfd, thread.as_raw_fd(), fd, 0) })
}

/// What the agent needs of a userfaultfd.
pub const AGENT_UFFD_FEATURES: u64 = (UFFD_FEATURE_MOVE
    | UFFD_FEATURE_EVENT_FORK
    | UFFD_FEATURE_EVENT_REMAP
    | UFFD_FEATURE_EVENT_REMOVE
    | UFFD_FEATURE_EVENT_UNMAP) as u64;

/// Whether we can have a userfaultfd with these features, by the system call or the device.
///
/// # Errors
/// As [`userfaultfd::enable_features`], or EPERM.
pub fn can_enable_uffd_features(features: u64) -> io::Result<()> {
    let faults = userfaultfd::create(false)?;
    userfaultfd::enable_features(faults.as_fd(), features).map(drop)
}

/// Whether [`copy_descriptor`] is there.
///
/// # Errors
/// EINVAL before Linux 6.9.
pub fn supports_pidfd_thread() -> io::Result<()> {
    let own = nix::unistd::gettid().as_raw();
    let output = io::stderr().as_raw_fd();
    match copy_descriptor(own, output) {
        Err(e) if e.raw_os_error() == Some(libc::EBADF) => Ok(()),
        got => got.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_this_program_tell_where_their_list_is() {
        let own = nix::unistd::gettid().as_raw();
        assert!(robust_list_address(own).expect("a thread").is_some());
        let gone = robust_list_address(i32::MAX - 1).expect_err("no thread");
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn a_descriptor_is_had_through_the_thread() {
        let (mut reader, writer) = std::io::pipe().expect("pipe");
        let own = nix::unistd::gettid().as_raw();
        let copy = match copy_descriptor(own, writer.as_raw_fd()) {
            Ok(copy) => copy,
            Err(e) => {
                assert_eq!(e.raw_os_error(), Some(libc::EINVAL), "before Linux 6.9");
                return;
            }
        };
        drop(writer);
        let mut file = std::fs::File::from(copy);
        io::Write::write_all(&mut file, b"x").expect("write");
        drop(file);
        let mut got = Vec::new();
        io::Read::read_to_end(&mut reader, &mut got).expect("read");
        assert_eq!(got, b"x");
    }
}
