//! The loop of the follower: waits for what the program's threads do, has the guide
//! decide, acts, and lets them go on.
//!
//! Threads come and go at any moment, so ESRCH is no error anywhere: a thread that was
//! killed tells so by its last event.
mod lifecycle;
mod mremap;
mod pending;
mod phase_ticker;
mod phases;
mod syscalls;
mod tracee_waiter;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Instant;

use hither_profile::Nanos;
use hither_sys::affinity::CpuMask;
use hither_sys::ptrace::{self, ResumeMode, TraceeEvent};
use nix::libc;

use super::followed_threads::FollowedThreads;
use super::guide::{PageBind, PlacementGuide};
use super::handover::{self, FollowJob, FollowReport};
use super::outcome::RunOutcome;
use super::syscall_restart::restart_syscall;
use crate::follow::cpu_time::{own_time, to_nanos};
use crate::follow::remote_syscall::{BorrowedThread, Vdso};
use hither_sys::{Cpu, Node, Pid, Tid};
use pending::PendingSyscall;
use phase_ticker::PhaseTicker;
use tracee_waiter::TraceeWaiter;

/// A process that lives.
#[derive(Clone, Debug, Default)]
struct TracedProcess {
    /// Where it has the kernel's own code; `None`: nowhere, or not for 64 bits.
    pub vdso: Option<u64>,
    /// It has filters of its own, which might kill it for calls of ours.
    pub filters_syscalls: bool,
}

pub struct PtraceEngine<'a> {
    guide: &'a mut (dyn PlacementGuide + 'static),
    ticks: PhaseTicker<'a>,
    threads: FollowedThreads,
    waiter: TraceeWaiter,
    processes: HashMap<Pid, TracedProcess>,
    /// What threads are in the middle of.
    pending: HashMap<Tid, PendingSyscall>,
    /// New threads whose creator has not told of them yet, since when.
    unannounced: HashMap<Tid, (TraceeEvent, Instant)>,
    /// Threads whose process has lost its first thread, to be told to stop at their ends.
    leaderless: HashSet<Tid>,
    /// The thread that stopped last, and the CPU that this process runs on.
    place: (Tid, Option<Cpu>),
    /// Events got while waiting for others.
    queue: VecDeque<(Tid, TraceeEvent)>,
    main: Pid,
    main_stopped: bool,
    /// The mask that the program started with.
    allowed: CpuMask,
    began: Instant,
    outcome: RunOutcome,
    vdso: Vdso,
    strict: bool,
    front: Pid,
    sink: Option<std::io::PipeWriter>,
    /// The child says here whether the kernel took the filter.
    gate: Option<UnixStream>,
}

impl<'a> PtraceEngine<'a> {
    /// `pid` is attached to and waits to be let through.
    pub fn new(job: FollowJob<'a>, pid: Pid) -> Self {
        let mut threads = FollowedThreads::default();
        let allowed = CpuMask::of_thread(pid).unwrap_or_default();
        threads.add(pid, pid, Rc::new(allowed.clone()), false, false);
        PtraceEngine {
            ticks: PhaseTicker::new(job.progress, job.guide.phase_count()),
            guide: job.guide,
            threads,
            waiter: TraceeWaiter::new(),
            processes: HashMap::from([(pid, TracedProcess::default())]),
            pending: HashMap::new(),
            unannounced: HashMap::new(),
            leaderless: HashSet::new(),
            place: (0, None),
            queue: VecDeque::new(),
            main: pid,
            main_stopped: false,
            allowed,
            began: Instant::now(),
            outcome: RunOutcome::default(),
            vdso: Vdso::read(),
            strict: job.strict,
            front: job.front,
            sink: Some(job.sink),
            gate: Some(job.gate),
        }
    }

