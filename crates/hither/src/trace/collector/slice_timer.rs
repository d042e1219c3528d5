//! When a slice ends: by the instructions that the program executes, or by the wall clock.
//!
//! By instructions, slices are those of the untraced program: they depend neither on how much the
//! tracer slows it down nor on what else the machine does. A slice ends when the threads at work
//! have executed on average what [`INSTRUCTIONS_PER_NS`] makes of its length. What the kernel does for
//! them is not traced and takes as long as ever, so it counts by its time. Each thread counts
//! by itself, so it does not matter whether threads run side by side or share processors; those
//! that executed less than half of what the busiest did wait, and do not make slices longer.
//! Threads that follow one another in one arena count as one. A program that rests executes nothing, and for it the wall
//! clock is its time: what it rests counts as well, however much it works in between.
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
/// A program that rests for so many times a slice's length, by the wall clock, is as far as if it had executed the slice.
const RESTING_SLICES: u64 = 10;
/// A slice of a program that is short of processors ends after so many times its length by the wall clock...
const SHORT_SLICES: u64 = 100;
/// ...a second, since each change of slice loses what is shared across it...
const SHORT_LEAST: u64 = 1_000_000_000;
/// ...and one part in so many of the run so far: these slices are as many as the run has digits. The program may be late and
/// not come to rest, which else is its time.
const SHORT_PART: u64 = 16;
/// What the kernel does for the tracer counts for nothing: of all processor time one part in so many...
const TRACERS_PART: u64 = 32;
/// ...and at first so much in each process. Seen: a sixtieth, and 50 to 100 ms.
const TRACERS_START: u64 = 100_000_000;
/// Between looks at the counts.
const SHORTEST_WAIT: u64 = 100_000;
const LONGEST_WAIT: u64 = 10_000_000;
/// In a slice that takes long, the longest wait is one part in so many of what has passed of it: looks are as many
/// as its length has digits, and a program that speeds up is noticed in time.
const LONGEST_PART: u64 = 4;
/// The same for each thread that may run, since a look reads a page of each: of thousands, looks would take much of a
/// processor.
const WAIT_PER_THREAD: u64 = 10_000;
/// The same between looks at whether all threads rest, for which files are read.
const REST_WAIT_PER_THREAD: u64 = 100_000;

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
    /// Those that ran when it was last asked what the kernel does for them.
    looked_into: Vec<i32>,
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
            looked_into: Vec::new(),
            rest: RestWatch {
                since: now,
                ..RestWatch::default()
            },
            refused: false,
            wall_slices: 0,
        }
    }

    /// Instructions per slice.
    fn target(&self) -> u64 {
        self.length.saturating_mul(INSTRUCTIONS_PER_NS)
    }

    fn executed(&self) -> u64 {
        self.carried.saturating_add(mean_at_work(&self.lanes).0)
    }

    fn progress(&self) -> u64 {
        let rested = self.rest.rested / RESTING_SLICES;
        let in_kernel = self.rest.in_kernel / mean_at_work(&self.lanes).1;
        let time = rested.saturating_add(in_kernel);
        let instructions = time.saturating_mul(INSTRUCTIONS_PER_NS);
        self.executed().saturating_add(instructions)
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
        self.look_for_rest(now);
        self.progress() >= self.target() || self.is_short_of_processors(now)
    }

    /// What the slice that ends executed too much, the next one is to execute less.
    pub fn begin_slice(&mut self, now: u64) {
        self.carried = (self.executed().saturating_sub(self.target())).min(self.target());
        self.lanes.fill(0);
        self.slice_start = now;
        (self.rest.rested, self.rest.used, self.rest.in_kernel) = (0, 0, 0);
    }

    /// For so long that the slice is to end. A program that neither rests nor is short of them uses one or more.
    fn is_short_of_processors(&self, now: u64) -> bool {
        let passed = now.saturating_sub(self.slice_start);
        let part = now.saturating_sub(self.run_start) / SHORT_PART;
        let least = self.length.saturating_mul(SHORT_SLICES).max(SHORT_LEAST);
        let least = least.max(part);
        passed >= least && self.rest.used < passed / 2
    }

    fn look_for_rest(&mut self, now: u64) {
        let threads = self.live.len() as u64;
        let least = SHORTEST_WAIT.max(threads.saturating_mul(REST_WAIT_PER_THREAD));
        if now.saturating_sub(self.rest.since) < least {
            return;
        }
        let started = self.counted.len() > 1;
        let pids = &self.pids;
        let rests = || started && !pids.iter().any(|&pid| task_state::is_runnable(pid));
        let used = self.rest.look(now, cpu_time(pids), rests);
        let kernel = pids.iter().filter_map(|&pid| task_state::kernel_time(pid));
        let started = pids.iter().filter(|pid| !self.looked_into.contains(pid));
        let started = started.count() as u64;
        self.rest.look_into_kernel(kernel.sum(), used, started);
        self.looked_into.clone_from(&self.pids);
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

/// How long the program rested: no thread ran or waited for a processor that others have. Found by looking now and then,
/// as nobody counts it; and what it used of processors.
#[derive(Clone, Copy, Debug, Default)]
struct RestWatch {
    since: u64,
    /// What the program had used of processors then.
    cpu: u64,
    /// In this slice.
    rested: u64,
    /// Of processors, in this slice.
    used: u64,
    /// What the kernel had used of them at the last look, may use for the tracer, and used for the program in this slice.
    kernel: u64,
    tracers: u64,
    in_kernel: u64,
}

impl RestWatch {
    /// What the program did not use of a processor since the last look is rest where it rests now: so it is in the mean.
    /// Returns what it used of processors meanwhile.
    fn look(&mut self, now: u64, cpu: u64, rests: impl FnOnce() -> bool) -> u64 {
        let passed = now.saturating_sub(self.since);
        let used = cpu.saturating_sub(self.cpu);
        let idle = passed.saturating_sub(used);
        self.used = self.used.saturating_add(used);
        if idle > 0 && rests() {
            self.rested = self.rested.saturating_add(idle);
        }
        (self.since, self.cpu) = (now, cpu);
        used
    }

    /// `used`: processor time since the last look; `started`: processes that have come.
    fn look_into_kernel(&mut self, kernel: u64, used: u64, started: u64) {
        let part = (self.tracers + used / TRACERS_PART).min(TRACERS_START.max(self.tracers));
        let tracers = part.saturating_add(started.saturating_mul(TRACERS_START));
        let more = kernel.saturating_sub(self.kernel);
        self.in_kernel = self.in_kernel.saturating_add(more.saturating_sub(tracers));
        self.tracers = tracers.saturating_sub(more);
        self.kernel = kernel;
    }
}

/// Mean of those that executed half as many as the busiest or more, and how many these are, 1 at least.
fn mean_at_work(lanes: &[u64]) -> (u64, u64) {
    let most = lanes.iter().copied().max().unwrap_or(0);
    let at_work = || lanes.iter().filter(|&&n| n > 0 && n >= most / 2);
    let sum = at_work().fold(0u64, |sum, &n| sum.saturating_add(n));
    let count = (at_work().count() as u64).max(1);
    (sum / count, count)
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

    const MS: u64 = 1_000_000;

    /// Of slices of 10 ms.
    fn timer() -> SliceTimer {
        let options = TraceOptions {
            slice: 10 * MS,
            slice_clock: SliceClock::Instructions,
            ..TraceOptions::default()
        };
        SliceTimer::new(&options, 0)
    }

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
        let mut timer = timer();
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
        let mut rest = RestWatch::default();
        rest.look(500 * MS, 500 * MS, || true);
        assert_eq!(rest.rested, 0, "it used all of a processor");
        for now in 51..=60 {
            rest.look(now * 10 * MS, 501 * MS, || true);
        }
        assert_eq!(rest.rested, 99 * MS);
        rest.look(700 * MS, 510 * MS, || false);
        assert_eq!(rest.rested, 99 * MS, "it waits for a processor");
        rest.look(800 * MS, 700 * MS, || true);
        assert_eq!(rest.rested, 99 * MS, "two processors");
    }

    /// A program that used a little more than a twentieth of a processor had slices fifty times as long as one that used a
    /// little less, and so it did on a machine that was a little slower.
    #[test]
    fn what_is_executed_and_rest_add_up() {
        let mut timer = timer();
        let target = timer.target();
        timer.lanes = vec![target / 2];
        timer.rest.rested = 50 * MS;
        assert_eq!(timer.progress(), target);
        timer.rest.rested = 99 * MS;
        timer.begin_slice(150 * MS);
        assert_eq!(timer.progress(), 0, "rest makes no later slice shorter");
        timer.lanes = vec![target + 7];
        timer.begin_slice(300 * MS);
        assert_eq!(timer.progress(), 7);
    }

    /// Four ranks that ask for messages and yield had slices thirteen times too long: most of their time is the kernel's.
    #[test]
    fn the_kernel_takes_its_time() {
        let mut timer = timer();
        let target = timer.target();
        timer.lanes = vec![target / 10; 4];
        let look = |timer: &mut SliceTimer, more, used, started| {
            let kernel = timer.rest.kernel + more * MS;
            timer.rest.look_into_kernel(kernel, used * MS, started);
        };
        look(&mut timer, 390, 400, 4);
        assert_eq!(timer.progress(), target / 10, "it starts");
        look(&mut timer, 10, 0, 0);
        look(&mut timer, 136, 2800, 0);
        assert_eq!(
            timer.progress(),
            target,
            "9 of 10 ms in each of four threads"
        );
        timer.begin_slice(20 * MS);
        look(&mut timer, 4, 0, 0);
        assert_eq!(
            timer.progress(),
            target / 10 * 4,
            "no thread has executed anything yet"
        );
        timer.begin_slice(40 * MS);
        for _ in 0..1000 {
            look(&mut timer, 1, 32, 0);
        }
        assert_eq!(timer.progress(), 0, "the tracer's part");
        look(&mut timer, 0, 8000, 0);
        look(&mut timer, 101, 0, 0);
        assert_eq!(
            timer.progress(),
            target / 10,
            "what it did not use long ago is over"
        );
    }

    /// Beside other work the program was late from its start on, did not rest, and all of it was one slice.
    #[test]
    fn slices_of_programs_short_of_processors_end() {
        let mut timer = timer();
        timer.rest.used = 400 * MS;
        assert!(!timer.is_short_of_processors(999 * MS));
        assert!(timer.is_short_of_processors(1000 * MS));
        timer.rest.used = 500 * MS;
        assert!(!timer.is_short_of_processors(1000 * MS), "it works");
        (timer.length, timer.rest.used) = (MS, 0);
        assert!(!timer.is_short_of_processors(999 * MS), "a second at least");
        timer.begin_slice(30_000 * MS);
        assert!(!timer.is_short_of_processors(31_999 * MS));
        assert!(timer.is_short_of_processors(32_000 * MS));
    }

    #[test]
    fn threads_that_wait_do_not_count() {
        assert_eq!(mean_at_work(&[]), (0, 1));
        assert_eq!(mean_at_work(&[8, 0, 1, 3]), (8, 1));
        assert_eq!(mean_at_work(&[8, 6, 4, 3]), (6, 3));
    }
}
