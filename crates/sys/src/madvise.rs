//! Telling the kernel what becomes of memory of another process: process_madvise(2).
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::{Command, Stdio};

/// Most ranges of one call (IOV_MAX).
pub const MAX_RANGES: usize = 1024;

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
/// With more than [`MAX_RANGES`] ranges.
pub fn page_out(pidfd: BorrowedFd, ranges: &[(u64, u64)]) -> io::Result<u64> {
    assert!(ranges.len() <= MAX_RANGES, "too many ranges for one call");
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
pub fn can_page_out() -> io::Result<()> {
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
    use nix::sys::mman::{mmap_anonymous, MapFlags, ProtFlags};
    use nix::unistd::Pid;
    use std::io::{Read, Seek, SeekFrom};
    use std::num::NonZeroUsize;

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

    /// Whether pages of ours are there, by bit 63 of what the kernel says of each.
    fn there(first: u64, pages: u64) -> Vec<bool> {
        let mut file = std::fs::File::open("/proc/self/pagemap").expect("pagemap");
        file.seek(SeekFrom::Start(first / 4096 * 8)).expect("seek");
        let mut words = vec![0; pages as usize * 8];
        file.read_exact(&mut words).expect("read");
        words.chunks(8).map(|word| word[7] >> 7 == 1).collect()
    }

    /// Some pages that were touched just now are on no list, whichever processor it was on.
    #[test]
    fn listed_pages_are_taken() {
        const PAGES: u64 = 8;
        let bytes = NonZeroUsize::new(PAGES as usize * 4096).expect("some");
        let prot = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: new memory, where the kernel likes; it stays until the test process ends.
        let at = unsafe { mmap_anonymous(None, bytes, prot, MapFlags::MAP_SHARED) };
        let at = at.expect("memory").cast::<u8>();
        let pidfd = crate::process::pidfd(Pid::this()).expect("pidfd");
        let mine = crate::affinity::CpuMask::of_thread(0).expect("mask");
        for cpu in mine.cpus() {
            crate::affinity::CpuMask::single(cpu)
                .set_affinity(0)
                .expect("pin");
            // SAFETY: `at` is the start of a mapping of `bytes` bytes, made above.
            unsafe { at.write_bytes(7, bytes.get()) };
        }
        let first = at.as_ptr().addr() as u64;
        assert_eq!(there(first, PAGES), [true; PAGES as usize]);
        let listed = crate::numa::drain_lru_lists();
        match listed.and_then(|()| page_out(pidfd.as_fd(), &[(first, PAGES << 12)])) {
            Ok(_) => assert_eq!(there(first, PAGES), [false; PAGES as usize]),
            Err(e) => assert!(
                matches!(e.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)),
                "{e}"
            ),
        }
    }

    #[test]
    fn who_may_is_who_has_the_capability() {
        let status = std::fs::read_to_string("/proc/self/status").expect("status");
        let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
        let set = u64::from_str_radix(line.expect("CapEff").trim(), 16).expect("hex");
        let nice = set >> 23 & 1 == 1;
        match can_page_out() {
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {}
            may => assert_eq!(may.is_ok(), nice, "{may:?}"),
        }
    }
}
