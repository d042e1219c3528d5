//! Where ptrace or seccomp is forbidden: the program is started plainly, and its threads
//! are pinned from outside, by reading /proc again and again.
//!
//! What is lost against following it: threads run unpinned until they are seen, short ones
//! are not seen at all, pages are not bound, and threads created between two looks are
//! taken in order of their ids. The first thread of a process is pinned only when a second
//! one exists or the process is a second old, for runtimes count the units they may use at
//! the start and would take one unit for all there are.
//!
//! A look at everything costs some 20 us a thread. While that has taken more than its share of a
//! processor, only the numbers of threads are looked at, which is one call a process, and threads
//! only where the number has changed.
use super::guide::{ActivePhases, ExecImage, InitialPlacement, PlacementGuide};
use super::outcome::{CostOutcome, FollowMethod, PhaseOutcome, RunOutcome, ThreadOutcome};
use super::progress::PhaseFollower;
use super::request::RunRequest;
use crate::follow::cpu_time::{own_time, to_nanos};
use crate::follow::job_control::{self, BlockedSignals, WaitEvent};
use crate::follow::launch;
use crate::follow::pinning;
use crate::follow::procfs::{self, ThreadStatus};
use crate::program::mpi;
use anyhow::{Context, Result};
use hither_profile::Nanos;
use hither_sys::affinity::CpuMask;
use hither_sys::{Pid, Tid};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Between two looks: short after something new was seen, then longer and longer.
const MIN_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(20);
/// Between two looks at where a thread runs.
const READ_BACK: Duration = Duration::from_millis(100);
/// Share of a processor that looking may take, and what it may have taken before that counts.
const CPU_SHARE: f64 = 0.01;
const CPU_GRACE: Duration = Duration::from_millis(100);
/// While it has taken more: the share for looking at numbers, and the longest pause for it.
const COUNTING_SHARE: f64 = 0.005;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// When a process of one thread is taken to have counted its units.
const SETTLED_AGE: Duration = Duration::from_secs(1);

/// Runs the program to its end; `why` it could not be followed, where that was tried.
///
/// # Errors
/// When it cannot be started.
pub fn run(
    mut request: RunRequest,
    guide: Box<dyn PlacementGuide>,
    why: Option<&str>,
) -> Result<RunOutcome> {
    let signals = BlockedSignals::block()?;
    if let Some(policy) = &request.memory {
        // Ours, and inherited by the program.
        let (mode, nodes) = policy.for_kernel();
        hither_sys::launch::set_mempolicy(mode, &nodes)
            .context("cannot set the memory policy; see `hither doctor`")?;
    }
    let before = own_time();
    let command = launch::build_command(&request.target, &request.environment, &signals);
    let pid = launch::spawn_target(&request.target, command)?;
    let mut poller = ProcPoller::new(guide, request.progress.take(), pid.as_raw())?;
    let end = job_control::wait_with_callback(pid, None, &signals, |beat| {
        (beat == WaitEvent::Tick).then(|| poller.poll_once())
    })?;
    let mut outcome = poller.finish();
    let lost = "threads were pinned from outside after they had started, short ones not at all, and pages were left to the system";
    let lost = match why {
        Some(why) => format!("this system does not let hither follow programs ({why}), so {lost}; see `hither doctor`"),
        None => lost.to_owned(),
    };
    outcome.notes.insert(0, lost);
    outcome.end = end;
    outcome.cost.cpu = own_time().saturating_sub(before);
    let command = request.command.iter();
    outcome.command = command.map(|w| w.to_string_lossy().into_owned()).collect();
    Ok(outcome)
}

/// A process that is alive.
struct PolledProcess {
    since: Instant,
    executable: String,
    /// Threads that were seen, by id, and their places in [`ProcPoller::threads`].
    tids: BTreeMap<Tid, usize>,
}

struct ProcPoller {
    guide: Box<dyn PlacementGuide>,
    progress: Option<Box<PhaseFollower>>,
    root: Pid,
    start: Instant,
    /// Processor time of hither at the start.
    cpu_at_start: Nanos,
    /// Where threads may run that are not placed.
    allowed: CpuMask,
    processes: BTreeMap<Pid, PolledProcess>,
    threads: Vec<ThreadOutcome>,
    /// The mask that each of them was given last.
    given: Vec<Option<String>>,
    /// Masks that a thread has from us or from before; others it chose itself.
    known_masks: BTreeSet<String>,
    holding: ActivePhases,
    phases: Vec<PhaseOutcome>,
    pause: Duration,
    read_back: Instant,
    looks: u64,
    notes: Vec<String>,
}

