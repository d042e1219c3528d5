//! When a slice ends: by the instructions that the program executes, or by the wall clock.
//!
//! By instructions, slices are those of the untraced program: they depend neither on how much the
//! tracer slows it down nor on what else the machine does. A slice ends when the threads at work
//! have executed on average what [`INSTRUCTIONS_PER_NS`] makes of its length. Each thread counts
//! by itself, so it does not matter whether threads run side by side or share processors; those
//! that executed less than half of what the busiest did wait, and do not make slices longer.
//! Threads that follow one another in one arena count as one.
use super::task_state;
use crate::program::clock::clock_ns;
use hither_profile::{SliceClock, TraceOptions};
use hither_sys::target_memory::read_words;
use hither_sys::{wire, Segment};
use nix::errno::Errno;
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use std::collections::BTreeMap;

/// Instructions that an untraced thread is taken to execute in a nanosecond. A constant, so that a
/// program has the same slices on all machines.
const INSTRUCTIONS_PER_NS: u64 = 2;
/// No processor executes more: other values are no counts, but memory that was mapped anew.
const MOST_PER_NS: u64 = 64;
/// A slice ends where for so many times its length by the wall clock...
const WAITING_SLICES: u64 = 10;
/// ...the program used less than one part in so many of a processor, and not because others
/// have it: it waits, and for a program that waits the wall clock is its time.
const WAITING_SHARE: u64 = 20;
/// Between looks at the counts.
const SHORTEST_WAIT: u64 = 100_000;
const LONGEST_WAIT: u64 = 10_000_000;
/// In a slice that takes long, the longest wait is one part in so many of what has passed of it: looks are as many
/// as its length has digits, and a program that speeds up is noticed in time.
const LONGEST_PART: u64 = 4;
/// The same for each thread that may run, since a look reads a page of each: of thousands, looks would take much of a
/// processor.
const WAIT_PER_THREAD: u64 = 10_000;

/// A running thread, and where its process counts its instructions.
struct RunningThread {
    slot: u32,
    lane: usize,
    counter: u64,
}

pub struct SliceTimer {
    clock: SliceClock,
    length: u64,
    run_start: u64,
    slice_start: u64,
    looked: u64,
    /// Instructions by thread slot, as far as known.
    counted: Vec<u64>,
    /// Slots of threads that may still run.
    live: Vec<u32>,
    /// Instructions in this slice, by arena.
    lanes: Vec<u64>,
    /// What the last slice was too long.
    carried: u64,
    /// Processes that run.
    pids: Vec<i32>,
    rest: RestWatch,
    /// The processes may not be read.
    refused: bool,
    /// Slices that ended by the wall clock for that reason.
    pub wall_slices: u64,
}

impl SliceTimer {
    pub fn new(options: &TraceOptions, now: u64) -> SliceTimer {
        SliceTimer {
            clock: options.slice_clock,
            length: options.slice.max(1),
            run_start: now,
            slice_start: now,
            looked: now,
            counted: vec![0],
            live: Vec::new(),
            lanes: Vec::new(),
            carried: 0,
            pids: Vec::new(),
            rest: RestWatch::default(),
            refused: false,
            wall_slices: 0,
        }
    }

    /// Instructions per slice.
    fn target(&self) -> u64 {
        self.length.saturating_mul(INSTRUCTIONS_PER_NS)
    }

    fn progress(&self) -> u64 {
        self.carried.saturating_add(mean_at_work(&self.lanes))
    }

    /// The next multiple of the slice length, so that a late wake-up makes one slice longer and not
    /// the following ones shorter.
    fn wall_deadline(&self) -> u64 {
        let passed = self.slice_start.saturating_sub(self.run_start) / self.length;
        self.run_start + (passed + 1).saturating_mul(self.length)
    }

