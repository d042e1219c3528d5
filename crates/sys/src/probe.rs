//! System calls that `hither doctor` really makes, each undone at once, to learn what
//! this machine and user may do. What the files of /proc say is not asked here.
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sys::ptrace;
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::Pid;
use perf_event_open_sys::bindings;

use crate::errno::{check, owned_fd};
use crate::perf::{event_attributes, perf_event_open, ANY_CPU};
use crate::{seccomp, userfaultfd};

/// `userfaultfd` can lift write protection itself, so that no write waits (Linux 6.7).
pub const UFFD_FEATURE_WP_ASYNC: u64 = linux_raw_sys::general::UFFD_FEATURE_WP_ASYNC as u64;

/// Opens a software event that reports the address of each page fault of this thread, those
/// inside of system calls too unless `user_only`.
///
/// # Errors
/// As perf_event_open(2).
pub fn perf_page_faults(user_only: bool) -> io::Result<()> {
    let mut attributes = event_attributes(
        bindings::PERF_TYPE_SOFTWARE,
        bindings::PERF_COUNT_SW_PAGE_FAULTS,
    );
    attributes.__bindgen_anon_1.sample_period = 1;
    attributes.sample_type = (bindings::PERF_SAMPLE_TID | bindings::PERF_SAMPLE_ADDR).into();
    attributes.set_disabled(1);
    attributes.set_exclude_kernel(user_only.into());
    perf_event_open(attributes, 0, ANY_CPU).map(drop)
}

/// The features of a userfaultfd that is made by the system call.
///
/// # Errors
/// As userfaultfd(2).
pub fn userfaultfd(user_mode_only: bool) -> io::Result<u64> {
    userfaultfd::enable_features(userfaultfd::create(user_mode_only)?.as_fd(), 0)
}

/// Attaches to a child with PTRACE_SEIZE, and sees it stop.
///
/// # Errors
/// As ptrace(2).
pub fn ptrace_seize() -> io::Result<()> {
    let mut command = Command::new("/bin/sh");
    // It waits for us.
    command.args(["-c", "read line"]).stdin(Stdio::piped());
    let mut child = command.spawn()?;
    let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let seized = ptrace::seize(pid, ptrace::Options::empty())
        .and_then(|()| ptrace::interrupt(pid))
        .and_then(|()| waitpid(pid, None));
    child.kill()?;
    child.wait()?;
    match seized? {
        WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
            Err(io::Error::other("the traced child did not stop"))
        }
        _ => Ok(()),
    }
}

/// Starts a child under a seccomp filter like that of `hither run`.
///
/// # Errors
/// As seccomp(2).
pub fn seccomp_filter() -> io::Result<()> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", ":"]).stdin(Stdio::null());
    let filter = seccomp::build_filter(seccomp::FilteredCalls::default());
    let install = move || seccomp::install_filter(&filter);
    // SAFETY: the closure makes async-signal-safe system calls and allocates nothing.
    unsafe { command.pre_exec(install) };
    match command.status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other("the filtered child did not run")),
    }
}

/// Asks on which node a page of ours is.
///
/// # Errors
/// As move_pages(2), also for the page itself.
pub fn move_pages() -> io::Result<i32> {
    let page = Box::new(1u8);
    let pages = [&raw const *page];
    let mut status = [-1i32];
    // SAFETY: one address in, one status out, both in arrays of one; with no nodes
    // given nothing is moved.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            1usize,
            pages.as_ptr(),
            std::ptr::null::<i32>(),
            status.as_mut_ptr(),
            0,
        )
    };
    check(result)?;
    if status[0] < 0 {
        return Err(io::Error::from_raw_os_error(-status[0]));
    }
    Ok(status[0])
}

/// Sets the memory policy of this thread to the default one.
///
/// # Errors
/// As set_mempolicy(2); EPERM comes from a container's seccomp filter.
pub fn set_mempolicy() -> io::Result<()> {
    // SAFETY: MPOL_DEFAULT (0) takes no node mask, so no memory is read.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, 0, std::ptr::null::<u64>(), 0) };
    check(result).map(drop)
}

/// Maps a sparse shared memory file of this many bytes and touches one of them.
///
/// # Errors
/// ENOMEM or EFBIG under limits on memory or file size.
pub fn sparse_mapping(bytes: usize) -> io::Result<()> {
    // Beyond the limit on file size the kernel sends this signal, which kills, besides
    // giving the error.
    // SAFETY: signal installs no handler of ours; the doctor has one thread.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let result = map_and_touch(bytes);
    // SAFETY: puts back what was there.
    unsafe { libc::signal(libc::SIGXFSZ, before) };
    result
}

fn map_and_touch(bytes: usize) -> io::Result<()> {
    // SAFETY: the name is a NUL-terminated literal.
    let fd = owned_fd(unsafe { libc::memfd_create(c"hither-probe".as_ptr(), libc::MFD_CLOEXEC) })?;
    File::from(fd.try_clone()?).set_len(bytes as u64)?;
    let (prot, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping at an address the kernel picks overlaps nothing of ours.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, prot, flags, fd.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is `bytes` long, writable, and only this function knows it.
    // The single page touched is freed with it.
    unsafe {
        at.cast::<u8>().write(1);
        libc::munmap(at, bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a machine allows, an answer is a success or an errno of the kernel.
    #[test]
    fn every_probe_gives_an_answer() {
        let answers = [
            ("perf", perf_page_faults(true)),
            ("userfaultfd", userfaultfd(true).map(drop)),
            ("ptrace", ptrace_seize()),
            ("seccomp", seccomp_filter()),
            ("move_pages", move_pages().map(drop)),
            ("set_mempolicy", set_mempolicy()),
            ("mapping", sparse_mapping(1 << 30)),
        ];
        for (name, answer) in answers {
            if let Err(e) = answer {
                let errno = e.raw_os_error();
                assert!(
                    name == "userfaultfd"
                        || errno.is_some_and(|n| n != libc::EFAULT && n != libc::EINVAL),
                    "{name}: {e}"
                );
            }
        }
    }

    #[test]
    fn a_mapping_larger_than_the_address_space_fails() {
        assert!(sparse_mapping(1 << 62).is_err());
    }
}