impl ProcPoller {
    fn new(
        guide: Box<dyn PlacementGuide>,
        mut progress: Option<Box<PhaseFollower>>,
        root: Pid,
    ) -> Result<ProcPoller> {
        if let Some(progress) = &mut progress {
            progress.program_started();
        }
        let now = Instant::now();
        let allowed = CpuMask::of_thread(0).context("cannot read the affinity mask")?;
        Ok(ProcPoller {
            guide,
            progress,
            root,
            start: now,
            cpu_at_start: own_time(),
            known_masks: BTreeSet::from([allowed.to_string()]),
            allowed,
            processes: BTreeMap::new(),
            threads: Vec::new(),
            given: Vec::new(),
            holding: ActivePhases::default(),
            phases: Vec::new(),
            pause: MIN_PAUSE,
            read_back: now,
            looks: 0,
            notes: Vec::new(),
        })
    }

    /// Processor time that looking has taken and may have taken by now.
    fn cpu_budget(&self) -> (Duration, Duration) {
        let spent = own_time().saturating_sub(self.cpu_at_start);
        let share = self.start.elapsed().mul_f64(CPU_SHARE);
        (Duration::from_nanos(spent), CPU_GRACE + share)
    }

    /// Looks once; how long to wait before the next time.
    fn poll_once(&mut self) -> Duration {
        let (before, allowed) = self.cpu_budget();
        let all = before < allowed;
        let seen = self.look_at_processes(all);
        self.follow_phases();
        if all && self.read_back.elapsed() >= READ_BACK {
            self.read_back = Instant::now();
            self.read_all_back();
        }
        self.pause = match seen {
            true => MIN_PAUSE,
            false => (self.pause * 2).min(MAX_PAUSE),
        };
        let (after, allowed) = self.cpu_budget();
        if !all && after > allowed {
            let affordable = (after - before).div_f64(COUNTING_SHARE);
            return self.pause.max(affordable.min(LONGEST_PAUSE));
        }
        self.pause
    }

    /// Looks at the processes, and those that come of them, with all their threads or only their
    /// number. Whether there were new threads.
    fn look_at_processes(&mut self, all: bool) -> bool {
        self.looks += 1;
        let seen = self.threads.len();
        let mut pids: Vec<(Pid, Option<Pid>)> = vec![(self.root, None)];
        // Processes whose parent exited have another parent now (init or a subreaper).
        pids.extend(
            self.processes
                .keys()
                .filter(|p| **p != self.root)
                .map(|p| (*p, None)),
        );
        let mut at = 0;
        while let Some(&(pid, parent)) = pids.get(at) {
            at += 1;
            for child in self.look_at(pid, parent, all) {
                if pids.iter().all(|(known, _)| *known != child) {
                    pids.push((child, Some(pid)));
                }
            }
        }
        self.threads.len() > seen
    }

    /// Takes in the new threads of a process and forgets those that are gone; its children, or
    /// without `all` those of its first thread.
    fn look_at(&mut self, pid: Pid, parent: Option<Pid>, all: bool) -> Vec<Pid> {
        if !all && self.has_same_number(pid) {
            return procfs::child_pids(pid, pid);
        }
        let tids = procfs::thread_ids(pid);
        if tids.is_empty() {
            if let Some(process) = self.processes.remove(&pid) {
                process
                    .tids
                    .into_keys()
                    .for_each(|tid| self.guide.thread_ended(tid));
            }
            return Vec::new();
        }
        self.process_seen(pid, parent);
        let process = self.processes.get_mut(&pid);
        let Some(process) = process else {
            return Vec::new();
        };
        let known = std::mem::take(&mut process.tids);
        let grown_up = tids.len() > 1 || process.since.elapsed() > SETTLED_AGE;
        let mut now = BTreeMap::new();
        for &tid in &tids {
            let place = match known.get(&tid) {
                Some(place) => *place,
                None => {
                    let initial = self.guide.thread_created(pid, tid, 0);
                    self.note_thread(pid, tid, initial)
                }
            };
            now.insert(tid, place);
            if self.given[place].is_none() && (tid != pid || grown_up) {
                self.pin_thread(place);
            }
        }
        let gone = known.keys().filter(|tid| !now.contains_key(tid));
        gone.for_each(|tid| self.guide.thread_ended(*tid));
        if let Some(process) = self.processes.get_mut(&pid) {
            process.tids = now;
        }
        let parents = if all { &tids[..] } else { &tids[..1] };
        let children = parents.iter().map(|tid| procfs::child_pids(pid, *tid));
        children.flatten().collect()
    }

    /// Whether a process runs the same program with as many threads as when it was looked at. One of
    /// a single thread is always looked at: that may have to be pinned by now.
    fn has_same_number(&self, pid: Pid) -> bool {
        self.processes.get(&pid).is_some_and(|known| {
            let number = known.tids.len();
            number > 1
                && procfs::thread_count(pid) == Some(number)
                && procfs::executable(pid) == known.executable
        })
    }

