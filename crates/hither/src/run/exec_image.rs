//! What a process is made of, from /proc: its program, a file it has open, a segment attached.
use std::fs;
use std::os::unix::fs::MetadataExt;

use hither_profile::is_in_memory;
use hither_sys::proc_text::soft_limit;
use hither_sys::ptrace::Registers;
use hither_sys::{Pid, Tid};
use nix::sys::statfs::{statfs, HUGETLBFS_MAGIC, TMPFS_MAGIC};

use super::guide::ExecImage;
use crate::follow::proc_maps::{read_mappings, MappedFile, MemoryMapping};
use crate::follow::procfs;
use crate::program::mpi;

const VDSO_NAME: &str = "[vdso]";

/// Process `pid` at the first instruction of a program, and where its vdso is.
pub fn read_exec_image(pid: Pid, registers: &Registers) -> (ExecImage, Option<u64>) {
    let mappings = read_mappings(pid);
    let mut vdso = mappings.iter();
    let vdso = vdso.find(|m| m.file.as_ref().is_some_and(|f| f.path == VDSO_NAME));
    let vdso = vdso.map(|m| m.address);
    let image = ExecImage {
        executable: procfs::executable(pid),
        rank: mpi::local_rank_of(pid),
        mappings,
        stack_pointer: registers.rsp,
        stack_limit: stack_limit(pid),
    };
    (image, vdso)
}

fn stack_limit(pid: Pid) -> u64 {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let soft = soft_limit(&limits, "Max stack size");
    soft.and_then(|s| s.parse().ok()).unwrap_or(u64::MAX)
}

/// The file that thread `tid` has open as `fd`.
pub fn open_file(pid: Pid, tid: Tid, fd: i32, offset: u64) -> Option<MappedFile> {
    let link = format!("/proc/{pid}/task/{tid}/fd/{fd}");
    let meta = fs::metadata(&link).ok()?;
    let path = fs::read_link(&link).ok()?;
    let path = path.to_string_lossy().into_owned();
    let kind = statfs(link.as_str()).map(|file_system| file_system.filesystem_type());
    Some(MappedFile {
        in_memory: is_in_memory(&path) || matches!(kind, Ok(TMPFS_MAGIC | HUGETLBFS_MAGIC)),
        path,
        dev: meta.dev(),
        ino: meta.ino(),
        offset,
    })
}

/// The shared memory segment attached at `address`: since policies split mappings, all
/// that follow one another and belong to the same.
pub fn attached_segment(pid: Pid, address: u64) -> Option<MemoryMapping> {
    let mappings = read_mappings(pid);
    let first = mappings.iter().position(|m| m.address == address)?;
    let mut whole = mappings[first].clone();
    let same = |file: &Option<MappedFile>| file.as_ref().map(|f| (f.dev, f.ino));
    for next in &mappings[first + 1..] {
        if next.address != address + whole.length || same(&next.file) != same(&whole.file) {
            break;
        }
        whole.length += next.length;
    }
    Some(whole)
}
