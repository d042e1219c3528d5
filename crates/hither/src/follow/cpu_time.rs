//! Processor time: of hither, of processes that it follows.
use std::collections::HashMap;
use std::time::Duration;

use hither_profile::Nanos;
use nix::time::{clock_getcpuclockid, clock_gettime, ClockId};

use hither_sys::Pid;

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
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    now.map_or(0, |now| to_nanos(Duration::from(now)))
}
