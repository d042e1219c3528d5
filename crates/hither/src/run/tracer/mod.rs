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

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Instant;

use hither_profile::Nanos;
use hither_sys::affinity::Mask;
use hither_sys::ptrace::{self, Event, Until};
use nix::libc;

use super::followed_threads::Threads;
use super::guide::{Bind, Guide};
use super::handover::{self, Job, Report};
use super::outcome::Outcome;
use super::syscall_restart::hide_interruption;
use crate::follow::cpu_time::{nanos, own_time};
use crate::follow::remote_syscall::{Borrowed, Vdso};
use hither_sys::{Cpu, Node, Pid, Tid};
use pending::PendingSyscall;
use phase_ticker::Ticks;

/// A process that lives.
#[derive(Clone, Debug, Default)]
struct Process {
    /// Where it has the kernel's own code; `None`: nowhere, or not for 64 bits.
    pub vdso: Option<u64>,
    /// It has filters of its own, which might kill it for calls of ours.
    pub shut_in: bool,
}

pub struct Engine<'a> {
    guide: &'a mut (dyn Guide + 'static),
    ticks: Ticks<'a>,
    threads: Threads,
    processes: HashMap<Pid, Process>,
    /// What threads are in the middle of.
    doing: HashMap<Tid, PendingSyscall>,
    /// New threads whose creator has not told of them yet, since when.
    unborn: HashMap<Tid, (Event, Instant)>,
    /// Threads whose process has lost its first thread, to be told to stop at their ends.
    widows: HashSet<Tid>,
    /// Who stopped last, and the unit that this process runs on.
    place: (Tid, Option<Cpu>),
    /// Events got while waiting for others.
    queue: VecDeque<(Tid, Event)>,
    main: Pid,
    main_stopped: bool,
    /// The mask that the program started with.
    allowed: Mask,
    began: Instant,
    outcome: Outcome,
    vdso: Vdso,
    strict: bool,
    front: Pid,
    sink: Option<std::io::PipeWriter>,
    /// The child says here whether the kernel took the filter.
    gate: Option<UnixStream>,
}

impl<'a> Engine<'a> {
    /// `pid` is attached to and waits to be let through.
    pub fn new(job: Job<'a>, pid: Pid) -> Self {
        let mut threads = Threads::default();
        let allowed = Mask::of(pid).unwrap_or_default();
        threads.add(pid, pid, Rc::new(allowed.clone()), false);
        Engine {
            ticks: Ticks::new(job.progress, job.guide.phases()),
            guide: job.guide,
            threads,
            processes: HashMap::from([(pid, Process::default())]),
            doing: HashMap::new(),
            unborn: HashMap::new(),
            widows: HashSet::new(),
            place: (0, None),
            queue: VecDeque::new(),
            main: pid,
            main_stopped: false,
            allowed,
            began: Instant::now(),
            outcome: Outcome::default(),
            vdso: Vdso::read(),
            strict: job.strict,
            front: job.front,
            sink: Some(job.sink),
            gate: Some(job.gate),
        }
    }

