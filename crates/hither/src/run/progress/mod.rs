//! Which phase of a placement holds now (OPT 6.4).
//!
//! ```text
//!   breakpoints --counts--> estimate --> pace --phase reached--> intervals --Holding--> guide
//!   clock -----------------------------/                        /  t_min: 1 s, 10 s
//! ```
//! Which phases there are, and which are worth a change, `hither map --phases` has decided
//! on the traced run. Here is decided only when they begin in this one.
mod change_intervals;
mod phase_pace;
mod sync_counters;
mod sync_estimate;
#[cfg(test)]
mod tests;

use super::guide::{ActivePhases, ExecImage};
use crate::follow::cpu_time::thread_time;
use crate::follow::proc_maps::MemoryMapping;
use change_intervals::ChangeIntervals;
use hither_profile::{Nanos, Placement};
use hither_sys::perf::InheritScope;
use hither_sys::Pid;
use phase_pace::PhasePace;
use sync_counters::SyncCounters;
use sync_estimate::{KnownSyncCounts, SyncEstimate, BUDGET};

/// Least time between two looks at the counters.
const LOOK: Nanos = 5_000_000;
/// Looking takes this share of the time at most: it asks every thread's counter.
const LOOKS: u64 = 200;

/// Follows the phases of a placement; `None` where there is only one. With `by_time` no
/// synchronisation points are counted.
#[must_use]
pub fn follow(placement: &Placement, by_time: bool) -> Option<Box<PhaseFollower>> {
    let phases = &placement.phases;
    if phases.len() < 2 {
        return None;
    }
    // A placement that was read has intervals that are times.
    let interval = placement.policy.phase_intervals().unwrap_or_default();
    let pace = PhasePace::new(phases);
    let kinds = pace.telling_kinds();
    // A run that was one process with no children is counted as such: whatever else it
    // starts now was not counted then.
    let inherit = match placement.processes.len() {
        0 | 1 => InheritScope::Threads,
        _ => InheritScope::Processes,
    };
    let counters = (!by_time && kinds.contains(&true)).then(|| SyncCounters::new(kinds, inherit));
    Some(Box::new(PhaseFollower {
        why_time: match (by_time, kinds.contains(&true)) {
            (true, _) => Some("as asked for".to_owned()),
            (_, false) => Some("the traced run passed no barrier".to_owned()),
            _ => None,
        },
        pace,
        intervals: ChangeIntervals::new(phases, interval.threads, interval.pages),
        counters,
        estimate: SyncEstimate::new(placed(placement)),
        counts: [None; 4],
        next_look: 0,
        is_told: false,
    }))
}

/// Threads that work; all of them where only pages are placed.
fn placed(placement: &Placement) -> u64 {
    let most = placement.phases.iter().map(|p| p.threads.len()).max();
    let most = most.filter(|n| *n > 0).unwrap_or(placement.threads.len());
    most as u64
}

/// Tells how far the program has come.
pub struct PhaseFollower {
    pace: PhasePace,
    intervals: ChangeIntervals,
    counters: Option<SyncCounters>,
    /// Why phases go by time, where they do.
    why_time: Option<String>,
    estimate: SyncEstimate,
    counts: KnownSyncCounts,
    next_look: Nanos,
    /// The ptrace engine reports execs and mappings; otherwise /proc is read.
    is_told: bool,
}

impl PhaseFollower {
    fn look(&mut self, at: Nanos) {
        let Some(counters) = self.counters.as_mut().filter(|_| at >= self.next_look) else {
            return;
        };
        let estimate = &mut self.estimate;
        let (counts, spent) = processor_time(|| {
            let was_on = estimate.is_on();
            let counts = estimate.estimate_passed(at, &counters.values());
            if estimate.is_on() != was_on {
                counters.enable(estimate.is_on());
            }
            counts
        });
        self.counts = counts;
        let rest = spent.saturating_mul(LOOKS);
        self.next_look = at.saturating_add(rest.max(LOOK));
    }

    /// The program exists and has not run yet. Called first of all.
    pub fn program_started(&mut self) {
        if self.counters.is_none() {
            return;
        }
        match SyncCounters::cost_per_call() {
            Ok(cost) => self.estimate.cost = cost,
            Err(e) => {
                self.why_time = Some(refusal(&e));
                self.counters = None;
            }
        }
    }

    /// A process is at the first instruction of a program: the first one, and after each
    /// exec.
    pub fn image_started(&mut self, pid: Pid, image: &ExecImage) {
        self.is_told = true;
        if let Some(counters) = &mut self.counters {
            counters.image(pid, image);
        }
    }

    /// A process mapped a part of a file that can be executed.
    pub fn mapped(&mut self, pid: Pid, mapping: &MemoryMapping) {
        if let Some(counters) = &mut self.counters {
            counters.mapped(pid, mapping);
        }
    }

    /// Whether it wants to know of such mappings.
    pub fn wants_mappings(&self) -> bool {
        self.counters.is_some()
    }

    /// What is to hold now, `at` being the time since the start. Wants to be called some
    /// dozens of times a second.
    pub fn active_phases(&mut self, at: Nanos) -> ActivePhases {
        self.look(at);
        let reached = self.pace.advance(at, &self.counts);
        if self.pace.is_last() {
            self.counters = None;
        }
        self.intervals.active_phases(at, reached)
    }

    /// Whether nothing will change any more.
    pub fn is_over(&self) -> bool {
        self.pace.is_last() && self.intervals.is_settled()
    }

    /// How progress was followed, for the user.
    pub fn note(&self) -> Option<String> {
        let why = || match (&self.why_time, &self.counters) {
            (Some(why), _) => why.clone(),
            (None, Some(_)) if !self.is_told => {
                "from outside, where the program cannot be stopped, no barriers are counted"
                    .to_owned()
            }
            (None, Some(c)) => c.refused().map_or(
                "no barrier was met that the traced run met".to_owned(),
                |(kind, e)| format!("{kind} could not be counted ({e})"),
            ),
            (None, None) => "no barrier lies between them".to_owned(),
        };
        let late = match self.pace.ratio() {
            Some(_) => "at the pace of the run until then",
            None => "as in the traced run, which was slower: changes come late or never",
        };
        match self.pace.reached_by() {
            (_, true) => Some(format!("Phases went by time, {late}: {}.", why())),
            (false, false) if self.why_time.is_some() => {
                Some(format!("Phases went by time, {late}: {}.", why()))
            }
            _ if self.estimate.has_paused() => Some(format!(
                "Phases went by barriers counted now and then: counting all would have cost more than {:.0} % of the time.",
                BUDGET * 100.0
            )),
            _ => None,
        }
    }
}

/// What work gives, and the processor time that it took. On a busy machine it may wait long for a processor, which costs
/// the program nothing.
fn processor_time<T>(work: impl FnOnce() -> T) -> (T, Nanos) {
    let before = thread_time();
    let found = work();
    (found, thread_time().saturating_sub(before))
}

fn refusal(error: &std::io::Error) -> String {
    let refused = matches!(
        error.raw_os_error(),
        Some(nix::libc::EACCES | nix::libc::EPERM)
    );
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let level = paranoid.ok().and_then(|p| p.trim().parse::<i32>().ok());
    match level.filter(|_| refused) {
        Some(level) if level > 2 => format!(
            "kernel.perf_event_paranoid is {level}, which forbids counting barriers; 2 would do"
        ),
        _ => format!("barriers cannot be counted here ({error})"),
    }
}
