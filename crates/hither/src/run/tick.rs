//! Waiting, and looking up from it now and then where the program has several phases.
use std::collections::{HashMap, VecDeque};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use hither_sys::ptrace::{self, Event};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::engine::Engine;
use super::guide::{Bind, Holding, Image};
use super::moves::Moves;
use super::outcome::PhaseOutcome;
use super::Progress;
use crate::follow::proc_maps::Mapping;
use hither_sys::{Pid, Tid};

/// Between two looks at how far the program has come.
const TICK: Duration = Duration::from_millis(20);

/// The phases that are still to come.
pub struct Ticks<'a> {
    progress: Option<&'a mut (dyn Progress + 'static)>,
    holding: Holding,
    /// SIGCHLD, which is held back in this process.
    children: Option<SignalFd>,
    /// Pages to bind as soon as this thread stands still.
    pub moves: HashMap<Tid, Vec<Bind>>,
    /// Pages with memory that are yet to be moved, by process.
    pub pending: VecDeque<(Pid, Moves)>,
    looked: Instant,
}

impl<'a> Ticks<'a> {
    pub fn new(progress: Option<&'a mut (dyn Progress + 'static)>, phases: usize) -> Self {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ticks {
            progress: progress.filter(|_| phases > 1),
            holding: Holding::default(),
            children: SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), flags).ok(),
            moves: HashMap::new(),
            pending: VecDeque::new(),
            looked: Instant::now(),
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

    /// Whether nothing is left to look up for.
    fn are_over(&self) -> bool {
        let over = self.progress.as_ref().is_none_or(|p| p.is_over());
        over && self.pending.is_empty()
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
            let patient = self.ticks.are_over() && self.unborn.is_empty();
            if !patient && self.ticks.looked.elapsed() >= TICK {
                self.ticks.looked = Instant::now();
                self.adopt_orphans();
                self.look_up();
                self.move_some();
            }
            let threads = &mut self.threads;
            let next = ptrace::wait_seeing(None, patient, |tid| threads.look(tid));
            if let Some(event) = next.ok()? {
                return Some(event);
            }
            self.doze();
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
        self.outcome.phases.push(outcome);
        for (pid, binds) in change.pages {
            self.ticks.pending.push_back((pid, Moves::new(&binds)));
            self.interrupt_one(pid, binds);
        }
    }
}
