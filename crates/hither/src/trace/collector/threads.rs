//! Threads and processes by their slots, and ends that no event reported.
use super::regions::RegionMap;
use hither_sys::{wire, Segment};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// A thread as seen so far. Times are of CLOCK_MONOTONIC.
#[derive(Clone, Debug, Default)]
pub struct ObservedThread {
    pub started: bool,
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
    /// Threads that may still run, and those that ended since the last look.
    recent: Vec<u32>,
}

impl ThreadTracker {
    /// Looks at all threads that may run. Returns how many synchronisation points they
    /// passed since the last look.
    pub fn scan(
        &mut self,
        segment: &Segment,
        regions: &mut RegionMap,
        now: u64,
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
            let thread = segment.thread(slot);
            if thread.state == wire::THREAD_FREE || self.seen[slot as usize].end.is_some() {
                continue;
            }
            self.scan_thread(segment, regions, slot, &thread, now);
            let sync = &mut self.seen[slot as usize].sync;
            for (sum, (now, before)) in passed.iter_mut().zip(thread.sync.iter().zip(sync)) {
                *sum = sum.saturating_add(now.saturating_sub(*before));
                *before = *now;
            }
        }
        passed
    }

    fn scan_thread(
        &mut self,
        segment: &Segment,
        regions: &mut RegionMap,
        slot: u32,
        thread: &wire::SegmentThread,
        now: u64,
    ) {
        let gone = self.gone.get(thread.process as usize).copied().flatten();
        let seen = &mut self.seen[slot as usize];
        if !seen.started {
            seen.started = true;
            seen.process = thread.process;
            seen.start = thread.start_ns;
            regions.add_thread_stack(thread.process, slot, thread.stack_pointer);
        }
        if thread.state == wire::THREAD_ENDED {
            seen.end = Some(if thread.end_ns == 0 {
                now
            } else {
                thread.end_ns
            });
            return;
        }
        let process = segment.process(thread.process);
        if process.state == wire::PROCESS_EXITED || process.state == wire::PROCESS_EXECED {
            seen.end = Some(if process.end_ns == 0 {
                now
            } else {
                process.end_ns
            });
        } else {
            seen.end = gone;
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

    pub fn count(&self) -> u32 {
        self.seen.iter().filter(|seen| seen.started).count() as u32
    }

    /// Asks the kernel which processes that claim to live do not.
    pub fn find_dead_processes(&mut self, segment: &Segment, now: u64) {
        let next = segment.next_process();
        self.gone.resize(next as usize, None);
        for slot in 1..next {
            let process = segment.process(slot);
            if process.state != wire::PROCESS_LIVE || self.gone[slot as usize].is_some() {
                continue;
            }
            if process.pid > 0 && kill(Pid::from_raw(process.pid), None) == Err(Errno::ESRCH) {
                self.gone[slot as usize] = Some(now);
            }
        }
    }

    /// When a process slot was noticed to be gone.
    pub fn process_died_at(&self, process: u32) -> Option<u64> {
        self.gone.get(process as usize).copied().flatten()
    }
}
