//! Threads and processes by their slots, and ends that no event reported.
use super::deadline::Deadline;
use super::events::TargetState;
use hither_sys::{wire, Segment};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// A thread as seen so far. Times are of CLOCK_MONOTONIC.
#[derive(Clone, Debug, Default)]
pub struct ObservedThread {
    pub started: bool,
    /// The epoch before that in which it was noticed.
    pub first_epoch: u32,
    pub process: u32,
    pub start: u64,
    pub end: Option<u64>,
    sync: [u64; wire::SYNCS],
}

#[derive(Default)]
pub struct ThreadTracker {
    /// By slot; slot 0 is no thread.
    pub seen: Vec<ObservedThread>,
    /// When a process slot was noticed to be gone.
    gone: Vec<Option<u64>>,
    /// Slots of processes that may still run.
    live_processes: Vec<u32>,
    /// Threads that may still run, and those that ended since the last look.
    recent: Vec<u32>,
    /// Those that have ended since the last [`ThreadTracker::take_ended`].
    ended: Vec<u32>,
}

impl ThreadTracker {
    /// Looks at all threads that may run. Returns how many synchronisation points they
    /// passed since the last look.
    pub fn scan(
        &mut self,
        segment: &Segment,
        target: &mut TargetState,
        deadline: &Deadline,
        (epoch, now): (u32, u64),
    ) -> [u64; wire::SYNCS] {
        let mut passed = [0u64; wire::SYNCS];
        let known = self.seen.len().max(1) as u32;
        let next = segment.next_thread();
        if next > known {
            self.seen.resize(next as usize, ObservedThread::default());
            self.recent.extend(known..next);
        }
        for n in 0..self.recent.len() {
            let slot = self.recent[n];
            if self.seen[slot as usize].end.is_some() || !segment.has_thread(slot) {
                continue;
            }
            let thread = segment.thread(slot);
            if !self.seen[slot as usize].started {
                // It was reported before its first thread could be seen.
                if !target.threads.processes.is_known(thread.process) {
                    target.drain(segment, deadline);
                }
                self.start_thread(segment, target, slot, &thread, epoch);
            }
            let end = self.end_of(segment, target, &thread, now);
            self.seen[slot as usize].end = end;
            self.ended.extend(end.map(|_| slot));
            let sync = &mut self.seen[slot as usize].sync;
            for (sum, (now, before)) in passed.iter_mut().zip(thread.sync.iter().zip(sync)) {
                *sum = sum.saturating_add(now.saturating_sub(*before));
                *before = *now;
            }
        }
        passed
    }

    fn start_thread(
        &mut self,
        segment: &Segment,
        target: &mut TargetState,
        slot: u32,
        thread: &wire::SegmentThread,
        epoch: u32,
    ) {
        let seen = &mut self.seen[slot as usize];
        seen.started = true;
        seen.first_epoch = epoch.saturating_sub(1);
        seen.process = thread.process;
        seen.start = thread.start_ns;
        let key = target.threads.key(segment, slot);
        target
            .regions
            .add_thread_stack(thread.process, key, thread.stack_pointer);
    }

    /// When a thread ended, if it has.
    fn end_of(
        &self,
        segment: &Segment,
        target: &TargetState,
        thread: &wire::SegmentThread,
        now: u64,
    ) -> Option<u64> {
        let known = |end: u64| Some(if end == 0 { now } else { end });
        if thread.state == wire::THREAD_ENDED {
            return known(thread.end_ns);
        }
        let process = segment.process(thread.process);
        if process.state == wire::PROCESS_EXITED || process.state == wire::PROCESS_EXECED {
            return known(process.end_ns);
        }
        let left = thread.end_ns != 0 && target.has_become_image(segment, thread);
        match left {
            true => Some(thread.end_ns),
            false => self.process_died_at(thread.process),
        }
    }

    /// How many [`ThreadTracker::take_ended`] would return.
    pub fn ended_count(&self) -> usize {
        self.ended.len()
    }

    /// Slots whose threads have ended since the last call.
    pub fn take_ended(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.ended)
    }

    /// Whether a process has a thread in some slot.
    pub fn has_threads(&self, process: u32) -> bool {
        let mut seen = self.seen.iter();
        seen.any(|thread| thread.started && thread.process == process)
    }

    /// The slot is free: another thread may come.
    pub fn forget(&mut self, slot: u32) {
        self.seen[slot as usize] = ObservedThread::default();
        if !self.recent.contains(&slot) {
            self.recent.push(slot);
        }
    }

    /// Threads alive at some time in [start, end); forgets those that ended before.
    pub fn count_alive(&mut self, start: u64, end: u64) -> u32 {
        let seen = &self.seen;
        self.recent
            .retain(|&slot| seen[slot as usize].end.is_none_or(|e| e > start));
        let alive = self.recent.iter().filter(|&&slot| {
            let thread = &seen[slot as usize];
            thread.started && thread.start < end
        });
        alive.count() as u32
    }

    /// Slots whose samples may have to be drained, with their process.
    pub fn running(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.recent
            .iter()
            .map(|&slot| (slot, self.seen[slot as usize].process))
    }

    pub fn count_running(&self) -> u32 {
        let running = |slot: &&u32| {
            let seen = &self.seen[**slot as usize];
            seen.started && seen.end.is_none()
        };
        self.recent.iter().filter(running).count() as u32
    }

    /// Asks the kernel which processes that claim to live do not.
    pub fn find_dead_processes(&mut self, segment: &Segment, now: u64) {
        let next = segment.next_process();
        self.live_processes
            .extend((self.gone.len() as u32).max(1)..next);
        self.gone.resize((next as usize).max(self.gone.len()), None);
        let gone = &mut self.gone;
        self.live_processes.retain(|&slot| {
            let process = segment.process(slot);
            let live = process.state == wire::PROCESS_LIVE && process.pid > 0;
            if live && kill(Pid::from_raw(process.pid), None) == Err(Errno::ESRCH) {
                gone[slot as usize] = Some(now);
            }
            let over = [wire::PROCESS_EXITED, wire::PROCESS_EXECED].contains(&process.state);
            !over && gone[slot as usize].is_none()
        });
    }

    /// When a process slot was noticed to be gone.
    pub fn process_died_at(&self, process: u32) -> Option<u64> {
        self.gone.get(process as usize).copied().flatten()
    }
}
