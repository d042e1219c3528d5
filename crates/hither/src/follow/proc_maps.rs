//! What is mapped in a process, by /proc/PID/maps.
use std::fs;

use hither_profile::{is_in_memory, PAGE_SIZE};
use hither_sys::Pid;
use nix::libc;

/// A mapping that was made, or that exists when an image starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryMapping {
    pub address: u64,
    /// Bytes, in whole pages.
    pub length: u64,
    /// PROT_* and MAP_* of mmap(2).
    pub prot: i32,
    pub flags: i32,
    /// What is mapped; `None` for anonymous memory.
    pub file: Option<MappedFile>,
}

/// A file that is mapped, or a special name such as `[stack]` or `[vdso]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedFile {
    pub path: String,
    /// Known to be memory that has a policy of its own (shared memory, tmpfs, huge pages); pages of others lie
    /// in the page cache.
    pub in_memory: bool,
    pub dev: u64,
    pub ino: u64,
    /// Bytes.
    pub offset: u64,
}

/// Everything mapped in a process.
pub fn read_mappings(pid: Pid) -> Vec<MemoryMapping> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    maps.lines().filter_map(parse).collect()
}

/// `7f00-7f80 rw-p 00001000 fe:00 1234      /usr/lib/x.so`
fn parse(line: &str) -> Option<MemoryMapping> {
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
        in_memory: is_in_memory(path),
        path: path.to_string(),
        dev: libc::makedev(
            u32::try_from(hex(major)?).ok()?,
            u32::try_from(hex(minor)?).ok()?,
        ),
        ino: ino.parse().ok()?,
        offset: hex(offset)?,
    };
    Some(MemoryMapping {
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

/// Bytes in whole pages.
pub fn whole_pages(length: u64) -> u64 {
    length.div_ceil(PAGE_SIZE).saturating_mul(PAGE_SIZE)
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
            in_memory: false,
            dev: libc::makedev(0xfe, 1),
            ino: 1234,
            offset: 0x2000,
        };
        let expected = MemoryMapping {
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
        let names: Vec<String> = read_mappings(pid)
            .into_iter()
            .filter_map(|m| Some(m.file?.path))
            .collect();
        assert!(names.iter().any(|n| n == "[vdso]"), "{names:?}");
        assert_eq!((whole_pages(1), whole_pages(4096)), (4096, 4096));
    }
}
