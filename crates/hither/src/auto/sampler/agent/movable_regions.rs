//! Which memory pages may be taken of, from what the kernel says of each mapping.
//!
//! Private memory that can be read and written, has no file behind it, is there almost
//! whole, and in which nothing lies that the kernel itself touches when a thread ends or
//! dies: it would not wait for a page then.
use hither_profile::PAGE_SIZE;
use std::fs;
use std::ops::Range;

use hither_sys::Pid;

/// A mapping as /proc/PID/smaps tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmapsEntry {
    pub range: Range<u64>,
    /// `rw-p`
    rights: String,
    inode: u64,
    path: String,
    /// Bytes that are there, and those of them in huge pages.
    resident: u64,
    huge: u64,
    /// Two letters each: man 5 proc, VmFlags.
    flags: Vec<String>,
}

/// Reads them all.
pub fn read(pid: Pid) -> Vec<SmapsEntry> {
    let text = fs::read(format!("/proc/{pid}/smaps")).unwrap_or_default();
    parse(&String::from_utf8_lossy(&text))
}

fn parse(text: &str) -> Vec<SmapsEntry> {
    let mut all: Vec<SmapsEntry> = Vec::new();
    for line in text.lines() {
        let Some((first, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim();
        let Some(field) = first.strip_suffix(':') else {
            all.extend(parse_header(first, rest));
            continue;
        };
        let Some(mapping) = all.last_mut() else {
            continue;
        };
        let bytes = || {
            let kilobytes = rest.trim_end_matches(" kB").parse::<u64>();
            kilobytes.unwrap_or(0) << 10
        };
        match field {
            "Rss" => mapping.resident = bytes(),
            "AnonHugePages" | "ShmemPmdMapped" => mapping.huge += bytes(),
            "VmFlags" => mapping.flags = rest.split(' ').map(str::to_owned).collect(),
            _ => {}
        }
    }
    all
}

/// `7f00-7f80 rw-p 00001000 fe:00 1234      /usr/lib/x.so`
fn parse_header(range: &str, rest: &str) -> Option<SmapsEntry> {
    let (start, end) = range.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let mut fields = rest.splitn(5, ' ').map(str::trim);
    let rights = fields.next()?.to_owned();
    let inode = fields.nth(2)?.parse().ok()?;
    Some(SmapsEntry {
        range: hex(start)?..hex(end)?,
        rights,
        inode,
        path: fields.next().unwrap_or_default().to_owned(),
        ..SmapsEntry::default()
    })
}

/// So much of a mapping must be there: what is not costs the program a visit to the agent at
/// its first touch, and us an order in vain.
const FULL: f64 = 0.25;
/// Smaller ones are not worth it.
const LEAST: u64 = 4 * PAGE_SIZE;

/// How memory that may be a stack is known (MAP_STACK, since Linux 6.7 without huge pages):
/// thread-local storage and the word that the kernel clears at the thread's end lie there. Programs
/// say the same of other memory, too (MADV_NOHUGEPAGE).
const STACK: &str = "nh";

impl SmapsEntry {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    /// Whether pages of it may be taken if it is no stack, `before` being the mapping before it.
    fn is_plain(&self, before: Option<&SmapsEntry>, executable: u64) -> bool {
        let plain = self.rights == "rw-p" && self.inode == 0;
        let named = !self.path.is_empty() && self.path != "[heap]";
        // A library's own variables follow its file; the C library's are among them.
        let of_library = before.is_some_and(|b| {
            b.range.end == self.range.start && b.inode != 0 && b.inode != executable
        });
        // Locked, growing, special, watched by others, mergeable: no. Not inherited by children:
        // drivers' and the agent's own.
        let odd = [
            "lo", "gd", "ss", "io", "pf", "mm", "mg", "uw", "dd", "ht", "sl", "dc",
        ];
        let full = self.resident as f64 >= FULL * self.length() as f64;
        plain
            && !named
            && !of_library
            && !odd.iter().any(|f| self.has(f))
            && self.has("ac")
            && full
            && self.huge == 0
            && self.length() >= LEAST
    }

    /// Whether writes to it can be observed by protection: memory of the process alone, or that it
    /// shares with others, without a file.
    pub fn is_protectable(&self, private: bool, shared: bool) -> bool {
        let own = self.rights == "rw-p" && self.inode == 0;
        let own = own && (self.path.is_empty() || self.path == "[heap]");
        let common = self.rights == "rw-s" && is_memory(&self.path);
        let odd = ["io", "pf", "mm", "um", "ht", "ss"];
        let full = self.resident as f64 >= FULL * self.length() as f64;
        (private && own || shared && common)
            && !odd.iter().any(|f| self.has(f))
            && full
            && self.huge == 0
            && self.length() >= LEAST
    }

    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether a userfaultfd, ours or another, has it registered.
    pub fn is_watched(&self) -> bool {
        self.has("um")
    }
}

/// Whether what is mapped shared by this name is memory without a file behind it.
pub fn is_memory(path: &str) -> bool {
    let kept = ["/dev/shm/", "/dev/zero (deleted)", "/SYSV", "/memfd:"];
    kept.iter().any(|start| path.starts_with(start))
}

/// Bytes of private memory that are in huge pages.
pub fn huge_page_bytes(all: &[SmapsEntry]) -> u64 {
    all.iter().map(|mapping| mapping.huge).sum()
}

/// Those that pages may be taken of, and how many bytes are in others, which may be stacks.
pub fn movable(all: &[SmapsEntry], executable: u64) -> (Vec<SmapsEntry>, u64) {
    let before = std::iter::once(None).chain(all.iter().map(Some));
    let plain = all.iter().zip(before);
    let plain = plain.filter(|(m, before)| m.is_plain(*before, executable));
    let (stacks, fit): (Vec<_>, Vec<_>) = plain.partition(|(m, _)| m.has(STACK));
    let left = stacks.iter().map(|(m, _)| m.resident).sum();
    (fit.into_iter().map(|(m, _)| m.clone()).collect(), left)
}

/// Whether hardware may reach into memory of the process by itself: drivers look for pages
/// in ways that cannot wait.
pub fn has_devices(all: &[SmapsEntry]) -> bool {
    let harmless = ["/dev/shm/", "/dev/zero", "/dev/hugepages/", "/dev/null"];
    let of_device = |m: &&SmapsEntry| m.path.starts_with("/dev/");
    let mut devices = all.iter().filter(of_device);
    devices.any(|m| !harmless.iter().any(|start| m.path.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mapping of 8 pages.
    fn smaps(
        start: u64,
        rights: &str,
        inode: u64,
        path: &str,
        kilobytes: u64,
        flags: &str,
    ) -> String {
        format!(
            "{start:08x}-{:08x} {rights} 00000000 00:00 {inode}    {path}\nSize: 32 kB\nRss:    {kilobytes} kB\nAnonHugePages:  0 kB\nVmFlags: {flags} \n",
            start + 8 * PAGE_SIZE
        )
    }

    #[test]
    fn mappings_are_read() {
        let all = parse(&smaps(
            0x7000,
            "rw-p",
            12,
            "/usr/lib/x y.so",
            20,
            "rd wr ac",
        ));
        let expected = SmapsEntry {
            range: 0x7000..0xf000,
            rights: "rw-p".to_owned(),
            inode: 12,
            path: "/usr/lib/x y.so".to_owned(),
            resident: 20 << 10,
            huge: 0,
            flags: ["rd", "wr", "ac"].map(str::to_owned).to_vec(),
        };
        assert_eq!(all, [expected]);
    }

    #[test]
    fn only_plain_private_memory_is_fit() {
        let check = |rights, inode, path, kilobytes, flags, expected: bool| {
            let all = parse(&smaps(0x7000, rights, inode, path, kilobytes, flags));
            assert_eq!(movable(&all, 0).0.len(), usize::from(expected), "{all:?}");
        };
        let plain = "rd wr mr mw me ac";
        check("rw-p", 0, "", 32, plain, true);
        check("rw-p", 0, "[heap]", 32, plain, true);
        check("rw-p", 0, "[stack]", 32, plain, false);
        check("rw-p", 0, "", 8, plain, true);
        check("rw-p", 0, "", 4, plain, false);
        check("rw-s", 0, "", 32, plain, false);
        check("r--p", 0, "", 32, plain, false);
        check("rw-p", 7, "/tmp/data", 32, plain, false);
        check("rw-p", 0, "", 32, "rd wr mr mw me ac nh", false);
        check("rw-p", 0, "", 32, "rd wr mr mw me lo ac", false);
        check("rw-p", 0, "", 32, "rd wr mr mw me um", false);
        check("rw-p", 0, "", 32, "rd wr mr mw me dc ac", false);
    }

    /// Nobody was told of memory that a program had advised the kernel on, and of which nothing was seen.
    #[test]
    fn what_may_be_a_stack_is_told_of() {
        let check = |kilobytes, flags, expected| {
            let all = parse(&smaps(0x7000, "rw-p", 0, "", kilobytes, flags));
            assert_eq!(movable(&all, 0), (Vec::new(), expected), "{all:?}");
        };
        check(20, "rd wr mr mw me ac nh", 20 << 10);
        check(20, "rd wr mr mw me ac nh lo", 0);
        check(4, "rd wr mr mw me ac nh", 0);
    }

    #[test]
    fn variables_of_libraries_are_not() {
        let plain = "rd wr mr mw me ac";
        let file = smaps(0x7000, "rw-p", 5, "/lib/libc.so", 32, plain);
        let after = smaps(0xf000, "rw-p", 0, "", 32, plain);
        let all = parse(&(file + &after));
        assert_eq!(movable(&all, 0), (Vec::new(), 0));
        // The program's own are.
        assert_eq!(movable(&all, 5).0.len(), 1);
        assert!(!has_devices(&all));
        let device = smaps(0x20000, "rw-s", 3, "/dev/nvidia0", 0, plain);
        assert!(has_devices(&parse(&device)));
        let shared = smaps(0x20000, "rw-s", 3, "/dev/shm/x", 0, plain);
        assert!(!has_devices(&parse(&shared)));
    }
}
