//! Waiting, and looking up from it now and then where the program has several phases.
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use hither_sys::ptrace::{self, Event, Registers, Until};
use nix::libc;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::engine::Engine;
use super::guide::{Bind, Holding, Image, Mapping, Pid, Tid};
use super::outcome::PhaseOutcome;
use super::Progress;

/// Between two looks at how far the program has come.
const TICK: Duration = Duration::from_millis(20);

/// The one number that libc does not have.
const IO_PGETEVENTS: i64 = 333;

/// System calls that say EINTR to their caller when stopped for a moment (signal(7)), and
/// those that do so with a timeout on their socket.
const ABRUPT: [i64; 18] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    IO_PGETEVENTS,
    libc::SYS_io_uring_enter,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
];

/// The phases that are still to come.
pub struct Ticks<'a> {
    progress: Option<&'a mut (dyn Progress + 'static)>,
    holding: Holding,
    /// SIGCHLD, which is held back in this process.
    children: Option<SignalFd>,
    /// Pages to bind as soon as this thread stands still.
    pub moves: HashMap<Tid, Vec<Bind>>,
}

impl<'a> Ticks<'a> {
    pub fn new(progress: Option<&'a mut (dyn Progress + 'static)>, phases: usize) -> Self {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ticks {
            progress: progress.filter(|_| phases > 1),
            holding: Holding::default(),
            children: SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), flags).ok(),
            moves: HashMap::new(),
        }
    }

    /// A program is at its first instruction.
    pub fn image(&mut self, pid: Pid, image: &Image) {
        if let Some(progress) = &mut self.progress {
            progress.image(pid, image);
        }
    }

    /// A process mapped something.
    pub fn mapped(&mut self, pid: Pid, mapping: &Mapping) {
        if let Some(progress) = &mut self.progress {
            progress.mapped(pid, mapping);
        }
    }

    /// How progress was followed.
    pub fn note(&self) -> Option<String> {
        self.progress.as_ref()?.note()
    }
}

impl Engine<'_> {
    /// The program is there and has not run yet.
    pub(super) fn start_ticks(&mut self, pid: Pid) {
        let Some(progress) = &mut self.ticks.progress else {
            return;
        };
        if let Err(error) = progress.started(pid) {
            self.ticks.progress = None;
            self.note(format!(
                "its progress cannot be followed, so it stayed in the first phase ({error:#})"
            ));
        }
    }

    /// The next event; `None` when nobody is left.
    pub(super) fn next(&mut self) -> Option<(Tid, Event)> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            let progress = &self.ticks.progress;
            let over = progress.as_ref().is_none_or(|p| p.is_over());
            let patient = over && self.unborn.is_empty();
            let threads = &mut self.threads;
            let next = ptrace::wait_seeing(None, patient, |tid| threads.look(tid));
            if let Some(event) = next.ok()? {
                return Some(event);
            }
            self.doze();
            self.adopt_orphans();
            self.look_up();
        }
    }

    /// Waits for an event, or for a while.
    fn doze(&self) {
        let Some(children) = &self.ticks.children else {
            std::thread::sleep(Duration::from_millis(1));
            return;
        };
        let timeout = PollTimeout::try_from(TICK).unwrap_or(PollTimeout::ZERO);
        let _ = poll(
            &mut [PollFd::new(children.as_fd(), PollFlags::POLLIN)],
            timeout,
        );
        while let Ok(Some(_)) = children.read_signal() {}
    }

    /// Looks how far the program has come, and follows it into the phase that holds now.
    fn look_up(&mut self) {
        let at = self.elapsed();
        let Some(progress) = &mut self.ticks.progress else {
            return;
        };
        let holding = progress.phase(at);
        if holding == self.ticks.holding {
            return;
        }
        self.ticks.holding = holding;
        let change = self.guide.enter(holding);
        let mut outcome = PhaseOutcome {
            phase: holding.threads.max(holding.pages),
            at,
            ..PhaseOutcome::default()
        };
        for (tid, cpu) in change.threads {
            outcome.threads_moved += 1;
            if let Err(note) = self.threads.move_to(tid, cpu) {
                self.note(note);
            }
        }
        for (pid, binds) in change.pages {
            outcome.pages_moved += super::readback::move_pages(pid, &binds);
            self.interrupt_one(pid, binds);
        }
        self.outcome.phases.push(outcome);
    }

    /// Has the policy of pages changed by one thread of a process, the one that minds an
    /// interruption least.
    fn interrupt_one(&mut self, pid: Pid, binds: Vec<Bind>) {
        let threads = self.threads.of(pid);
        let free = threads
            .into_iter()
            .filter(|tid| !self.doing.contains_key(tid));
        let Some(tid) = free.min_by_key(|&tid| unwilling(pid, tid)) else {
            return;
        };
        if ptrace::interrupt(tid).is_ok() {
            self.ticks.moves.entry(tid).or_default().extend(binds);
        }
    }

    /// A thread that was interrupted stands still.
    pub(super) fn change_pages(&mut self, tid: Tid) -> io::Result<()> {
        let binds = self.ticks.moves.remove(&tid).unwrap_or_default();
        let registers = ptrace::registers(tid)?;
        let number = registers.orig_rax.cast_signed();
        if registers.rax.cast_signed() == -i64::from(libc::EINTR) && ABRUPT.contains(&number) {
            // Only we interrupted it, which it is not to know: it calls again.
            let again = Registers {
                rip: registers.rip - 2,
                rax: registers.orig_rax,
                orig_rax: u64::MAX,
                ..registers
            };
            ptrace::set_registers(tid, &again)?;
        }
        // The pages that had memory are moved from outside.
        self.bind(tid, &binds, false, true)?;
        ptrace::resume(tid, Until::Event, 0)
    }
}

/// How much a thread would mind: 0 when it runs or sleeps in a call that goes on by itself.
fn unwilling(pid: Pid, tid: Tid) -> u8 {
    let call = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"));
    let call = call.unwrap_or_default();
    let number = call.split(' ').next().and_then(|n| n.parse().ok());
    match number {
        _ if call.is_empty() => 1,
        Some(number) if ABRUPT.contains(&number) => 2,
        _ => 0,
    }
}
