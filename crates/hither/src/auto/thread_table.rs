//! The threads that live: which row of the matrix each has, where it ran last, where it was
//! put, and where it might run without us. And the roles whose last thread ended: the next one
//! has its row and its unit.
use std::io;

use crate::program::clock::clock_ns;
use foldhash::HashMap;
use hither_profile::ThreadIx;
use hither_sys::affinity::CpuMask;
use nix::libc;
use nix::time::ClockId;

use super::analysis::SharerId;
use super::pinned_threads::PinnedThread;
use crate::follow::pinning;
use crate::follow::procfs::{self, StartTime, CLOCK_TICK};
use hither_sys::{Cpu, Pid, Tid};

/// A thread that lives.
#[derive(Clone, Debug)]
pub struct ThreadEntry {
    pub pid: Pid,
    pub sharer: SharerId,
    /// The first thread of its role.
    role: Option<ThreadIx>,
    /// The unit that it was to be put on from its beginning, which may come too late for it.
    role_cpu: Option<Cpu>,
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

    /// Of a thread that begins: the mask that its creator has, or would have without us.
    fn inherit_mask(&mut self, tid: Tid, parent: Option<ThreadEntry>) {
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
        self.original_mask = parent.original_mask;
    }

    /// Whether a mask is one that it was given.
    fn was_given(&self, mask: &CpuMask) -> bool {
        let cpus = self.assigned_cpu.iter().chain(&self.before);
        cpus.into_iter().any(|cpu| *mask == CpuMask::single(cpu.0))
    }
}

/// A role whose last thread ended.
#[derive(Clone, Copy, Debug)]
struct VacantRole {
    pid: Pid,
    sharer: SharerId,
    /// The unit that its next thread is to be put on.
    cpu: Option<Cpu>,
}

/// Whose row it is.
#[derive(Clone, Copy, Debug)]
enum RowHolder {
    Thread(Tid),
    Vacant(ThreadIx),
}

#[derive(Debug, Default)]
pub struct ThreadTable {
    threads: HashMap<Tid, ThreadEntry>,
    vacant: HashMap<ThreadIx, VacantRole>,
    /// How many threads of each process live.
    sizes: HashMap<Pid, usize>,
    by_sharer: Vec<Option<RowHolder>>,
    free: Vec<SharerId>,
    dead: Vec<SharerId>,
    now: StartTime,
    /// Threads that came and that went so far.
    changes: u64,
}

/// Sharer ids that can be given out; one number means "none".
const MAX_THREADS: usize = u16::MAX as usize - 1;

impl ThreadTable {
    /// To be called before records are taken in: they are from before this moment.
    pub fn read_clock(&mut self) {
        self.now = StartTime(clock_ns(ClockId::CLOCK_BOOTTIME) / CLOCK_TICK);
    }

    /// Adds a thread. A thread inherits its creator's mask: one that hither set is reset, so that it may
    /// run where it would without us. Returns the unit that the last thread of its role was on.
    pub fn thread_started(
        &mut self,
        tid: Tid,
        pid: Pid,
        creator: Tid,
        role: Option<ThreadIx>,
    ) -> Option<Cpu> {
        let parent = self.threads.get(&creator).cloned();
        let vacant = role.and_then(|role| self.vacant.remove(&role));
        let thread = self.add(tid, pid, vacant.map(|vacant| vacant.sharer))?;
        thread.role = role;
        thread.role_cpu = vacant.and_then(|vacant| vacant.cpu);
        thread.inherit_mask(tid, parent);
        thread.role_cpu
    }

    /// The thread with this id, taken in if need be; `None` when there are too many.
    pub fn find_or_add(&mut self, tid: Tid, pid: Pid, ran: Cpu) -> Option<SharerId> {
        let now = self.now;
        if self.threads.get(&tid).is_none_or(|known| known.pid != pid) {
            self.add(tid, pid, None)?;
        }
        let thread = self.threads.get_mut(&tid)?;
        (thread.last_cpu, thread.seen) = (Some(ran), now);
        Some(thread.sharer)
    }

    fn add(&mut self, tid: Tid, pid: Pid, sharer: Option<SharerId>) -> Option<&mut ThreadEntry> {
        self.thread_ended(tid);
        let sharer = match sharer.or_else(|| self.free.pop()) {
            Some(sharer) => sharer,
            None if self.by_sharer.len() < MAX_THREADS => {
                self.by_sharer.push(None);
                SharerId(u16::try_from(self.by_sharer.len() - 1).ok()?)
            }
            None => return None,
        };
        self.by_sharer[sharer.at()] = Some(RowHolder::Thread(tid));
        self.changes += 1;
        *self.sizes.entry(pid).or_default() += 1;
        let thread = ThreadEntry {
            pid,
            sharer,
            role: None,
            role_cpu: None,
            last_cpu: None,
            assigned_cpu: None,
            before: None,
            original_mask: None,
            chose: false,
            seen: self.now,
        };
        Some(self.threads.entry(tid).insert_entry(thread).into_mut())
    }

