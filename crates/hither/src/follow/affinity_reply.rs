//! sched_getaffinity(2) answered in place of the kernel, with a mask of ours.
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

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

/// The memory of a process, held so that it stays that one: what a process that becomes another program
/// or another process of the same number has is another memory.
pub struct HeldMemory(File);

impl HeldMemory {
    /// To be had before it is checked that the caller still waits.
    ///
    /// # Errors
    /// When it is not ours to write.
    pub fn of(tid: Tid) -> io::Result<HeldMemory> {
        let mut options = File::options();
        let file = options.write(true).open(format!("/proc/{tid}/mem"))?;
        Ok(HeldMemory(file))
    }

    /// The system call's result.
    ///
    /// # Errors
    /// EFAULT when not all fit.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<i64, Errno> {
        match self.0.write_at(bytes, address) {
            Ok(written) if written == bytes.len() => Ok(i64::try_from(written).unwrap_or(0)),
            _ => Err(Errno::EFAULT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    /// Between the check and the write it becomes another program.
    #[test]
    fn what_was_for_one_program_does_not_reach_the_next() {
        let mut child = Command::new("sh")
            .args(["-c", "echo ready; read line; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let tid = i32::try_from(child.id()).expect("pid");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        let stack = || {
            let maps = std::fs::read_to_string(format!("/proc/{tid}/maps")).expect("maps");
            let line = maps
                .lines()
                .find(|l| l.ends_with("[stack]"))
                .expect("a stack");
            let end = line.split(['-', ' ']).nth(1).expect("an end");
            u64::from_str_radix(end, 16).expect("a number") - 8
        };
        let held = HeldMemory::of(tid).expect("its memory");
        assert_eq!(held.write(stack(), &[1; 8]), Ok(8));
        let mut input = child.stdin.take().expect("stdin");
        std::io::Write::write_all(&mut input, b"on\n").expect("write");
        let program = format!("/proc/{tid}/exe");
        while !std::fs::read_link(&program).is_ok_and(|exe| exe.ends_with("cat")) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(held.write(stack(), &[1; 8]), Err(Errno::EFAULT));
        drop(input);
        child.wait().expect("its end");
    }
}
