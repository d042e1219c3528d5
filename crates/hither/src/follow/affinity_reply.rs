//! sched_getaffinity(2) answered in place of the kernel, with a mask of ours.
use std::io::{self, IoSlice};

use hither_sys::affinity::{self, CpuMask};
use hither_sys::Tid;
use nix::errno::Errno;
use nix::sys::uio::{process_vm_writev, RemoteIoVec};

/// What a caller that has room for `room` bytes gets as the mask of `target`.
///
/// # Errors
/// As the kernel's: there is no such thread, or too little room.
pub fn bytes(target: Tid, room: usize, mask: &CpuMask) -> io::Result<Vec<u8>> {
    affinity::kernel_mask_len(target, room).map(|length| mask.to_bytes(length))
}

/// Writes them to the caller `tid`; the system call's result then.
///
/// # Errors
/// EPERM when its memory is not ours to write, EFAULT when only some of them fit.
pub fn write(tid: Tid, address: u64, bytes: &[u8]) -> Result<i64, Errno> {
    let remote = RemoteIoVec {
        base: usize::try_from(address).unwrap_or(0),
        len: bytes.len(),
    };
    let caller = nix::unistd::Pid::from_raw(tid);
    match process_vm_writev(caller, &[IoSlice::new(bytes)], &[remote])? {
        written if written == bytes.len() => Ok(i64::try_from(written).unwrap_or(0)),
        _ => Err(Errno::EFAULT),
    }
}
