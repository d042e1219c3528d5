//! Which threads were put on which unit, and how they get their masks back: told apart by
//! when they began, as ids are given out again.
use std::collections::HashMap;

use hither_sys::affinity::CpuMask;
use serde::{Deserialize, Serialize};

use crate::follow::pinning;
use crate::follow::procfs::{self, StartTime};
use hither_sys::{Pid, Tid};

/// A thread that is put on a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedThread {
    pub pid: Pid,
    pub tid: Tid,
    pub cpu: u32,
    /// When the process and the thread began.
    pub process: StartTime,
    pub thread: StartTime,
    /// Where it may run without us: first and last of each run of units.
    pub natural: Vec<(u32, u32)>,
}

impl PinnedThread {
    /// `None` when there is no such thread any more.
    #[must_use]
    pub fn read_from_proc(pid: Pid, tid: Tid, cpu: u32, natural: &CpuMask) -> Option<PinnedThread> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for unit in natural.cpus() {
            match runs.last_mut() {
                Some(run) if run.1 + 1 == unit => run.1 = unit,
                _ => runs.push((unit, unit)),
            }
        }
        Some(PinnedThread {
            pid,
            tid,
            cpu,
            process: procfs::start_time(pid, pid)?,
            thread: procfs::start_time(pid, tid)?,
            natural: runs,
        })
    }

    fn original_mask(&self) -> CpuMask {
        let units = self.natural.iter().flat_map(|run| run.0..=run.1);
        units.collect()
    }
}

/// A thread that was pinned: how the last time, and on which unit before that.
#[derive(Debug)]
struct PinHistory {
    last: PinnedThread,
    before: Option<u32>,
}

