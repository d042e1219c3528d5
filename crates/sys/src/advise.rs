//! Telling the kernel what becomes of memory of another process: process_madvise(2).
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::{Command, Stdio};

/// Most ranges of one call (IOV_MAX).
pub const RANGES: usize = 1024;

/// Asks the kernel to take the ranges (address, bytes) of the process behind `pidfd` out of
/// its page tables as if memory were short (MADV_PAGEOUT). What they hold is kept: memory
/// that cannot be written anywhere stays where it is and is found again by a fault. Returns
/// the bytes that were advised.
///
/// # Errors
/// As process_madvise(2): EPERM without CAP_SYS_NICE and the right to look into the process,
/// ESRCH, ENOSYS before Linux 5.10.
///
/// # Panics
/// With more than [`RANGES`] ranges.
pub fn page_out(pidfd: BorrowedFd, ranges: &[(u64, u64)]) -> io::Result<u64> {
    assert!(ranges.len() <= RANGES, "too many ranges for one call");
    let ranges: Vec<libc::iovec> = ranges
        .iter()
        .map(|&(address, bytes)| libc::iovec {
            iov_base: std::ptr::without_provenance_mut(address as usize),
            iov_len: bytes as usize,
        })
        .collect();
    // SAFETY: the kernel reads the ranges, which live until the call returns. The addresses
    // are of the other process and are never followed here. This advice changes nothing of
    // what memory holds.
    let done = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            pidfd.as_raw_fd(),
            ranges.as_ptr(),
            ranges.len(),
            libc::MADV_PAGEOUT,
            0,
        )
    };
    u64::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Asks whether other processes of this user may be advised: one is made for it, and none of
/// its memory.
///
/// # Errors
/// As [`page_out`].
pub fn may_page_out() -> io::Result<()> {
    let mut command = Command::new("/bin/sh");
    // It waits for us.
    command.args(["-c", "read line"]).stdin(Stdio::piped());
    let mut child = command.spawn()?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    let pidfd = crate::process::pidfd(nix::unistd::Pid::from_raw(pid));
    let asked = pidfd.and_then(|pidfd| page_out(pidfd.as_fd(), &[]));
    child.kill()?;
    child.wait()?;
    asked.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::Pid;

    #[test]
    fn memory_keeps_what_it_holds() {
        let mut memory = vec![0u8; 64 << 12];
        memory.fill(7);
        let first = memory.as_ptr().addr().next_multiple_of(4096) as u64;
        let pidfd = crate::process::pidfd(Pid::this()).expect("pidfd");
        match page_out(
            pidfd.as_fd(),
            &[(first, 8 << 12), (first + (16 << 12), 4096)],
        ) {
            Ok(bytes) => assert_eq!(bytes, 9 << 12),
            Err(e) => assert!(
                matches!(e.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)),
                "{e}"
            ),
        }
        assert!(memory.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn who_may_is_who_has_the_capability() {
        let status = std::fs::read_to_string("/proc/self/status").expect("status");
        let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
        let set = u64::from_str_radix(line.expect("CapEff").trim(), 16).expect("hex");
        let nice = set >> 23 & 1 == 1;
        match may_page_out() {
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {}
            may => assert_eq!(may.is_ok(), nice, "{may:?}"),
        }
    }
}