    /// When to ask whether the slice is over.
    pub fn next_look(&self) -> u64 {
        if self.clock == SliceClock::Wall {
            return self.wall_deadline();
        }
        let done = self.progress();
        let passed = self.looked.saturating_sub(self.slice_start);
        let left = if done == 0 {
            self.length / 4
        } else {
            let left = self.target().saturating_sub(done) as f64;
            (0.75 * passed as f64 * left / done as f64) as u64
        };
        let shortest = SHORTEST_WAIT.max(self.live.len() as u64 * WAIT_PER_THREAD);
        let longest = LONGEST_WAIT.max(passed / LONGEST_PART);
        self.looked + left.clamp(shortest, longest.max(shortest))
    }

    pub fn slice_is_over(&mut self, segment: &Segment, now: u64) -> bool {
        if self.clock == SliceClock::Wall {
            return now >= self.wall_deadline();
        }
        self.look(segment, now);
        if self.refused && now >= self.wall_deadline() {
            self.wall_slices += 1;
            return true;
        }
        self.progress() >= self.target() || self.program_waits(now)
    }

    /// What the slice that ends is too long, the next one is to be shorter.
    pub fn begin_slice(&mut self, now: u64) {
        self.carried = (self.progress().saturating_sub(self.target())).min(self.target());
        self.lanes.fill(0);
        self.slice_start = now;
        if self.clock == SliceClock::Instructions {
            self.rest = RestWatch {
                since: now,
                cpu: cpu_time(&self.pids),
            };
        }
    }

    fn program_waits(&mut self, now: u64) -> bool {
        let least = self.length.saturating_mul(WAITING_SLICES);
        let started = self.counted.len() > 1;
        started
            && self.rest.is_rest(now, least, || cpu_time(&self.pids))
            && !self.pids.iter().any(|&pid| task_state::is_runnable(pid))
    }

    /// Reads how far all threads are.
    fn look(&mut self, segment: &Segment, now: u64) {
        let most = now.saturating_sub(self.looked).saturating_mul(MOST_PER_NS);
        self.looked = now;
        let (mut refused, mut read) = (false, false);
        let running = self.running_threads(segment);
        for (&pid, threads) in &running {
            let counters: Vec<u64> = threads.iter().map(|t| t.counter).collect();
            match read_words(pid, &counters) {
                Ok(words) => {
                    read = true;
                    for (thread, word) in threads.iter().zip(words) {
                        self.advance(thread.slot, thread.lane, word.unwrap_or(0), most);
                    }
                }
                Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS) => refused = true,
                Err(_) => {} // it has just ended
            }
        }
        self.refused = refused && !read;
        self.pids = running.into_keys().collect();
    }

    /// Those of each process. Threads that have ended left their counts in the segment.
    fn running_threads(&mut self, segment: &Segment) -> BTreeMap<i32, Vec<RunningThread>> {
        let next = segment.next_thread() as usize;
        self.live.extend(self.counted.len() as u32..next as u32);
        self.counted.resize(next.max(self.counted.len()), 0);
        let mut running: BTreeMap<i32, Vec<RunningThread>> = BTreeMap::new();
        let mut ended = Vec::new();
        self.live.retain(|&slot| {
            if !segment.has_thread(slot) {
                return true;
            }
            let thread = segment.thread(slot);
            let process = segment.process(thread.process);
            let lane = thread.arena.min(wire::MAX_THREADS) as usize;
            let runs = thread.state == wire::THREAD_LIVE && process.state == wire::PROCESS_LIVE;
            if runs {
                let counter = thread.counter;
                let thread = RunningThread {
                    slot,
                    lane,
                    counter,
                };
                running.entry(process.pid).or_default().push(thread);
            } else {
                ended.push((slot, lane, thread.instructions));
            }
            runs
        });
        for (slot, lane, count) in ended {
            self.advance(slot, lane, count, u64::MAX);
        }
        running
    }

    /// The slot is free: another thread may come.
    pub fn forget(&mut self, slot: u32) {
        if let Some(counted) = self.counted.get_mut(slot as usize) {
            *counted = 0;
            if !self.live.contains(&slot) {
                self.live.push(slot);
            }
        }
    }

    fn advance(&mut self, slot: u32, lane: usize, count: u64, most: u64) {
        let counted = &mut self.counted[slot as usize];
        let more = count.saturating_sub(*counted);
        if more == 0 || more > most {
            return;
        }
        *counted = count;
        if self.lanes.len() <= lane {
            self.lanes.resize(lane + 1, 0);
        }
        self.lanes[lane] = self.lanes[lane].saturating_add(more);
    }
}

