//! Pages of another process are protected against writing, through a copy of a userfaultfd
//! that was made in it: the kernel itself lifts the protection at the next write
//! (UFFD_FEATURE_WP_ASYNC, Linux 6.7), and of all pages when the last copy is closed.
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::errno::{check, owned_fd};
use linux_raw_sys::general::{
    uffdio_api, uffdio_range, uffdio_register, uffdio_writeprotect, UFFDIO_REGISTER_MODE_WP,
    UFFD_API, UFFD_USER_MODE_ONLY,
};
use linux_raw_sys::ioctl::{UFFDIO_API, UFFDIO_REGISTER, UFFDIO_WRITEPROTECT};

const UFFDIO_WRITEPROTECT_MODE_WP: u64 = 1;

/// Makes a userfaultfd by the system call.
///
/// # Errors
/// As userfaultfd(2).
pub fn create(user_mode_only: bool) -> io::Result<OwnedFd> {
    let mode = if user_mode_only {
        UFFD_USER_MODE_ONLY
    } else {
        0
    };
    // SAFETY: userfaultfd takes one integer and touches no memory of ours.
    owned_fd(unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | mode as i32) })
}

/// Turns features of a userfaultfd of any process on (UFFD_FEATURE_*), and gives all that
/// the kernel has: UFFD_FEATURE_EVENT_FORK needs CAP_SYS_PTRACE of the caller.
///
/// # Errors
/// EINVAL when the kernel does not know a feature or features were enabled before; EPERM.
pub fn enable_features(faults: BorrowedFd, features: u64) -> io::Result<u64> {
    let mut api = uffdio_api {
        api: UFFD_API.into(),
        features,
        ioctls: 0,
    };
    // SAFETY: the request reads and writes one uffdio_api.
    let got = unsafe { libc::ioctl(faults.as_raw_fd(), UFFDIO_API.into(), &raw mut api) };
    check(got).map(|_| api.features)
}

fn range(start: u64, len: u64) -> uffdio_range {
    uffdio_range { start, len }
}

/// Lets pages of a range (address, bytes), which mappings fill, be protected.
///
/// # Errors
/// EINVAL where it is no such memory, EBUSY when another userfaultfd has it registered, ESRCH when the
/// process ended or runs another program.
pub fn register_range(faults: BorrowedFd, (start, length): (u64, u64)) -> io::Result<()> {
    let mut register = uffdio_register {
        range: range(start, length),
        mode: UFFDIO_REGISTER_MODE_WP.into(),
        ioctls: 0,
    };
    // SAFETY: the request reads and writes one uffdio_register, which `register` is laid out
    // as. The range is of the other process and is never followed here.
    let got = unsafe {
        libc::ioctl(
            faults.as_raw_fd(),
            UFFDIO_REGISTER.into(),
            &raw mut register,
        )
    };
    check(got).map(drop)
}

/// Makes the next write to each page of a range (address, bytes) a fault.
///
/// # Errors
/// ENOENT where it is not watched, EAGAIN while the process changes its mappings, ESRCH as
/// [`register_range`].
pub fn write_protect(faults: BorrowedFd, (start, length): (u64, u64)) -> io::Result<()> {
    let mut protect = uffdio_writeprotect {
        range: range(start, length),
        mode: UFFDIO_WRITEPROTECT_MODE_WP,
    };
    // SAFETY: the request reads one uffdio_writeprotect, which `protect` is laid out as. What
    // memory holds is not changed, and no write waits for us (WP_ASYNC).
    let got = unsafe {
        libc::ioctl(
            faults.as_raw_fd(),
            UFFDIO_WRITEPROTECT.into(),
            &raw mut protect,
        )
    };
    check(got).map(drop)
}
