//! Pages of another process are protected against writing, through a copy of a userfaultfd
//! that was made in it: the kernel itself lifts the protection at the next write
//! (UFFD_FEATURE_WP_ASYNC, Linux 6.7), and of all pages when the last copy is closed.
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// _IOWR(0xAA, 0x00, struct uffdio_register)
const UFFDIO_REGISTER: libc::c_ulong = 0xC020_AA00;
/// _IOWR(0xAA, 0x06, struct uffdio_writeprotect)
const UFFDIO_WRITEPROTECT: libc::c_ulong = 0xC018_AA06;
const UFFDIO_REGISTER_MODE_WP: u64 = 2;
const UFFDIO_WRITEPROTECT_MODE_WP: u64 = 1;

/// struct uffdio_register
#[repr(C)]
struct UffdioRegister {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

/// struct uffdio_writeprotect
#[repr(C)]
struct UffdioWriteprotect {
    start: u64,
    length: u64,
    mode: u64,
}

/// Lets pages of a range (address, bytes), which mappings fill, be protected.
///
/// # Errors
/// EINVAL where it is no such memory, EBUSY when another userfaultfd has it registered, ESRCH when the
/// process ended or runs another program.
pub fn register_range(faults: BorrowedFd, (start, length): (u64, u64)) -> io::Result<()> {
    let mut register = UffdioRegister {
        start,
        length,
        mode: UFFDIO_REGISTER_MODE_WP,
        ioctls: 0,
    };
    // SAFETY: the request reads and writes one uffdio_register, which `register` is laid out
    // as. The range is of the other process and is never followed here.
    let got = unsafe { libc::ioctl(faults.as_raw_fd(), UFFDIO_REGISTER, &raw mut register) };
    match got {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the next write to each page of a range (address, bytes) a fault.
///
/// # Errors
/// ENOENT where it is not watched, EAGAIN while the process changes its mappings, ESRCH as
/// [`register_range`].
pub fn write_protect(faults: BorrowedFd, (start, length): (u64, u64)) -> io::Result<()> {
    let mut protect = UffdioWriteprotect {
        start,
        length,
        mode: UFFDIO_WRITEPROTECT_MODE_WP,
    };
    // SAFETY: the request reads one uffdio_writeprotect, which `protect` is laid out as. What
    // memory holds is not changed, and no write waits for us (WP_ASYNC).
    let got = unsafe { libc::ioctl(faults.as_raw_fd(), UFFDIO_WRITEPROTECT, &raw mut protect) };
    match got {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
