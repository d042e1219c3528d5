//! What a process is made of, from /proc: its program, its mappings, a file it has open.
use std::fs;
use std::os::unix::fs::MetadataExt;

use hither_sys::ptrace::Registers;
use nix::libc;

use super::guide::{Image, MappedFile, Mapping};
use super::task;
use hither_sys::{Pid, Tid};

const PAGE: u64 = 4096;
const NAME_OF_VDSO: &str = "[vdso]";

/// Process `pid` at the first instruction of a program, and where its vdso is.
pub fn read(pid: Pid, registers: &Registers) -> (Image, Option<u64>) {
    let mappings = mappings(pid);
    let mut vdso = mappings.iter();
    let vdso = vdso.find(|m| m.file.as_ref().is_some_and(|f| f.path == NAME_OF_VDSO));
    let vdso = vdso.map(|m| m.address);
    let image = Image {
        executable: task::executable(pid),
        rank: task::rank(pid),
        mappings,
        stack_pointer: registers.rsp,
        stack_limit: stack_limit(pid),
    };
    (image, vdso)
}

/// Everything mapped in a process.
pub fn mappings(pid: Pid) -> Vec<Mapping> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    maps.lines().filter_map(parse).collect()
}

/// `7f00-7f80 rw-p 00001000 fe:00 1234      /usr/lib/x.so`
fn parse(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (rights, rest) = rest.split_once(' ')?;
    let (offset, rest) = rest.split_once(' ')?;
    let (dev, rest) = rest.split_once(' ')?;
    let (ino, path) = rest.split_once(' ').unwrap_or((rest, ""));
    let path = path.trim_start();
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = range.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let (major, minor) = dev.split_once(':')?;
    let bits = [
        ('r', libc::PROT_READ),
        ('w', libc::PROT_WRITE),
        ('x', libc::PROT_EXEC),
    ];
    let prot = bits.iter().filter(|(c, _)| rights.contains(*c));
    let shared = rights.ends_with('s');
    let anonymous = path.is_empty();
    let file = MappedFile {
        path: path.to_string(),
        dev: libc::makedev(
            u32::try_from(hex(major)?).ok()?,
            u32::try_from(hex(minor)?).ok()?,
        ),
        ino: ino.parse().ok()?,
        offset: hex(offset)?,
    };
    Some(Mapping {
        address: start,
        length: end - start,
        prot: prot.fold(0, |all, (_, bit)| all | bit),
        flags: if shared {
            libc::MAP_SHARED
        } else {
            libc::MAP_PRIVATE
        } | if anonymous { libc::MAP_ANONYMOUS } else { 0 },
        file: (!anonymous).then_some(file),
    })
}

fn stack_limit(pid: Pid) -> u64 {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max stack size"));
    let soft = line.and_then(|l| l.split_whitespace().next());
    soft.and_then(|s| s.parse().ok()).unwrap_or(u64::MAX)
}

/// The file that thread `tid` has open as `fd`.
pub fn file(pid: Pid, tid: Tid, fd: i32, offset: u64) -> Option<MappedFile> {
    let link = format!("/proc/{pid}/task/{tid}/fd/{fd}");
    let meta = fs::metadata(&link).ok()?;
    let path = fs::read_link(&link).ok()?;
    Some(MappedFile {
        path: path.to_string_lossy().into_owned(),
        dev: meta.dev(),
        ino: meta.ino(),
        offset,
    })
}

/// The shared memory segment attached at `address`: since policies split mappings, all
/// that follow one another and belong to the same.
pub fn attached(pid: Pid, address: u64) -> Option<Mapping> {
    let mappings = mappings(pid);
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

/// Bytes in whole pages.
pub fn whole_pages(length: u64) -> u64 {
    length.div_ceil(PAGE).saturating_mul(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = "7f00-8f00 rw-s 00002000 fe:01 1234                       /tmp/a b (deleted)";
        let got = parse(line).expect("a mapping");
        let file = MappedFile {
            path: "/tmp/a b (deleted)".to_string(),
            dev: libc::makedev(0xfe, 1),
            ino: 1234,
            offset: 0x2000,
        };
        let expected = Mapping {
            address: 0x7f00,
            length: 0x1000,
            prot: libc::PROT_READ | libc::PROT_WRITE,
            flags: libc::MAP_SHARED,
            file: Some(file),
        };
        assert_eq!(got, expected);
        let heap = parse("5000-6000 rw-p 00000000 00:00 0    [heap]").expect("a mapping");
        assert_eq!(heap.file.expect("a name").path, "[heap]");
        let plain = parse("5000-6000 r-xp 00000000 00:00 0 ").expect("a mapping");
        assert_eq!(plain.file, None);
        assert_eq!(plain.flags, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn our_own_mappings() {
        let pid = i32::try_from(std::process::id()).expect("pid");
        let names: Vec<String> = mappings(pid)
            .into_iter()
            .filter_map(|m| Some(m.file?.path))
            .collect();
        assert!(names.iter().any(|n| n == NAME_OF_VDSO), "{names:?}");
        assert_eq!((whole_pages(1), whole_pages(4096)), (4096, 4096));
    }
}
