//! Reads back from the kernel where the pages of a process lie, region by region.
use super::guide::{PageBind, RecognisedRegion};
use super::outcome::RegionOutcome;
use crate::follow::proc_maps::read_mappings;
use anyhow::{Context, Result};
use hither_profile::PAGE_SIZE;
use hither_sys::numa::page_nodes;
use hither_sys::{Node, Tid};
use nix::libc;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Pages asked for in one call: the kernel holds the process' mmap lock during it.
const BATCH: usize = 64 << 10;
/// Pages looked at per process. Of more, every n-th is, and stands for n: they were bound
/// in long runs.
const MAX_PAGES: u64 = 1 << 22;
/// Bits of an entry of /proc/PID/pagemap: the page is mapped once only; it is of a file or
/// shared memory.
const PM_MMAP_EXCLUSIVE: u64 = 1 << 56;
const PM_FILE: u64 = 1 << 61;

/// Asked and got for each region of a process, `tid` being a thread of it that is stopped or
/// lives.
///
/// # Errors
/// When the kernel does not let us look.
pub fn read(tid: Tid, found: &[RecognisedRegion]) -> Result<Vec<RegionOutcome>> {
    let all = found.iter().flat_map(|f| &f.binds);
    let pages: u64 = all.map(|b| b.length / PAGE_SIZE).sum();
    let reader = ResidencyReader {
        tid,
        step: pages.div_ceil(MAX_PAGES).max(1),
        files: private_files(tid),
        pagemap: File::open(format!("/proc/{tid}/pagemap")).ok(),
    };
    found.iter().map(|f| reader.region_residency(f)).collect()
}

struct ResidencyReader {
    tid: Tid,
    /// Every `step`-th page is looked at.
    step: u64,
    /// Addresses [start, end) where files are mapped privately, in order.
    files: Vec<(u64, u64)>,
    pagemap: Option<File>,
}

impl ResidencyReader {
    fn region_residency(&self, found: &RecognisedRegion) -> Result<RegionOutcome> {
        let mut pages: Vec<(u64, Node)> = Vec::new();
        let mut asked = 0;
        for bind in &found.binds {
            asked += bind.length / PAGE_SIZE;
            pages.extend(
                self.own_pages(found, bind)
                    .map(|address| (address, bind.node)),
            );
        }
        let mut nodes: BTreeMap<Node, u64> = BTreeMap::new();
        let mut right = 0;
        for batch in pages.chunks(BATCH) {
            let addresses: Vec<u64> = batch.iter().map(|(address, _)| *address).collect();
            let tid = nix::unistd::Pid::from_raw(self.tid);
            let got = page_nodes(tid, &addresses)
                .context("cannot ask the kernel where the program's pages lie")?;
            for ((_, wanted), got) in batch.iter().zip(got) {
                let Some(got) = got.map(Node) else { continue };
                *nodes.entry(got).or_default() += self.step;
                right += if got == *wanted { self.step } else { 0 };
            }
        }
        Ok(RegionOutcome {
            pid: found.pid,
            region: found.region,
            name: found.name.clone(),
            nearest: found.nearest,
            asked,
            nodes: nodes.into_iter().collect(),
            right,
        })
    }

    /// Addresses of the pages to look at. Left out are pages that are not the process' own
    /// and that it cannot have moved: those of files it has not written to, and those of its
    /// parent that neither has written to since the fork.
    fn own_pages(&self, found: &RecognisedRegion, bind: &PageBind) -> impl Iterator<Item = u64> {
        let all = (bind.start..bind.start + bind.length).step_by((PAGE_SIZE * self.step) as usize);
        let at = self.files.partition_point(|(_, end)| *end <= bind.start);
        let of_file = self.files.get(at);
        let of_file = of_file.is_some_and(|(start, _)| *start < bind.start + bind.length);
        let flags = match of_file || found.copied {
            true => self.pagemap_flags(bind),
            false => None,
        };
        let (start, copied) = (bind.start, found.copied);
        all.filter(move |address| {
            let Some(flags) = &flags else { return true };
            let at = ((address - start) / PAGE_SIZE) as usize;
            let flags = flags.get(at).copied().unwrap_or(0);
            flags & PM_FILE == 0 && (!copied || flags & PM_MMAP_EXCLUSIVE != 0)
        })
    }

