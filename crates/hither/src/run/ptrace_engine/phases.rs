//! Waiting, and looking up from it now and then where the program has several phases: at
//! the change of one, threads move and pages are moved. For pages that have no memory yet a
//! thread is stopped for a moment to change their policy.
use std::io;
use std::time::{Duration, Instant};

use hither_sys::ptrace::{self, ResumeMode, TraceeEvent};
use hither_sys::{Pid, Tid};

use super::PtraceEngine;
use crate::run::guide::PageBind;
use crate::run::outcome::PhaseOutcome;
use crate::run::page_moves::{move_pages, still_wanted, PageMoveQueue};
use crate::run::syscall_restart::{interruption_cost, restart_syscall};

/// Between two looks at how far the program has come.
const TICK: Duration = Duration::from_millis(20);

impl PtraceEngine<'_> {
    /// The program is there and has not run yet.
    pub(super) fn start_ticks(&mut self) {
        if let Some(progress) = &mut self.ticks.progress {
            progress.program_started();
        }
    }

    /// The next event; `None` when no tracee is left.
    pub(super) fn next_event(&mut self) -> Option<(Tid, TraceeEvent)> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            let patient = self.ticks.are_over() && self.unannounced.is_empty();
            if !patient && self.ticks.looked.elapsed() >= TICK {
                self.ticks.looked = Instant::now();
                self.adopt_orphans();
                self.check_progress();
                self.migrate_batch();
            }
            let (followed, timeout) = (self.threads.live.len(), (!patient).then_some(TICK));
            let threads = &mut self.threads;
            let next = (self.waiter).next(followed, timeout, |tid| threads.update_status(tid));
            if let Some(event) = next.ok()? {
                return Some(event);
            }
        }
    }

    /// Looks how far the program has come, and follows it into the phase that holds now.
    fn check_progress(&mut self) {
        let at = self.elapsed();
        let Some(progress) = &mut self.ticks.progress else {
            return;
        };
        let holding = progress.active_phases(at);
        if holding == self.ticks.active {
            return;
        }
        self.ticks.active = holding;
        let change = self.guide.enter_phases(holding);
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
            self.ticks
                .pending
                .push_back((pid, PageMoveQueue::new(&binds)));
            self.interrupt_for_bind(pid, binds);
        }
    }

    /// Moves the next few pages, or tries some again.
    pub(super) fn migrate_batch(&mut self) {
        let Some((pid, moves)) = self.ticks.pending.front_mut() else {
            return self.retry_refused();
        };
        let pid = *pid;
        let (pages, nodes) = moves.next_batch();
        let more = moves.has_more();
        // Otherwise the process is gone.
        let there = self.move_and_count(pid, (&pages, &nodes), 0);
        if !(there && more) {
            self.ticks.pending.pop_front();
        }
    }

    /// Tries pages again that were refused, those that belong there still.
    fn retry_refused(&mut self) {
        let now = self.elapsed();
        let Some(batch) = self.ticks.refused.take_due(now) else {
            return;
        };
        let regions = self.guide.recognised_regions(batch.pid);
        let binds = regions.iter().flat_map(|region| &region.binds);
        let wanted = still_wanted(batch.pages, binds);
        let (pages, nodes): (Vec<u64>, Vec<u32>) = wanted.into_iter().unzip();
        self.move_and_count(batch.pid, (&pages, &nodes), batch.tries + 1);
    }

    /// Whether the process is there. `tries`: how often the pages have been tried again.
    fn move_and_count(&mut self, pid: Pid, (pages, nodes): (&[u64], &[u32]), tries: u32) -> bool {
        let now = self.elapsed();
        let Ok(moved) = move_pages(pid, pages, nodes) else {
            return false;
        };
        if let Some(phase) = self.outcome.phases.last_mut() {
            phase.pages_moved += moved.there;
        }
        self.ticks.refused.add(pid, moved.refused, tries, now);
        true
    }

    /// Has the policy of pages changed by one thread of a process, the one that minds an
    /// interruption least.
    pub(super) fn interrupt_for_bind(&mut self, pid: Pid, binds: Vec<PageBind>) {
        let threads = self.threads.threads_of(pid);
        let free = threads
            .into_iter()
            .filter(|tid| !self.pending.contains_key(tid));
        let Some(tid) = free.min_by_key(|&tid| interruption_cost(pid, tid)) else {
            return;
        };
        if ptrace::interrupt(tid).is_ok() {
            self.ticks.moves.entry(tid).or_default().extend(binds);
        }
    }

    /// A thread that was interrupted stands still.
    pub(super) fn bind_interrupted(&mut self, tid: Tid) -> io::Result<()> {
        let binds = self.ticks.moves.remove(&tid).unwrap_or_default();
        restart_syscall(tid)?;
        // The pages that had memory are moved from outside.
        self.bind_pages(tid, &binds, false, true)?;
        ptrace::resume(tid, ResumeMode::Cont, 0)
    }
}
