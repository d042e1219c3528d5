//! How threads and processes begin, become other programs, and end.
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use hither_profile::RunEnd;
use hither_sys::proc_text::proc_field;
use hither_sys::ptrace::{self, ResumeMode, TraceeEvent};

use super::pending::PendingSyscall;
use super::PtraceEngine;
use crate::run::exec_image;
use crate::run::guide::InitialPlacement;
use crate::run::page_residency;
use hither_sys::{Pid, Tid};

/// Code segment of programs of 64 bits.
const USER_CS: u64 = 0x33;
/// How long a new thread waits for its creator to tell of it. That was killed, if so long.
const ORPHANED: Duration = Duration::from_millis(200);

impl PtraceEngine<'_> {
    /// `creator` made a thread or a process and waits, and so does that.
    pub(super) fn clone_event(&mut self, creator: Tid, vfork: bool) -> io::Result<()> {
        let new = ptrace::event_message(creator)?;
        if self.threads.live.contains_key(&new) {
            return ptrace::resume(creator, ResumeMode::Cont, 0);
        }
        let event = match self.unannounced.remove(&new) {
            Some((event, _)) => Some(event),
            None => ptrace::wait(new, true)
                .ok()
                .flatten()
                .map(|(_, event)| event),
        };
        if let Some(event) = event {
            self.add_tracee(creator, new, event, vfork);
        }
        ptrace::resume(creator, ResumeMode::Cont, 0)
    }

    /// Takes in `new`, which stands before its first instruction.
    fn add_tracee(&mut self, creator: Tid, new: Tid, event: TraceeEvent, vfork: bool) {
        let Some(parent) = self.threads.live.get(&creator).cloned() else {
            self.queue.push_back((new, event));
            return;
        };
        let is_thread = ptrace::is_thread_of(new, parent.pid);
        let pid = if is_thread { parent.pid } else { new };
        let chose = parent.set_own_affinity;
        self.threads
            .add(new, pid, parent.original_mask, parent.pinned, chose);
        let initial = if is_thread {
            let stack_pointer = ptrace::registers(new).map_or(0, |r| r.rsp);
            self.guide.thread_created(creator, new, stack_pointer)
        } else {
            let process = self.processes.get(&parent.pid).cloned().unwrap_or_default();
            self.processes.insert(new, process);
            let shares = vfork || ptrace::shares_memory(parent.pid, new) == Some(true);
            self.guide.process_forked(creator, new, shares)
        };
        let stands = matches!(event, TraceeEvent::Trap | TraceeEvent::GroupStop(_));
        // Only the last thread of a process sees its pages at the end; see `exit_event`.
        let _ = ptrace::set_trace_exit(new, !is_thread);
        if stands
            && !initial.binds.is_empty()
            && self.place_stopped_thread(new, &initial, true).is_ok()
        {
            // It stops again at once, wherever it is to go on from.
            let _ = ptrace::resume(new, ResumeMode::Cont, 0);
        } else {
            self.pin_thread(new, &initial);
            self.queue.push_front((new, event));
        }
    }

    /// Takes in new threads whose creator was killed before it could tell of them.
    pub(super) fn adopt_orphans(&mut self) {
        let late = |since: &Instant| since.elapsed() >= ORPHANED;
        let orphans = self
            .unannounced
            .iter()
            .filter(|(_, (_, since))| late(since));
        for (new, event) in orphans
            .map(|(&new, &(event, _))| (new, event))
            .collect::<Vec<_>>()
        {
            self.unannounced.remove(&new);
            self.add_tracee(self.likely_creator(new), new, event, false);
            if !self.threads.live.contains_key(&new) {
                self.add_unrelated_process(new);
            }
        }
    }

    /// A thread that may have created `new`: of its process or of its parent.
    fn likely_creator(&self, new: Tid) -> Tid {
        let status = std::fs::read_to_string(format!("/proc/{new}/status")).unwrap_or_default();
        let field = |name| proc_field(&status, name)?.parse().ok();
        let of = |pid: Option<Pid>| self.threads.threads_of(pid.unwrap_or(0)).first().copied();
        let sibling = of(field("Tgid"));
        sibling.or_else(|| of(field("PPid"))).unwrap_or(self.main)
    }

    /// Nothing that is known made this process.
    fn add_unrelated_process(&mut self, new: Pid) {
        let allowed = std::rc::Rc::new(self.allowed.clone());
        self.threads.add(new, new, allowed, true, false);
        if let Err(note) = self.threads.apply_mask(new) {
            self.note(note);
        }
    }

    fn pin_thread(&mut self, tid: Tid, initial: &InitialPlacement) {
        if let Err(note) = self.threads.assign_pu(tid, initial) {
            self.note(note);
        }
    }

    /// Does what the guide asks for a thread that stands still.
    fn place_stopped_thread(
        &mut self,
        tid: Tid,
        initial: &InitialPlacement,
        again: bool,
    ) -> io::Result<()> {
        self.pin_thread(tid, initial);
        self.bind_pages(tid, &initial.binds, true, again)
    }

    /// A thread became the only one of its process, and another program.
    pub(super) fn exec_event(&mut self, tid: Tid) -> io::Result<()> {
        let former = ptrace::event_message(tid)?;
        for other in self.threads.threads_of(tid) {
            if other != former {
                self.remove_thread(other);
            }
        }
        if former != tid {
            self.threads.change_tid(former, tid);
        }
        // Filters of its own stay with it.
        self.processes.entry(tid).or_default().vdso = None;
        self.pending.insert(tid, PendingSyscall::Exec { former });
        ptrace::resume(tid, ResumeMode::Syscall, 0)
    }

    /// The new program is there and has run nothing yet.
    pub(super) fn exec_finished(&mut self, pid: Pid, former: Tid) -> io::Result<()> {
        let registers = ptrace::registers(pid)?;
        let (image, vdso) = exec_image::read_exec_image(pid, &registers);
        self.processes.entry(pid).or_default().vdso = vdso.filter(|_| registers.cs == USER_CS);
        let initial = if let Some(gate) = self.gate.take() {
            self.check_filter(gate);
            self.start_ticks();
            self.guide.program_started(pid, &image)
        } else {
            self.guide.process_execed(pid, former, &image)
        };
        self.ticks.image_started(pid, &image);
        self.place_stopped_thread(pid, &initial, false)
    }

    /// What the child wrote before it became the program.
    fn check_filter(&mut self, mut gate: UnixStream) {
        let mut error = [0; 4];
        if gate.read_exact(&mut error).is_err() || error != [0; 4] {
            let error = io::Error::from_raw_os_error(i32::from_ne_bytes(error));
            self.note(format!("this system does not let hither see system calls (seccomp: {error}): no pages were placed, and the program sees where its threads are pinned"));
        }
    }

    /// The first thread of a process is at its end, and its memory is still there. Where
    /// it ends before others (pthread_exit), they are to stop at their ends too.
    pub(super) fn exit_event(&mut self, tid: Tid) -> io::Result<()> {
        self.threads.update_status(tid);
        if let Some(pid) = self.threads.live.get(&tid).map(|t| t.pid) {
            let has_more = self.read_back(pid, tid) && tid == pid;
            let others = self.threads.threads_of(pid).into_iter();
            for other in others.filter(|&other| has_more && other != tid) {
                if ptrace::interrupt(other).is_ok() {
                    self.leaderless.insert(other);
                }
            }
        }
        self.remove_thread(tid);
        ptrace::resume(tid, ResumeMode::Cont, 0)
    }

    /// Asks the kernel where the pages of a process are, through a thread that has them.
    /// Whether there is anything to ask.
    pub(super) fn read_back(&mut self, pid: Pid, tid: Tid) -> bool {
        let found = self.guide.recognised_regions(pid);
        if found.is_empty() {
            return false;
        }
        match page_residency::read(tid, &found) {
            Ok(regions) => {
                self.outcome.regions.retain(|r| r.pid != pid);
                self.outcome.regions.extend(regions);
            }
            Err(error) => self.note(format!("where pages lie was not found out ({error:#})")),
        }
        true
    }

    pub(super) fn remove_thread(&mut self, tid: Tid) {
        self.pending.remove(&tid);
        self.ticks.moves.remove(&tid);
        self.leaderless.remove(&tid);
        if self.threads.live.contains_key(&tid) {
            self.guide.thread_ended(tid);
        }
        if let Some((thread, true)) = self.threads.remove(tid) {
            self.processes.remove(&thread.pid);
        }
    }

    /// A thread is no more.
    pub(super) fn thread_gone(&mut self, tid: Tid, event: TraceeEvent) {
        self.remove_thread(tid);
        self.unannounced.remove(&tid);
        if tid != self.main {
            return;
        }
        self.outcome.end = match event {
            TraceeEvent::Killed(signal) => RunEnd::Signaled { signal },
            TraceeEvent::Exited(status) => RunEnd::Exited { status },
            _ => RunEnd::Interrupted,
        };
        self.outcome.duration = self.elapsed();
        if !self.threads.live.is_empty() {
            self.send_report();
        }
    }
}