    /// A process that may be new, or run another program than before.
    fn process_seen(&mut self, pid: Pid, parent: Option<Pid>) {
        let executable = procfs::executable(pid);
        let known = self.processes.get(&pid).map(|p| p.executable.as_str());
        // Of a process that ends it is not known any more.
        if known.is_some_and(|known| known == executable || executable.is_empty()) {
            return;
        }
        let image = ExecImage {
            executable: executable.clone(),
            rank: mpi::local_rank_of(pid),
            ..ExecImage::default()
        };
        let initial = if known.is_some() {
            self.guide.process_execed(pid, pid, &image)
        } else if pid == self.root {
            self.guide.program_started(pid, &image)
        } else {
            let parent = parent.unwrap_or(self.root);
            let parents = self.processes.get(&parent);
            let same = parents.is_some_and(|p| p.executable == executable);
            let initial = self.guide.process_forked(parent, pid, false);
            match same {
                true => initial,
                false => self.guide.process_execed(pid, pid, &image),
            }
        };
        self.add_process(pid, executable, initial);
    }

    /// A process with its first thread; others of an earlier program are gone.
    fn add_process(&mut self, pid: Pid, executable: String, initial: InitialPlacement) {
        let place = self.note_thread(pid, pid, initial);
        let process = PolledProcess {
            since: Instant::now(),
            executable,
            tids: BTreeMap::from([(pid, place)]),
        };
        self.processes.insert(pid, process);
    }

    /// Notes a thread, or that one runs another program; its place in the list.
    fn note_thread(&mut self, pid: Pid, tid: Tid, initial: InitialPlacement) -> usize {
        let known = self.processes.get(&pid).and_then(|p| p.tids.get(&tid));
        let thread = ThreadOutcome {
            pid,
            tid,
            thread: initial.thread,
            asked: initial.cpu,
            ..ThreadOutcome::default()
        };
        if let Some(&place) = known {
            self.threads[place] = thread;
            self.given[place] = None;
            return place;
        }
        self.threads.push(thread);
        self.given.push(None);
        self.threads.len() - 1
    }

    /// Pins a thread where it was asked for, or frees it of what it inherited.
    fn pin_thread(&mut self, place: usize) {
        let thread = &self.threads[place];
        let now = CpuMask::of_thread(thread.tid).map(|mask| mask.to_string());
        if now.is_ok_and(|now| self.known_masks.contains(&now)) {
            let asked = thread.asked.map(|cpu| CpuMask::single(cpu.0));
            let mask = asked.as_ref().unwrap_or(&self.allowed);
            // It may have ended, or belong to another user now.
            let start_time = procfs::start_time(thread.pid, thread.tid);
            let set =
                |start_time| pinning::set_affinity_of((thread.pid, thread.tid), start_time, mask);
            if start_time.is_some_and(|start_time| set(start_time).is_ok_and(|done| done)) {
                self.known_masks.insert(mask.to_string());
            }
            self.given[place] = Some(mask.to_string());
        } else {
            self.given[place] = Some(String::new());
        }
        self.read_back(place);
    }

    fn read_back(&mut self, place: usize) {
        let thread = &mut self.threads[place];
        let Some(look) = procfs::read_thread_status(thread.pid, thread.tid) else {
            return;
        };
        let ThreadStatus {
            name,
            ran,
            allowed,
            migrations,
        } = look;
        let given = self.given[place].as_ref();
        thread.chose_itself = given.is_some() && given != allowed.as_ref();
        thread.name = name;
        thread.ran = ran;
        thread.allowed = allowed;
        thread.migrations = migrations;
    }

    fn read_all_back(&mut self) {
        let alive = self
            .processes
            .values()
            .flat_map(|p| p.tids.values().copied());
        let alive: Vec<usize> = alive.collect();
        alive.into_iter().for_each(|place| self.read_back(place));
    }

    fn follow_phases(&mut self) {
        let Some(progress) = &mut self.progress else {
            return;
        };
        let at = to_nanos(self.start.elapsed());
        let holding = progress.active_phases(at);
        if holding == self.holding {
            return;
        }
        self.holding = holding;
        let change = self.guide.enter_phases(holding);
        let mut moved = 0;
        for (tid, cpu) in change.threads {
            let of = self.processes.values().find_map(|p| p.tids.get(&tid));
            if let Some(&place) = of {
                self.threads[place].asked = Some(cpu);
                self.pin_thread(place);
                moved += 1;
            }
        }
        self.phases.push(PhaseOutcome {
            phase: holding.threads.max(holding.pages),
            at,
            threads_moved: moved,
            pages_moved: 0,
        });
    }

    fn finish(mut self) -> RunOutcome {
        self.notes.extend(self.progress.and_then(|p| p.note()));
        self.notes.extend(self.guide.notes());
        RunOutcome {
            duration: to_nanos(self.start.elapsed()),
            method: FollowMethod::Polling,
            threads: self.threads,
            phases: self.phases,
            notes: self.notes,
            cost: CostOutcome {
                stops: self.looks,
                ..CostOutcome::default()
            },
            ..RunOutcome::default()
        }
    }
}