    /// Follows to the end of the last process.
    pub fn run(mut self) {
        while let Some((tid, event)) = self.next() {
            self.outcome.cost.stops += 1;
            match self.handle(tid, event) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    self.note(format!(
                        "a stop of the program could not be handled ({error})"
                    ));
                    let _ = ptrace::resume(tid, Until::Event, 0);
                }
            }
        }
        self.report();
    }

    fn handle(&mut self, tid: Tid, event: Event) -> io::Result<()> {
        let known = self.threads.live.contains_key(&tid);
        if matches!(event, Event::Trap | Event::GroupStop(_)) && self.widows.remove(&tid) {
            hide_interruption(tid)?;
            ptrace::stop_at_end(tid, true)?;
        }
        if matches!(event, Event::Created { .. } | Event::Seccomp) {
            self.come_near(tid);
        }
        match event {
            Event::Trap | Event::GroupStop(_) if !known => {
                self.unborn.insert(tid, (event, Instant::now()));
            }
            Event::Trap | Event::GroupStop(_) if self.ticks.moves.contains_key(&tid) => {
                self.change_pages(tid)?;
            }
            Event::Exited(_) | Event::Killed(_) => self.gone(tid, event),
            Event::Signal(signal) => ptrace::resume(tid, Until::Event, signal)?,
            Event::GroupStop(_) => {
                self.main_stopped |= tid == self.main;
                ptrace::listen(tid)?;
            }
            Event::Trap => {
                if tid == self.main && std::mem::take(&mut self.main_stopped) {
                    // Whoever continued the program need not know of the front.
                    if nix::unistd::getppid().as_raw() == self.front {
                        let _ = hither_sys::process::send(self.front, libc::SIGCONT);
                    }
                }
                ptrace::resume(tid, Until::Event, 0)?;
            }
            Event::Syscall => self.after_call(tid)?,
            Event::Seccomp => self.before_call(tid)?,
            Event::Created { vfork } => self.created(tid, vfork)?,
            Event::Exec => self.exec(tid)?,
            Event::Exit => self.ending(tid)?,
        }
        Ok(())
    }

    /// Moves to the unit of a thread that stops again and again: while it stands still, that
    /// unit is free, and waking somebody on the same one is several times as fast.
    fn come_near(&mut self, tid: Tid) {
        let (last, here) = self.place;
        self.place.0 = tid;
        let Some(seat) = self.threads.live.get(&tid).and_then(|t| t.seat) else {
            return;
        };
        if last == tid && here != Some(seat) && Mask::one(seat.0).give(0).is_ok() {
            self.place.1 = Some(seat);
        }
    }

    fn note(&mut self, note: String) {
        if !self.outcome.notes.contains(&note) {
            self.outcome.notes.push(note);
        }
    }

    fn elapsed(&self) -> Nanos {
        nanos(self.began.elapsed())
    }

    /// Binds pages of a process, `tid` being a stopped thread of it. With `touched`, those
    /// that have memory already are moved. With `again`, the thread is to be stopped once
    /// more when it is let go.
    fn bind(&mut self, tid: Tid, binds: &[Bind], touched: bool, again: bool) -> io::Result<()> {
        if binds.is_empty() {
            return Ok(());
        }
        let Some(syscall) = self.lender(tid) else {
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
        let mut thread = Borrowed::take(tid, vdso + syscall.1, &mut self.queue)?;
        for bind in binds {
            let Some((mask, bits)) = self.vdso.mask(bind.node) else {
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
            let result = thread.call(libc::SYS_mbind, arguments)?;
            if result < 0 {
                errors.push((bind.node, -result));
            }
        }
        thread.give_back(again)?;
        for (node, error) in errors {
            self.refused(node, error);
        }
        Ok(())
    }

    /// mbind failed. A range with holes in it is bound but for them all the same, and not
    /// all that moved may be moved.
    fn refused(&mut self, node: Node, error: i64) {
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
    fn lender(&mut self, tid: Tid) -> Option<(u64, u64)> {
        let pid = self.threads.live.get(&tid)?.pid;
        let process = self.processes.get(&pid)?;
        let why = match (process.vdso, self.vdso.syscall()) {
            _ if process.shut_in => "has filtered its own system calls (seccomp)",
            (Some(vdso), Some(syscall)) => return Some((vdso, syscall)),
            _ => "is no 64-bit program or has no vdso",
        };
        self.note(format!(
            "process {pid} {why}: no more pages of it were placed"
        ));
        None
    }

    /// Tells the front how things are, once.
    fn report(&mut self) {
        let Some(sink) = self.sink.take() else {
            return;
        };
        for tid in self.threads.live.keys().copied().collect::<Vec<_>>() {
            self.threads.look(tid);
        }
        for pid in self.processes.keys().copied().collect::<Vec<_>>() {
            self.read_back(pid, pid);
        }
        let mut outcome = self.outcome.clone();
        outcome.threads.clone_from(&self.threads.outcome);
        outcome.notes.extend(self.guide.notes());
        outcome.notes.extend(self.ticks.note());
        outcome.cost.cpu = own_time();
        handover::tell(sink, Report::Over(Box::new(outcome)));
    }
}

const MPOL_MF_MOVE: u64 = 2;

/// The thread was killed meanwhile.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}
