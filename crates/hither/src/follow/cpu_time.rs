//! Processor time: of hither, of processes that it follows.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::program::clock::clock_ns;
use hither_profile::Nanos;
use nix::time::{clock_getcpuclockid, clock_gettime, ClockId};

use hither_sys::{Pid, Tid};

/// Processor time of all processes that are or were followed, since they were.
#[derive(Debug, Default)]
pub struct CpuClocks {
    /// As it was when they came and as it is now.
    live: HashMap<Pid, (Nanos, Nanos)>,
    ended: Nanos,
}

impl CpuClocks {
    /// A process that begins.
    pub fn process_started(&mut self, pid: Pid) {
        self.live.entry(pid).or_default();
    }

    /// A process that runs already, which counts from now on.
    pub fn process_attached(&mut self, pid: Pid) {
        let now = time_of(pid).unwrap_or(0);
        self.live.insert(pid, (now, now));
    }

    pub fn process_ended(&mut self, pid: Pid) {
        let (came, now) = self.live.remove(&pid).unwrap_or_default();
        self.ended += now - came;
    }

    /// All of it so far.
    pub fn read(&mut self) -> Nanos {
        for (&pid, (_, now)) in &mut self.live {
            *now = time_of(pid).map_or(*now, |new| new.max(*now));
        }
        let live = self.live.values();
        self.ended + live.map(|(came, now)| now - came).sum::<u64>()
    }
}

/// Time between two looks at who waits.
const PAUSE: Duration = Duration::from_millis(500);
/// Threads that are asked each time, of more the first.
const ASKED: usize = 16;

/// How many threads would run and have no processor (the kernel's scheduler statistics).
#[derive(Debug)]
pub struct RunQueueWaits {
    looked: Instant,
    /// Time that each waited so far.
    before: HashMap<Tid, Nanos>,
    waiting: Option<f64>,
}

impl RunQueueWaits {
    pub fn new() -> RunQueueWaits {
        RunQueueWaits {
            looked: Instant::now(),
            before: HashMap::new(),
            waiting: None,
        }
    }

    /// Of these threads, in the mean over the last half second; `None` where that is not known.
    pub fn look<'a>(&mut self, threads: impl Iterator<Item = (Pid, Tid)> + 'a) -> Option<f64> {
        let passed = self.looked.elapsed();
        if passed < PAUSE {
            return self.waiting;
        }
        self.looked = Instant::now();
        let (mut waited, mut known, mut all) = (0, 0u32, 0u32);
        let mut now = HashMap::new();
        for (pid, tid) in threads {
            all += 1;
            let Some(time) = (all as usize <= ASKED)
                .then(|| waited_of(pid, tid))
                .flatten()
            else {
                continue;
            };
            if let Some(before) = self.before.get(&tid) {
                known += 1;
                waited += time.saturating_sub(*before);
            }
            now.insert(tid, time);
        }
        self.before = now;
        let mean = waited as f64 / passed.as_nanos() as f64;
        self.waiting = (known > 0).then(|| mean * f64::from(all) / f64::from(known));
        self.waiting
    }
}

/// Time that a thread spent waiting for a processor.
fn waited_of(pid: Pid, tid: Tid) -> Option<Nanos> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

pub fn to_nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Processor time of a process so far.
fn time_of(pid: Pid) -> Option<Nanos> {
    let clock = clock_getcpuclockid(nix::unistd::Pid::from_raw(pid)).ok()?;
    Some(to_nanos(Duration::from(clock_gettime(clock).ok()?)))
}

/// Processor time of this process so far.
pub fn own_time() -> Nanos {
    clock_ns(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of this thread so far.
pub fn thread_time() -> Nanos {
    clock_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
}
