//! The source of page faults: perf events, or BPF where those are forbidden.
use std::io;

use hither_sys::bpf::BpfFaultMonitor;
use hither_sys::faults::{KernelEvent, PerfFaultMonitor};

use super::unobservable;
use hither_sys::{Pid, Tid};

/// Tells of page faults, and of beginnings and ends of threads and processes.
pub trait FaultObserver {
    /// Observes one more thread, its process where that is simpler, and what it starts.
    ///
    /// # Errors
    /// ESRCH when it is gone, EACCES or EPERM when it is not ours to observe.
    fn add(&mut self, pid: Pid, tid: Tid, cpus: &[u32]) -> io::Result<()>;
    /// What happened since the last call, in order of time (nanoseconds, by CLOCK_MONOTONIC).
    fn take_records(&mut self) -> &[(u64, KernelEvent)];
    /// Records that found no room so far.
    fn lost_records(&self) -> u64;
    /// A remark for the user.
    fn note(&self) -> Option<&'static str>;
}

impl FaultObserver for PerfFaultMonitor {
    fn add(&mut self, _: Pid, tid: Tid, cpus: &[u32]) -> io::Result<()> {
        PerfFaultMonitor::add_thread(self, tid, cpus)
    }

    fn take_records(&mut self) -> &[(u64, KernelEvent)] {
        PerfFaultMonitor::drain(self)
    }

    fn lost_records(&self) -> u64 {
        PerfFaultMonitor::lost(self)
    }

    fn note(&self) -> Option<&'static str> {
        self.user_only.then_some(
            "faults inside system calls were not seen (perf_event_paranoid is 2 or more)",
        )
    }
}

impl FaultObserver for BpfFaultMonitor {
    fn add(&mut self, pid: Pid, _: Tid, _: &[u32]) -> io::Result<()> {
        self.follow(pid)
    }

    fn take_records(&mut self) -> &[(u64, KernelEvent)] {
        BpfFaultMonitor::drain(self)
    }

    fn lost_records(&self) -> u64 {
        BpfFaultMonitor::lost(self)
    }

    fn note(&self) -> Option<&'static str> {
        Some("page faults were observed by BPF, for perf events are forbidden here")
    }
}

/// A way to observe that works here.
pub enum ObserverBackend {
    Perf,
    Bpf(BpfFaultMonitor),
}

impl ObserverBackend {
    /// # Errors
    /// In words, why none does.
    pub fn detect() -> anyhow::Result<ObserverBackend> {
        let Err(error) = hither_sys::probe::perf_page_faults(true) else {
            return Ok(ObserverBackend::Perf);
        };
        match BpfFaultMonitor::new() {
            Ok(tracer) => Ok(ObserverBackend::Bpf(tracer)),
            Err(_) => Err(anyhow::anyhow!(unobservable::explain_observe_error(&error))),
        }
    }

    /// Observes what this process starts from now on.
    ///
    /// # Errors
    /// As perf_event_open(2) or bpf(2).
    pub fn of_children(self, cpus: &[u32]) -> io::Result<Box<dyn FaultObserver>> {
        Ok(match self {
            ObserverBackend::Perf => Box::new(PerfFaultMonitor::of_children(cpus)?),
            ObserverBackend::Bpf(tracer) => {
                tracer.follow(std::process::id().cast_signed())?;
                Box::new(tracer)
            }
        })
    }

    /// Observes threads of a process, and what they start.
    ///
    /// # Errors
    /// As [`FaultObserver::add`].
    pub fn of_threads(
        self,
        pid: Pid,
        tids: &[Tid],
        cpus: &[u32],
    ) -> io::Result<Box<dyn FaultObserver>> {
        Ok(match self {
            ObserverBackend::Perf => Box::new(PerfFaultMonitor::of_threads(tids, cpus)?),
            ObserverBackend::Bpf(tracer) => {
                tracer.follow(pid)?;
                Box::new(tracer)
            }
        })
    }
}
