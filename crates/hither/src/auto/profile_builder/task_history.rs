//! The threads and processes of a run, all that ever were. A process that runs another
//! program is another process, and its thread another thread, as in a traced profile.
use foldhash::{HashMap, HashMapExt};
use hither_profile::{Nanos, Process, ProcessIx, RoleFinder, Thread, ThreadIx};

use crate::follow::procfs;
use crate::program::mpi;
use hither_sys::{Pid, Tid};

/// Threads of a profile at most.
const MOST_THREADS: usize = 16_384;
/// Processes, each of which `profile.json` names.
const MOST_PROCESSES: usize = 16_384;

#[derive(Debug)]
pub struct TaskHistory {
    zero: Nanos,
    pub threads: Vec<Thread>,
    pub processes: Vec<Process>,
    /// Those that were hither's.
    pub ours: Vec<ThreadIx>,
    by_tid: HashMap<Tid, ThreadIx>,
    by_pid: HashMap<Pid, (ProcessIx, u32)>,
    /// By the role of who created them: where, and to run what, is not seen.
    roles: RoleFinder<ThreadIx>,
    /// Threads that found no room.
    pub lost: u64,
}

impl TaskHistory {
    pub fn new(zero: Nanos) -> TaskHistory {
        TaskHistory {
            zero,
            threads: Vec::new(),
            processes: Vec::new(),
            ours: Vec::new(),
            by_tid: HashMap::new(),
            by_pid: HashMap::new(),
            roles: RoleFinder::default(),
            lost: 0,
        }
    }

