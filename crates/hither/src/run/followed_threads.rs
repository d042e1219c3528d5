//! The threads that are followed: where each belongs, where it was.
use std::collections::HashMap;
use std::rc::Rc;

use hither_sys::affinity::CpuMask;

use super::guide::InitialPlacement;
use super::outcome::ThreadOutcome;
use crate::follow::procfs;
use hither_sys::{Cpu, Pid, Tid};

/// A thread that lives.
#[derive(Clone, Debug)]
pub struct FollowedThread {
    pub pid: Pid,
    /// Its place in the outcome.
    pub index: usize,
    /// The mask that it would have without us.
    pub original_mask: Rc<CpuMask>,
    pub assigned_cpu: Option<Cpu>,
    /// It runs elsewhere than `natural` says.
    pub pinned: bool,
    /// It chose its units itself.
    pub set_own_affinity: bool,
}

/// All of them, and what is known of those that were.
#[derive(Default)]
pub struct FollowedThreads {
    pub live: HashMap<Tid, FollowedThread>,
    pub outcome: Vec<ThreadOutcome>,
    /// Threads that live, by process.
    counts: HashMap<Pid, usize>,
}

impl FollowedThreads {
    /// Adds a thread; one whose creator `chose` its units inherits the choice.
    pub fn add(&mut self, tid: Tid, pid: Pid, natural: Rc<CpuMask>, pinned: bool, chose: bool) {
        let index = self.outcome.len();
        self.outcome.push(ThreadOutcome {
            pid,
            tid,
            chose_itself: chose,
            ..ThreadOutcome::default()
        });
        let thread = FollowedThread {
            pid,
            index,
            original_mask: natural,
            assigned_cpu: None,
            pinned,
            set_own_affinity: chose,
        };
        self.live.insert(tid, thread);
        *self.counts.entry(pid).or_default() += 1;
    }

    /// Puts a thread where it belongs from now on. Units that it chose itself are its own
    /// affair.
    ///
    /// # Errors
    /// A sentence when the kernel does not let it run there.
    pub fn assign_pu(&mut self, tid: Tid, initial: &InitialPlacement) -> Result<(), String> {
        let Some(thread) = self.live.get_mut(&tid) else {
            return Ok(());
        };
        let outcome = &mut self.outcome[thread.index];
        outcome.thread = initial.thread.or(outcome.thread);
        outcome.asked = initial.cpu;
        thread.assigned_cpu = initial.cpu;
        self.apply_mask(tid)
    }

    /// Gives a thread the mask that it is to have.
    ///
    /// # Errors
    /// As [`FollowedThreads::assign_pu`].
    pub fn apply_mask(&mut self, tid: Tid) -> Result<(), String> {
        let Some(thread) = self.live.get_mut(&tid) else {
            return Ok(());
        };
        if thread.set_own_affinity {
            return Ok(());
        }
        let done = match thread.assigned_cpu {
            Some(cpu) => CpuMask::single(cpu.0).set_affinity(tid),
            None if thread.pinned => thread.original_mask.set_affinity(tid),
            None => Ok(()),
        };
        match done {
            Ok(()) => thread.pinned = thread.assigned_cpu.is_some(),
            Err(error) if error.raw_os_error() == Some(nix::libc::ESRCH) => {}
            Err(error) => {
                let shown = thread.assigned_cpu.map_or_else(
                    || thread.original_mask.to_string(),
                    |cpu| format!("processing unit {}", cpu.0),
                );
                return Err(format!("threads cannot be put on {shown} ({error})"));
            }
        }
        Ok(())
    }

    /// The thread has `mask` now, because it `chose` it or took back such a choice.
    pub fn note_own_mask(&mut self, tid: Tid, mask: CpuMask, chose: bool) {
        if let Some(thread) = self.live.get_mut(&tid) {
            thread.original_mask = Rc::new(mask);
            thread.set_own_affinity = chose;
            thread.pinned = false;
            self.outcome[thread.index].chose_itself = chose;
        }
    }

    /// Puts a thread elsewhere.
    ///
    /// # Errors
    /// As [`FollowedThreads::assign_pu`].
    pub fn move_to(&mut self, tid: Tid, cpu: Cpu) -> Result<(), String> {
        let initial = InitialPlacement {
            cpu: Some(cpu),
            ..InitialPlacement::default()
        };
        self.assign_pu(tid, &initial)
    }

    /// Looks where a thread is.
    pub fn update_status(&mut self, tid: Tid) {
        let Some(thread) = self.live.get(&tid) else {
            return;
        };
        let outcome = &mut self.outcome[thread.index];
        if let Some(look) = procfs::read_thread_status(thread.pid, tid) {
            outcome.name = look.name;
            outcome.ran = look.ran;
            outcome.allowed = look.allowed;
            outcome.migrations = look.migrations;
        }
    }

    /// Forgets a thread. Whether it was the last of its process.
    pub fn remove(&mut self, tid: Tid) -> Option<(FollowedThread, bool)> {
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
    pub fn change_tid(&mut self, tid: Tid, pid: Pid) {
        if let Some(thread) = self.live.remove(&tid) {
            self.outcome[thread.index].tid = pid;
            self.live.insert(pid, thread);
        }
    }

    /// Threads of process `pid`.
    pub fn threads_of(&self, pid: Pid) -> Vec<Tid> {
        let of = self.live.iter().filter(|(_, thread)| thread.pid == pid);
        of.map(|(&tid, _)| tid).collect()
    }
}
