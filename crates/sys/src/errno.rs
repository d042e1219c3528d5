//! What system calls return, as results.
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The result of a system call that was just made: negative where it failed.
pub(crate) fn check(result: impl Into<libc::c_long>) -> io::Result<libc::c_long> {
    match result.into() {
        result @ 0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The descriptor that a system call has just made.
pub(crate) fn owned_fd(result: impl Into<libc::c_long>) -> io::Result<OwnedFd> {
    let fd = i32::try_from(check(result)?).map_err(io::Error::other)?;
    // SAFETY: the callers pass what the kernel has just returned as a new descriptor,
    // which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
