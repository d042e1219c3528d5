//! Processor time: of hither, of processes that it follows.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::procfs::{self, CLOCK_TICK};
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

    /// Of these threads, in the mean over the last half second, or over its life where one began since;
    /// `None` where that is not known.
    pub fn look<'a>(&mut self, threads: impl Iterator<Item = (Pid, Tid)> + 'a) -> Option<f64> {
        let passed = self.looked.elapsed();
        if passed < PAUSE {
            return self.waiting;
        }
        self.looked = Instant::now();
        let (mut waiting, mut known, mut all) = (0.0, 0u32, 0u32);
        let mut now = HashMap::new();
        for (pid, tid) in threads {
            all += 1;
            let Some(times) = (all as usize <= ASKED)
                .then(|| scheduled(pid, tid))
                .flatten()
            else {
                continue;
            };
            let since = match self.before.get(&tid) {
                Some(before) => Some((times.waited.saturating_sub(*before), to_nanos(passed))),
                None => times.life_within(passed, pid, tid),
            };
            if let Some((waited, of)) = since {
                known += 1;
                waiting += waited as f64 / of.max(1) as f64;
            }
            now.insert(tid, times.waited);
        }
        self.before = now;
        self.waiting = (known > 0).then(|| waiting * f64::from(all) / f64::from(known));
        self.waiting
    }
}

/// What a thread did since it began.
struct ScheduledTimes {
    ran: Nanos,
    waited: Nanos,
}

impl ScheduledTimes {
    /// Of a thread that began within this time, how long it waited for a processor, and has lived. A
    /// program whose threads live shorter than that has no others that tell.
    fn life_within(&self, passed: Duration, pid: Pid, tid: Tid) -> Option<(Nanos, Nanos)> {
        let began = procfs::start_time(pid, tid)?.0 * CLOCK_TICK;
        let life = clock_ns(ClockId::CLOCK_BOOTTIME).saturating_sub(began);
        let life = life.max(self.ran + self.waited);
        (life <= to_nanos(passed) + CLOCK_TICK).then_some((self.waited, life))
    }
}

fn scheduled(pid: Pid, tid: Tid) -> Option<ScheduledTimes> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    let mut times = text.split_whitespace().map_while(|time| time.parse().ok());
    Some(ScheduledTimes {
        ran: times.next()?,
        waited: times.next()?,
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use hither_sys::affinity::CpuMask;

    /// Three at a time that want one processor, anew before it is looked at who waits.
    #[test]
    fn threads_that_began_since_the_last_look_are_seen_to_wait() {
        let pid = std::process::id().cast_signed();
        let unit = CpuMask::of_thread(0).expect("mask").cpus().next();
        let unit = CpuMask::single(unit.expect("a unit"));
        let (say, hear) = std::sync::mpsc::channel();
        let mut waits = RunQueueWaits::new();
        let spin = |time: Duration| {
            unit.set_affinity(0).expect("pin");
            say.send(nix::unistd::gettid().as_raw()).expect("said");
            let began = Instant::now();
            while began.elapsed() < time {}
        };
        let mut waiting = None;
        for _ in 0..2 {
            std::thread::scope(|scope| {
                (0..3).for_each(|_| drop(scope.spawn(|| spin(PAUSE * 3 / 2))));
                let tids: Vec<Tid> = hear.iter().take(3).collect();
                std::thread::sleep(PAUSE * 6 / 5);
                let own = nix::unistd::gettid().as_raw();
                waiting = waits.look([own].into_iter().chain(tids).map(|tid| (pid, tid)));
            });
        }
        let waiting = waiting.expect("a number");
        assert!(waiting > 1.0, "{waiting}");
    }
}