    fn pagemap_flags(&self, bind: &PageBind) -> Option<Vec<u64>> {
        let entry = size_of::<u64>() as u64;
        let mut bytes = vec![0; (bind.length / PAGE_SIZE * entry) as usize];
        let file = self.pagemap.as_ref()?;
        file.read_exact_at(&mut bytes, bind.start / PAGE_SIZE * entry)
            .ok()?;
        let entries = bytes.chunks_exact(entry as usize);
        let entries = entries.map(|e| e.try_into().map_or(0, u64::from_ne_bytes));
        Some(entries.collect())
    }
}

/// Where /proc/TID/maps shows files mapped privately; empty when it cannot be read.
fn private_files(tid: Tid) -> Vec<(u64, u64)> {
    let mappings = read_mappings(tid).into_iter();
    let private = mappings.filter(|m| {
        m.flags & libc::MAP_PRIVATE != 0 && m.file.as_ref().is_some_and(|file| file.ino != 0)
    });
    private.map(|m| (m.address, m.address + m.length)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_profile::RegionIx;
    use std::ffi::OsStr;
    use std::io::{Read, Write};
    use std::os::unix::ffi::OsStrExt;
    use std::process::{Child, Command, Stdio};

    /// One of them once hid all files that a process maps.
    #[test]
    fn files_whose_names_are_no_text() {
        let folder = tempfile::tempdir().expect("tempdir");
        let program = folder.path().join(OsStr::from_bytes(b"caf\xe9"));
        // By a process of its own: while this one had it open, it could not be started.
        let copied = Command::new("cp").arg("/bin/cat").arg(&program).status();
        assert!(copied.expect("cp").success());
        let mut child = running_cat(program.as_ref());
        let files = private_files(i32::try_from(child.id()).expect("pid"));
        drop(child.stdin.take());
        child.wait().expect("wait");
        assert!(!files.is_empty());
    }

    /// It waits for its input to end.
    fn running_cat(program: &OsStr) -> Child {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cat");
        let input = child.stdin.as_mut().expect("a pipe");
        input.write_all(b"x").expect("write");
        let output = child.stdout.as_mut().expect("a pipe");
        output.read_exact(&mut [0]).expect("it runs");
        child
    }

    /// Its stack has memory on some node.
    #[test]
    fn the_stack_of_another_process() {
        let mut child = running_cat("cat".as_ref());
        let pid = i32::try_from(child.id()).expect("pid");
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
        let line = maps
            .lines()
            .find(|l| l.ends_with("[stack]"))
            .expect("a stack");
        let (start, end) = line
            .split(' ')
            .next()
            .and_then(|r| r.split_once('-'))
            .expect("a range");
        let number = |text| u64::from_str_radix(text, 16).expect("a number");
        let (start, end) = (number(start), number(end));
        let bind = |node| PageBind {
            start,
            length: end - start,
            node: Node(node),
        };
        let found = |node| RecognisedRegion {
            pid,
            region: Some(RegionIx(7)),
            name: "main stack".into(),
            binds: vec![bind(node)],
            ..RecognisedRegion::default()
        };
        let read = read(pid, &[found(0), found(1023)]).expect("move_pages");
        drop(child.stdin.take());
        child.wait().expect("wait");
        let [first, second] = &read[..] else {
            panic!("{read:?}")
        };
        assert_eq!(first.asked, (end - start) / PAGE_SIZE);
        assert_eq!(first.region, Some(RegionIx(7)));
        let memory: u64 = first.nodes.iter().map(|(_, pages)| pages).sum();
        assert!((1..=first.asked).contains(&memory), "{first:?}");
        let on_first = first
            .nodes
            .iter()
            .find(|(n, _)| n.0 == 0)
            .map_or(0, |n| n.1);
        assert_eq!(first.right, on_first);
        assert_eq!(second.right, 0, "no page is on a node that is not there");
    }
}
