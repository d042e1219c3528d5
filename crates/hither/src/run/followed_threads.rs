//! The threads that are followed: where each belongs, where it was.
use std::collections::HashMap;
use std::rc::Rc;

use hither_sys::affinity::Mask;

use super::guide::Seat;
use super::outcome::ThreadOutcome;
use crate::follow::procfs;
use hither_sys::{Cpu, Pid, Tid};

/// A thread that lives.
#[derive(Clone, Debug)]
pub struct Thread {
    pub pid: Pid,
    /// Its place in the outcome.
    pub index: usize,
    /// The mask that it would have without us.
    pub natural: Rc<Mask>,
    pub seat: Option<Cpu>,
    /// It runs elsewhere than `natural` says.
    pub pinned: bool,
    /// It chose its units itself.
    pub chose: bool,
}

/// All of them, and what is known of those that were.
#[derive(Default)]
pub struct Threads {
    pub live: HashMap<Tid, Thread>,
    pub outcome: Vec<ThreadOutcome>,
    /// Threads that live, by process.
    counts: HashMap<Pid, usize>,
}

impl Threads {
    /// Takes in a thread that `creator`, or nobody, made.
    pub fn add(&mut self, tid: Tid, pid: Pid, natural: Rc<Mask>, pinned: bool) {
        let index = self.outcome.len();
        self.outcome.push(ThreadOutcome {
            pid,
            tid,
            ..ThreadOutcome::default()
        });
        let thread = Thread {
            pid,
            index,
            natural,
            seat: None,
            pinned,
            chose: false,
        };
        self.live.insert(tid, thread);
        *self.counts.entry(pid).or_default() += 1;
    }

    /// Puts a thread where it belongs from now on. Units that it chose itself are its own
    /// affair.
    ///
    /// # Errors
    /// A sentence when the kernel does not let it run there.
    pub fn seat(&mut self, tid: Tid, seat: &Seat) -> Result<(), String> {
        let Some(thread) = self.live.get_mut(&tid) else {
            return Ok(());
        };
        let outcome = &mut self.outcome[thread.index];
        outcome.thread = seat.thread.or(outcome.thread);
        outcome.asked = seat.cpu;
        thread.seat = seat.cpu;
        self.settle(tid)
    }

    /// Gives a thread the mask that it is to have.
    ///
    /// # Errors
    /// As [`Threads::seat`].
    pub fn settle(&mut self, tid: Tid) -> Result<(), String> {
        let Some(thread) = self.live.get_mut(&tid) else {
            return Ok(());
        };
        if thread.chose {
            return Ok(());
        }
        let done = match thread.seat {
            Some(cpu) => Mask::one(cpu.0).give(tid),
            None if thread.pinned => thread.natural.give(tid),
            None => Ok(()),
        };
        match done {
            Ok(()) => thread.pinned = thread.seat.is_some(),
            Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => {}
            Err(error) => {
                let shown = thread.seat.map_or_else(
                    || thread.natural.to_string(),
                    |cpu| format!("processing unit {}", cpu.0),
                );
                return Err(format!("threads cannot be put on {shown} ({error})"));
            }
        }
        Ok(())
    }

    /// The thread has `mask` now, because it `chose` it or took back such a choice.
    pub fn chose(&mut self, tid: Tid, mask: Mask, chose: bool) {
        if let Some(thread) = self.live.get_mut(&tid) {
            thread.natural = Rc::new(mask);
            thread.chose = chose;
            thread.pinned = false;
            self.outcome[thread.index].chose_itself = chose;
        }
    }

    /// Puts a thread elsewhere.
    ///
    /// # Errors
    /// As [`Threads::seat`].
    pub fn move_to(&mut self, tid: Tid, cpu: Cpu) -> Result<(), String> {
        let seat = Seat {
            cpu: Some(cpu),
            ..Seat::default()
        };
        self.seat(tid, &seat)
    }

    /// Looks where a thread is.
    pub fn look(&mut self, tid: Tid) {
        let Some(thread) = self.live.get(&tid) else {
            return;
        };
        let outcome = &mut self.outcome[thread.index];
        if let Some(look) = procfs::look(thread.pid, tid) {
            outcome.name = look.name;
            outcome.ran = look.ran;
            outcome.allowed = look.allowed;
            outcome.migrations = look.migrations;
        }
    }

    /// Forgets a thread. Whether it was the last of its process.
    pub fn remove(&mut self, tid: Tid) -> Option<(Thread, bool)> {
        let thread = self.live.remove(&tid)?;
        let count = self.counts.entry(thread.pid).or_default();
        *count = count.saturating_sub(1);
        let last = *count == 0;
        if last {
            self.counts.remove(&thread.pid);
        }
        Some((thread, last))
    }

    /// The thread is process `pid` itself from now on: it called exec.
    pub fn rename(&mut self, tid: Tid, pid: Pid) {
        if let Some(thread) = self.live.remove(&tid) {
            self.outcome[thread.index].tid = pid;
            self.live.insert(pid, thread);
        }
    }

    /// Threads of process `pid`.
    pub fn of(&self, pid: Pid) -> Vec<Tid> {
        let of = self.live.iter().filter(|(_, thread)| thread.pid == pid);
        of.map(|(&tid, _)| tid).collect()
    }
}
