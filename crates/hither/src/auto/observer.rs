//! The source of page faults: perf events, or BPF where those are forbidden.
use std::io;

use hither_sys::bpf::BpfFaultMonitor;
use hither_sys::faults::{KernelEvent, PerfFaultMonitor};

use super::unobservable;
use hither_profile::Nanos;
use hither_sys::bpf::FaultFilter;
use hither_sys::{Pid, Tid};

/// What a fault costs a program more for its record, by perf events and by BPF, and for being left out by BPF's
/// filter: `cargo run --release -p hither-sys --example fault_records`, on a virtual machine with Linux 6.18.
const PERF_RECORD: Nanos = 650;
const BPF_RECORD: Nanos = 250;
pub const FILTERED_RECORD: Nanos = 130;

/// Tells of page faults, and of beginnings and ends of threads and processes.
pub enum FaultObserver {
    Perf(PerfFaultMonitor),
    /// With why it is used.
    Bpf(BpfFaultMonitor, &'static str),
}

impl FaultObserver {
    /// What a record costs the program.
    pub fn record_cost(&self) -> Nanos {
        match self {
            FaultObserver::Perf(_) => PERF_RECORD,
            FaultObserver::Bpf(..) => BPF_RECORD,
        }
    }

    /// What makes no records of faults that are not looked at, of these processes.
    ///
    /// # Errors
    /// As bpf(2).
    pub fn filtering(processes: impl Iterator<Item = Pid>) -> io::Result<FaultObserver> {
        let monitor = BpfFaultMonitor::new()?;
        for pid in processes {
            monitor.follow(pid)?;
        }
        let why = "page faults were observed by BPF, for the program has so many of its own";
        Ok(FaultObserver::Bpf(monitor, why))
    }

    /// Where records can be left out: what says which. `None` after the first call.
    pub fn take_filter(&mut self) -> Option<FaultFilter> {
        match self {
            FaultObserver::Perf(_) => None,
            FaultObserver::Bpf(monitor, _) => monitor.take_filter(),
        }
    }

    /// Observes one more thread, its process where that is simpler, and what it starts.
    ///
    /// # Errors
    /// ESRCH when it is gone, EACCES or EPERM when it is not ours to observe.
    pub fn add(&mut self, pid: Pid, tid: Tid, cpus: &[u32]) -> io::Result<()> {
        match self {
            FaultObserver::Perf(monitor) => monitor.add_thread(tid, cpus),
            FaultObserver::Bpf(monitor, _) => monitor.follow(pid),
        }
    }

    /// What happened since the last call, in order of time (nanoseconds, by CLOCK_MONOTONIC).
    pub fn take_records(&mut self) -> &[(u64, KernelEvent)] {
        match self {
            FaultObserver::Perf(monitor) => monitor.drain(),
            FaultObserver::Bpf(monitor, _) => monitor.drain(),
        }
    }

    /// Records that found no room so far.
    pub fn lost_records(&self) -> u64 {
        match self {
            FaultObserver::Perf(monitor) => monitor.lost(),
            FaultObserver::Bpf(monitor, _) => monitor.lost(),
        }
    }

    /// A remark for the user.
    pub fn note(&self) -> Option<&'static str> {
        match self {
            FaultObserver::Perf(monitor) => monitor.user_only.then_some(
                "faults inside system calls were not seen (perf_event_paranoid is 2 or more)",
            ),
            FaultObserver::Bpf(_, why) => Some(why),
        }
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
            Ok(monitor) => Ok(ObserverBackend::Bpf(monitor)),
            Err(_) => Err(anyhow::anyhow!(unobservable::explain_observe_error(&error))),
        }
    }

    /// Observes what this process starts from now on.
    ///
    /// # Errors
    /// As perf_event_open(2) or bpf(2).
    pub fn of_children(self, cpus: &[u32]) -> io::Result<FaultObserver> {
        let perf = || PerfFaultMonitor::of_children(cpus);
        self.observe(std::process::id().cast_signed(), perf)
    }

    /// Observes threads of a process, and what they start.
    ///
    /// # Errors
    /// As [`FaultObserver::add`].
    pub fn of_threads(self, pid: Pid, tids: &[Tid], cpus: &[u32]) -> io::Result<FaultObserver> {
        self.observe(pid, || PerfFaultMonitor::of_threads(tids, cpus))
    }

    fn observe(
        self,
        pid: Pid,
        perf: impl FnOnce() -> io::Result<PerfFaultMonitor>,
    ) -> io::Result<FaultObserver> {
        Ok(match self {
            ObserverBackend::Perf => FaultObserver::Perf(perf()?),
            ObserverBackend::Bpf(monitor) => {
                monitor.follow(pid)?;
                let why = "page faults were observed by BPF, for perf events are forbidden here";
                FaultObserver::Bpf(monitor, why)
            }
        })
    }
}