    /// A thread is gone. Rows to be cleared: its own, unless another may take its role, and those of all
    /// roles with the last thread of a process. Their numbers are free after
    /// [`ThreadTable::release_rows`].
    pub fn thread_ended(&mut self, tid: Tid) -> Vec<SharerId> {
        let Some(thread) = self.threads.remove(&tid) else {
            return Vec::new();
        };
        self.by_sharer[thread.sharer.at()] = None;
        self.changes += 1;
        let (pid, sharer) = (thread.pid, thread.sharer);
        let mut gone = Vec::new();
        match thread.role {
            Some(role) => {
                let cpu = thread.assigned_cpu.or(thread.role_cpu);
                let cpu = cpu.filter(|_| !thread.chose);
                self.vacant.insert(role, VacantRole { pid, sharer, cpu });
                self.by_sharer[sharer.at()] = Some(RowHolder::Vacant(role));
            }
            None => gone.push(sharer),
        }
        let left = self.sizes.entry(pid).or_insert(1);
        *left -= 1;
        if *left == 0 {
            self.sizes.remove(&pid);
        }
        self.dead.extend(&gone);
        if self.thread_count(pid) == 0 {
            gone.extend(self.abandon_roles(pid));
        }
        gone
    }

    /// Nobody will take the roles that are vacant in a process: rows to be cleared.
    pub fn abandon_roles(&mut self, pid: Pid) -> Vec<SharerId> {
        let of = self.vacant.extract_if(|_, vacant| vacant.pid == pid);
        let gone: Vec<SharerId> = of.map(|(_, vacant)| vacant.sharer).collect();
        gone.iter().for_each(|row| self.by_sharer[row.at()] = None);
        self.dead.extend(&gone);
        gone
    }

    /// The unit on which a thread is, or the next one of its role is to be.
    #[must_use]
    pub fn cpu_of(&self, sharer: SharerId) -> Option<Cpu> {
        match (*self.by_sharer.get(sharer.at())?)? {
            RowHolder::Thread(tid) => self.threads.get(&tid)?.assigned_cpu,
            RowHolder::Vacant(role) => self.vacant.get(&role)?.cpu,
        }
    }

    /// The next thread of a role is to be on this unit.
    /// The unit that a thread was put on, or else ran on last.
    pub fn unit_of(&self, sharer: SharerId) -> Option<Cpu> {
        let (_, thread) = self.by_sharer(sharer)?;
        thread.assigned_cpu.or(thread.last_cpu)
    }

    pub fn reserve_cpu(&mut self, sharer: SharerId, cpu: Cpu) {
        if let Some(Some(RowHolder::Vacant(role))) = self.by_sharer.get(sharer.at()) {
            if let Some(vacant) = self.vacant.get_mut(role) {
                vacant.cpu = Some(cpu);
            }
        }
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
    pub fn by_sharer(&self, sharer: SharerId) -> Option<(Tid, &ThreadEntry)> {
        match (*self.by_sharer.get(sharer.at())?)? {
            RowHolder::Thread(tid) => Some((tid, self.threads.get(&tid)?)),
            RowHolder::Vacant(_) => None,
        }
    }

    /// All that live, by thread id.
    pub fn live(&self) -> impl Iterator<Item = (Tid, &ThreadEntry)> {
        self.threads.iter().map(|(&tid, thread)| (tid, thread))
    }

    /// Another number whenever a thread has come or gone.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
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
        let start_time = procfs::start_time(pid, pid);
        let mut of = self.live().filter(|(_, thread)| thread.pid == pid);
        of.any(|(_, thread)| thread.is_of(start_time))
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
            Some(cpu) => now == CpuMask::single(cpu.0),
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
        let start_time = pinned.thread;
        if !tell(pinned) {
            return Ok(false);
        }
        let mask = CpuMask::single(cpu.0);
        let done = pinning::set_affinity_of((thread.pid, tid), start_time, &mask)?;
        if done {
            thread.before = thread.assigned_cpu.replace(cpu);
        }
        Ok(done)
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
#[path = "thread_table/tests.rs"]
mod tests;
