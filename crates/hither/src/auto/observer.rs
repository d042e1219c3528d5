//! Who tells of page faults: perf events, or BPF where those are forbidden.
use std::io;

use hither_sys::bpf::Tracer;
use hither_sys::faults::{Faults, Record};

use super::unobservable;
use hither_sys::{Pid, Tid};

/// Tells of page faults, and of beginnings and ends of threads and processes.
pub trait Observer {
    /// Observes one more thread, its process where that is simpler, and what it starts.
    ///
    /// # Errors
    /// ESRCH when it is gone, EACCES or EPERM when it is not ours to observe.
    fn add(&mut self, pid: Pid, tid: Tid, cpus: &[u32]) -> io::Result<()>;
    /// What happened since the last call, in order of time (nanoseconds, by CLOCK_MONOTONIC).
    fn drain(&mut self) -> &[(u64, Record)];
    /// Records that found no room so far.
    fn lost(&self) -> u64;
    /// A remark for the user.
    fn note(&self) -> Option<&'static str>;
}

impl Observer for Faults {
    fn add(&mut self, _: Pid, tid: Tid, cpus: &[u32]) -> io::Result<()> {
        Faults::add(self, tid, cpus)
    }

    fn drain(&mut self) -> &[(u64, Record)] {
        Faults::drain(self)
    }

    fn lost(&self) -> u64 {
        Faults::lost(self)
    }

    fn note(&self) -> Option<&'static str> {
        self.user_only.then_some(
            "faults inside system calls were not seen (perf_event_paranoid is 2 or more)",
        )
    }
}

impl Observer for Tracer {
    fn add(&mut self, pid: Pid, _: Tid, _: &[u32]) -> io::Result<()> {
        self.follow(pid)
    }

    fn drain(&mut self) -> &[(u64, Record)] {
        Tracer::drain(self)
    }

    fn lost(&self) -> u64 {
        Tracer::lost(self)
    }

    fn note(&self) -> Option<&'static str> {
        Some("page faults were observed by BPF, for perf events are forbidden here")
    }
}

/// A way to observe that works here.
pub enum Means {
    Perf,
    Bpf(Tracer),
}

impl Means {
    /// # Errors
    /// In words, why none does.
    pub fn find() -> anyhow::Result<Means> {
        let Err(error) = hither_sys::probe::perf_page_faults(true) else {
            return Ok(Means::Perf);
        };
        match Tracer::new() {
            Ok(tracer) => Ok(Means::Bpf(tracer)),
            Err(_) => Err(anyhow::anyhow!(unobservable::why(&error))),
        }
    }

    /// Observes what this process starts from now on.
    ///
    /// # Errors
    /// As perf_event_open(2) or bpf(2).
    pub fn of_children(self, cpus: &[u32]) -> io::Result<Box<dyn Observer>> {
        Ok(match self {
            Means::Perf => Box::new(Faults::of_children(cpus)?),
            Means::Bpf(tracer) => {
                tracer.follow(std::process::id().cast_signed())?;
                Box::new(tracer)
            }
        })
    }

    /// Observes threads of a process, and what they start.
    ///
    /// # Errors
    /// As [`Observer::add`].
    pub fn of_threads(self, pid: Pid, tids: &[Tid], cpus: &[u32]) -> io::Result<Box<dyn Observer>> {
        Ok(match self {
            Means::Perf => Box::new(Faults::of_threads(tids, cpus)?),
            Means::Bpf(tracer) => {
                tracer.follow(pid)?;
                Box::new(tracer)
            }
        })
    }
}