    /// Follows to the end of the last process.
    pub fn run(mut self) {
        while let Some((tid, event)) = self.next_event() {
            self.outcome.cost.stops += 1;
            match self.handle_stop(tid, event) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    self.note(format!(
                        "a stop of the program could not be handled ({error})"
                    ));
                    let _ = ptrace::resume(tid, ResumeMode::Cont, 0);
                }
            }
        }
        self.send_report();
    }

    fn handle_stop(&mut self, tid: Tid, event: TraceeEvent) -> io::Result<()> {
        let known = self.threads.live.contains_key(&tid);
        if matches!(event, TraceeEvent::Trap | TraceeEvent::GroupStop(_))
            && self.leaderless.remove(&tid)
        {
            restart_syscall(tid)?;
            ptrace::set_trace_exit(tid, true)?;
        }
        if matches!(event, TraceeEvent::Created { .. } | TraceeEvent::Seccomp) {
            self.follow_cpu(tid);
        }
        match event {
            TraceeEvent::Trap | TraceeEvent::GroupStop(_) if !known => {
                self.unannounced.insert(tid, (event, Instant::now()));
            }
            TraceeEvent::Trap | TraceeEvent::GroupStop(_)
                if self.ticks.moves.contains_key(&tid) =>
            {
                self.bind_interrupted(tid)?;
            }
            TraceeEvent::Exited(_) | TraceeEvent::Killed(_) => self.thread_gone(tid, event),
            TraceeEvent::Signal(signal) => ptrace::resume(tid, ResumeMode::Cont, signal)?,
            TraceeEvent::GroupStop(_) => {
                self.main_stopped |= tid == self.main;
                ptrace::listen(tid)?;
            }
            TraceeEvent::Trap => {
                if tid == self.main && std::mem::take(&mut self.main_stopped) {
                    // SIGCONT may have been sent to the program alone, not to the front.
                    if nix::unistd::getppid().as_raw() == self.front {
                        let _ = hither_sys::process::send_signal(self.front, libc::SIGCONT);
                    }
                }
                ptrace::resume(tid, ResumeMode::Cont, 0)?;
            }
            TraceeEvent::Syscall => self.syscall_exit(tid)?,
            TraceeEvent::Seccomp => self.syscall_entry(tid)?,
            TraceeEvent::Created { vfork } => self.clone_event(tid, vfork)?,
            TraceeEvent::Exec => self.exec_event(tid)?,
            TraceeEvent::Exit => self.exit_event(tid)?,
        }
        Ok(())
    }

    /// Moves to the unit of a thread that stops again and again: while it is stopped, that
    /// CPU is free, and a wake-up on the same CPU is several times as fast.
    fn follow_cpu(&mut self, tid: Tid) {
        let (last, here) = self.place;
        self.place.0 = tid;
        let Some(assigned) = self.threads.live.get(&tid).and_then(|t| t.assigned_cpu) else {
            return;
        };
        if last == tid
            && here != Some(assigned)
            && CpuMask::single(assigned.0).set_affinity(0).is_ok()
        {
            self.place.1 = Some(assigned);
        }
    }

    fn note(&mut self, note: String) {
        if !self.outcome.notes.contains(&note) {
            self.outcome.notes.push(note);
        }
    }

    fn elapsed(&self) -> Nanos {
        to_nanos(self.began.elapsed())
    }

    /// Binds pages of a process, `tid` being a stopped thread of it. With `touched`, those
    /// that have memory already are moved. With `again`, the thread is to be stopped once
    /// more when it is let go.
    fn bind_pages(
        &mut self,
        tid: Tid,
        binds: &[PageBind],
        touched: bool,
        again: bool,
    ) -> io::Result<()> {
        if binds.is_empty() {
            return Ok(());
        }
        let Some(syscall) = self.syscall_address(tid) else {
            return Ok(());
        };
        let mode = if self.strict {
            libc::MPOL_BIND
        } else {
            libc::MPOL_PREFERRED
        };
        let flags = if touched { MPOL_MF_MOVE } else { 0 };
        let mut errors: Vec<(Node, i64)> = Vec::new();
        let vdso = syscall.0;
        let mut thread = BorrowedThread::borrow(tid, vdso + syscall.1, &mut self.queue)?;
        for bind in binds {
            let Some((mask, bits)) = self.vdso.node_mask_offset(bind.node) else {
                errors.push((bind.node, i64::from(libc::EINVAL)));
                continue;
            };
            let arguments = [
                bind.start,
                bind.length,
                u64::from(mode.unsigned_abs()),
                vdso + mask,
                bits,
                flags,
            ];
            self.outcome.cost.injected += 1;
            let result = thread.make_syscall(libc::SYS_mbind, arguments)?;
            if result < 0 {
                errors.push((bind.node, -result));
            }
        }
        thread.give_back(again)?;
        for (node, error) in errors {
            self.note_mbind_error(node, error);
        }
        Ok(())
    }

    /// mbind failed. A range with holes in it is bound but for them all the same, and not
    /// all that moved may be moved.
    fn note_mbind_error(&mut self, node: Node, error: i64) {
        let error = i32::try_from(error).unwrap_or(libc::EINVAL);
        if error != libc::EFAULT && error != libc::EIO {
            let error = io::Error::from_raw_os_error(error);
            self.note(format!(
                "some pages could not be bound to node {} (mbind: {error})",
                node.0
            ));
        }
    }

    /// Where the process of `tid` has the vdso, and a `syscall` instruction in it.
    fn syscall_address(&mut self, tid: Tid) -> Option<(u64, u64)> {
        let pid = self.threads.live.get(&tid)?.pid;
        let process = self.processes.get(&pid)?;
        let why = match (process.vdso, self.vdso.syscall_offset()) {
            _ if process.filters_syscalls => "has filtered its own system calls (seccomp)",
            (Some(vdso), Some(syscall)) => return Some((vdso, syscall)),
            _ => "is no 64-bit program or has no vdso",
        };
        self.note(format!(
            "process {pid} {why}: no more pages of it were placed"
        ));
        None
    }

    /// Tells the front how things are, once.
    fn send_report(&mut self) {
        let Some(sink) = self.sink.take() else {
            return;
        };
        for tid in self.threads.live.keys().copied().collect::<Vec<_>>() {
            self.threads.update_status(tid);
        }
        for pid in self.processes.keys().copied().collect::<Vec<_>>() {
            self.read_back(pid, pid);
        }
        let mut outcome = self.outcome.clone();
        outcome.threads.clone_from(&self.threads.outcome);
        outcome.notes.extend(self.guide.notes());
        outcome.notes.extend(self.ticks.note());
        outcome.cost.cpu = own_time();
        handover::send_report(sink, FollowReport::Over(Box::new(outcome)));
    }
}

const MPOL_MF_MOVE: u64 = 2;

/// The thread was killed in between.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}