impl PinHistory {
    /// Whether a mask is one that we gave, or were about to replace.
    fn is_our_mask(&self, mask: &CpuMask) -> bool {
        let is = |cpu| *mask == CpuMask::single(cpu);
        is(self.last.cpu) || self.before.is_some_and(is)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct PinnedThreads {
    processes: HashMap<(Pid, StartTime), HashMap<Tid, PinHistory>>,
}

/// Rounds of looking for threads that were made while the others were freed.
const ROUNDS: usize = 20;

impl PinnedThreads {
    pub fn insert(&mut self, pinned: PinnedThread) {
        let key = (pinned.pid, pinned.process);
        let of = self.processes.entry(key).or_default();
        let known = of.get(&pinned.tid);
        let known = known.filter(|known| known.last.thread == pinned.thread);
        let before = known.map(|known| known.last.cpu);
        of.insert(
            pinned.tid,
            PinHistory {
                before,
                last: pinned,
            },
        );
    }

    /// Gives all threads that have a mask of ours the one that they would have, and so their
    /// children's, that inherited it.
    pub fn restore_masks(&self) {
        if self.processes.is_empty() {
            return;
        }
        for _ in 0..ROUNDS {
            let living = ProcessAncestry::list_all();
            let freed = living.iter().filter_map(|process| {
                let entries = self.pins_of(process, &living)?;
                Some(restore_process(process.pid, process.start_time, entries))
            });
            if freed.sum::<usize>() == 0 {
                return;
            }
        }
    }

    /// What is known of a process or of the nearest of those that it comes from.
    fn pins_of(
        &self,
        process: &ProcessAncestry,
        living: &[ProcessAncestry],
    ) -> Option<&HashMap<Tid, PinHistory>> {
        let mut at = process;
        loop {
            if let Some(entries) = self.processes.get(&(at.pid, at.start_time)) {
                return Some(entries);
            }
            let parent = living.binary_search_by_key(&at.parent, |p| p.pid);
            let parent = &living[parent.ok()?];
            // A process whose parent exited is a child of init or of a subreaper.
            if parent.group != at.group && at.pid != at.group {
                break;
            }
            // Parents begin before their children, hence this ends.
            if (parent.start_time, parent.pid) >= (at.start_time, at.pid) {
                return None;
            }
            at = parent;
        }
        let mut known = self.processes.iter();
        let of = known.find(|((pid, start_time), _)| {
            *start_time <= at.start_time
                && (*pid == at.group || group_of(*pid, living) == Some(at.group))
        });
        of.map(|(_, entries)| entries)
    }
}

fn group_of(pid: Pid, living: &[ProcessAncestry]) -> Option<Pid> {
    let at = living.binary_search_by_key(&pid, |p| p.pid).ok()?;
    Some(living[at].group)
}

/// How many threads got another mask.
fn restore_process(pid: Pid, start_time: StartTime, entries: &HashMap<Tid, PinHistory>) -> usize {
    let mut freed = 0;
    for tid in procfs::thread_ids(pid) {
        let Ok(mask) = CpuMask::of_thread(tid) else {
            continue;
        };
        let known = entries.get(&tid);
        let thread = procfs::start_time(pid, tid);
        let known =
            known.filter(|known| thread == Some(known.last.thread) && known.last.pid == pid);
        let giver = match known {
            Some(known) => Some(known).filter(|known| known.is_our_mask(&mask)),
            // It was made since, and inherited what its creator had.
            None => entries.values().find(|entry| {
                entry.is_our_mask(&mask) && thread.is_some_and(|t| t >= entry.last.thread)
            }),
        };
        let natural = giver.map(|giver| giver.last.original_mask());
        let same = procfs::start_time(pid, pid) == Some(start_time);
        let natural = natural.filter(|natural| *natural != mask && same);
        if let Some((natural, thread)) = natural.zip(thread) {
            let done = pinning::set_affinity_of((pid, tid), thread, &natural);
            freed += usize::from(done.is_ok_and(|done| done));
        }
    }
    freed
}

/// A process that lives.
struct ProcessAncestry {
    pid: Pid,
    parent: Pid,
    group: Pid,
    start_time: StartTime,
}

impl ProcessAncestry {
    /// In order of their ids.
    fn list_all() -> Vec<ProcessAncestry> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
        let pids = names.filter_map(|name| name.parse().ok());
        let mut all: Vec<ProcessAncestry> = pids.filter_map(ProcessAncestry::read).collect();
        all.sort_unstable_by_key(|process| process.pid);
        all
    }

    fn read(pid: Pid) -> Option<ProcessAncestry> {
        let family = procfs::process_origin(pid)?;
        Some(ProcessAncestry {
            pid,
            parent: family.parent,
            group: family.group,
            start_time: family.start_time,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn threads_are_freed_as_long_as_they_have_what_they_were_given() {
        let own = CpuMask::of_thread(0).expect("mask");
        let units: Vec<u32> = own.cpus().collect();
        let (first, last) = (units[0], units[units.len() - 1]);
        // What the ledger knows, the mask at the end, whether it is given back.
        let check = |known: &[u32], now: u32, start_time: i64, expected: bool| {
            let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
            let pid = i32::try_from(child.id()).expect("pid");
            let mut ledger = PinnedThreads::default();
            for &cpu in known {
                let mut pinned = PinnedThread::read_from_proc(pid, pid, cpu, &own).expect("alive");
                pinned.process.0 = pinned.process.0.wrapping_add_signed(start_time);
                ledger.insert(pinned);
            }
            CpuMask::single(now).set_affinity(pid).expect("pin");
            ledger.restore_masks();
            let free = CpuMask::of_thread(pid).expect("mask") == own;
            child.kill().expect("kill");
            child.wait().expect("wait");
            assert_eq!(free, expected, "{known:?} {now} {start_time}");
        };
        check(&[last], last, 0, true);
        check(&[first, last], last, 0, true);
        // Told, but not yet done.
        check(&[first, last], first, 0, true);
        if units.len() > 1 {
            // Its own choice, and another process of the same number.
            check(&[first], last, 0, false);
            check(&[last], last, -1, false);
        }
    }

    #[test]
    fn children_made_since_are_freed_too() {
        let own = CpuMask::of_thread(0).expect("mask");
        if own.cpus().count() < 2 {
            println!("skipped: one processing unit only");
            return;
        }
        let last = own.cpus().last().expect("a unit");
        let mut command = Command::new("sh");
        let line = "read go; sleep 60 & (sleep 60 & echo $!) ; echo $!; read go";
        command.args(["-c", line]);
        let piped = std::process::Stdio::piped;
        let mut parent = command.stdin(piped()).stdout(piped()).spawn().expect("sh");
        let pid = i32::try_from(parent.id()).expect("pid");
        let mut ledger = PinnedThreads::default();
        ledger.insert(PinnedThread::read_from_proc(pid, pid, last, &own).expect("alive"));
        CpuMask::single(last).set_affinity(pid).expect("pin");
        let mut go = parent.stdin.take().expect("stdin");
        std::io::Write::write_all(&mut go, b"\n").expect("go");
        let mut out = std::io::BufReader::new(parent.stdout.take().expect("stdout"));
        let mut child = || {
            let mut line = String::new();
            std::io::BufRead::read_line(&mut out, &mut line).expect("a line");
            line.trim().parse::<i32>().expect("pid")
        };
        // The first of them has no parent any more, and is not of the same job as `pid`
        // unless that leads one.
        let (orphan, child) = (child(), child());
        assert_eq!(
            CpuMask::of_thread(child).expect("mask"),
            CpuMask::single(last)
        );
        ledger.restore_masks();
        assert_eq!(CpuMask::of_thread(pid).expect("mask"), own);
        assert_eq!(CpuMask::of_thread(child).expect("mask"), own);
        assert_eq!(CpuMask::of_thread(orphan).expect("mask"), own);
        for pid in [orphan, child] {
            hither_sys::process::send_signal(pid, nix::libc::SIGKILL).expect("kill");
        }
        drop(go);
        parent.wait().expect("wait");
    }
}
