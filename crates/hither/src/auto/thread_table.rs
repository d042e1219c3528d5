//! The threads that live: which row of the matrix each has, where it ran last, where it was
//! put, and where it might run without us.
use std::collections::HashMap;
use std::io;
use std::time::Duration;

use hither_sys::affinity::CpuMask;
use nix::libc;
use nix::time::{clock_gettime, ClockId};

use super::analysis::SharerId;
use super::pinned_threads::PinnedThread;
use crate::follow::procfs::{self, StartTime};
use hither_sys::{Cpu, Pid, Tid};

/// A thread that lives.
#[derive(Clone, Debug)]
pub struct ThreadEntry {
    pub pid: Pid,
    pub member: SharerId,
    /// The unit that it faulted on last.
    pub last_cpu: Option<Cpu>,
    /// The unit that it was put on.
    pub assigned_cpu: Option<Cpu>,
    /// And before that: a thread that it made may have that one yet.
    before: Option<Cpu>,
    /// The mask that it would have without us.
    pub original_mask: Option<CpuMask>,
    /// It chose its units itself, which are its own affair then.
    pub chose: bool,
    /// When the kernel spoke of it last: what has its id now and began later is another.
    seen: StartTime,
}

impl ThreadEntry {
    /// Whether it is what began then.
    fn is_of(&self, birth: Option<StartTime>) -> bool {
        birth.is_some_and(|birth| birth.0 <= self.seen.0 + 1)
    }

    /// Whether a mask is one that it was given.
    fn was_given(&self, mask: &CpuMask) -> bool {
        let seats = self.assigned_cpu.iter().chain(&self.before);
        seats.into_iter().any(|cpu| *mask == CpuMask::single(cpu.0))
    }
}

#[derive(Debug, Default)]
pub struct ThreadTable {
    threads: HashMap<Tid, ThreadEntry>,
    /// How many threads of each process live.
    sizes: HashMap<Pid, usize>,
    by_member: Vec<Option<Tid>>,
    free: Vec<SharerId>,
    dead: Vec<SharerId>,
    now: StartTime,
}

/// Sharer ids that can be given out; one number means "none".
const MAX_THREADS: usize = u16::MAX as usize - 1;
/// Clock ticks of /proc are always this long.
const CLOCK_TICK: Duration = Duration::from_millis(10);