    /// Nanoseconds since the start of the run.
    pub fn since_start(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.zero)
    }

    pub fn live_threads(&self) -> u32 {
        self.by_tid.len() as u32
    }

    pub fn find_thread(&self, tid: Tid) -> Option<ThreadIx> {
        self.by_tid.get(&tid).copied()
    }

    pub fn process(&self, pid: Pid) -> Option<ProcessIx> {
        self.by_pid.get(&pid).map(|p| p.0)
    }

    /// The thread with this id, taken in if it was not known.
    pub fn find_or_add_thread(&mut self, at: Nanos, pid: Pid, tid: Tid) -> Option<ThreadIx> {
        match self.by_tid.get(&tid) {
            Some(&thread) => Some(thread),
            None => {
                let name = procfs::read_thread_status(pid, tid).map(|look| look.name);
                self.add(at, (pid, tid), None, name.unwrap_or_default())
            }
        }
    }

    /// A thread was created. The first thread of its role, `None` where nobody knows of a role.
    pub fn started(
        &mut self,
        at: Nanos,
        (pid, tid): (Pid, Tid),
        (parent, creator): (Pid, Tid),
    ) -> Option<ThreadIx> {
        let creator = self.find_thread(creator);
        let name = creator.map(|c| self.threads[c.at()].name.clone());
        if pid != parent && !self.by_pid.contains_key(&pid) {
            let of = self.process(parent);
            let executable = of.map(|p| self.processes[p.at()].executable.clone());
            let rank = of.and_then(|p| self.processes[p.at()].rank);
            self.add_process(at, pid, of, executable.unwrap_or_default(), rank);
        }
        let creator = creator.filter(|_| pid == parent);
        let thread = self.add(at, (pid, tid), creator, name.unwrap_or_default())?;
        self.take_role(thread, creator?)
    }

    fn take_role(&mut self, thread: ThreadIx, creator: ThreadIx) -> Option<ThreadIx> {
        let family = self.threads[creator.at()].role.unwrap_or(creator);
        let (threads, by_tid) = (&self.threads, &self.by_tid);
        let is_gone = |other: ThreadIx| by_tid.get(&threads[other.at()].tid) != Some(&other);
        let role = self.roles.role_of(family, thread, is_gone);
        self.threads[thread.at()].role = (role != thread).then_some(role);
        Some(role)
    }

    /// exec: all other threads of the process have ended.
    pub fn execed(&mut self, at: Nanos, pid: Pid) {
        let before = self.process(pid);
        let gone: Vec<Tid> = match before {
            Some(process) => self.threads_of(process),
            None => Vec::new(),
        };
        gone.into_iter().for_each(|tid| self.ended(at, tid));
        let parent = before.and_then(|p| self.processes[p.at()].parent);
        self.by_pid.remove(&pid);
        self.add_process(
            at,
            pid,
            parent,
            procfs::executable(pid),
            mpi::local_rank_of(pid),
        );
        self.add(at, (pid, pid), None, String::new());
    }

    fn threads_of(&self, process: ProcessIx) -> Vec<Tid> {
        let of = self.by_tid.iter();
        let of = of.filter(|(_, t)| self.threads[t.at()].process == process);
        of.map(|(&tid, _)| tid).collect()
    }

    pub fn named(&mut self, tid: Tid, name: &str) {
        let Some(thread) = self.find_thread(tid) else {
            return;
        };
        let thread = &mut self.threads[thread.at()];
        name.clone_into(&mut thread.name);
        let process = &mut self.processes[thread.process.at()];
        // It may have ended before anybody could ask what it runs.
        if process.executable.is_empty() {
            name.clone_into(&mut process.executable);
        }
    }

    pub fn ended(&mut self, at: Nanos, tid: Tid) {
        let at = self.since_start(at);
        let Some(thread) = self.by_tid.remove(&tid) else {
            return;
        };
        let thread = &mut self.threads[thread.at()];
        thread.end = at.max(thread.start);
        let process = &mut self.processes[thread.process.at()];
        process.end = at.max(process.start);
        let pid = process.pid;
        if let Some((_, threads)) = self.by_pid.get_mut(&pid) {
            *threads -= 1;
            if *threads == 0 {
                self.by_pid.remove(&pid);
            }
        }
    }

    /// The last one with this id was hither's.
    pub fn mark_own_thread(&mut self, tid: Tid) {
        let last = self.threads.iter().rposition(|thread| thread.tid == tid);
        self.ours.extend(last.map(|at| ThreadIx(at as u32)));
    }

    /// One more page fault.
    pub fn count_fault(&mut self, thread: ThreadIx) {
        self.threads[thread.at()].reads += 1;
    }

    /// Those that live end with the run.
    pub fn finish(&mut self, duration: Nanos) {
        for &thread in self.by_tid.values() {
            self.threads[thread.at()].end = duration;
        }
        for &(process, _) in self.by_pid.values() {
            self.processes[process.at()].end = duration;
        }
    }

    fn add(
        &mut self,
        at: Nanos,
        (pid, tid): (Pid, Tid),
        creator: Option<ThreadIx>,
        name: String,
    ) -> Option<ThreadIx> {
        self.ended(at, tid);
        let process = match self.process(pid) {
            Some(process) => process,
            None => self.add_process(
                at,
                pid,
                None,
                procfs::executable(pid),
                mpi::local_rank_of(pid),
            )?,
        };
        if self.threads.len() >= MOST_THREADS {
            self.lost += 1;
            return None;
        }
        let start = self.since_start(at);
        let thread = ThreadIx(self.threads.len() as u32);
        self.threads.push(Thread {
            process,
            tid,
            name,
            creator,
            start,
            end: start,
            ..Thread::default()
        });
        self.by_tid.insert(tid, thread);
        if let Some((_, threads)) = self.by_pid.get_mut(&pid) {
            *threads += 1;
        }
        Some(thread)
    }

    fn add_process(
        &mut self,
        at: Nanos,
        pid: Pid,
        parent: Option<ProcessIx>,
        executable: String,
        rank: Option<u32>,
    ) -> Option<ProcessIx> {
        if self.processes.len() >= MOST_PROCESSES {
            return None;
        }
        let start = self.since_start(at);
        let process = ProcessIx(self.processes.len() as u32);
        self.processes.push(Process {
            pid,
            parent,
            executable,
            rank,
            start,
            end: start,
        });
        self.by_pid.insert(pid, (process, 0));
        Some(process)
    }
}