/// A time in which the program may rest, and the CPU time that it had used when it began.
#[derive(Clone, Copy, Debug, Default)]
struct RestWatch {
    since: u64,
    cpu: u64,
}

impl RestWatch {
    /// Whether the program rested for `least` or more. Where it worked, what comes later is looked at by itself: a program
    /// that waits after much work waits no less.
    fn is_rest(&mut self, now: u64, least: u64, cpu_time: impl FnOnce() -> u64) -> bool {
        let passed = now.saturating_sub(self.since);
        if passed < least {
            return false;
        }
        let cpu = cpu_time();
        let worked = cpu.saturating_sub(self.cpu) >= passed / WAITING_SHARE;
        if worked {
            *self = RestWatch { since: now, cpu };
        }
        !worked
    }
}

/// Mean of those that executed half as many as the busiest or more.
fn mean_at_work(lanes: &[u64]) -> u64 {
    let most = lanes.iter().copied().max().unwrap_or(0);
    let at_work = || lanes.iter().filter(|&&n| n > 0 && n >= most / 2);
    let sum = at_work().fold(0u64, |sum, &n| sum.saturating_add(n));
    sum / (at_work().count() as u64).max(1)
}

fn cpu_time(pids: &[i32]) -> u64 {
    let clocks = pids
        .iter()
        .filter_map(|&pid| clock_getcpuclockid(Pid::from_raw(pid)).ok());
    clocks.map(clock_ns).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_threads_the_less_often_they_are_looked_at() {
        let options = TraceOptions {
            slice: 1_000_000,
            slice_clock: SliceClock::Instructions,
            ..TraceOptions::default()
        };
        let wait = |threads| {
            let mut timer = SliceTimer::new(&options, 7);
            timer.live = (1..=threads).collect();
            timer.lanes = vec![timer.target() - 1];
            timer.next_look() - 7
        };
        assert_eq!([1, 10, 4000].map(wait), [100_000, 100_000, 40_000_000]);
    }

    #[test]
    fn the_longer_a_slice_takes_the_less_often_is_looked() {
        let options = TraceOptions {
            slice: 10_000_000,
            slice_clock: SliceClock::Instructions,
            ..TraceOptions::default()
        };
        let mut timer = SliceTimer::new(&options, 0);
        // A thousand threads share a processor.
        let whole = 100_000_000_000;
        let mut looks = 0;
        while timer.progress() < timer.target() {
            timer.looked = timer.next_look();
            timer.lanes = vec![timer.target() * timer.looked / whole];
            looks += 1;
        }
        assert!(looks < 60 && timer.looked < whole + whole / 1000, "{looks}");
    }

    /// Half a second of start-up kept the slice for ten seconds: so long the program had worked in one part of twenty.
    #[test]
    fn a_rest_after_much_work_is_seen_at_once() {
        const MS: u64 = 1_000_000;
        let mut rest = RestWatch::default();
        let mut look = |now: u64, cpu: u64| rest.is_rest(now * MS, 100 * MS, || cpu * MS);
        assert!(!look(90, 0), "too short");
        assert!(!look(500, 500));
        assert!(!look(590, 501));
        assert!(look(600, 501));
        // It works again, now and then, in a tenth of a processor.
        assert!(![(700, 510), (800, 520), (900, 530)]
            .iter()
            .any(|(now, cpu)| look(*now, *cpu)));
        assert!(look(1000, 534));
    }

    #[test]
    fn threads_that_wait_do_not_count() {
        assert_eq!(mean_at_work(&[]), 0);
        assert_eq!(mean_at_work(&[8, 0, 1, 3]), 8);
        assert_eq!(mean_at_work(&[8, 6, 4, 3]), 6);
    }
}