impl ThreadTable {
    /// To be called before records are taken in: they are from before this moment.
    pub fn read_clock(&mut self) {
        let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
        self.now =
            StartTime(u64::try_from(now.as_nanos() / CLOCK_TICK.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds a thread. A thread inherits its creator's mask: one that hither set is reset, so that it may run where it would without us.
    pub fn thread_started(&mut self, tid: Tid, pid: Pid, creator: Tid) {
        let parent = self.threads.get(&creator).cloned();
        let Some(thread) = self.add(tid, pid) else {
            return;
        };
        let Some(parent) = parent else {
            return;
        };
        let (Some(natural), Ok(mask)) = (&parent.original_mask, CpuMask::of_thread(tid)) else {
            return;
        };
        if parent.was_given(&mask) {
            let _ = natural.set_affinity(tid);
        } else if mask != *natural {
            return;
        }
        thread.original_mask = parent.original_mask;
    }

    /// The thread with this id, taken in if need be; `None` when there are too many.
    pub fn find_or_add(&mut self, tid: Tid, pid: Pid, ran: Cpu) -> Option<SharerId> {
        let now = self.now;
        if self.threads.get(&tid).is_none_or(|known| known.pid != pid) {
            self.add(tid, pid)?;
        }
        let thread = self.threads.get_mut(&tid)?;
        (thread.last_cpu, thread.seen) = (Some(ran), now);
        Some(thread.member)
    }

    fn add(&mut self, tid: Tid, pid: Pid) -> Option<&mut ThreadEntry> {
        self.thread_ended(tid);
        let member = match self.free.pop() {
            Some(member) => member,
            None if self.by_member.len() < MAX_THREADS => {
                self.by_member.push(None);
                SharerId(u16::try_from(self.by_member.len() - 1).ok()?)
            }
            None => return None,
        };
        self.by_member[member.at()] = Some(tid);
        *self.sizes.entry(pid).or_default() += 1;
        let thread = ThreadEntry {
            pid,
            member,
            last_cpu: None,
            assigned_cpu: None,
            before: None,
            original_mask: None,
            chose: false,
            seen: self.now,
        };
        Some(self.threads.entry(tid).insert_entry(thread).into_mut())
    }

    /// A thread is gone. Its row, to be cleared; its number is free after [`ThreadTable::release_rows`].
    pub fn thread_ended(&mut self, tid: Tid) -> Option<SharerId> {
        let thread = self.threads.remove(&tid)?;
        self.by_member[thread.member.at()] = None;
        self.dead.push(thread.member);
        let left = self.sizes.get_mut(&thread.pid)?;
        *left -= 1;
        if *left == 0 {
            self.sizes.remove(&thread.pid);
        }
        Some(thread.member)
    }

    /// Threads of a process that live, as far as is known.
    #[must_use]
    pub fn thread_count(&self, pid: Pid) -> usize {
        self.sizes.get(&pid).copied().unwrap_or(0)
    }

    /// Numbers of threads that are gone, when they are many enough to be given out again.
    pub fn release_rows(&mut self) -> Vec<SharerId> {
        if self.dead.len() < 16 + self.threads.len() / 2 {
            return Vec::new();
        }
        self.free.extend(&self.dead);
        std::mem::take(&mut self.dead)
    }

    /// What a thread has now is what it would have without us.
    pub fn keep_mask(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.original_mask = CpuMask::of_thread(tid).ok();
        }
    }

    #[must_use]
    pub fn by_member(&self, member: SharerId) -> Option<(Tid, &ThreadEntry)> {
        let tid = (*self.by_member.get(member.at())?)?;
        Some((tid, self.threads.get(&tid)?))
    }

    /// All that live, by thread id.
    pub fn live(&self) -> impl Iterator<Item = (Tid, &ThreadEntry)> {
        self.threads.iter().map(|(&tid, thread)| (tid, thread))
    }

    /// Threads of a process.
    #[must_use]
    pub fn threads_of(&self, pid: Pid) -> Vec<Tid> {
        let of = self.live().filter(|(_, thread)| thread.pid == pid);
        of.map(|(tid, _)| tid).collect()
    }

    /// Threads (with their processes) that have exited without an exit record, since records
    /// can get lost. A thread with the same id now is another one.
    #[must_use]
    pub fn missing_threads(&self) -> Vec<(Pid, Tid)> {
        let is_gone =
            |tid, thread: &ThreadEntry| !thread.is_of(procfs::start_time(thread.pid, tid));
        let gone = self.live().filter(|&(tid, thread)| is_gone(tid, thread));
        gone.map(|(tid, thread)| (thread.pid, tid)).collect()
    }

    /// Whether the process with this id is the one that the kernel spoke of.
    #[must_use]
    pub fn is_known(&self, pid: Pid) -> bool {
        let born = procfs::start_time(pid, pid);
        let mut of = self.live().filter(|(_, thread)| thread.pid == pid);
        of.any(|(_, thread)| thread.is_of(born))
    }

    /// Puts a thread on a unit, if it may run there and has not chosen its units itself, and
    /// if `tell`, called before, returns true. Whether it is pinned there now and was not before.
    ///
    /// # Errors
    /// As sched_setaffinity(2), but for a thread that is gone.
    pub fn pin_thread(
        &mut self,
        tid: Tid,
        cpu: Cpu,
        ours: &CpuMask,
        tell: impl FnOnce(PinnedThread) -> bool,
    ) -> io::Result<bool> {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return Ok(false);
        };
        if thread.chose || thread.assigned_cpu == Some(cpu) {
            return Ok(false);
        }
        let now = match CpuMask::of_thread(tid) {
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
            now => now?,
        };
        // It has what it was given, or what everybody starts with.
        let given = match thread.assigned_cpu {
            Some(seat) => now == CpuMask::single(seat.0),
            None => thread.original_mask.as_ref().unwrap_or(ours) == &now,
        };
        if !given || !now.contains(cpu.0) && thread.assigned_cpu.is_none() {
            thread.chose = true;
            return Ok(false);
        }
        if thread.assigned_cpu.is_none() {
            thread.original_mask = Some(now);
        }
        let natural = thread.original_mask.as_ref().unwrap_or(ours);
        // Of a thread whose end got lost, the id may be a stranger's by now.
        let pinned = PinnedThread::read_from_proc(thread.pid, tid, cpu.0, natural);
        let Some(pinned) = pinned.filter(|p| thread.is_of(Some(p.thread))) else {
            return Ok(false);
        };
        if !tell(pinned) {
            return Ok(false);
        }
        match CpuMask::single(cpu.0).set_affinity(tid) {
            Ok(()) => thread.before = thread.assigned_cpu.replace(cpu),
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
            Err(e) => return Err(e),
        }
        Ok(true)
    }

    /// A process runs another program now: one of its threads is left, with the id of the
    /// first and its own mask, which is to be as it would without us. The threads that are
    /// gone.
    pub fn process_execed(&mut self, pid: Pid) -> Vec<Tid> {
        let mut of = self.threads_of(pid);
        let threads = of.iter().filter_map(|tid| self.threads.get(tid));
        let mask = CpuMask::of_thread(pid);
        let giver = threads.into_iter().find(|thread| {
            let gave = mask.as_ref().is_ok_and(|mask| thread.was_given(mask));
            gave && thread.original_mask.is_some()
        });
        let natural = giver.and_then(|thread| thread.original_mask.clone());
        if let Some(natural) = &natural {
            let _ = natural.set_affinity(pid);
        }
        if let Some(thread) = self.threads.get_mut(&pid) {
            (thread.assigned_cpu, thread.before, thread.chose) = (None, None, false);
            thread.original_mask = natural.or(thread.original_mask.take());
        }
        of.retain(|&tid| tid != pid);
        of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_out_again_when_many_are_free() {
        let mut roster = ThreadTable::default();
        for tid in 1..=40 {
            let member = roster.find_or_add(tid, 1, Cpu(0));
            assert_eq!(member, Some(SharerId(tid as u16 - 1)));
        }
        for tid in 1..=20 {
            assert_eq!(roster.thread_ended(tid), Some(SharerId(tid as u16 - 1)));
        }
        assert_eq!(roster.thread_ended(7), None);
        assert_eq!(roster.release_rows(), []);
        // Not one of those yet.
        assert_eq!(roster.find_or_add(50, 1, Cpu(0)), Some(SharerId(40)));
        (21..=30).for_each(|tid| {
            roster.thread_ended(tid);
        });
        assert_eq!(roster.release_rows().len(), 30);
        assert!(roster.find_or_add(51, 1, Cpu(0)).expect("a number") < SharerId(30));
        assert_eq!(roster.by_member(SharerId(40)).map(|t| t.0), Some(50));
    }

    #[test]
    fn a_thread_goes_where_it_is_put_and_back() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep");
        let tid = i32::try_from(child.id()).expect("pid");
        let ours = CpuMask::of_thread(0).expect("mask");
        let cpus: Vec<u32> = ours.cpus().collect();
        let (first, last) = (Cpu(cpus[0]), Cpu(cpus[cpus.len() - 1]));
        let mut roster = ThreadTable::default();
        roster.read_clock();
        roster.find_or_add(tid, tid, first);
        // Not pinned without the restore helper knowing it.
        let refused = roster.pin_thread(tid, last, &ours, |pinned| pinned.tid != tid);
        assert!(!refused.expect("seat"));
        assert_eq!(CpuMask::of_thread(tid).expect("mask"), ours);
        assert!(roster.pin_thread(tid, last, &ours, |_| true).expect("seat"));
        assert_eq!(
            CpuMask::of_thread(tid).expect("mask"),
            CpuMask::single(last.0)
        );
        assert!(!roster
            .pin_thread(tid, last, &ours, |_| true)
            .expect("there already"));
        assert!(roster.process_execed(tid).is_empty());
        assert_eq!(CpuMask::of_thread(tid).expect("mask"), ours);
        // What it chose itself is left alone.
        assert!(roster.pin_thread(tid, last, &ours, |_| true).expect("seat"));
        if cpus.len() > 1 {
            CpuMask::single(first.0)
                .set_affinity(tid)
                .expect("its own choice");
            assert!(!roster
                .pin_thread(tid, first, &ours, |_| true)
                .expect("chose"));
            assert!(roster.by_member(SharerId(0)).is_some_and(|(_, t)| t.chose));
        }
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert!(!roster
            .pin_thread(tid, first, &ours, |_| true)
            .expect("gone"));
    }

    #[test]
    fn a_stranger_with_the_id_of_a_dead_thread_is_left_alone() {
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("60").spawn().expect("sleep");
        let tid = i32::try_from(child.id()).expect("pid");
        let ours = CpuMask::of_thread(0).expect("mask");
        let cpu = Cpu(ours.cpus().next().expect("a unit"));
        // The kernel spoke of it long before this one began.
        let mut roster = ThreadTable::default();
        roster.find_or_add(tid, tid, cpu);
        assert!(!roster.pin_thread(tid, cpu, &ours, |_| true).expect("seat"));
        assert_eq!(CpuMask::of_thread(tid).expect("mask"), ours);
        // Of another process.
        roster.read_clock();
        roster.find_or_add(tid, 1, cpu);
        assert!(!roster.pin_thread(tid, cpu, &ours, |_| true).expect("seat"));
        assert_eq!(CpuMask::of_thread(tid).expect("mask"), ours);
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    #[test]
    fn who_is_gone_is_missed_and_who_came_since_is_no_stand_in() {
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("60").spawn().expect("sleep");
        let pid = i32::try_from(child.id()).expect("pid");
        let mut roster = ThreadTable::default();
        // The kernel spoke of one long before this one began, and of one that is gone.
        roster.find_or_add(pid, pid, Cpu(0));
        roster.find_or_add(i32::MAX - 1, i32::MAX - 1, Cpu(0));
        let mut missing = roster.missing_threads();
        missing.sort_unstable();
        let gone = i32::MAX - 1;
        assert_eq!(missing, [(pid, pid), (gone, gone)]);
        assert!(!roster.is_known(pid) && !roster.is_known(gone));
        roster.thread_ended(gone);
        roster.read_clock();
        roster.find_or_add(pid, pid, Cpu(0));
        assert_eq!(roster.missing_threads(), []);
        assert!(roster.is_known(pid));
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert_eq!(roster.missing_threads(), [(pid, pid)]);
    }

    #[test]
    fn sizes_of_processes() {
        let mut roster = ThreadTable::default();
        for tid in [10, 11, 20] {
            roster.find_or_add(tid, tid / 10 * 10, Cpu(0));
        }
        assert_eq!((roster.thread_count(10), roster.thread_count(20)), (2, 1));
        roster.thread_ended(11);
        roster.find_or_add(20, 10, Cpu(0));
        assert_eq!((roster.thread_count(10), roster.thread_count(20)), (2, 0));
    }
}
